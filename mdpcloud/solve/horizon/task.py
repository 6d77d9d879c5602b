"""What is asked over a finite horizon, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.criteria import FiniteHorizon
from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError
from mdpcloud.solve.horizon.enclosure import Enclosure, enclose
from mdpcloud.solve.horizon.sweeps import Setting
from mdpcloud.solve.limits import FLOOR, Monitor, Status, check_tolerance
from mdpcloud.solve.reward import sense_of
from mdpcloud.solve.selection import values_per_state

__all__ = ["Outcome", "Task"]

GUESS = 1e-3  # of the largest costs: a first guess of the size of the values


@dataclass(frozen=True, eq=False)
class Outcome:
    """Certified bounds (n,) of the engine's costs, and why it stopped before, if it did."""

    lower: Floats
    upper: Floats
    stopped: Status | None = None

    @property
    def width(self) -> float:
        """Largest distance of the bounds, cost."""
        return float((self.upper - self.lower).max())

    @property
    def values(self) -> Floats:
        """Middle of the bounds, (n,)."""
        return 0.5 * (self.lower + self.upper)


@dataclass(frozen=True, eq=False)
class Task:
    """A problem, its horizon and final cost, and how narrow the bounds have to be.

    Attributes
    ----------
    problem : Problem
    horizon : float
        Time; in discrete time a whole number of steps.
    final : Enclosure
        Cost at the end.
    tolerance : float
        Of the width of the bounds, relative to the largest value.
    setting : Setting
    criterion : FiniteHorizon
    largest : float
        Bound of every value, cost.
    """

    problem: Any
    horizon: float
    final: Enclosure
    tolerance: float
    setting: Setting
    criterion: FiniteHorizon
    largest: float

    @classmethod
    def of(
        cls,
        model: Any,
        problem: Any,
        criterion: FiniteHorizon,
        tolerance: float,
        monitor: Monitor,
    ) -> Task:
        """The task of a model.

        Raises
        ------
        InputError
            When the criterion or the tolerance does not fit.
        """
        if not isinstance(criterion, FiniteHorizon):
            raise InputError(f"criterion is {criterion!r}; it must be mdpcloud.FiniteHorizon(...)")
        check_tolerance(tolerance)
        horizon = float(criterion.steps() if problem.discrete else criterion.time)
        cost = 0.0 if criterion.final_cost is None else criterion.final_cost
        final = sense_of(model) * values_per_state(cost, problem, "the final cost")
        setting = Setting.of(problem, monitor)
        largest = setting.size * horizon + float(np.abs(final).max())
        if not largest < 1e200:
            raise InputError(f"costs of up to {largest:g} over the horizon are too large")
        return cls(problem, horizon, enclose(final), float(tolerance), setting, criterion, largest)

    @property
    def guess(self) -> float:
        """A first guess of the width to reach."""
        return self.width(GUESS * self.largest)

    def width(self, size: float) -> float:
        """The width to reach where ``size`` is the largest value; > 0."""
        return max(self.tolerance * size, FLOOR * self.largest) or 1.0

    def bounded(self, values: Enclosure, left: float) -> Enclosure:
        """Values after a time left of which nothing is known but the largest cost rate."""
        most = self.setting.size * left
        low, high = float(values.lower.min()) - most, float(values.upper.max()) + most
        return Enclosure(np.zeros_like(values.h), low, high).widened(1e-12 * self.largest)

    def goal(self, outcome: Outcome) -> float:
        """The width to reach, given bounds so far."""
        return self.width(float(np.abs(outcome.values).max()))

    def status(self, outcome: Outcome) -> Status:
        """What to say of an outcome."""
        if outcome.width <= self.goal(outcome):
            return Status.CONVERGED
        return outcome.stopped or Status.PRECISION
