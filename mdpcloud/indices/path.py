"""The optimal policies of a single arm at every price of work.

With the equations of `mdpcloud.indices.path_start`, delta = a - p m is passive minus active value
under a policy, and M = D A^-1. The policy is optimal while delta >= 0 in its active free states and
<= 0 in the passive ones. As the price grows the next state to change is, with s = 1 for an active
and -1 for a passive state, the one with the least price

    a_i / m_i    among the states with s_i m_i > 0;

its change moves both parts of delta and M by a rank-one step (q is the column of the state in M)

    pivot = 1 + s q_i,   delta -= q s delta_i / pivot,   M -= q (s M[i, :]) / pivot.

Columns come from M at the last rebase: M_now = M - K R, where K has the columns of the states B
changed since and L R = M[B, :], L lower triangular with K's entries and the pivots / s.

n changes cost 14/3 n^3 operations for dense arms, nearly all of them products of matrices. The path
ends where no state is left that would change, or after 10 n changes.

Sources: Gast, Gaujal and Khun, "Testing indexability and computing Whittle and Gittins index in
subcubic time", Mathematical Methods of Operations Research 97 (2023) 391-436; Nino-Mora, "A
fast-pivoting algorithm for Whittle's restless bandit index", Mathematics 8(12) (2020) 2226.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mdpcloud.indices.arm import Arm
from mdpcloud.indices.path_start import (
    ROUNDING,
    Basis,
    Equations,
    MultichainPolicy,
    equations_of,
    first_policy,
)
from mdpcloud.indices.result import PricePath
from mdpcloud.model.matrices import Floats

__all__ = ["MultichainPolicy", "price_path"]

Progress = Callable[[int, int], object]
BLAS: Any = blas

CHANGES = 10  # times the number of states, at most


def price_path(
    arm: Arm, alpha: float, *, start: Any = None, progress: Progress | None = None
) -> PricePath:
    """Follow the optimal policies of the single-arm problem from price -inf to inf.

    Parameters
    ----------
    arm : Arm
    alpha : float
        Discount rate (in discrete time (1 - b) / b of a factor b); 0 for the average cost.
    start : (n,) array or int, optional
        Probabilities of the first state, or its number, for discounted costs and work; uniform by
        default.
    progress : function of (changes done, changes expected), optional

    Returns
    -------
    PricePath

    Raises
    ------
    MultichainPolicy
        If the average is asked and a policy on the way has several recurrent classes.
    SolveError
        If rounding errors hide the policies.

    Examples
    --------
    >>> from mdpcloud.indices.arm import arm
    >>> stay, move = [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.8, 0.2]]
    >>> price_path(arm(stay, move, rewards1=[1.0, 3.0]), 0.0).states
    array([0, 1])
    """
    equations = equations_of(arm, alpha, start)
    policy, basis = first_policy(equations)
    walk = Walk(equations, policy, basis)
    expected = equations.free.size
    while walk.step():
        if progress is not None:
            progress(min(len(walk.prices), expected), expected)
    return walk.result()


class Walk:
    """A policy, its differences, and the changes on the way to it."""

    def __init__(self, equations: Equations, policy: NDArray[np.bool_], basis: Basis) -> None:
        self.equations = equations
        self.first, self.policy, self.basis = policy, policy.copy(), basis
        self.changes = Changes(basis, equations.free.size + 1)
        self.sign = np.where(policy[equations.free], 1.0, -1.0)
        x = basis.solve(equations.chosen(policy))
        images = equations.images(x)
        self.cost, self.work = equations.differences(images, x).T.copy()
        self.work *= -1.0
        sizes = np.abs(images[0]) + np.abs(images[1])
        self.slack = ROUNDING * np.maximum(sizes[equations.free, 1], 1.0)
        self.price = -np.inf
        self.prices: list[float] = []
        self.places: list[int] = []
        self.marginal: list[tuple[float, float]] = []
        self.totals = [(-self.cost[-1], self.work[-1])]
        self.complete = False

    def step(self) -> bool:
        """Change the next state; False if none is left."""
        place = self._next()
        if place is None or len(self.prices) >= CHANGES * self.first.size:
            self.complete = place is None
            return False
        sign = self.sign[place]
        column = self.changes.column(int(self.equations.free[place]))
        pivot = 1.0 + sign * column[place]
        self._record(place)
        self.cost -= column * (sign * self.cost[place] / pivot)
        self.work -= column * (sign * self.work[place] / pivot)
        self.totals.append((-self.cost[-1], self.work[-1]))
        self.sign[place] = -sign
        self.policy[self.equations.free[place]] ^= True
        self.changes.add(place, column, sign * pivot)
        if self.changes.count == self.changes.block:
            self.changes.rebase(self.policy)
        return True

    def _next(self) -> int | None:
        leaving = np.flatnonzero(self.sign * self.work[:-1] > self.slack)
        if leaving.size == 0:
            return None
        return int(leaving[np.argmin(self.cost[leaving] / self.work[leaving])])

    def _record(self, place: int) -> None:
        cost, work = float(self.cost[place]), float(self.work[place])
        self.price = max(self.price, cost / work)
        self.prices.append(self.price)
        self.places.append(place)
        self.marginal.append((cost, work))

    def result(self) -> PricePath:
        """The path so far."""
        states = self.equations.free[np.array(self.places, np.intp)]
        active = np.zeros(states.size, np.bool_)
        now = self.first.copy()
        for k, state in enumerate(states):
            now[state] ^= True
            active[k] = now[state]
        marginal = np.array(self.marginal).reshape(-1, 2)
        totals = np.array(self.totals)
        prices = np.array(self.prices)
        return PricePath(
            prices,
            states,
            active,
            self.first,
            totals[:, 0],
            totals[:, 1],
            marginal[:, 0],
            marginal[:, 1],
            1e-10 * np.abs(prices),
            self.complete,
        )


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

    def rebase(self, policy: NDArray[np.bool_]) -> None:
        """Move M to the policy now."""
        k = self.count
        if k:
            self.basis.rebase(policy, self.rows[:k], self.K[:, :k], self.L[:k, :k])
        self._clear()
