"""Changes of a policy that M = D A^-1 does not contain yet.

M now is M - K R, where K (f+1, b) has the columns of the states B changed since the last rebase,
each as it was before its change, and L R = M[B, :]: L is lower triangular, with entries of K below
its diagonal and pivot / s on it.

Columns are fetched several at a time, for the states that are expected to change next, and brought
to the policy at that time by one product of matrices; later changes are applied to each when it is
asked for. As many are fetched as were used the last time, and up to twice as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mdpcloud.indices.path.equations import Basis, Bools
from mdpcloud.model.matrices import Floats

__all__ = ["Changes"]

BLAS: Any = blas  # their stubs know no keywords

WIDEST = 16  # columns fetched at a time


class Changes:
    """The changes since the last rebase, and columns of M now."""

    def __init__(self, basis: Basis, rows: int) -> None:
        self.basis = basis
        self.block = basis.block
        self.K = np.zeros((rows, self.block), order="F")
        self.L = np.zeros((self.block, self.block), order="F")
        self.rows = np.zeros(self.block, np.intp)
        self.width = WIDEST
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.fetched: dict[int, int] = {}
        self.used = 0

    def column(self, state: int, expected: Callable[[int], NDArray[np.intp]]) -> Floats:
        """Column (f+1,) of M now.

        Parameters
        ----------
        state : int
        expected : function of a number
            So many states that are to change next, the state among them.
        """
        if state not in self.fetched:
            self._fetch(expected(self.width))
        self.used += 1
        return self._moved(self.columns[:, self.fetched[state]])

    def diagonal(self, states: NDArray[np.intp], places: NDArray[np.intp]) -> Floats:
        """Entries of M now in the rows and columns of some free states, at these places."""
        done = slice(0, self.count)
        rows = np.concatenate([self.rows[done], places])
        found = self.basis.entries(rows, states)
        entries = found[self.count :].diagonal()
        if self.count == 0:
            return entries
        part = BLAS.dtrsm(1.0, self.L[done, done], found[done], lower=1)
        moved: Floats = entries - np.einsum("ik,ki->i", self.K[places, done], part)
        return moved

    def _fetch(self, states: NDArray[np.intp]) -> None:
        """Columns of M of these states, brought to the policy now."""
        columns = self.basis.columns(states)
        if self.count:
            done = slice(0, self.count)
            part = BLAS.dtrsm(1.0, self.L[done, done], columns[self.rows[done]], lower=1)
            columns = BLAS.dgemm(-1.0, self.K[:, done], part, 1.0, columns, overwrite_c=1)
        self.columns = columns
        self.fetched = {int(state): k for k, state in enumerate(states)}
        self.since = self.count
        self.width = min(WIDEST, 2 * max(self.used, 1))
        self.used = 0

    def _moved(self, column: Floats) -> Floats:
        """A column of M when it was fetched, brought to the policy now."""
        if self.count == self.since:
            return column
        new = slice(self.since, self.count)
        part = BLAS.dtrsv(self.L[new, new], column[self.rows[new]], lower=1)
        # Not by BLAS, whose threads take longer to meet than so few columns take.
        moved: Floats = column - np.einsum("ij,j->i", self.K[:, new], part)
        return moved

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
