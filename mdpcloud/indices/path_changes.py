"""Changes of a policy that M = D A^-1 does not contain yet.

M now is M - K R, where K (f+1, b) has the columns of the states B changed since the last rebase,
each as it was before its change, and L R = M[B, :]: L is lower triangular, with entries of K below
its diagonal and pivot / s on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas

from mdpcloud.indices.path_equations import Basis, Bools
from mdpcloud.model.matrices import Floats

__all__ = ["Changes"]

BLAS: Any = blas  # their stubs know no keywords


class Changes:
    """Changes since the last rebase: M_now = M - K L^-1 M[rows, :]."""

    def __init__(self, basis: Basis, rows: int) -> None:
        self.basis = basis
        self.block: int = basis.block
        self.K = np.zeros((rows, self.block), order="F")
        self.rows = np.zeros(self.block, np.intp)
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.L = np.eye(self.block, order="F")

    def applied(self, base: Floats) -> Floats:
        """A column (f+1,) of M at the last rebase, brought to the policy now."""
        if self.count == 0:
            return base.copy()
        part = np.zeros(self.block)
        part[: self.count] = base[self.rows[: self.count]]
        part = BLAS.dtrsv(self.L, part, lower=1)
        applied: Floats = base - self.K[:, : self.count] @ part[: self.count]
        return applied

    def column(self, state: int) -> Floats:
        """Column (f+1,) of M now."""
        return self.applied(self.basis.column(state))

    def add(self, place: int, column: Floats, pivot: float) -> None:
        """Note a change of the free state with this place, its column and its pivot / s."""
        k = self.count
        self.L[k, :k] = self.K[place, :k]
        self.L[k, k] = pivot
        self.K[:, k] = column
        self.rows[k] = place
        self.count += 1

    def rebase(self, policy: Bools) -> None:
        """Move M to the policy now."""
        k = self.count
        if k:
            self.basis.rebase(policy, self.rows[:k], self.K[:, :k], self.L[:k, :k])
        self._clear()
