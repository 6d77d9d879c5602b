"""From one optimal policy of a single arm to the next, as the price of work grows.

With the equations of `mdpcloud.indices.path.equations`, delta = a - p m is passive minus active
value under a policy, and M = D A^-1. The policy is optimal while delta >= 0 in its active free
states and <= 0 in the passive ones. As the price grows the next state to change is, with s = 1 for
an active and -1 for a passive state, the one with the least price

    a_i / m_i    among the states with s_i m_i > 0;

its change moves both parts of delta and M by a rank-one step (q is the column of the state in M)

    pivot = 1 + s q_i,   delta -= q s delta_i / pivot,   M -= q (s M[i, :]) / pivot.

The pivot is the ratio of both determinants: 0 if the next policy has several recurrent classes.
Then another state that would change at the same price comes first; if there is none, the arm is
multichain. Changes wait in `mdpcloud.indices.path.changes` until they are one product of matrices,
and `mdpcloud.indices.path.error` refines delta now and then.

For dense arms the factors and M cost 8/3 n^3 operations and n changes 2 n^3, nearly all of them in
products of matrices. (Leaving out states once they are passive would save n^3 of the latter, and
with them refinement and the states that become active again.) For sparse arms a change costs one
solution with sparse factors and O(n b) operations, b the changes between factorisations. The path
ends where no state is left that would change, or after 10 n changes.

Sources: Gast, Gaujal and Khun, "Testing indexability and computing Whittle and Gittins index in
subcubic time", Mathematical Methods of Operations Research 97 (2023) 391-436; Nino-Mora, "A
fast-pivoting algorithm for Whittle's restless bandit index", Mathematics 8(12) (2020) 2226.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.indices.path.changes import Changes
from mdpcloud.indices.path.equations import Basis, Bools, Equations
from mdpcloud.indices.path.error import Fresh, price_errors, refreshed
from mdpcloud.indices.path.no_work import all_at_no_work
from mdpcloud.indices.path.start import TOO_ILL, check_chain, explained, factored
from mdpcloud.model.matrices import Floats

__all__ = ["Walk"]

CHANGES = 10  # times the number of states, at most
SLACK = 0.5  # times the error of the marginal work: less is none
SINGULAR = 1e-9  # pivot relative to its terms below which the next policy is looked at
HOPELESS = 1e-14  # the same of a policy with one recurrent class, that is given up
TIED = 1e-13  # relative difference of equal prices
BLIND = 1e-11  # error of a marginal work of 0 relative to the least work, that hides no price
WEAK = 0.25  # the same below which another state with the same price is looked for
MOST_TIED, LOOKED_AT = 16, 2**20  # such states, or entries of their columns, of sparse arms
MOST_LOST = 100  # prices without digits in a row after which a path is cut short
LOSSY = 1e-4  # pivot relative to its terms after which the differences are refined at once
GROWN = 30.0  # growth of errors after which the differences are refined
REFINED = 128  # refinements for growth in as many changes as there are states
WORN = 1e-11  # relative move of the last step of refinement after which a policy is factored afresh


class Walk:
    """A policy, its differences, and the changes on the way to it."""

    def __init__(self, equations: Equations, policy: Bools, basis: Basis) -> None:
        self.equations = equations
        self.first, self.policy = policy, policy.copy()
        self.sign = np.where(policy[equations.free], 1.0, -1.0)
        self.price = -np.inf
        self.prices: list[float] = []
        self.errors: list[float] = []
        self.places: list[int] = []
        self.marginal: list[tuple[float, float]] = []
        self.growth: list[float] = []
        self.ahead = np.empty(self.sign.size)
        self.complete = False
        self._begin(basis)
        self.totals = [self._total()]
        self.hidden = np.abs(self.work[:-1]) <= self.slack  # marginal work below all prices
        self.begun_well = self._begins_well()

    def _begin(self, basis: Basis) -> None:
        """Differences from the factors of the policy now."""
        self.basis = basis
        self.changes = Changes(basis, self.equations.free.size + 1)
        x = basis.solve(self.equations.chosen(self.policy))
        carried = self.equations.differences(self.equations.images(x), x)
        self._adopt(refreshed(self.equations, basis, self.policy, carried))

    def _adopt(self, fresh: Fresh) -> None:
        """Take differences from a refinement."""
        self.fresh = fresh
        self.cost, self.work = np.ascontiguousarray(fresh.differences.T)
        self.work *= -1.0
        self.slack = SLACK * fresh.errors[:-1, 1]
        self.grown = 1.0

    def _total(self) -> tuple[float, float]:
        return -float(self.cost[-1]), float(self.work[-1])

    def step(self) -> bool:
        """Change the next state; False if none is left."""
        place = self._next()
        if place is None:  # as far as differences tell that were carried along
            self._refresh()
            place = self._next()
        if place is None or len(self.prices) >= CHANGES * self.first.size or self._is_lost():
            self._refresh()
            if place is None:
                self._check_indifferent()
            self.complete = place is None and self._is_sure()
            return False
        column = self._column(place)
        if self._pivot(place, column) < WEAK:
            place, column = self._best(place, column)
        if self._pivot(place, column) < SINGULAR:
            self._pass_by(place, column)
        else:
            self._change(place, column)
        return True

    def _next(self) -> int | None:
        """The free state with the least price, if any will change."""
        if self.ahead.size == 0:
            return None
        leaving = self.sign * self.work[:-1] > self.slack
        self.ahead.fill(np.inf)
        np.divide(self.cost[:-1], self.work[:-1], out=self.ahead, where=leaving)
        place = int(np.argmin(self.ahead))
        if not leaving[place]:
            return None
        if self.sign[place] < 0.0:  # may not become active, once others at this price are passive
            tied = self._tied(place)
            place = int(tied[np.argmax(self.sign[tied])])
        return place

    def _best(self, place: int, column: Floats) -> tuple[int, Floats]:
        """Of the states that change at the same price the one with the largest pivot.

        Pivots are ratios of determinants: a small one all but cuts the chain.
        """
        tied = self._tied(place)
        if self.equations.arm.is_sparse:
            tied = thinned(tied, max(MOST_TIED, LOOKED_AT // self.first.size))
        if tied.size > 1:
            entries = self.changes.diagonal(self.equations.free[tied], tied)
            pivots = (1.0 + self.sign[tied] * entries) / (1.0 + np.abs(entries))
            place = int(tied[np.argmax(pivots)])
            column = self._column(place, alone=True)
        return place, column

    def _is_lost(self) -> bool:
        """Whether so many prices have no digits that the rest is not worth its time."""
        return int(np.isinf(self.errors[-MOST_LOST:]).sum()) == MOST_LOST

    def _is_sure(self) -> bool:
        """Whether all prices have errors, and no state stays for rounding errors alone."""
        return self.begun_well and bool(np.isfinite(self.errors).all()) and self._is_optimal()

    def _is_optimal(self) -> bool:
        """Whether no error hides a marginal work, and no state's cost speaks against its action."""
        small = np.abs(self.work[:-1]) <= self.slack
        emerged = self.hidden & ~small
        emerged[self.places] = False  # but by a change at a price that is known
        if emerged.any():
            return False
        return self._costs_least(small) and all_at_no_work(
            self.equations, self.policy, self.equations.free[small]
        )

    def _begins_well(self) -> bool:
        """Whether the first policy does the most work, and costs least where that is no other.

        A marginal work of 0 may be so by chance, if its error is nothing next to the work.
        """
        against = self.sign * self.work[:-1] < -self.slack
        small = self.hidden
        effort = np.abs(np.subtract(*self.equations.arm.work))
        least = np.min(effort, where=effort > 0.0, initial=np.inf)
        blind = self.slack[small] > BLIND * least
        return not against.any() and not blind.any() and self._costs_least(small)

    def _costs_least(self, small: Bools) -> bool:
        """Whether no cost speaks against the actions in some free states."""
        dearer = self.sign * self.cost[:-1] < -self.fresh.errors[:-1, 0]
        return bool(np.isfinite(self.slack).all()) and not (small & dearer).any()

    def _check_indifferent(self) -> None:
        """Raise if passivity is as good in active states, and leaves several recurrent classes."""
        unmoved = (np.abs(self.fresh.differences) <= self.fresh.errors)[:-1].all(axis=1)
        idle = self.equations.free[unmoved & (self.sign > 0.0)]
        if idle.size:
            policy = self.policy.copy()
            policy[idle] = False
            check_chain(self.equations, policy)

    def _expected(self, place: int, count: int) -> NDArray[np.intp]:
        """The state of a place and others with the least prices, so many."""
        waiting = np.flatnonzero(self.ahead < np.inf)
        if count < waiting.size:
            near = waiting[np.argpartition(self.ahead[waiting], count)[:count]]
            waiting = np.union1d(near, place)  # of many ties that one counts
        return self.equations.free[waiting]

    def _column(self, place: int, alone: bool = False) -> Floats:
        """Column of M; with those of the states to change next, if it has to be fetched."""
        states = self.equations.free[[place]]
        return self.changes.column(
            int(states[0]), lambda count: states if alone else self._expected(place, count)
        )

    def _pivot(self, place: int, column: Floats) -> float:
        """Pivot relative to the size of its terms."""
        entry = float(self.sign[place] * column[place])
        return (1.0 + entry) / (1.0 + abs(entry))

    # --- policies that are singular, or nearly so -------------------------------------------------

    def _pass_by(self, place: int, column: Floats) -> None:
        """Get past the next policy, which has several recurrent classes or is ill-conditioned.

        Where changing all tied states leaves one class, so does changing one of them alone: one
        that is recurrent, or else the last on a path to the class under the changed policy.
        """
        for other in self._tied(place):
            found = self._column(int(other), alone=True)
            if self._pivot(int(other), found) >= SINGULAR:
                return self._change(int(other), found)
        policy = self.policy.copy()
        policy[self.equations.free[place]] ^= True
        check_chain(self.equations, policy)
        if self._pivot(place, column) < HOPELESS:
            raise SolveError(TOO_ILL)
        return self._change(place, column)

    def _tied(self, place: int) -> NDArray[np.intp]:
        """States that would change at the same price, up to errors."""
        leaving = np.flatnonzero(self.ahead < np.inf)
        price = self.cost[place] / self.work[place]
        slack = self.fresh.errors[leaving] + TIED * self.fresh.scale[leaving]
        ahead = np.abs(self.cost[leaving] - price * self.work[leaving])
        tied: NDArray[np.intp] = leaving[ahead <= slack[:, 0] + abs(price) * slack[:, 1]]
        return tied

    # --- changes ----------------------------------------------------------------------------------

    def _change(self, place: int, column: Floats) -> None:
        """Change a state and what depends on it."""
        self._record(place)
        sign = self.sign[place]
        pivot = 1.0 + sign * column[place]
        self.cost -= column * (sign * self.cost[place] / pivot)
        self.work -= column * (sign * self.work[place] / pivot)
        self.totals.append(self._total())
        relative = self._pivot(place, column)
        self.grown = max(self.grown, 1.0 / relative)
        self.sign[place] = -sign
        self.policy[self.equations.free[place]] ^= True
        self.changes.add(place, column, sign * pivot)
        if relative < LOSSY or self._has_grown():
            self._refresh()
        elif self.changes.count == self.changes.block:
            self._rebase()

    def _has_grown(self) -> bool:
        """Whether errors may have grown by so much that it is worth a refinement."""
        worth = self._since() * REFINED * self.grown / GROWN
        return self.grown > GROWN and worth >= self.sign.size

    def _since(self) -> int:
        """Changes since the last refinement."""
        return len(self.prices) - len(self.errors)

    def _record(self, place: int) -> None:
        cost, work = float(self.cost[place]), float(self.work[place])
        self.price = max(self.price, cost / work)
        self.prices.append(self.price)
        self.places.append(place)
        self.marginal.append((cost, work))
        self.growth.append(self.grown)

    def _rebase(self) -> None:
        """Move M to the policy now, and refine the differences now and then."""
        if self._since() >= self.basis.stride:
            self._refresh()
        else:
            self._move()

    def _move(self) -> None:
        """Move M to the policy now."""
        with explained(self.equations, self.policy):
            self.changes.rebase(self.policy)

    def _refresh(self) -> None:
        """Refine the differences; estimate the errors of the prices found since the last time."""
        if self._since() == 0:
            return
        self._move()
        carried = np.stack([self.cost, -self.work], axis=1)
        before, fresh = self.fresh, self._refined(carried)
        since = len(self.errors)
        places, marginal = np.array(self.places[since:], np.intp), np.array(self.marginal[since:])
        if places.size:
            growth = np.array(self.growth[since:])
            errors = price_errors(fresh, before, places, marginal, growth)
            gaps = np.array(self.prices[since:]) - marginal[:, 0] / marginal[:, 1]
            self.errors.extend((errors + gaps).tolist())
        self._adopt(fresh)

    def _refined(self, carried: Floats) -> Fresh:
        """Refined differences, after a new factorisation if M has lost too many digits."""
        fresh = refreshed(self.equations, self.basis, self.policy, carried)
        if fresh.shaken <= WORN or (self.basis.policy == self.policy).all():
            return fresh
        self.basis = factored(self.equations, self.policy)
        self.changes = Changes(self.basis, self.equations.free.size + 1)
        again = refreshed(self.equations, self.basis, self.policy, fresh.differences)
        return dataclasses.replace(again, moved=max(fresh.moved, again.moved))


def thinned(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """So many of some places, the first and the last among them."""
    if places.size <= most:
        return places
    return places[np.linspace(0, places.size - 1, most).astype(np.intp)]
