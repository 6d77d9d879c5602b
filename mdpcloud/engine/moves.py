"""Moves of rows as CSR matrices, copied in one pass and only where they change."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.moves_kernels import balance, count_stays, drop_stays, pick

__all__ = ["Matrix", "balanced", "off_diagonal", "picked", "pointers", "targets"]

Matrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"
Unsigned: TypeAlias = NDArray[np.unsignedinteger[Any]]


def pointers(matrix: Matrix) -> Unsigned:
    """Row pointers in the kernels' types: unsigned, four bytes where they suffice."""
    if matrix.indptr[-1] >= 2**31:
        return matrix.indptr.astype(np.int64, copy=False).view(np.uint64)
    return matrix.indptr.astype(np.int32, copy=False).view(np.uint32)


def targets(matrix: Matrix) -> NDArray[np.uint32]:
    """Columns in the kernels' type."""
    return matrix.indices.astype(np.int32, copy=False).view(np.uint32)


def off_diagonal(matrix: Matrix, state: NDArray[np.int32]) -> Matrix:
    """The moves of rows of these states to other states; the same matrix if there are no others."""
    begin, to = pointers(matrix), targets(matrix)
    stays = int(count_stays(begin, to, state))
    if stays == 0:
        return matrix
    arrays = _empty(state.size, int(matrix.nnz) - stays)
    drop_stays(begin, to, matrix.data, state, *arrays)
    return _matrix(*arrays, matrix.shape[1])


def balanced(moves: Matrix) -> Matrix:
    """A square matrix of rates with minus the sum of each row on the diagonal."""
    n, begin = moves.shape[0], pointers(moves)
    arrays = _empty(n, int(moves.nnz + np.count_nonzero(begin[1:] != begin[:-1])))
    balance(begin, targets(moves), moves.data, *arrays)
    return _matrix(*arrays, n)


def picked(matrix: Matrix, rows: NDArray[Any]) -> Matrix:
    """The rows with these numbers."""
    begin = pointers(matrix)
    ends = np.cumsum((begin[1:] - begin[:-1])[rows], dtype=np.int64)
    arrays = _empty(rows.size, int(ends[-1]) if rows.size else 0)
    arrays[0][0], arrays[0][1:] = 0, ends
    pick(rows.astype(np.int64, copy=False), begin, targets(matrix), matrix.data, *arrays)
    return _matrix(*arrays, matrix.shape[1])


def _empty(rows: int, size: int) -> tuple[Unsigned, NDArray[np.int32], NDArray[np.float64]]:
    """Arrays for a matrix of so many rows and entries."""
    wide = np.uint32 if size < 2**31 else np.uint64
    return np.empty(rows + 1, wide), np.empty(size, np.int32), np.empty(size)


def _matrix(
    begin: Unsigned, to: NDArray[np.int32], rates: NDArray[np.float64], columns: int
) -> Matrix:
    signed = begin.view(f"i{begin.itemsize}")
    return sparse.csr_array((rates, to, signed), shape=(begin.size - 1, columns))
