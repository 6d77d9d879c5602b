"""Matrices given by users: numbers, dense or sparse, made into one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse

    Matrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"

__all__ = [
    "ROW_SUM_TOLERANCE",
    "Floats",
    "as_floats",
    "as_matrix",
    "interleaved",
    "row_sums",
    "with_data",
]

Floats: TypeAlias = NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-9
"""How far a row may sum from 1 (a generator's from 0, relative to its largest entry)."""


def as_floats(value: Any, name: str) -> Floats:
    """Convert to an array of float64, or say under its name that it cannot be done."""
    if np.ma.is_masked(value):
        raise InputError(f"{name} has masked entries; give an array of numbers without a mask")
    try:
        given = np.asarray(value)
        _check_kind(given, name)
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} is not an array of numbers: {error}") from error


def _check_kind(given: Any, name: str) -> None:
    """Refuse what would silently become another number: complex numbers and text."""
    kind = given.dtype.kind
    if kind in "cSU":
        what = "complex numbers" if kind == "c" else f"text, such as {given.flat[0]!s:.40}"
        raise InputError(f"{name} is not an array of numbers: it holds {what}")


def as_matrix(value: Any, name: str) -> Matrix:
    """Convert to CSR, equal places added up; entries that are 0 or not finite stay.

    The arrays of a float64 CSR matrix with sorted columns are shared, not copied.
    """
    from scipy import sparse

    if not sparse.issparse(value):
        value = as_floats(value, name)
    if value.ndim != 2:
        raise InputError(f"{name} has {value.ndim} dimension(s); a matrix is needed")
    _check_kind(value, name)
    _check_places(value, name)
    matrix = cast("Matrix", sparse.csr_array(value, dtype=np.float64))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _check_places(value: Any, name: str) -> None:
    """Refuse a CSR or CSC matrix whose arrays point outside it, which scipy does not notice."""
    kind = getattr(value, "format", None)
    if kind not in ("csr", "csc"):
        return
    below, what = (value.shape[1], "column") if kind == "csr" else (value.shape[0], "row")
    if (value.indptr[1:] < value.indptr[:-1]).any():
        raise InputError(f"{name} is a damaged sparse matrix: its indptr decreases")
    used = value.indices[: value.indptr[-1]]
    if used.size and not 0 <= used.min() <= used.max() < below:
        entry = int(np.argmax((used < 0) | (used >= below)))
        raise InputError(
            f"{name} is a damaged sparse matrix: entry {entry} is in {what} {used[entry]}; "
            f"{what}s are 0 to {below - 1}"
        )


def interleaved(blocks: Sequence[Matrix]) -> Matrix:
    """Stack the rows of (S, S) blocks in turn: row 0 of every block, then row 1 of every one."""
    count, (n, columns) = len(blocks), blocks[0].shape
    starts = np.zeros(n * count + 1, np.int64)
    np.cumsum(np.stack([np.diff(block.indptr) for block in blocks], axis=1).ravel(), out=starts[1:])
    data, indices = np.empty(starts[-1]), np.empty(starts[-1], np.int32)
    for a, block in enumerate(blocks):
        shift = np.repeat(starts[a:-1:count] - block.indptr[:-1], np.diff(block.indptr))
        shift += np.arange(block.nnz)
        data[shift], indices[shift] = block.data, block.indices
    return _matrix(data, indices, starts, (n * count, columns))


def row_sums(matrix: Matrix) -> Floats:
    """Sum of each row, (L,)."""
    return np.asarray(matrix @ np.ones(matrix.shape[1]), np.float64)


def with_data(matrix: Matrix, data: Floats) -> Matrix:
    """The same places with other entries; the arrays of places are shared."""
    return _matrix(data, matrix.indices, matrix.indptr, matrix.shape)


def _matrix(data: Floats, indices: Any, indptr: Any, shape: tuple[int, int]) -> Matrix:
    from scipy import sparse

    return cast("Matrix", sparse.csr_array((data, indices, indptr), shape=shape))
