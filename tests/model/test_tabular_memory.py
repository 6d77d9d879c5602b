"""What building a large tabular model costs, and what it shares."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.engine.tabular import tabular_problem
from mdpcloud.errors import InputError
from mdpcloud.model.tabular import tabular

ENTRIES = 5


def large(states, actions, entries=ENTRIES):
    """A process in the form that is shared: sorted pairs, sorted columns, no diagonal."""
    rng = np.random.default_rng(5)
    pairs = states * actions
    state = np.repeat(np.arange(states, dtype=np.int32), actions)
    offset = np.sort(rng.permuted(np.tile(np.arange(1, 40), (pairs, 1)), axis=1)[:, :entries])
    columns = np.sort((state[:, None] + offset) % states, axis=1).astype(np.int32)
    matrix = sparse.csr_array(
        (
            np.full(columns.size, 1 / entries),
            columns.ravel(),
            np.arange(0, columns.size + 1, entries, dtype=np.int32),
        ),
        (pairs, states),
    )
    return matrix, state, np.tile(np.arange(actions, dtype=np.int32), states), rng.random(pairs)


def size(matrix, *arrays):
    return sum(a.nbytes for a in (matrix.data, matrix.indices, matrix.indptr, *arrays))


def peak(function):
    """What a function returns, and the most memory that it held beyond what was there."""
    tracemalloc.start()
    result = function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, most


def test_building_from_sorted_rows_takes_a_third_of_the_memory_of_its_input():
    matrix, state, action, cost = large(5_000, 4)
    model, most = peak(lambda: tabular(matrix, s_indices=state, a_indices=action, costs=cost))
    assert most < 0.35 * size(matrix, state, action, cost)
    for mine, given_ in (
        (model.transitions.data, matrix.data),
        (model.transitions.indices, matrix.indices),
        (model.state, state),
    ):
        assert np.shares_memory(mine, given_)


def test_compiling_rows_without_a_diagonal_shares_their_matrix():
    matrix, state, action, cost = large(5_000, 4)
    model = tabular(matrix, s_indices=state, a_indices=action, costs=cost)
    tabular_problem(model)  # compiles the kernel
    problem, most = peak(lambda: tabular_problem(model))
    assert most < 0.35 * size(matrix, state, action, cost)
    *_, targets, weights = problem.table.arrays
    assert np.shares_memory(targets, matrix.indices)
    assert np.shares_memory(weights, matrix.data)


def test_building_from_rows_in_another_order_copies_them_once():
    matrix, state, action, cost = large(5_000, 4)
    order = np.random.default_rng(1).permutation(state.size)
    mixed, state, action, cost = matrix[order], state[order], action[order], cost[order]
    model, most = peak(lambda: tabular(mixed, s_indices=state, a_indices=action, costs=cost))
    assert most < 1.5 * size(matrix, state, action, cost)
    assert (model.transitions != matrix).nnz == 0


def test_building_from_one_matrix_per_action_copies_them_once():
    matrix, state, action, cost = large(5_000, 4)
    blocks = [matrix[a::4] for a in range(4)]
    table = cost.reshape(-1, 4)
    model, most = peak(lambda: tabular(blocks, costs=table))
    assert most < 1.8 * size(matrix, state, action, cost)
    assert (model.transitions != matrix).nnz == 0


def test_costs_are_copied_so_that_changing_them_leaves_the_model_alone():
    matrix, state, action, cost = large(50, 2)
    model = tabular(matrix, s_indices=state, a_indices=action, costs=cost)
    before = model.cost.copy()
    cost[:] = 7.0
    assert (model.cost == before).all()


def test_the_callers_arrays_are_never_changed():
    """Zeros, a diagonal, unsorted columns and duplicates are put right in copies."""
    indices = np.array([1, 2, 1, 0, 2, 2])
    data = np.array([0.25, 0.0, 0.25, 0.5, 1.0, 0.5])
    indptr = np.array([0, 4, 5, 6])
    matrix = sparse.csr_array((data, indices, indptr), (3, 3))
    kept = data.copy(), indices.copy(), indptr.copy()
    model = tabular(matrix, s_indices=[0, 1, 2], a_indices=[0, 0, 0], normalise=True)
    tabular_problem(model)
    for mine, before in zip((data, indices, indptr), kept, strict=True):
        assert (mine == before).all()
    assert model.transitions.toarray().tolist() == [[0.5, 0.5, 0], [0, 0, 1], [0, 0, 1]]


@given(st.data())
def test_a_diagonal_is_left_out_and_the_rest_kept(data):
    n, actions = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    weights = rng.integers(0, 3, (n * actions, n)) + np.tile(np.eye(n), actions).reshape(-1, n)
    weights = weights + 1e-9 * (weights.sum(axis=1, keepdims=True) == 0)
    weights /= weights.sum(axis=1, keepdims=True)
    state, action = np.repeat(np.arange(n), actions), np.tile(np.arange(actions), n)
    model = tabular(sparse.csr_array(weights), s_indices=state, a_indices=action)
    expected = weights.copy()
    expected[np.arange(n * actions), state] = 0.0
    found = tabular_problem(model).table.transitions
    assert (found.toarray() == expected).all()
    assert (found.data > 0).all()


@pytest.mark.parametrize(
    ("indices", "indptr", "said"),
    [
        ([0, 2], [0, 1, 2], "entry 1 is in column 2; columns are 0 to 1"),
        ([0, -1], [0, 1, 2], "entry 1 is in column -1"),
        ([0, 1], [0, 3, 2], "its indptr decreases"),
    ],
)
def test_a_damaged_sparse_matrix_is_refused(indices, indptr, said):
    matrix = sparse.csr_array(np.eye(2))
    matrix.indices, matrix.indptr = np.array(indices), np.array(indptr)
    with pytest.raises(InputError, match=re.escape(said)):
        tabular(matrix, s_indices=[0, 1], a_indices=[0, 0])
    with pytest.raises(InputError, match="damaged sparse matrix"):
        tabular([matrix.T])
