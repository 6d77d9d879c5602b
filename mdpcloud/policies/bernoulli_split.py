"""The optimal random split of a Poisson stream over nodes and an outside provider.

    minimise  sum_k f_k(lam_k) + C lam_0    subject to  lam_0 + ... + lam_n = lam,  lam_k >= 0,

where f_k is the stationary cost rate of node k fed by a Poisson stream of its own. With the slopes
and ratios rho of `mdpcloud.indices.node`, flow balance turns f_k into a line and two bends,

    f(x)  = alpha x + kappa queue(x) + (C - alpha) x full(x),      alpha = r + rho_low,
    f'(x) = alpha + kappa queue'(x) + (C - alpha) (x full(x))',    kappa = Dc_high - rho_low
    DD_high,

full(x) being the probability that a finite room is full and its job goes outside. f is convex if
rho is nondecreasing (kappa >= 0) and, in a finite room, if C - r >= sup rho. Then the split is the
root of

    sum_k lam_k(a) = lam,   lam_k(a) = the rate with f_k' = a  (0 for a <= alpha_k),   a <= C,

and its price a is the derivative of the optimal cost by lam. Just above alpha_k the root lam_k
moves like (a - alpha_k)^(1/m_k), so that both are sought in logarithms: a = base + e^t with base
the largest alpha_k whose demand is below lam, and the bend of f_k' as its logarithm, which never
underflows.

In overload the marginal cost of an unlimited room saturates: f_k' rises to r + U, U = sup rho, and
soon equals it to rounding, so that lam_k(a) jumps within one rounding of the price. Hence the split
is taken between the demands lam_k(a) and lam_k(a') at the two neighbouring prices a < a' with
sum_k lam_k(a) <= lam < sum_k lam_k(a'): any rates between them have marginal costs between a and
a', and so are optimal to rounding. Saturated nodes take what is left, in proportion to their jumps;
all others keep their demand.

Source: Nino-Mora (2019), Computers & Operations Research 103, 221-236; the convexity of f_k, there
conjectured, follows from f'' = 2 sum_i pi_i [d(i+1) - d(i)] > 0, d the bias for the costs PI(i).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.indices.bounds import checked_charges, upper_bound
from mdpcloud.indices.node import Node, condition_note, rho_is_monotone
from mdpcloud.queues.border import checked_number
from mdpcloud.queues.law import NodeLaw, node_law

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BernoulliSplit", "bernoulli_split"]

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

MEAN_ERROR = 1e-12  # relative error of a node's mean cost
LARGEST_ERROR = 1e-9  # error bound relative to the cost, beyond which a note says so
LOWEST = -1e6  # logarithm of the least rise of a price, or rate, that is looked for
FULLEST = 1.0 - 2.0**-40  # largest utilisation considered of a node without abandonment


@dataclass(frozen=True)
class BernoulliSplit:
    """An optimal random split.

    Attributes
    ----------
    rates : (n,) ndarray
        Arrival rate of each node, per unit of time.
    outside_rate : float
        Rate of the jobs sent outside (without those that find a finite room full).
    shadow_price : float
        Derivative of the optimal cost by the arrival rate, in cost per job.
    cost : float
        Cost per unit of time, outside jobs included.
    node_costs : (n,) ndarray
        Share of each node in it, with routing charges and blocked jobs.
    error_bound : float or None
        The cost is at most this far above the best split (by duality, and the rounding of the
        means); None where the problem is not convex.
    notes : tuple of str
        Why the problem is not convex, one sentence per node; where it is convex, empty, or one
        sentence with the error bound if that is above 1e-9 of the cost.
    """

    rates: Vector
    outside_rate: float
    shadow_price: float
    cost: float
    node_costs: Vector
    error_bound: float | None
    notes: tuple[str, ...]


def bernoulli_split(
    nodes: Sequence[Node],
    arrival_rate: float,
    outside_cost: float,
    *,
    charges: Sequence[float] | None = None,
) -> BernoulliSplit:
    """Split a Poisson stream at random so that the long-run cost is smallest.

    Parameters
    ----------
    nodes : sequence of Node
        At least one; deadlines, fees, holding costs and rooms may differ.
    arrival_rate : float
        Rate lam > 0 of all arrivals, per unit of time.
    outside_cost : float
        Cost C > 0 of a job sent outside, at once or because a node's room is full.
    charges : sequence of float, optional
        Charge r_k >= 0 for each job that node k takes; 0 by default.

    Raises
    ------
    InputError
        If an argument is out of range, or a node of unlimited room has neither abandonment nor
        holding costs (it would be free up to its capacity, and the split is not determined).

    Notes
    -----
    Where the problem is not convex (`notes`), the result is the best of the stationary points that
    SLSQP finds from several starts: a valid split with its exact cost, without a claim that it is
    the best.

    Examples
    --------
    >>> split = bernoulli_split([Node(1, 1.0, 0.5)], 0.8, 0.35)
    >>> split.rates, split.shadow_price
    (array([0.5457907]), 0.35)
    """
    lam = checked_number("arrival_rate", arrival_rate)
    outside = checked_number("outside_cost", outside_cost)
    tolls = checked_charges(nodes, charges)
    if not nodes:
        raise InputError("nodes is empty; at least one node is needed")
    branches = [_Branch(node, r, outside) for node, r in zip(nodes, tolls, strict=True)]
    for k, branch in enumerate(branches):
        if branch.is_free:
            raise InputError(
                f"nodes[{k}] has unlimited room and neither abandonment nor holding costs: it is "
                "free up to its capacity, and the split is not determined"
            )
    notes = tuple(f"nodes[{k}]: {note}" for k, b in enumerate(branches) for note in b.notes())
    if notes:
        rates = _stationary_point(branches, lam, outside)
        price = min([outside, *(b.marginal(x) for b, x in zip(branches, rates, strict=True))])
    else:
        rates, price = _convex_split(branches, lam, outside)
    outside_rate = max(0.0, lam - float(rates.sum()))
    costs = np.array([b.cost(x) for b, x in zip(branches, rates, strict=True)])
    cost = float(costs.sum()) + outside * outside_rate
    bound = None
    if not notes:
        gap = _duality_gap(branches, rates, outside_rate, price, outside)
        bound = gap + MEAN_ERROR * cost
        notes = _inexact(bound, cost)
    return BernoulliSplit(
        rates=rates,
        outside_rate=outside_rate,
        shadow_price=price,
        cost=cost,
        node_costs=costs,
        error_bound=bound,
        notes=notes,
    )


def _inexact(bound: float, cost: float) -> tuple[str, ...]:
    """Note on a split of a convex problem that rounding keeps away from the best."""
    if bound <= LARGEST_ERROR * cost:
        return ()
    return (f"the split costs {cost:.9g}, at most {bound:.2g} more than the best split",)


_law = lru_cache(maxsize=64)(node_law)  # searches ask for the ends of a bracket several times


@dataclass(frozen=True)
class _Branch:
    """A node as the split sees it: its mean cost f and marginal cost f' at a rate of its own."""

    node: Node
    charge: float
    outside: float

    @property
    def alpha(self) -> float:
        return self.charge + self.node.ratios[0]

    @property
    def kappa(self) -> float:
        line = self.node.ratios[0] * self.node.departure_slopes[1]
        bend = self.node.cost_slopes[1] - line
        return bend if abs(bend) > 1e-15 * line else 0.0

    @property
    def is_line(self) -> bool:
        return self.kappa == 0.0 and self.node.room is None

    @property
    def is_free(self) -> bool:
        return self.is_line and self.node.abandonment_rate == 0.0

    def most(self, lam: float) -> float:
        """Largest rate considered: all, or what a node without abandonment can serve."""
        node = self.node
        if node.room is not None or node.abandonment_rate > 0.0:
            return lam
        return min(lam, FULLEST * node.servers * node.service_rate)

    def law(self, rate: float) -> NodeLaw:
        node = self.node
        return _law(node.servers, *node.departure_slopes, rate, node.room)

    def cost(self, rate: float) -> float:
        low, high = self.node.cost_slopes
        law = self.law(rate)
        routed = self.charge * rate * (1.0 - law.full) + self.outside * rate * law.full
        return low * law.busy + high * law.queue + routed

    def log_bend(self, rate: float) -> float:
        """Logarithm of f'(rate) - alpha."""
        law = self.law(rate)
        bends = [math.log(self.kappa) + law.log_queue_slope] if self.kappa > 0.0 else []
        if self.node.room is not None and self.outside > self.alpha:
            bends.append(math.log(self.outside - self.alpha) + law.log_full_slope)
        return float(np.logaddexp.reduce(bends)) if bends else -math.inf

    def marginal(self, rate: float) -> float:
        law = self.law(rate)
        bend = self.kappa * law.queue_slope
        return self.alpha + bend + (self.outside - self.alpha) * law.full_slope

    def notes(self) -> Iterator[str]:
        note = condition_note(self.node)
        if note is not None:
            yield note
        elif self.node.room is not None and not self.is_convex:
            yield (
                f"the cost of a job that finds the room full, outside_cost - charge = "
                f"{self.outside - self.charge:.6g}, is below the largest cost of a job in it, "
                f"{upper_bound(self.node):.6g}: the node's cost need not be convex in its rate"
            )

    @property
    def is_convex(self) -> bool:
        """The line alone (alpha >= C) is never used, whatever the bends."""
        if not rho_is_monotone(self.node):
            return False
        blocked = self.outside - self.charge
        return (
            self.node.room is None
            or blocked >= upper_bound(self.node)
            or self.alpha >= self.outside
        )


