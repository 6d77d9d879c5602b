"""The optimal cost over a finite horizon in continuous time, between a policy's and a lower bound.

Backwards from the end, interval by interval:

- lower: the minimising sweeps of `mdpcloud.solve.horizon.advance`, at a rate of at least FOCUS per
  interval;
- upper: the cost of a real policy, exact by uniformisation: in each interval one choice, greedy for
  the lower bound's values in its middle. A state whose best action changes at a distance u from the
  nearer end of an interval of length d loses a u^2 / 2, a being the speed of the actions' values.

So intervals of length d cost a width in proportion to d^2 (each interval's loss is suffered by the
few states that switch in it), and steps are adapted such that the width meets the goal at the end:
they shrink where the width grows faster than in proportion to the time left, and grow elsewhere.
The bounds hold whatever the steps. Compare Miller (Finite state continuous time Markov decision
processes with a finite planning horizon, SIAM J. Control 6, 1968) for the equation, Buchholz and
Schulz (Numerical analysis of continuous time Markov decision processes over finite horizons,
Computers & Operations Research 38, 2011) for intervals with one choice each and bounds of their
loss; here the lower bound needs no bound of derivatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.solve.certificate import rounding_margin
from mdpcloud.solve.horizon.advance import advance
from mdpcloud.solve.horizon.enclosure import Enclosure, bound_rest
from mdpcloud.solve.horizon.record import Record
from mdpcloud.solve.horizon.sweeps import Setting
from mdpcloud.solve.limits import Status, Stopped

__all__ = ["Course"]

FOCUS = 5.0  # least mean number of the lower bound's sweeps per interval
CUT = 0.01  # part of the goal left to the cut of the series, in each bound
TIES = 0.003  # part of the goal given up for few changes of equal actions
LEAST = 0.02  # part of the goal that the width may always grow by, when it is too large already
PEAK = 0.6  # part of the goal that the width may reach at any time
PACE = 0.95  # part of the goal aimed at for the end
LONGER, SHORTER = 1.4, 0.6  # most change of the step from one interval to the next
SHORTEST = 1e-9  # step, in horizons
INTERVALS = 100_000  # after so many the rest is done in one


@dataclass(frozen=True, eq=False)
class _Point:
    """Bounds of the values with a time left to go backwards."""

    left: float
    upper: Enclosure
    lower: Enclosure

    @property
    def width(self) -> float:
        """Largest distance of the bounds, cost."""
        return float((self.upper.upper - self.lower.lower).max())

    @property
    def noise(self) -> float:
        """The part of it that is rounding and the cut of series: shorter steps do not help."""
        return self.upper.high - self.upper.low + self.lower.high - self.lower.low


class Course:
    """One way back from the end to time 0.

    Parameters
    ----------
    problem : Problem
        With decisions, in continuous time.
    final : Enclosure
        Cost at the end.
    horizon : float
        Time.
    goal : float
        Width of the bounds to reach, cost.
    setting : Setting
    """

    def __init__(
        self, problem: Any, final: Enclosure, horizon: float, goal: float, setting: Setting
    ) -> None:
        self.problem, self.goal, self.setting = problem, goal, setting
        self.horizon, self.tried = horizon, 0
        self.record = Record(problem, horizon)
        self.point = _Point(horizon, final, final)
        self.duration = min(horizon, 1.0 / float(problem.rate_bound))

    def follow(self) -> Status | None:
        """Go back to time 0; the status says why the rest was only bounded, None: it was not."""
        try:
            while self.point.left > 0.0:
                if self.tried >= INTERVALS:
                    self._accept(*self._interval(0.0))
                    return Status.STALLED
                self._step()
        except Stopped as stop:
            status = stop.status
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except MemoryError:
            status = Status.MEMORY
        else:
            return None
        self._bound_rest()
        return status

    def _step(self) -> None:
        """One interval, or a shorter step for the next attempt."""
        point = self.point
        end = min(point.left - self.duration, math.nextafter(point.left, 0.0))
        if end < 0.1 * self.duration:
            end = 0.0
        duration = point.left - end
        new, choice = self._interval(end)
        self.tried += 1
        growth = (new.width - point.width) - (new.noise - point.noise)
        pace = max(PACE * self.goal - point.width, LEAST * self.goal) * duration / point.left
        shortest = SHORTEST * self.horizon
        if new.width > PEAK * self.goal and growth > 2.0 * pace and duration > shortest:
            self.duration = max(0.5 * duration, shortest)
            return
        self._accept(new, choice)
        change = self._change(new.width, growth, pace)
        self.duration = max(change * duration, shortest)

    def _change(self, width: float, growth: float, pace: float) -> float:
        """Factor by which the next step may be longer; the width grows with its square."""
        factor = math.sqrt(pace / growth) if growth > 0.0 else LONGER
        if 0.0 < width <= PEAK * self.goal:
            factor = max(factor, 0.8 * math.sqrt(PEAK * self.goal / width))
        return min(max(factor, SHORTER), LONGER)

    def _accept(self, new: _Point, choice: Choice) -> None:
        self.record.add(self.point.left, choice)
        self.point = new
        if self.setting.monitor.progress is not None:
            lowest, highest = new.lower.lower.min(), new.upper.upper.max()
            self.setting.monitor.report(float(lowest), float(highest))

    def _interval(self, end: float) -> tuple[_Point, Choice]:
        """Bounds at the time ``end``, and the choice from there to the time reached so far."""
        point = self.point
        duration = point.left - end
        cut = CUT * self.goal * duration / self.horizon
        middle: list[Floats] = []
        lower = advance(
            self.problem,
            point.lower,
            duration,
            cut,
            self.setting,
            rate=FOCUS / duration,
            middle=middle,
        )
        choice = self._greedy(middle[0])
        upper = advance(self.problem.under(choice), point.upper, duration, cut, self.setting)
        return _Point(end, upper, lower), choice

    def _greedy(self, values: Floats) -> Choice:
        work = self.problem.pack(values)
        margin = TIES * self.goal / (self.horizon * len(self.problem.terms))
        choice: Choice = self.problem.greedy(work, margin + rounding_margin(self.problem, work))
        return choice

    def _bound_rest(self) -> None:
        """Bound the time left by the extreme cost rates of its end, keeping the choice in force.

        The least F only grows with the time to go, under a fixed policy the largest only falls.
        """
        point = self.point
        if self.record.choice is None:
            self.record.add(point.left, self._greedy(point.lower.h))
        upper = bound_rest(self.problem.under(self.record.choice), point.upper, point.left)
        lower = bound_rest(self.problem, point.lower, point.left)
        self.point = _Point(0.0, upper, lower)
