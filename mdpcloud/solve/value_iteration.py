"""Relative value iteration (White 1963), with and without discounting.

    h <- h + (v - s) / Lambda,   v = c + sum_e r_e min_a [...] - alpha h,   s = (min v + max v) / 2

Each sweep brackets the optimum (see `mdpcloud.solve.certificate`). Lambda is 1.05 times the largest
total rate (plus alpha), which makes periodic chains aperiodic. Where the bracket closes slowly, the
values are extrapolated after every few sweeps (`mdpcloud.solve.extrapolation`); a step after which
the bracket is wider is taken back, and the next one comes after twice as many sweeps. So a sweep
can be wasted, but never the bracket. It stops when the certified bounds meet the goal, or when they
no longer close.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.certificate import Certificate, certify, rounding_margin
from mdpcloud.solve.extrapolation import Extrapolation
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.outcome import FIRST_PART, Outcome, ending, sharpen

__all__ = ["Sweeper", "ValueIteration"]

CALL = 4e6  # state updates per call of the kernel: some hundredth of a second
PROGRESS = 0.99  # a bracket that shrinks to this part of its best counts as closing
PERIOD = 10  # sweeps between extrapolations
FIRST = 50  # sweeps before the first one: those of a start that only needs smoothing
SLOW = 0.8  # part left of the bracket after a period that calls for extrapolations
WORSE = 1.5  # times the bracket before: a step that is taken back
PATIENCE = 200  # sweeps without progress after which rounding may be to blame
LARGEST = 2e6  # states up to which there is memory for them


@dataclass(frozen=True)
class ValueIteration:
    """Relative value iteration; takes any model, needs two value arrays.

    Parameters
    ----------
    stall : int
        Sweeps without 1 % of progress after which it gives up.
    most : int, optional
        Sweeps after which it gives up in any case, leaving the rest to another solver.
    depth : int
        Differences that an extrapolation uses; 0 for plain sweeps.
    """

    stall: int = 20_000
    most: int | None = None
    depth: int = 5
    name = "value_iteration"

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Solve from a work array of relative values."""
        sweeper = Sweeper(problem, goal, monitor, start)
        certificate = None
        try:
            status, certificate = self._close(sweeper)
        except Stopped as stop:
            status = stop.status
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if certificate is None:
            certificate = certify(problem, sweeper.h, goal.discount)
        handed_over = status is Status.STALLED and self.spent(sweeper)
        return Outcome(sweeper.h, certificate, status, handed_over)

    def values(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Floats:
        """Sweep until the plain bounds meet the goal, or as long as they close: a work array."""
        sweeper = Sweeper(problem, goal, monitor, start)
        with suppress(Stopped):
            sweeper.advance(self, 1.0)
        return sweeper.h

    def spent(self, sweeper: Sweeper) -> bool:
        """Whether the sweeps allowed are done."""
        return self.most is not None and sweeper.done >= self.most

    def _close(self, sweeper: Sweeper) -> tuple[Status, Certificate]:
        part = FIRST_PART
        while True:
            moving = sweeper.advance(self, part)
            certificate = certify(sweeper.problem, sweeper.h, sweeper.goal.discount)
            if not moving or certificate.width <= sweeper.width():
                return sweeper.ending(certificate), certificate
            finer = sharpen(certificate, sweeper.plain, sweeper.width(), part)
            if finer is None:
                return Status.PRECISION, certificate
            part = finer


class Sweeper:
    """The value array, its bounds, and whether they still close."""

    def __init__(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> None:
        self.problem, self.goal, self.monitor = problem, goal, monitor
        self.h, self.spare = start, start.copy()
        self.step = 1.0 / (problem.rate_bound + goal.discount)
        self.low, self.high, self.done = -np.inf, np.inf, 0
        self.shift = 0.0

    def largest(self) -> float:
        """max |V| under discounting (0 otherwise, where it is not needed)."""
        if not self.goal.discount:
            return 0.0
        values = self.problem.unpack(self.h) + 0.5 * (self.low + self.high) / self.goal.discount
        return float(np.abs(values).max())

    def width(self) -> float:
        """The goal."""
        return self.goal.width(self.low, self.high, self.largest())

    def sweep(self, count: int, target: float) -> None:
        """Some sweeps in one call."""
        done, self.low, self.high, in_spare = self.problem.sweeps(
            self.h,
            self.spare,
            min(count, self.monitor.room()),
            step=self.step,
            shift=self.shift,
            discount=self.goal.discount,
            target=target,
            recentre=True,
        )
        self.shift = 0.5 * (self.low + self.high)
        if in_spare:
            self.h, self.spare = self.spare, self.h
        self.done += done
        self.monitor.report(self.low, self.high)
        self.monitor.count(done)

    def margin(self) -> float:
        """How far equal right-hand sides may differ by rounding."""
        return rounding_margin(self.problem, self.h)

    def ending(self, certificate: Certificate) -> Status:
        """How it ended, now that the bounds no longer close."""
        return ending(certificate, self.plain, self.width(), self.margin())

    @property
    def plain(self) -> float:
        """Width of the plain bounds."""
        return self.high - self.low

    def advance(self, solver: ValueIteration, part: float) -> bool:
        """Sweep until the plain bounds reach a part of the goal; False when they stop closing."""
        longest = int(max(PERIOD, CALL // self.problem.n))
        best, reached, count, target = np.inf, self.done, 1, 0.0
        steps = _Steps(self, solver.depth)
        while True:
            self.sweep(count, target)
            target = part * self.width()
            if self.plain <= target:
                return True
            if self.plain < PROGRESS * best:
                best, reached = self.plain, self.done
            idle = self.done - reached
            if solver.spent(self) or idle >= solver.stall:
                return False
            if idle >= PATIENCE and self.plain <= self.margin():
                return False
            count = min(2 * count, steps.after(count, longest))


class _Steps:
    """When to extrapolate, and whether it paid."""

    def __init__(self, sweeper: Sweeper, depth: int) -> None:
        self.sweeper, self.depth = sweeper, depth
        self.period, self.before = PERIOD, np.inf
        self.extrapolation: Extrapolation | None = None

    def after(self, count: int, longest: int) -> int:
        """Extrapolate after ``count`` sweeps, or take the last step back; the most sweeps next."""
        if self.depth == 0 or self.sweeper.problem.n > LARGEST:
            return longest
        most = min(self.period, longest)
        if count >= most:
            self._step(self.sweeper.h, self.sweeper.plain)
        return most

    def _step(self, h: Floats, width: float) -> None:
        if self.extrapolation is None:
            if width > SLOW * self.before and self.sweeper.done >= FIRST:
                self.extrapolation = Extrapolation(h, self.sweeper.problem.n, self.depth)
            self.before = width
        elif width > WORSE * self.before and self.extrapolation.steps:
            self.extrapolation.take_back(h)
            self.period *= 2
        else:
            self.extrapolation.step(h)
            self.before = width
