"""Products of matrices of numbers >= 0, with bounds of their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.limits.qbd.algebra import dot

__all__ = ["UNIT", "Sum", "exactly", "full_product", "sparse_product"]

Array: TypeAlias = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps) / 2
TINY = 1e-300
"""Covers underflow."""


@dataclass(frozen=True, eq=False)
class Sum:
    """Computed sums of terms >= 0, and bounds of their rounding errors."""

    value: Array
    error: Array

    def plus(self, other: Sum) -> Sum:
        """Entry by entry."""
        value = self.value + other.value
        return Sum(value, self.error + other.error + UNIT * value)

    def times(self, rates: Array) -> Sum:
        """Times a matrix of few entries per column."""
        found = sparse_product(self.value, rates)
        return Sum(found.value, found.error + dot(self.error, rates))

    def distance(self, other: Array, terms: int) -> Array:
        """Bound of the distance from numbers >= 0 that are sums of so many terms."""
        bound: Array = np.abs(self.value - other) + self.error + (terms + 2) * UNIT * other
        return bound


def exactly(value: Array) -> Sum:
    """Numbers without errors."""
    return Sum(value, np.zeros_like(value))


def sparse_product(left: Array, right: Array) -> Sum:
    """A product with a matrix of few entries per column."""
    value = dot(left, right)
    terms = int(np.count_nonzero(right, axis=0).max(initial=0))
    return Sum(value, (terms + 1) * UNIT * value + TINY)


def full_product(left: Array, right: Array) -> Sum:
    """A product with a full matrix, whose errors hardly grow with its size.

    The leading bits of both, so few that their product has no rounding error, are multiplied by
    themselves (Ozaki, Ogita, Oishi and Rump, "Error-free transformations of matrix multiplication
    by using fast routines of matrix multiplication and its applications", Numer. Algorithms 59
    (2012) 95-118).
    """
    terms = right.shape[0]
    bits = (53 - int(np.ceil(np.log2(terms + 1)))) // 2
    rows, columns = left.max(axis=1, keepdims=True), right.max(axis=0, keepdims=True)
    first, second = _leading(left, rows, bits), _leading(right, columns, bits)
    value = dot(first, second) + (dot(first, right - second) + dot(left - first, right))
    rest = rows * right.sum(axis=0) + left.sum(axis=1, keepdims=True) * columns
    error = 3 * UNIT * value + (terms + 3) * UNIT * 2.0 ** (1 - bits) * rest + TINY
    return Sum(value, error)


def _leading(numbers: Array, top: Array, bits: int) -> Array:
    """Numbers rounded to multiples of 2^-bits times the power of two above their top."""
    _, exponent = np.frexp(top)
    shift = np.ldexp(1.5, exponent - bits + 52)
    rounded: Array = (numbers + shift) - shift
    return rounded
