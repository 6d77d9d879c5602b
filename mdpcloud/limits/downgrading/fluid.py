"""The fluid limit of a link with downgrading.

With x_j jobs of class j per unit of the scale, load ``<A, x>`` = sum_j A_j x_j and units freed
s(x) = sum_j A_j mu_j x_j per unit of time:

- below the threshold, <A, x> < c0: x_j' = lambda_j - mu_j x_j;
- above, c0 < <A, x> < c: x_0' = Lambda - mu_0 x_0, and x_j' = -mu_j x_j for the others;
- on the threshold, while Lambda < s(x) < sum_j A_j lambda_j: both at once, the first with weight
  p(x) = (s(x) - Lambda) / sum_j lambda_j (A_j - 1), which keeps <A, x> = c0 (equation (16) of the
  source; p(x) is the fraction of time that the walk of `mdpcloud.limits.downgrading.wiener_hopf` is
  below 0);
- at the capacity, while s(x) < Lambda: as above, but only s(x) of the Lambda jobs are taken.

Source: Fricker, Guillemin, Robert and Thompson, "Allocation schemes of resources with downgrading",
Adv. Appl. Prob. 49 (2017), arXiv 1604.00894, equation (16); what happens at the capacity, where its
condition Lambda/mu_0 < c fails, is derived here. Times of changes are found by
`mdpcloud.limits.trajectory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.downgrading.equilibrium import Link
from mdpcloud.limits.trajectory import Mode, Trajectory, checked_numbers, integrate

__all__ = ["fluid_trajectory"]

ON_SURFACE = 1e-9  # relative distance from a surface that counts as on it
SLACK = 1e-13  # relative amount by which a gap has to be negative, beyond rounding

Array = NDArray[np.float64]


def fluid_trajectory(
    link: Link,
    horizon: float,
    start: Sequence[float] | None = None,
    times: Sequence[float] | None = None,
) -> Trajectory:
    """Follow the fluid limit of a link.

    Parameters
    ----------
    link : Link
    horizon : float
        Last time.
    start : sequence of float, optional
        Jobs of each class per unit of the scale; none by default.
    times : sequence of float, optional
        See `mdpcloud.limits.trajectory.integrate`.

    Raises
    ------
    InputError
        When the start does not fit the link.
    NoLimitError
        When the threshold is the capacity and the load comes there.

    Examples
    --------
    >>> link = Link((0.3, 0.4), (1.0, 1.0), (1, 2), capacity=1.0, threshold=0.9)
    >>> path = fluid_trajectory(link, 4.0, times=[4.0])
    >>> path.states.round(9).tolist(), [(round(t, 9), what) for t, what in path.changes]
    ([[0.474358106, 0.212820947]], [(1.704748092, 'the threshold is reached')])
    """
    none = np.zeros(len(link.requirements))
    first = none if start is None else checked_numbers("start", start)
    _check_start(link, first)
    dynamics = _Dynamics(link)
    labels = [f"mean_jobs[{j}]" for j in range(first.size)]
    return integrate(
        dynamics.modes(), dynamics.mode_at, first.tolist(), horizon, labels=labels, times=times
    )


def _check_start(link: Link, start: Array) -> None:
    if start.shape != (len(link.requirements),):
        raise InputError(
            f"start has {start.size} entries; it must have one for each of the "
            f"{len(link.requirements)} classes"
        )
    load = float(start @ np.asarray(link.requirements))
    if not ((start >= 0.0).all() and load <= link.capacity * (1.0 + ON_SURFACE)):
        raise InputError(
            f"start is {start.tolist()}, a load of {load:g}; its entries must be >= 0, and its "
            f"load at most the capacity {link.capacity:g}"
        )


class _Dynamics:
    """Drifts of a link, and where they end.

    Gaps end a mode only once they are below zero by a slack, and `mode_at` changes over at half of
    it, so that rounding on a surface starts no endless series of changes.
    """

    def __init__(self, link: Link) -> None:
        self.rates = np.asarray(link.arrival_rates, float)
        self.services = np.asarray(link.service_rates, float)
        self.units = np.asarray(link.requirements, float)
        self.total, self.asked = float(self.rates.sum()), float(self.rates @ self.units)
        self.c = link.capacity
        # nothing to be downgraded: the drift is the same on both sides of the threshold
        self.c0 = link.threshold if self.asked > self.total else 0.0
        self.slack = SLACK * self.c
        self.largest_rate = max(self.asked, float(self.services.max()) * self.c)
        self.rate_slack = SLACK * self.largest_rate

    def load(self, x: Array) -> float:
        return float(self.units @ x)

    def freed(self, x: Array) -> float:
        return float(self.units @ (self.services * x))

    # --- drifts -----------------------------------------------------------------------------------

    def below(self, x: Array) -> Array:
        return self.rates - self.services * x

    def above(self, x: Array) -> Array:
        return self._downgrading(x, self.total)

    def at_capacity(self, x: Array) -> Array:
        return self._downgrading(x, self.freed(x))

    def _downgrading(self, x: Array, taken: float) -> Array:
        drift: Array = -self.services * x
        drift[0] += taken
        return drift

    def on_threshold(self, x: Array) -> Array:
        p = (self.freed(x) - self.total) / (self.asked - self.total)
        return p * self.below(x) + (1.0 - p) * self.above(x)

    # --- modes ------------------------------------------------------------------------------------

    def modes(self) -> dict[str, Mode]:
        reached, filled = "the threshold is reached", "the capacity is reached"
        to_threshold = {reached: self._load_gap(-1.0, self.c0)}
        from_threshold = {
            reached: self._load_gap(1.0, self.c0),
            filled: self._load_gap(-1.0, self.c),
        }
        along_threshold = {
            "every job is downgraded": self._rate_gap(1.0, self.total),
            "no job is downgraded": self._rate_gap(-1.0, self.asked),
        }
        at_capacity = {"no job is lost": self._rate_gap(-1.0, self.total)}
        return {
            "below": Mode(self.below, to_threshold),
            "above": Mode(self.above, from_threshold),
            "threshold": Mode(self.on_threshold, along_threshold, self._onto(self.c0)),
            "capacity": Mode(self.at_capacity, at_capacity, self._onto(self.c)),
        }

    def _load_gap(self, sign: float, level: float) -> Callable[[Array], float]:
        return lambda x: (sign * (self.load(x) - level) + self.slack) / self.c

    def _rate_gap(self, sign: float, level: float) -> Callable[[Array], float]:
        return lambda x: (sign * (self.freed(x) - level) + self.rate_slack) / self.largest_rate

    def _onto(self, level: float) -> Callable[[Array], Array]:
        """A point of load ``level`` close by, of the same units freed where rates are apart.

        A change of these would be as fast as the fastest class, and begin the mode anew.
        """
        freeing = self.units * self.services / self.services.max()
        apart = float(self.services.max()) > 2.0 * float(self.services.min())
        kept = np.array([self.units, freeing] if apart else [self.units])
        way = np.linalg.pinv(kept)[:, 0]
        return lambda x: np.maximum(x + (level - self.load(x)) * way, 0.0)

    def mode_at(self, x: Array) -> str:
        load, freed, near = self.load(x), self.freed(x), ON_SURFACE * self.c
        if freed >= self.asked + 0.5 * self.rate_slack and load <= self.c0 + near:
            return "below"
        if load >= self.c - near and self.c0 >= self.c - near:
            raise NoLimitError(
                f"the load comes to the capacity {self.c:g}, and the threshold is {self.c0:g} as "
                "well: how jobs are taken there depends on single units; it must be below"
            )
        if load >= self.c - near and freed < self.total + 0.5 * self.rate_slack:
            return "capacity"
        if abs(load - self.c0) > near:
            return "above" if load > self.c0 else "below"
        return "above" if freed <= self.total - 0.5 * self.rate_slack else "threshold"
