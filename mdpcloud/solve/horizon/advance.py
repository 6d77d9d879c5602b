"""Values advanced over an interval of time by uniformisation, enclosed.

    V' = F(V),   F(V)(x) = c(x) + sum_e r_e(x) min_a [ k_a + sum_j w_aj (V(x + s_aj) - V(x)) ],

V(s) being the expected cost over a time s to go. With z_0 = V(s), z_{k+1} = z_k + F(z_k) / L, where
the rate L is at least the largest total rate out of a state, and N Poisson with mean L d:

- Of a fixed policy (F linear) sum_k P(N = k) z_k is V(s + d): uniformisation (Jensen 1953).
- Else it is a lower bound of the optimal V(s + d). For u(t) = sum_k P(N(t) = k) z_k has u' =
  sum_k P(N(t) = k) F(z_k) <= F(u), F being concave, and F is quasi-monotone. (Who sees the number
  of jumps decides better than who does not.) It misses V by the action values' changes within the
  spread of N / L, sqrt(d / L), at states where the best action changes.

At whatever k the series is cut off, bounds of F(z_k) bound the rest; on long horizons it ends where
the bounds of the average cost meet (see `mdpcloud.solve.horizon.sweeps`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.solve.horizon.enclosure import Enclosure
from mdpcloud.solve.horizon.sweeps import MOST, Setting, Sweeps
from mdpcloud.solve.transient.poisson import PoissonWeights, poisson_weights

__all__ = ["advance"]

LEAST_MEAN = 0.1  # sweeps in the mean: a step far longer than the duration would lose digits
FASTEST = 1e250  # rate, 1/time; its inverse is still a number
OUTSIDE = 1e-20  # probability left out of the window of the weights: below its rounding


def advance(
    problem: Any,
    start: Enclosure,
    duration: float,
    budget: float,
    setting: Setting,
    *,
    rate: float = 0.0,
    middle: list[Floats] | None = None,
) -> Enclosure:
    """Values a duration further from the end; without a fixed policy only ``low`` is a bound.

    Parameters
    ----------
    problem : Problem
        In continuous time.
    start : Enclosure
    duration : float
        Time.
    budget : float
        Cost: width that the cut of the series may add.
    setting : Setting
        Its monitor counts the sweeps, and may raise `Stopped`.
    rate : float
        The rate L, if it is larger than the problem's uniformisation rate.
    middle : list, optional
        Gets the values (n,) at about half the duration, up to a constant.

    Raises
    ------
    SolveError
        When it would take more than 1e8 sweeps and the bounds do not meet after some thousand.
    Stopped
        At a limit; a `Cut`, which has bounds, before the series begins to count.
    """
    rate = min(max(rate, float(problem.rate_bound), LEAST_MEAN / duration), FASTEST)
    sweeps = Sweeps(problem, start, 1.0 / rate, setting)
    mean, target = rate * duration, budget / duration
    half = int(0.5 * mean + 0.5)
    weights = poisson_weights(mean, OUTSIDE) if mean <= MOST else None
    first = mean if weights is None else weights.first
    if half < first <= MOST:
        sweeps.settle(half, target, duration)
        _note(middle, sweeps)
    sweeps.settle(first, target, duration)
    if weights is None or sweeps.done < weights.first:
        _note(middle, sweeps)
        return sweeps.drifted(duration)
    series = _Series(sweeps, weights, budget / sweeps.step)
    series.sum_up(half, middle)
    return series.enclosure(duration)


def _note(middle: list[Floats] | None, sweeps: Sweeps) -> None:
    if middle is not None and not middle:
        middle.append(sweeps.values())


class _Series:
    """The weighted sum of the z_k of a window, cut where the rest is within the budget.

    Parameters
    ----------
    sweeps : Sweeps
        At the left end of the window.
    weights : PoissonWeights
    budget : float
        Of the width of the rest, cost L.
    """

    def __init__(self, sweeps: Sweeps, weights: PoissonWeights, budget: float) -> None:
        self.sweeps, self.weights, self.budget = sweeps, weights, budget
        self.total, self.common = np.zeros_like(sweeps.work), 0.0
        self.product = np.empty_like(sweeps.work)
        self.rest = weights.beyond

    def sum_up(self, half: int, middle: list[Floats] | None) -> None:
        """Add up; note the values after ``half`` sweeps, or at the end if that comes first."""
        weights = self.weights.weights
        mass = np.cumsum(weights[::-1])[::-1]  # P(N >= k)
        excess = np.append(np.cumsum(mass[:0:-1])[::-1], 0.0) + self.weights.beyond  # E[(N - k)+]
        last = weights.size - 1
        for place in range(weights.size):
            if place:
                self.sweeps.sweep()
            if self.sweeps.done == half:
                _note(middle, self.sweeps)
            known = self.sweeps.done > 0 and excess[place] * self.sweeps.bracket <= self.budget
            self._add(mass[place] if known else weights[place])
            if known or place == last:
                self.rest = float(excess[place])
                break
        _note(middle, self.sweeps)

    def _add(self, weight: float) -> None:
        np.multiply(self.sweeps.work, weight, out=self.product)
        self.total += self.product
        self.common += float(weight) * self.sweeps.common

    def enclosure(self, duration: float) -> Enclosure:
        """The values at the end of the interval."""
        sweeps, step = self.sweeps, self.sweeps.step
        size = sweeps.largest + abs(sweeps.common) + duration * sweeps.extreme
        slack = gamma(self.weights.weights.size + 8) * sweeps.largest
        slack += (self.weights.error + 8.0 * UNIT_ROUNDOFF) * size
        total = sweeps.enclosure(sweeps.problem.unpack(self.total), self.common)
        return total.drifting(sweeps.low, sweeps.high, self.rest * step).widened(slack)
