"""Copies of the moves of rows against dense matrices."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.engine.moves import balanced, off_diagonal, picked, pointers, targets


@st.composite
def matrices(draw, square=False):
    """Sparse matrices with empty rows; the columns of a row in any order."""
    columns = draw(st.integers(1, 5))
    rows = columns if square else draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    dense = rng.integers(0, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.6)
    places = [rng.permutation(np.flatnonzero(row)) for row in dense]
    begin = np.cumsum([0, *map(len, places)])
    to = np.concatenate([*places, np.zeros(0, int)]).astype(int)
    row = np.repeat(np.arange(rows), np.diff(begin))
    matrix = sparse.csr_array((dense[row, to].astype(float), to, begin), (rows, columns))
    return matrix, dense.astype(float)


def stored(matrix):
    """Entries by place, explicit zeros included."""
    coo = matrix.tocoo()
    return sorted(zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True))


@settings(max_examples=50)
@given(matrices(), st.data())
def test_picked_rows_are_those_of_the_matrix(given_, data):
    matrix, dense = given_
    number = st.integers(0, max(len(dense) - 1, 0))
    rows = np.array(data.draw(st.lists(number, max_size=5 if len(dense) else 0)), np.int64)
    found = picked(matrix, rows)
    assert found.shape == (rows.size, dense.shape[1])
    assert (found.toarray() == dense[rows]).all()


@settings(max_examples=50)
@given(matrices(square=True))
def test_a_balanced_matrix_has_rows_that_sum_to_zero_and_leaves_empty_rows_empty(given_):
    matrix, dense = given_
    np.fill_diagonal(dense, 0.0)
    moves = off_diagonal(matrix, np.arange(len(dense), dtype=np.int32))
    found = balanced(moves)
    assert (found.toarray() == dense - np.diag(dense.sum(axis=1))).all()
    assert (np.diff(found.indptr) == (dense > 0).sum(axis=1) + (dense.sum(axis=1) > 0)).all()


@settings(max_examples=50)
@given(matrices(), st.data())
def test_moves_to_the_own_state_are_left_out_and_the_matrix_shared_without_any(given_, data):
    matrix, dense = given_
    rows, columns = dense.shape
    state = np.array([data.draw(st.integers(0, columns - 1)) for _ in range(rows)], np.int32)
    found = off_diagonal(matrix, state)
    expected = dense.copy()
    expected[np.arange(rows), state] = 0.0
    assert (found.toarray() == expected).all()
    assert (found is matrix) == (found.nnz == matrix.nnz)
    assert [entry for entry in stored(matrix) if entry[1] != state[entry[0]]] == stored(found)


def test_kernels_get_unsigned_numbers_that_share_the_memory_of_the_matrix():
    matrix = sparse.csr_array(np.eye(3))
    assert pointers(matrix).dtype == targets(matrix).dtype == np.uint32
    assert np.shares_memory(pointers(matrix), matrix.indptr)
    assert np.shares_memory(targets(matrix), matrix.indices)
