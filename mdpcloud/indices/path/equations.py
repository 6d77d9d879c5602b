"""The equations of an arm's policies.

A policy that is active in S has values x, affine in the price p, with

    A_S x = c_S + p w_S,        row i of A_S:  alpha e_i - Q_a[i, :],  a the action in i,

where Q is the generator (P - I in discrete time) with the diagonal that makes its rows sum to 0.
Values are counted from that of a reference state, v = h + (g / alpha) 1: in its place x has g, the
average cost if alpha = 0, divided by a typical rate r, and the column of A is r. Passive minus
active value, per unit of time:

    delta = (c_0 - c_1) + p (w_0 - w_1) - D x = a - p m,     D = A_passive - A_active.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.model.matrices import Floats

__all__ = ["Basis", "Bools", "Equations", "Singular", "equations_of", "product"]

Bools = NDArray[np.bool_]
BLAS: Any = blas  # its stubs know no keywords


class Singular(Exception):
    """The matrix of a policy has no factors."""


class Basis(Protocol):
    """Factors of the matrix of a policy, and M = D A^-1.

    Row f of M, after those of the f free states, is that of the average (or of the start).
    """

    policy: Bools
    """The policy of the factors."""
    block: int
    """Changes between rebases."""
    stride: int
    """Changes between refinements of the differences."""

    @property
    def fill(self) -> float:
        """Entries of sparse factors as a part of those of a dense matrix, 0 of dense ones."""

    def solve(self, right: Floats) -> Floats:
        """A^-1 times (n, k) columns, by the factors."""

    def columns(self, states: NDArray[np.intp]) -> Floats:
        """Columns (f+1, k) of M at the last rebase, each of them contiguous."""

    def entries(self, rows: NDArray[np.intp], states: NDArray[np.intp]) -> Floats:
        """Some rows of some columns of M at the last rebase."""

    def product(self, right: Floats) -> Floats:
        """M at the last rebase times (n, k) columns."""

    def rebase(self, policy: Bools, rows: NDArray[np.intp], K: Floats, L: Floats) -> None:
        """Move M to a policy: M -= K L^-1 M[rows, :]."""


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of an arm, discounted or not.

    Attributes
    ----------
    arm : Arm
    alpha : float
        Discount rate, 0 for the average cost.
    reference : int
        State of value 0.
    gain : float
        Entry of the column of the gain, a typical rate.
    weights : (n,) array
        The average cost, or the discounted one from the start, is weights . x.
    """

    arm: Arm
    alpha: float
    reference: int
    gain: float
    weights: Floats

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """States in which both actions are allowed, (f,)."""
        return np.flatnonzero(self.arm.free)

    @cached_property
    def right(self) -> tuple[Floats, Floats]:
        """Cost and work (n, 2) of both actions."""
        passive, active = np.stack([self.arm.costs, self.arm.work], axis=2)
        return passive, active

    @cached_property
    def sums(self) -> tuple[Floats, Floats]:
        """Row sums (n, 1) of the moves, 1 or 0 up to rounding."""
        passive, active = (np.asarray(m.sum(axis=1)).reshape(-1, 1) for m in self.arm.moves)
        return passive, active

    @cached_property
    def norms(self) -> Floats:
        """Larger row sum (n,) of the sizes of both actions' moves."""
        found: Floats = np.maximum(
            *(
                np.abs(total[:, 0]) + 2.0 * np.abs(np.minimum(moves.diagonal(), 0.0))
                for moves, total in zip(self.arm.moves, self.sums, strict=True)
            )
        )
        return found

    def chosen(self, policy: Bools) -> Floats:
        """Right-hand sides (n, 2) of a policy, cost and work."""
        return np.where(policy[:, None], self.right[1], self.right[0])

    def images(self, x: Floats) -> tuple[Floats, Floats]:
        """Products of both matrices A with columns x (n, k)."""
        steady, values = self._parts(x)
        passive, active = (
            steady + total * values - product(moves, values)
            for moves, total in zip(self.arm.moves, self.sums, strict=True)
        )
        return passive, active

    def sizes(self, x: Floats) -> Floats:
        """Size (n, 2) of the terms of equations and differences with values x."""
        steady, values = self._parts(x)
        spread = np.abs(values).max(axis=0) + self.typical
        own = np.abs(self.right[0]) + np.abs(self.right[1])
        found: Floats = own + np.abs(steady) + self.norms[:, None] * spread
        return found

    @cached_property
    def typical(self) -> Floats:
        """Values (2,) that the largest cost and work could make in one mean stay."""
        largest = np.maximum(np.abs(self.right[0]), np.abs(self.right[1])).max(axis=0)
        found: Floats = largest / (self.norms.max() + self.alpha + self.gain)
        return found

    def _parts(self, x: Floats) -> tuple[Floats, Floats]:
        """What does not depend on the moves, and values that the moves are applied to.

        Rows of Q sum to 0: values are counted from their mean, which keeps digits.
        """
        values = x.copy()
        values[self.reference] = 0.0
        steady: Floats = self.gain * x[self.reference] + self.alpha * values
        values -= values.mean(axis=0)
        return steady, values

    def differences(self, images: tuple[Floats, Floats], x: Floats) -> Floats:
        """Passive minus active values (f+1, 2) of the free states; last minus the average."""
        change = (self.right[0] - self.right[1]) - (images[0] - images[1])
        return np.concatenate([change[self.free], -(self.weights @ x)[None]])

    def basis(self, policy: Bools) -> Basis:
        """Factors of a policy's matrix.

        Raises
        ------
        Singular
            If it has none.
        """
        if self.arm.is_sparse:
            from mdpcloud.indices.path.sparse_basis import SparseBasis

            return SparseBasis(self, policy)
        from mdpcloud.indices.path.dense_basis import DenseBasis

        return DenseBasis(self, policy)


