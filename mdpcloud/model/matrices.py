"""Matrices given by users: numbers, dense or sparse, made into one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse

    Matrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"

__all__ = ["ROW_SUM_TOLERANCE", "Floats", "as_floats", "as_matrix"]

Floats: TypeAlias = NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-9
"""How far a row may sum from 1 (a generator's from 0, relative to its largest entry)."""


def as_floats(value: Any, name: str) -> Floats:
    """Convert to an array of float64, or say under its name that it cannot be done."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from error


def as_matrix(value: Any, name: str) -> Matrix:
    """Convert to CSR, equal places added up; entries that are 0 or not finite stay."""
    from scipy import sparse

    if not sparse.issparse(value):
        value = as_floats(value, name)
    if value.ndim != 2:
        raise InputError(f"{name} has {value.ndim} dimension(s); a matrix is needed")
    matrix = cast("Matrix", sparse.csr_array(value, dtype=np.float64))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
