"""Sweeps of a problem, with bounds of the right-hand side and of the rounding errors.

A sweep z -> z + F(z) / L is monotone and adds constants unchanged, so the least and the largest
F(z_k) bound those of all later k, and those of V(s) the ones of all longer times to go. Rounding
errors of a sweep are bounded by the sizes of what it adds up (Higham, section 3.1), whatever the
order; sweeps do not enlarge earlier errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.errors import SolveError
from mdpcloud.solve.horizon.enclosure import Enclosure, bound_rest, enclose
from mdpcloud.solve.limits import Monitor, Status, Stopped

__all__ = ["MOST", "PROBE", "Cut", "Setting", "Sweeps"]

CALL = 4e6  # state updates per call of the kernel: some hundredth of a second
MOST = 1e8  # sweeps that are ever made; more only where the bounds meet before
PROBE = 2e4  # sweeps after which a horizon of more than MOST is given up


class Cut(Stopped):
    """A limit was reached on the way; ``values`` are bounds for the end of the way."""

    def __init__(self, status: Status, values: Enclosure) -> None:
        super().__init__(status)
        self.values = values


@dataclass(frozen=True)
class Setting:
    """What all sweeps of a solve share: the monitor, and what bounds their rounding.

    Attributes
    ----------
    monitor : Monitor
    size : float
        Bound of the costs that a right-hand side adds up, cost/time, each without its sign.
    roundings : int
        Rounded operations behind one entry of a sweep; a product by a reciprocal has two.
    """

    monitor: Monitor
    size: float
    roundings: int

    def report(self, values: Enclosure) -> None:
        """Tell the least lower and the largest upper bound."""
        if self.monitor.progress is not None:
            self.monitor.report(float(values.lower.min()), float(values.upper.max()))

    @classmethod
    def of(cls, problem: Any, monitor: Monitor) -> Setting:
        """The setting of a problem, and of the same under any policy."""
        size, program = float(problem.cost_scale), getattr(problem, "program", None)
        if program is not None:
            parts = (float(np.abs(problem.field_values(f)).max()) for f in program.cost)
            return cls(monitor, size + sum(parts), 2 * int(program.depth) + 8)
        rows = problem.rows()
        moves = int(np.diff(rows.transitions.indptr).max(initial=0))
        return cls(monitor, size, int(rows.roundings) + 2 * (moves + len(problem.terms)) + 10)


class Sweeps:
    """Sweeps at one rate L: z_0, z_1, ... and bounds of F at them and of the rounding so far.

    Parameters
    ----------
    problem : Problem
        With or without decisions.
    start : Enclosure
        z_0.
    step : float
        1 / L; in discrete time 1.
    setting : Setting

    Attributes
    ----------
    work : array
        z_k - common, as a work array.
    common : float
    done : int
        k.
    low, high : float
        Bounds of F at z_(k - 1) and all later ones, cost/time.
    error : float
        Bound of the rounding error of the last F, cost/time.
    rounding : float
        Bound of the rounding error of z_k.
    largest : float
        Bound of the entries so far.
    extreme : float
        Bound of |F|, cost/time.
    """

    def __init__(self, problem: Any, start: Enclosure, step: float, setting: Setting) -> None:
        self.problem, self.start, self.step, self.setting = problem, start, step, setting
        self.work = problem.pack(start.h)
        self.spare = self.work.copy()
        self.done, self.low, self.high = 0, -np.inf, np.inf
        self.shift, self.common = start.drift, 0.0
        self.error = self.rounding = self.extreme = 0.0
        self.largest = float(np.abs(start.h).max())

    @property
    def bracket(self) -> float:
        """high - low."""
        return self.high - self.low

    def sweep(self, count: int = 1, target: float = 0.0) -> None:
        """Up to count sweeps in one call, fewer when the bracket reaches the target."""
        count = count if self.done else 1
        work, spare, step, shift = self.work, self.spare, self.step, self.shift
        done, low, high, in_spare = self.problem.sweeps(
            work, spare, count, step=step, shift=shift, target=target
        )
        if in_spare:
            work, spare = spare, work
        least, most = (self.low, self.high) if self.done else (low, high)
        largest = self.largest + done * step * max(abs(least - shift), abs(most - shift))
        error = gamma(self.setting.roundings) * self._scale(largest)
        low, high = max(self.low, low - error), min(self.high, high + error)
        extreme = self.extreme if self.done else max(abs(low), abs(high))
        rounding = self.rounding + done * step * error
        common = self.common + done * step * shift
        # All at once: an interrupt comes before or after it, so that they always fit together.
        self.work, self.spare, self.done, self.low, self.high, self.common = (
            *(work, spare),
            *(self.done + done, low, high, common),
        )
        self.error, self.rounding, self.largest, self.extreme = error, rounding, largest, extreme
        self.setting.monitor.count(done)

    def _scale(self, largest: float) -> float:
        """Bound of all that a right-hand side adds up, and of the value itself, cost/time."""
        rate = max(float(self.problem.rate_bound), 1.0 / self.step)
        return self.setting.size + abs(self.shift) + 4.0 * rate * largest

    def settle(self, count: float, target: float, duration: float) -> None:
        """Sweep until ``count`` are done or the bracket reaches the target.

        Raises
        ------
        Cut
            At a limit, with bounds after the whole duration.
        SolveError
            When count is beyond 1e8 and the bracket is still open after some thousand sweeps.
        """
        most = int(count if count <= MOST else PROBE)
        longest = int(max(1, CALL // self.problem.n))
        try:
            while self.done < most and not self._closed(target):
                self.recentre()
                self.sweep(min(most - self.done, longest, max(1, self.done)), target)
                self.setting.report(self.drifted(duration))
        except Stopped as stop:
            raise Cut(stop.status, self.drifted(duration)) from None
        except KeyboardInterrupt:
            raise Cut(Status.INTERRUPTED, self.drifted(duration)) from None
        if count > MOST and not self._closed(target):
            raise self.hopeless(count, duration)

    def _closed(self, target: float) -> bool:
        """Whether the bracket meets a target, or is as narrow as rounding lets it be."""
        return self.bracket <= max(target, 4.0 * self.error)

    def recentre(self) -> None:
        """Let the shift be the middle of the bracket, and measure the values."""
        if self.done:
            self.shift = 0.5 * (self.low + self.high)
            self.largest = float(np.abs(self.values()).max())

    def values(self) -> Floats:
        """z_k without its common part, (n,)."""
        return np.asarray(self.problem.unpack(self.work))

    def enclosure(self, values: Floats, common: float) -> Enclosure:
        """Values that began as ``start``, rounding of the sweeps included."""
        low, high = self.start.low + common, self.start.high + common
        middle = 0.5 * (self.low + self.high) if self.done else self.start.drift
        slack = self.rounding + 4.0 * self.done * UNIT_ROUNDOFF * abs(self.step * self.shift)
        return enclose(values, low, high, middle).widened(slack)

    def drifted(self, duration: float) -> Enclosure:
        """Values after a duration of which only a part was followed: then F stays in the bracket.

        In discrete time, the rest is so many steps. In continuous time z_N with N Poisson is
        wanted, and so many sweeps were done that P(N < k) is negligible: z_N lies between
        z_k + (N - k) / L low and the same with high, and E[N] = L d.
        """
        here = self.enclosure(self.values(), self.common)
        if not self.done:
            return bound_rest(self.problem, here, duration)
        left = duration - self.done * self.step
        slack = 4.0 * UNIT_ROUNDOFF * duration * self.extreme
        return here.drifting(self.low, self.high, left).widened(slack)

    def hopeless(self, count: float, duration: float) -> SolveError:
        """What to raise when so many sweeps are too many."""
        return SolveError(
            f"a horizon of {duration:g} needs {count:.3g} sweeps at steps of {self.step:.3g} (the "
            f"inverse of the largest rate), more than {MOST:g}; after {self.done} of them the cost "
            f"rates of the states still differ by {self.bracket:.3g}; take a shorter horizon, a "
            "larger tolerance, or a model without its fastest events"
        )
