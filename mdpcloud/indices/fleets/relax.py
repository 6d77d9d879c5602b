"""Whittle's relaxation of a fleet of arms: work is bought at a price instead of being limited.

A fleet must do `budget` work at all times. If it must do so only on average, the price p of work
becomes a Lagrange multiplier and the arms are independent,

    max over p of  L(p) = sum_k n_k g_k(p) - p budget,

g_k(p) being the optimum of the single-arm problem (cost + p work). L is concave and piecewise
linear; its corners are where an arm's optimal policy changes (`mdpcloud.indices.path`), and its
slope is the fleet's work less the budget. Every L(p) is a lower bound of the fleet's cost, whether
arms are indexable or not. If at most `budget` work may be done, p >= 0.

Source: Whittle, "Restless bandits: activity allocation in a changing world", Journal of Applied
Probability 25A (1988) 287-298, section 3; discounted: Bertsimas and Nino-Mora, "Restless bandits,
linear programming relaxations, and a primal-dual index heuristic", Operations Research 48 (2000)
80-90.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.indices.fleets.arms import check_budget, counted_arms, start_laws
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.result import PricePath
from mdpcloud.model.matrices import Floats

__all__ = ["Relaxation", "relax"]

FEASIBLE = 1e-9  # of the fleet's largest work: how far the budget may lie outside its range


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Optimum of a fleet that must keep to its budget on average only.

    Attributes
    ----------
    bound : float
        Certified: the cost of the fleet under any rule is at least this. Average cost per unit of
        time of the whole fleet, or its expected discounted cost. For arms given by rewards it is
        negative: the reward is at most ``-bound``.
    value : float
        The relaxation's optimum as the paths of the arms give it, not certified; `gap` estimates
        the errors of both numbers.
    multiplier : float
        Price of a unit of work at which the optimum is attained.
    work : (K,) array
        Work per unit of time of an arm of each entry (discounted: its discounted mean); for arms
        whose activity is one unit of work, the share of time in which they are active. Together,
        times the counts, they are the budget.
    counts : (K,) integer array
        Number of arms of each entry.
    more, less : tuples of (n,) bool arrays
        Per entry, where two optimal policies at the multiplier are active.
    share : float
        The relaxed optimum lets each arm follow `more` with this probability, forever, and `less`
        with the rest.
    """

    bound: float
    value: float
    multiplier: float
    work: Floats
    counts: NDArray[np.intp]
    more: tuple[NDArray[np.bool_], ...]
    less: tuple[NDArray[np.bool_], ...]
    share: float

    @property
    def gap(self) -> float:
        """How far the certified bound lies below `value`; negative where the latter is too low."""
        return self.value - self.bound


def relax(
    arms: Any, budget: float, *, criterion: Any = None, exactly: bool = True, starts: Any = None
) -> Relaxation:
    """Bound the cost of a fleet of arms that do `budget` work at all times.

    Parameters
    ----------
    arms : sequence of arms or of pairs (arm, count), or mapping from arm to count
        An arm is an Arm, a BirthDeathArm, or a model with one decision between two actions; it need
        not be indexable. An object that occurs several times is solved once.
    budget : float
        Work per unit of time of all arms together; for ordinary arms how many are active.
    criterion : AverageCost or Discounted, optional
        The average cost by default.
    exactly : bool
        Whether the work is exactly the budget, or at most that.
    starts : sequence, optional
        For discounted cost: per entry of `arms` the first state, or its probabilities (n,).

    Returns
    -------
    Relaxation

    Raises
    ------
    InputError
        If an argument is wrong, or arms cannot do that work, or cannot do so little.
    MultichainError
        Average cost: a policy of an arm has several recurrent classes, so that its cost depends on
        where it begins.
    SolveError
        If rounding errors hide the optimal policies of an arm.

    Examples
    --------
    Two machines that wear out at 3 per day and cost 1 per day when they are worn out; one can be
    repaired at a time:

    >>> import mdpcloud as mc
    >>> wear, repair = [[-3, 3], [0, 0]], [[-3, 3], [5, -5]]
    >>> machine = mc.indices.rate_arm(wear, repair, [0, 1], [0, 1])
    >>> relaxed = relax([(machine, 2)], 1)
    >>> round(relaxed.bound, 9), relaxed.work
    (0.75, array([0.5]))
    """
    from mdpcloud.criteria import AverageCost, discount_rate

    fleet, budget = counted_arms(arms), check_budget(budget)
    criterion = AverageCost() if criterion is None else criterion
    alpha = discount_rate(criterion, fleet[0][0].discrete)
    if (starts is None) == (alpha > 0.0):
        raise InputError(
            "discounted cost depends on where the arms start: give starts"
            if alpha > 0.0
            else "starts are for discounted cost; the average does not depend on them"
        )
    laws = start_laws(starts, fleet) if alpha > 0.0 else [None] * len(fleet)
    paths = _paths(fleet, laws, alpha)
    counts = np.array([count for _, count in fleet], np.intp)
    dual = _Dual(paths, counts, float(_duration(criterion)), budget)
    dual.check(exactly)
    price = dual.best_price(exactly)
    return _assembled(fleet, laws, dual, price, criterion)


