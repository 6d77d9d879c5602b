"""Columns of M = D A^-1 of an arm with sparse moves.

A sparse factorisation of A; a column of M is one solution with it and one product with D, and no
matrix of n^2 entries is made. After some changes the policy is factored afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from mdpcloud.indices.path.equations import Bools, Singular
from mdpcloud.model.matrices import Floats

if TYPE_CHECKING:
    from mdpcloud.indices.path.equations import Equations

__all__ = ["SparseBasis"]


class SparseBasis:
    """Factors of the matrix of a policy; a `Basis`."""

    block = stride = 128

    def __init__(self, equations: Equations, policy: Bools) -> None:
        self.equations = equations
        self.matrices = _both_matrices(equations)
        self.differences = _difference_matrix(equations, self.matrices)
        self._factor(policy)

    def _factor(self, policy: Bools) -> None:
        self.policy = policy.copy()
        on = policy.astype(np.float64)
        passive, active = self.matrices
        matrix = sparse.diags_array(on) @ active + sparse.diags_array(1.0 - on) @ passive
        try:
            self.factors: Any = splu(sparse.csc_array(matrix))
        except RuntimeError as error:
            raise Singular from error

    @property
    def fill(self) -> float:
        """Entries of the factors as a part of those of a dense matrix."""
        return float(self.factors.nnz) / float(self.policy.size) ** 2

    def solve(self, right: Floats) -> Floats:
        """A^-1 times (n, k) columns."""
        found: Floats = self.factors.solve(right)
        return found

    def columns(self, states: NDArray[np.intp]) -> Floats:
        """Columns (f+1, k) of M at the last rebase, each of them contiguous."""
        units = np.zeros((self.policy.size, states.size), order="F")
        units[states, np.arange(states.size)] = 1.0
        return np.asfortranarray(self.product(units))

    def entries(self, rows: NDArray[np.intp], states: NDArray[np.intp]) -> Floats:
        """Some rows of some columns of M at the last rebase."""
        found: Floats = self.columns(states)[rows]
        return found

    def product(self, right: Floats) -> Floats:
        """M at the last rebase times (n, k) columns."""
        product: Floats = self.differences @ self.solve(right)
        return product

    def rebase(self, policy: Bools, rows: NDArray[np.intp], K: Floats, L: Floats) -> None:
        """Factor a policy."""
        self._factor(policy)


def _both_matrices(equations: Equations) -> tuple[Any, Any]:
    """A of passivity and of activity everywhere, CSR."""
    passive, active = (_matrix(equations, moves) for moves in equations.arm.moves)
    return passive, active


def _matrix(equations: Equations, moves: Any) -> Any:
    n = equations.arm.n
    away = sparse.csr_array(moves - sparse.diags_array(moves.diagonal()))
    leaving = away @ np.ones(n)
    matrix = sparse.diags_array(leaving + equations.alpha) - away
    keep = np.ones(n)
    keep[equations.reference] = 0.0
    gain = sparse.coo_array(
        (np.full(n, equations.gain), (np.arange(n), np.full(n, equations.reference))), (n, n)
    )
    return sparse.csr_array(matrix @ sparse.diags_array(keep) + gain)


def _difference_matrix(equations: Equations, matrices: tuple[Any, Any]) -> Any:
    """D (f+1, n) of the free states, and the row of the average, CSR."""
    change = sparse.csr_array(matrices[0] - matrices[1])[equations.free]
    return sparse.csr_array(sparse.vstack([change, sparse.csr_array(equations.weights[None])]))