def _convex_split(branches: Sequence[_Branch], lam: float, outside: float) -> tuple[Vector, float]:
    """Rates and price; whatever the curved nodes leave at the lowest flat price goes there."""
    flat = min([outside, *(b.alpha for b in branches if b.is_line)])
    floors = sorted({b.alpha for b in branches if b.alpha < flat})
    rates = np.zeros(len(branches))
    for base, ceiling in pairwise([*floors, flat]):
        at_base = rates
        below = [None if b.is_line or b.alpha >= ceiling else b for b in branches]
        log_rise = math.log(ceiling - base)
        rates = _demand(below, base, log_rise, lam)
        if rates.sum() > lam:
            demand = partial(_demand, below, base, lam=lam)
            rates, log_rise = _cleared(demand, lam, log_rise, at_base, rates)
            return rates, base + math.exp(log_rise)
    if flat < outside:
        line = next(k for k, b in enumerate(branches) if b.is_line and b.alpha == flat)
        rates[line] = lam - rates.sum()
    return rates, flat


def _demand(branches: Sequence[_Branch | None], base: float, log_rise: float, lam: float) -> Vector:
    """Rates at the price base + e^log_rise; 0 for None, a node whose alpha lies above."""
    return np.array([0.0 if b is None else _rate(b, base, log_rise, lam) for b in branches])


