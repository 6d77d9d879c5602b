"""Finite horizons in discrete time: backward induction, with bounds of its rounding errors.

    V(s + 1)(x) = V(s)(x) + F(V(s))(x) = min_a [ c(x, a) + sum_y p(y | x, a) V(s)(y) ].

It ends before the horizon where bounds of the average cost tell the rest (see
`mdpcloud.solve.horizon.sweeps`); the policy then stays the same in all the time left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.solve.certificate import rounding_margin
from mdpcloud.solve.horizon.enclosure import Enclosure
from mdpcloud.solve.horizon.record import Record
from mdpcloud.solve.horizon.sweeps import MOST, PROBE, Setting, Sweeps
from mdpcloud.solve.horizon.task import Outcome, Task
from mdpcloud.solve.limits import Status, Stopped

__all__ = ["advance_steps", "solve_steps"]

SHARE = 0.3  # of the width left to the end before the horizon
LOOK = 16  # steps between two looks at whether the rest is known


def advance_steps(
    fixed: Any, start: Enclosure, steps: float, budget: float, setting: Setting
) -> Enclosure:
    """Values so many steps further from the end, under a fixed policy.

    Raises
    ------
    Stopped
        At a limit; a `Cut`, which has bounds.
    SolveError
        As `Sweeps.settle`.
    """
    sweeps = Sweeps(fixed, start, 1.0, setting)
    sweeps.settle(steps, budget / steps, steps)
    return sweeps.drifted(steps)


def solve_steps(task: Task) -> tuple[Outcome, TimedPolicy]:
    """Backward induction: bounds of the optimal cost, and the policy.

    An action that is best up to rounding may be taken; the upper bound includes the difference.
    """
    induction = _Induction(task)
    try:
        induction.run()
        stopped = None
    except Stopped as stop:
        stopped = stop.status
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    except MemoryError:
        stopped = Status.MEMORY
    return induction.outcome(stopped), induction.record.policy()


class _Induction:
    """Backward induction on a task."""

    def __init__(self, task: Task) -> None:
        self.task, self.steps = task, int(task.horizon)
        self.sweeps = Sweeps(task.problem, task.final, 1.0, task.setting)
        self.record = Record(task.problem, task.horizon)
        self.margin = 0.0  # of the last choice, cost
        self.lost = 0.0  # by all of them

    def run(self) -> None:
        """Step back to time 0, or to where the rest is known."""
        sweeps = self.sweeps
        if self.steps > MOST:
            self._probe()
        while sweeps.done < self.steps and not self._known():
            if self.steps > MOST and sweeps.done >= PROBE:
                raise sweeps.hopeless(self.steps, self.steps)
            self._choose()
            sweeps.sweep()

    def _probe(self) -> None:
        """Refuse a horizon that is hopeless even if the values were as large as they can be."""
        target = SHARE * self.task.width(self.task.largest) / self.steps
        probe = Sweeps(self.task.problem, self.task.final, 1.0, self.task.setting)
        probe.settle(self.steps, target, self.steps)

    def _choose(self) -> None:
        """Record the greedy choice of the next step back."""
        problem, work = self.task.problem, self.sweeps.work
        self.margin = rounding_margin(problem, work)
        self.record.add(self.steps - self.sweeps.done, problem.greedy(work, self.margin))
        self.lost += self.margin

    def _known(self) -> bool:
        """Whether the bounds of F tell the rest, looked at now and then."""
        sweeps = self.sweeps
        if not sweeps.done or sweeps.done % LOOK:
            return False
        sweeps.recentre()
        left = self.steps - sweeps.done
        common = sweeps.start.low + sweeps.common + left * sweeps.shift
        size = float(np.abs(sweeps.values() + common).max())
        return left * sweeps.bracket <= SHARE * self.task.width(size)

    def outcome(self, stopped: Status | None) -> Outcome:
        """Bounds at time 0; each step of the policy may lose the margin and two roundings."""
        sweeps = self.sweeps
        if self.record.choice is None:
            self._choose()
        end = sweeps.drifted(self.steps)
        left = self.steps - sweeps.done
        slack = self.lost + 2.0 * sweeps.rounding + left * (self.margin + 2.0 * sweeps.error)
        return Outcome(end.lower, end.widened(slack).upper, stopped)
