"""Values at a time, known between bounds that are the same distance apart in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import gamma

__all__ = ["Enclosure", "bound_rest", "enclose"]


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Values between h + low and h + high.

    Attributes
    ----------
    h : (n,) array
        Without the part that all states have in common: the middle of its range is 0.
    low, high : float
    drift : float
        A guess of the common part of F, cost/time.
    """

    h: Floats
    low: float
    high: float
    drift: float = 0.0

    @property
    def lower(self) -> Floats:
        """Certified lower bounds (n,)."""
        return np.asarray(np.nextafter(self.h + self.low, -np.inf))

    @property
    def upper(self) -> Floats:
        """Certified upper bounds (n,)."""
        return np.asarray(np.nextafter(self.h + self.high, np.inf))

    def widened(self, by: float) -> Enclosure:
        """The same values, known less well."""
        return replace(self, low=self.low - by, high=self.high + by)

    def drifting(self, low: float, high: float, duration: float) -> Enclosure:
        """Bounds after some time in which F stays between low and high, rounding included."""
        size = abs(self.low) + abs(self.high) + duration * (abs(low) + abs(high))
        moved = replace(self, low=self.low + duration * low, high=self.high + duration * high)
        return moved.widened(gamma(6) * size)


def enclose(values: Floats, low: float = 0.0, high: float = 0.0, drift: float = 0.0) -> Enclosure:
    """Values between values + low and values + high, centred."""
    middle = 0.5 * (float(values.min()) + float(values.max()))
    around = Enclosure(values - middle, low + middle, high + middle, drift)
    size = float(np.abs(values).max()) + abs(middle) + abs(low) + abs(high)
    return around.widened(gamma(4) * size)


def bound_rest(problem: Any, values: Enclosure, duration: float) -> Enclosure:
    """Bounds after a duration, from the extremes of F at its begin alone.

    The lower one holds with decisions too, the upper one under a fixed policy.
    """
    low, high = problem.certify(problem.pack(values.h))
    return values.drifting(low, high, duration)
