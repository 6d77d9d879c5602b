"""When a solver stops: tolerance, limits, interrupts; and what it reports meanwhile."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeAlias

from mdpcloud.errors import InputError

__all__ = ["Goal", "Monitor", "Progress", "Status", "Stopped", "check_tolerance"]

Progress: TypeAlias = Callable[[int, float, float], None]
"""Called with (iterations, lower, upper) now and then; the bounds are not yet certified."""

FLOOR = 1e-12  # of the largest cost rate: the finest absolute tolerance


class Status(enum.Enum):
    """How a solve ended; the value is the message."""

    CONVERGED = "converged: the certified bounds meet the tolerance"
    ITERATIONS = "stopped at the iteration limit before the tolerance was met"
    TIME = "stopped at the time limit before the tolerance was met"
    INTERRUPTED = "interrupted before the tolerance was met"
    MEMORY = "out of memory before the tolerance was met"
    PRECISION = "the tolerance is below what float64 can certify"
    STALLED = "the bounds stopped closing before the tolerance was met"


class Stopped(Exception):
    """Raised inside a solver when a limit is reached."""

    def __init__(self, status: Status) -> None:
        self.status = status


def check_tolerance(tolerance: Any) -> None:
    """Raise `InputError` unless a tolerance is a number between 0 and 1."""
    if not isinstance(tolerance, Real) or not 0 < float(tolerance) < 1:
        raise InputError(f"tolerance is {tolerance!r}; it must be in (0, 1)")


@dataclass(frozen=True)
class Goal:
    """How narrow the bounds of the right-hand side have to be.

    Average cost: high - low <= max(tolerance |g|, 1e-12 cost scale). Discounted: the same for the
    error (high - low) / alpha of the values, against their largest size.
    """

    tolerance: float
    cost_scale: float
    discount: float = 0.0

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    def width(self, low: float, high: float, largest: float = 0.0) -> float:
        """The width to reach, given bounds so far; ``largest`` is max |V| under discounting."""
        return max(self.tolerance * self.size(low, high, largest), FLOOR * self.cost_scale)

    def size(self, low: float, high: float, largest: float = 0.0) -> float:
        """What the tolerance is relative to, cost/time."""
        if self.discount > 0:
            return self.discount * largest
        return 0.0 if low <= 0 <= high else min(abs(low), abs(high))


@dataclass
class Monitor:
    """Counts iterations, watches the limits and calls back.

    Parameters
    ----------
    max_iterations : int or None
        Sweeps, products with the generator and direct solves together.
    time_limit : float or None
        Seconds.
    progress : function or None
    """

    max_iterations: int | None = None
    time_limit: float | None = None
    progress: Progress | None = None
    iterations: int = 0
    ended: Status | None = field(default=None, init=False)
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        most, seconds = self.max_iterations, self.time_limit
        if most is not None and not (isinstance(most, Integral) and most >= 1):
            raise InputError(f"max_iterations is {most!r}; it must be an integer >= 1 or None")
        if seconds is not None and not (isinstance(seconds, Real) and seconds > 0):
            raise InputError(f"time_limit is {seconds!r} s; it must be > 0 or None")
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress is {self.progress!r}; it must be a function or None")

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def end(self, status: Status) -> None:
        """Let every later `count` raise `Stopped`."""
        self.ended = status

    def count(self, done: int) -> None:
        """Add iterations; raises `Stopped` past a limit."""
        self.iterations += done
        if self.ended is not None:
            raise Stopped(self.ended)
        if self.max_iterations is not None and self.iterations >= self.max_iterations:
            raise Stopped(Status.ITERATIONS)
        if self.time_limit is not None and self.elapsed > self.time_limit:
            raise Stopped(Status.TIME)

    def report(self, low: float, high: float) -> None:
        """Tell the caller where things stand."""
        if self.progress is not None:
            self.progress(self.iterations, low, high)

    def room(self) -> int:
        """Iterations left before the limit."""
        if self.max_iterations is None:
            return 1 << 30
        return max(1, self.max_iterations - self.iterations)