def product(matrix: Any, columns: Floats) -> Floats:
    """A matrix times columns.

    Dense ones by the library that factors them too: numpy has another one, whose threads would
    still wait for work on the cores that this one's threads need.
    """
    if not isinstance(matrix, np.ndarray):
        found: Floats = matrix @ columns
        return found
    by_columns = matrix.flags.f_contiguous
    found = BLAS.dgemm(
        1.0, matrix if by_columns else matrix.T, columns, trans_a=0 if by_columns else 1
    )
    return found


def equations_of(arm: Arm, alpha: float, start: Any = None) -> Equations:
    """Equations of an arm.

    Parameters
    ----------
    arm : Arm
    alpha : float
        Discount rate.
    start : (n,) array or int, optional
        Probabilities of the first state, or its number, for the discounted total; by default all
        states are as likely.
    """
    first, second = (_entering(moves) for moves in arm.moves)
    reference = int(np.argmax(np.minimum(first, second)))
    gain = float(max(first.sum(), second.sum()) / arm.n + alpha) or 1.0
    weights = np.zeros(arm.n)
    weights[reference] = gain
    if alpha > 0.0:
        weights = _probabilities(start, arm.n).copy()
        weights[reference] = gain / alpha
        weights *= (1.0 + alpha) if arm.discrete else 1.0
    return Equations(arm, alpha, reference, gain, weights)


def _entering(moves: Any) -> Floats:
    """Sum (n,) of the rates into every state."""
    entering: Floats = np.asarray(moves.sum(axis=0)).ravel() - moves.diagonal()
    return entering


def _probabilities(start: Any, n: int) -> Floats:
    if start is None:
        return np.full(n, 1.0 / n)
    if np.ndim(start) == 0:
        found: Floats = np.eye(1, n, int(start))[0]
        return found
    probabilities = np.asarray(start, np.float64)
    if probabilities.shape != (n,):
        raise InputError(f"start has shape {probabilities.shape}; ({n},) is needed")
    return probabilities