def _cleared(
    demand: Callable[[float], Vector], lam: float, high: float, least: Vector, most: Vector
) -> tuple[Vector, float]:
    """Rates of sum lam between the demands `lower` and `upper` at two neighbouring prices."""
    lower, floor = least, -math.inf
    upper, ceiling = most, high

    def excess(log_rise: float) -> float:
        nonlocal lower, floor, upper, ceiling
        rates = demand(log_rise)
        found = float(rates.sum()) - lam
        if found <= 0.0 and log_rise > floor:
            lower, floor = rates, log_rise
        elif found > 0.0 and log_rise < ceiling:
            upper, ceiling = rates, log_rise
        return found

    root = _increasing_root(excess, high)
    left = lam - float(lower.sum())
    share = left / (float(upper.sum()) - lam + left)
    rates = lower + share * (upper - lower)
    return rates * (lam / rates.sum()), root


def _rate(branch: _Branch, base: float, log_rise: float, lam: float) -> float:
    """The rate at which f' = base + e^log_rise, at most 2 lam; alpha <= base."""
    wanted = log_rise
    if base > branch.alpha:
        wanted = math.log(base - branch.alpha + math.exp(log_rise))
    most = branch.most(2.0 * lam)
    if branch.log_bend(most) <= wanted:
        return most
    return math.exp(
        _increasing_root(lambda x: branch.log_bend(math.exp(x)) - wanted, math.log(most))
    )


def _increasing_root(function: Callable[[float], float], high: float) -> float:
    """Root of an increasing function, positive at `high` and negative far below but for rounding.

    Where rounding has it otherwise, the end itself.
    """
    from scipy.optimize import brentq

    def bounded(x: float) -> float:
        return max(function(x), LOWEST)

    if bounded(high) <= 0.0:
        return high
    step = 1.0
    low = high - step
    while bounded(low) > 0.0:
        if low < LOWEST:
            return low
        high, step = low, 2.0 * step
        low = high - step
    return float(brentq(bounded, low, high, xtol=2e-16, rtol=1e-15, maxiter=1000))


def _duality_gap(
    branches: Sequence[_Branch],
    rates: Vector,
    outside_rate: float,
    price: float,
    outside: float,
) -> float:
    """Bound on cost - optimum, for any price a, as the functions are convex.

    f(x) - a x >= f(x_k) - a x_k + (f'(x_k) - a) (x - x_k), with x in 0..lam.
    """
    lam = float(rates.sum()) + outside_rate
    gap = max(outside - price, 0.0) * outside_rate + max(price - outside, 0.0) * (
        lam - outside_rate
    )
    for branch, rate in zip(branches, rates, strict=True):
        excess = branch.marginal(rate) - price
        gap += excess * rate if excess > 0.0 else -excess * (branch.most(lam) - rate)
    return float(gap)


def _stationary_point(branches: Sequence[_Branch], lam: float, outside: float) -> Vector:
    """Best local optimum from: everything outside, everything at one node, and evenly spread."""
    from scipy.optimize import LinearConstraint, minimize

    most = np.array([b.most(lam) for b in branches])

    def feasible(rates: Vector) -> Vector:
        clipped = np.clip(rates, 0.0, most)
        return clipped * min(1.0, lam / max(float(clipped.sum()), lam))

    def cost(rates: Vector) -> float:
        rates = feasible(rates)
        within = sum(b.cost(x) for b, x in zip(branches, rates, strict=True))
        return within + outside * (lam - float(rates.sum()))

    def slope(rates: Vector) -> Vector:
        pairs = zip(branches, feasible(rates), strict=True)
        return np.array([b.marginal(x) - outside for b, x in pairs])

    starts = [np.zeros(len(branches)), most / len(branches), *np.diag(most)]
    found = [feasible(start) for start in starts]
    for start in list(found):
        result = minimize(
            cost,
            start,
            jac=slope,
            method="SLSQP",
            bounds=[(0.0, float(x)) for x in most],
            constraints=LinearConstraint(np.ones((1, len(branches))), ub=lam),
            options={"ftol": 1e-14, "maxiter": 500},
        )
        found.append(feasible(result.x))
    return min(found, key=cost)
