"""Bounds of blocking under trunk reservation in the limit, without the law of the walk.

With b = a_1/lambda_1, cuts between the levels n_1 <= a of the walk give

    (1 - b)^+ <= B_1 <= 1/(1 + b + ... + b^a),

see `mdpcloud.limits.trunk_reservation.regimes`; besides, B_0 >= 0. What B_1 exceeds its lower bound
by is delta, at most

    (1 - b) b^(a+1)/(1 - b^(a+1))   if b < 1,      1/(1 + b + ... + b^a)   else,

which is computed without a difference of the bounds, and by the conservation law

    lambda_0 B_0 = lambda_0 - a_0 - (a_1 - lambda_1)^+ - lambda_1 delta.

B_0 = P(n_0 = 0, n_1 <= a) is found from this, where small numbers are not the difference of large
ones: lambda_1 may exceed lambda_0 by any factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from mdpcloud.limits.trunk_reservation.levels import Rates

__all__ = ["Bracket", "bracket"]

Pair: TypeAlias = tuple[float, float]

ROUNDING = 1e-15
"""Of probabilities."""


@dataclass(frozen=True)
class Bracket:
    """Bounds of the probabilities that jobs are lost.

    Attributes
    ----------
    first, second : (low, high)
        Of B_0 and of B_1, up to `ROUNDING`.
    width : float
        The larger difference of the two, computed by itself.
    """

    first: Pair
    second: Pair
    width: float

    @property
    def bounds(self) -> tuple[Pair, Pair]:
        """Of both."""
        return self.first, self.second

    @property
    def middle(self) -> Pair:
        """The values with the least error."""
        return 0.5 * sum(self.first), 0.5 * sum(self.second)

    @property
    def error(self) -> float:
        """Largest absolute error of the middle."""
        return 0.5 * self.width + ROUNDING

    def nearest(self, blocking: Pair) -> Pair:
        """The values within the bounds nearest to given ones."""
        (low_0, high_0), (low_1, high_1) = self.first, self.second
        return min(max(blocking[0], low_0), high_0), min(max(blocking[1], low_1), high_1)


def bracket(rates: Rates, reserved: int) -> Bracket:
    """Bounds of B_0 and B_1 where both centres are saturated and lambda_1 > 0.

    Examples
    --------
    >>> found = bracket(Rates((1.5, 30000.0), (1.0, 10000.0)), 40)
    >>> round(found.middle[0], 15), found.width < 1e-15
    (0.333333333333333, True)
    """
    (l0, l1), capacity = rates.arrivals, rates.capacities[1]
    if l1 > capacity:
        low, most = 1.0 - capacity / l1, rates.overload
    else:
        low, most = 0.0, rates.excess
    delta = min(_beyond(l1, capacity, reserved), most / l1)
    lost = min(delta * l1, most)
    return Bracket(
        (max(most - lost, 0.0) / l0, most / l0),
        (low, min(low + delta, 1.0)),
        max(delta, lost / l0),
    )


def _beyond(arrivals: float, capacity: float, reserved: int) -> float:
    """By how much B_1 may exceed its lower bound.

    Examples
    --------
    >>> [round(_beyond(*rates), 15) for rates in ((2.0, 1.0, 1), (1.0, 1.0, 3), (1.0, 2.0, 1))]
    [0.166666666666667, 0.25, 0.333333333333333]
    """
    beyond = (capacity - arrivals) / arrivals  # b - 1
    if beyond == 0.0:
        return 1.0 / (reserved + 1)
    log = math.log1p(beyond) if abs(beyond) < 0.5 else math.log(capacity) - math.log(arrivals)
    power = (reserved + 1) * log
    if power > 700.0:
        return 0.0
    return beyond * math.exp(min(power, 0.0)) / math.expm1(power)