def _paths(fleet: list[tuple[Arm, int]], laws: list[Any], alpha: float) -> list[PricePath]:
    """The path of each entry; equal ones are followed once."""
    from mdpcloud.indices.path.path import MultichainPolicy, price_path

    known: dict[Any, PricePath] = {}
    keys = [
        (id(one), None if law is None else law.tobytes())
        for (one, _), law in zip(fleet, laws, strict=True)
    ]
    for k, key in enumerate(keys):
        if key in known:
            continue
        try:
            known[key] = price_path(fleet[k][0], alpha, start=laws[k])
        except MultichainPolicy as error:
            raise MultichainError(f"arm {k} has no relaxation: {error}") from error
    return [known[key] for key in keys]


class _Dual:
    """L(p): the prices of all paths in order, with cost and work of the fleet between them."""

    def __init__(
        self, paths: list[PricePath], counts: NDArray[np.intp], duration: float, budget: float
    ) -> None:
        self.paths, self.counts, self.budget, self.duration = paths, counts, budget, duration
        prices = np.concatenate([path.prices for path in paths])
        steps = [count * np.diff(path.work) for path, count in zip(paths, counts, strict=True)]
        order = np.argsort(prices, kind="stable")
        self.prices = prices[order]
        first = sum(count * path.work[0] for path, count in zip(paths, counts, strict=True))
        self.work = first + np.concatenate([[0.0], np.cumsum(np.concatenate(steps)[order])])
        self.work = self.work / self.duration

    def check(self, exactly: bool) -> None:
        """Raise `InputError` unless some policies of the arms do the work asked for.

        A path that was cut short does not tell: `SolveError`.
        """
        slack = FEASIBLE * max(float(np.abs(self.work).max()), 1.0)
        least, most = float(self.work[-1]), float(self.work[0])
        low = self.budget < least - slack
        high = exactly and self.budget > most + slack
        if (low or high) and not all(path.complete for path in self.paths):
            raise SolveError("rounding errors hide how little work the arms can do")
        if low:
            raise InputError(f"budget is {self.budget:g}, but the arms do at least {least:.6g}")
        if high:
            raise InputError(f"budget is {self.budget:g}, but the arms do at most {most:.6g}")

    def best_price(self, exactly: bool) -> float:
        """Where L is largest."""
        if self.prices.size == 0:
            return 0.0
        enough = np.flatnonzero(self.work <= self.budget)
        k = int(enough[0]) if enough.size else self.prices.size
        price = float(self.prices[max(k - 1, 0)])
        return price if exactly else max(price, 0.0) if k else 0.0

    def places(self, price: float, side: Any) -> list[int]:
        """The interval of each path at a price: just below it (left) or above (right)."""
        return [int(np.searchsorted(path.prices, price, side=side)) for path in self.paths]

    def work_at(self, places: list[int]) -> Floats:
        """Work per unit of time of an arm of each entry."""
        pairs = zip(self.paths, places, strict=True)
        return np.array([path.work[k] for path, k in pairs]) / self.duration

    def value(self, price: float, places: list[int]) -> float:
        """L(p)."""
        triples = zip(self.counts, self.paths, places, strict=True)
        optima = sum(n * (path.costs[k] + price * path.work[k]) for n, path, k in triples)
        return float(optima - price * self.budget * self.duration)


def _assembled(
    fleet: list[tuple[Arm, int]], laws: list[Any], dual: _Dual, price: float, criterion: Any
) -> Relaxation:
    below, above = dual.places(price, "left"), dual.places(price, "right")
    most, least = dual.work_at(below), dual.work_at(above)
    room = float(dual.counts @ (most - least))
    share = (dual.budget - float(dual.counts @ least)) / room if room > 0.0 else 1.0
    share = min(max(share, 0.0), 1.0)
    more = tuple(path.policy(k) for path, k in zip(dual.paths, below, strict=True))
    less = tuple(path.policy(k) for path, k in zip(dual.paths, above, strict=True))
    return Relaxation(
        bound=_bound(fleet, laws, more, price, dual.budget, criterion),
        value=dual.value(price, below),
        multiplier=price,
        work=share * most + (1.0 - share) * least,
        counts=dual.counts,
        more=more,
        less=less,
        share=share,
    )


def _bound(
    fleet: list[tuple[Arm, int]],
    laws: list[Any],
    policies: tuple[NDArray[np.bool_], ...],
    price: float,
    budget: float,
    criterion: Any,
) -> float:
    """L(price) from below; the sum in rationals."""
    from mdpcloud.indices.fleets.bound import floor_of, least_cost

    known: dict[Any, float] = {}
    total = -Fraction(price) * Fraction(budget) * _duration(criterion)
    for (one, count), law, policy in zip(fleet, laws, policies, strict=True):
        key = (id(one), None if law is None else law.tobytes())
        if key not in known:
            known[key] = least_cost(one, price, policy, criterion, law)
        total += count * Fraction(known[key])
    return floor_of(total)


def _duration(criterion: Any) -> Fraction:
    """What a constant rate of 1 amounts to."""
    factor, rate = getattr(criterion, "factor", None), getattr(criterion, "rate", None)
    if factor is not None:
        return 1 / (1 - Fraction(factor))
    return Fraction(1) if rate is None else 1 / Fraction(rate)
