"""Dense matrices without subtraction and without BLAS, see `mdpcloud.limits.qbd.kernels`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.limits.qbd.kernels import factor_rates, multiply, solve_lower, solve_upper

__all__ = ["Factored", "dot"]

Array: TypeAlias = NDArray[np.float64]


def dot(left: Array, right: Array) -> Array:
    """A product of matrices, or of a matrix and a row or column."""
    if left.ndim == 1:
        row: Array = (left[:, None] * right).sum(axis=0)
        return row
    if right.ndim == 1:
        column: Array = (left * right).sum(axis=1)
        return column
    product = np.zeros((left.shape[0], right.shape[1]))
    multiply(np.ascontiguousarray(left), np.ascontiguousarray(right), product)
    return product


@dataclass(frozen=True, eq=False)
class Factored:
    """Minus the generator of a chain that is left: triangular factors without subtraction.

    Attributes
    ----------
    factors : (m, m) array
        As `mdpcloud.limits.qbd.kernels.factor_rates` leaves them.
    """

    factors: Array

    @classmethod
    def of(cls, rates: Array, exits: Array) -> Factored:
        """Factor from rates between the states, whose diagonal does not matter, and out of them.

        Raises
        ------
        InputError
            When some states cannot be left.
        """
        factors = np.array(rates, order="C")
        if not factor_rates(factors, np.array(exits)):
            raise InputError(
                "some phases of a level can never be left for another level; the chain must be "
                "irreducible"
            )
        return cls(factors)

    def solve(self, right: Array) -> Array:
        """X with -S X = right >= 0; every entry is a sum of positive terms."""
        x = np.array(right.reshape(right.shape[0], -1), order="C")
        solve_lower(self.factors, True, x)
        solve_upper(self.factors, False, x)
        return x.reshape(right.shape)

    def solve_left(self, left: Array) -> Array:
        """X with X (-S) = left >= 0, for rows or one row."""
        x = np.array(left.reshape(-1, left.shape[-1]).T, order="C")
        transposed = np.ascontiguousarray(self.factors.T)
        solve_lower(transposed, False, x)
        solve_upper(transposed, True, x)
        return np.ascontiguousarray(x.T).reshape(left.shape)
