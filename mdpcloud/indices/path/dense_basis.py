"""The matrix M = D A^-1 of an arm with dense moves.

One factorisation A = P L U and two triangular solutions from the right make M, in the memory of D:
8/3 n^3 operations. Changes of the policy are gathered: b of them, of the states B, are one product

    M -= K R,    K (f+1, b) the columns of the changing states, L R = M[B, :],

2 b n^2 operations with matrices instead of with vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mdpcloud.indices.path.equations import Bools, Singular
from mdpcloud.model.matrices import Floats

if TYPE_CHECKING:
    from mdpcloud.indices.path.equations import Equations

__all__ = ["DenseBasis"]

BLAS: Any = blas  # their stubs know no keywords
LAPACK: Any = lapack

ROWS = 64


class DenseBasis:
    """Factors of the matrix of a policy, and M; a `Basis`."""

    fill = 0.0
    block = 64

    def __init__(self, equations: Equations, policy: Bools) -> None:
        self.policy = policy.copy()
        matrix = _policy_matrix(equations, policy)
        self.factors, self.swaps, fault = LAPACK.dgetrf(matrix, overwrite_a=1)
        if fault:
            raise Singular
        self.order = _order(self.swaps)
        self.equations = equations
        self.stride = max(4 * self.block, policy.size // 4)
        self._transposed: Floats | None = None

    @property
    def transposed(self) -> Floats:
        """M transposed, (n, f+1); made when first asked for."""
        if self._transposed is None:
            moved = _difference_matrix(self.equations)
            moved = BLAS.dtrsm(1.0, self.factors, moved, side=1, overwrite_b=1)
            moved = BLAS.dtrsm(1.0, self.factors, moved, side=1, lower=1, diag=1, overwrite_b=1)
            self._transposed = moved.T
            _swap_back(self._transposed, self.swaps)
        return self._transposed

    def solve(self, right: Floats) -> Floats:
        """A^-1 times (n, k) columns.

        Not by dgetrs, which wakes all threads for the smallest matrix.
        """
        found = np.asfortranarray(right[self.order])
        found = BLAS.dtrsm(1.0, self.factors, found, lower=1, diag=1, overwrite_b=1)
        found = BLAS.dtrsm(1.0, self.factors, found, overwrite_b=1)
        return np.asarray(found)

    def columns(self, states: NDArray[np.intp]) -> Floats:
        """Columns (f+1, k) of M at the last rebase, each of them contiguous."""
        found: Floats = self.transposed[states].T
        return found

    def entries(self, rows: NDArray[np.intp], states: NDArray[np.intp]) -> Floats:
        """Some rows of some columns of M at the last rebase."""
        found: Floats = self.transposed[states[:, None], rows].T
        return found

    def product(self, right: Floats) -> Floats:
        """M at the last rebase times (n, k) columns."""
        found: Floats = BLAS.dgemm(1.0, self.transposed.T, right)
        return found

    def rebase(self, policy: Bools, rows: NDArray[np.intp], K: Floats, L: Floats) -> None:
        """Move M to a policy: M -= K L^-1 M[rows, :]."""
        R = BLAS.dtrsm(1.0, L, np.asfortranarray(self.transposed[:, rows].T), lower=1)
        M = BLAS.dgemm(-1.0, K, R, 1.0, self.transposed.T, overwrite_c=1)
        self._transposed = M.T


def _policy_matrix(equations: Equations, policy: Bools) -> Floats:
    """A of a policy, column by column."""
    passive, active = equations.arm.moves
    n = equations.arm.n
    matrix = np.empty((n, n), order="F")
    for rows in _blocks(n):
        np.negative(np.where(policy[rows, None], active[rows], passive[rows]), out=matrix[rows])
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, equations.alpha - matrix.sum(axis=1))
    matrix[:, equations.reference] = equations.gain
    return matrix


def _difference_matrix(equations: Equations) -> Floats:
    """D (f+1, n) of the free states, column by column, and the row of the average."""
    passive, active = equations.arm.moves
    free = equations.free
    places = np.arange(free.size)
    matrix = np.empty((free.size + 1, equations.arm.n), order="F")
    for rows in _blocks(free.size):
        matrix[rows] = active[free[rows]] - passive[free[rows]]
    matrix[places, free] = 0.0
    matrix[places, free] = -matrix[:-1].sum(axis=1)
    matrix[:, equations.reference] = 0.0
    matrix[-1] = equations.weights
    return matrix


def _blocks(count: int) -> Iterator[slice]:
    """Rows to be copied at a time, so that what is written stays in the cache."""
    for first in range(0, count, ROWS):
        yield slice(first, min(first + ROWS, count))


def _order(swaps: NDArray[np.intc]) -> NDArray[np.intp]:
    """Rows in the order that the exchanges of a factorisation give them."""
    order = np.arange(swaps.size)
    for k, other in enumerate(swaps):
        order[k], order[other] = order[other], order[k]
    return order


def _swap_back(rows: Floats, swaps: NDArray[np.intc]) -> None:
    """Undo the row exchanges of a factorisation, in place."""
    for k in range(swaps.size - 1, -1, -1):
        other = int(swaps[k])
        if other != k:
            rows[[k, other]] = rows[[other, k]]
