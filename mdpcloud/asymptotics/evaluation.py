"""Measures of many systems, one after the other, as the points and lines of figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.asymptotics.measures import finite_measures, limit_measures
from mdpcloud.asymptotics.places import measure_at, with_value
from mdpcloud.asymptotics.settings import Curves
from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Look, Series
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.systems.measures import PER_UNIT, Measures

__all__ = [
    "Effort",
    "Found",
    "Progress",
    "at_scale",
    "curves_of",
    "evaluated",
    "finite_notes",
    "limit_series",
    "limits_along",
    "measure_label",
    "point_series",
    "value_per_unit",
]

Progress: TypeAlias = Callable[[int, int, str], None]
Found: TypeAlias = tuple[Measures, str]

LABELS = {
    "blocking": "probability of loss",
    "downgraded": "share of jobs downgraded",
    "forwarded": "share of jobs forwarded",
    "mean_jobs": "mean jobs / N",
    "cost": "cost rate / N",
}


@dataclass(frozen=True)
class Effort:
    """How finite systems are evaluated.

    Parameters
    ----------
    tolerance : float
        Relative width of the certified bounds of the cost.
    threads : int
    simulate : SimulateSettings
        For systems that are too large to be evaluated.
    progress : function of (done, total, what), optional
        Called before each of the systems.
    """

    tolerance: float = 1e-8
    threads: int = 1
    simulate: SimulateSettings = dataclasses.field(default_factory=SimulateSettings)
    progress: Progress | None = None

    def tell(self, done: int, total: int, what: str) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(done, total, what)


def evaluated(systems: Sequence[tuple[str, Any]], effort: Effort) -> list[Found]:
    """Measures of finite systems, each with its name for the progress, and how they were found."""
    found = []
    for done, (name, system) in enumerate(systems):
        effort.tell(done, len(systems), name)
        found.append(
            finite_measures(
                system,
                tolerance=effort.tolerance,
                threads=effort.threads,
                simulate=effort.simulate,
            )
        )
    return found


def finite_notes(scales: Sequence[float], found: Sequence[Found]) -> list[str]:
    """What a reader of the finite systems' numbers has to know, such as what was rounded."""
    return [
        f"N = {scale:g}: {note}"
        for scale, (measures, _) in zip(scales, found, strict=True)
        for note in measures.notes
    ]


def at_scale(system: Any, scale: float) -> Any:
    """The system of a scale."""
    if not hasattr(system, "scale"):
        raise InputError(f"{type(system).__name__} has no scale, by which its limit is approached")
    return with_value(system, "scale", scale)


def curves_of(system: Any, curves: Curves | None) -> list[tuple[str, Any]]:
    """Label and system of each curve; one without a label where there are no curves."""
    if curves is None:
        return [("", system)]
    name = curves.label or curves.path
    return [
        (f"{name} = {value:g}", with_value(system, curves.path, value)) for value in curves.values
    ]


def value_per_unit(measures: Measures, name: str, scale: float) -> tuple[float, float]:
    """A measure and its error, per unit of the scale where it grows with the scale."""
    value, error = measure_at(measures, name)
    per = scale if name.partition("[")[0] in PER_UNIT else 1.0
    return value / per, error / per


def measure_label(name: str) -> str:
    """What is on the axis of a measure.

    Examples
    --------
    >>> measure_label("blocking[1]")
    'probability of loss'
    """
    kind = name.partition("[")[0]
    return LABELS.get(kind, kind)


def limits_along(
    x: Sequence[float], systems: Sequence[Any], curve: str, effort: Effort
) -> tuple[list[Measures | None], list[str]]:
    """The limit at each x, and why there is none where there is none."""
    limits, notes = [], []
    for done, (place, system) in enumerate(zip(x, systems, strict=True)):
        effort.tell(done, len(x), ", ".join(filter(None, ("limit", curve))))
        found, reasons = limit_measures(system)
        limits.append(found)
        if found is None:
            notes += [f"{curve or 'limit'} at {place:g}: {reason}" for reason in reasons]
    return limits, notes


def limit_series(
    name: str, x: Sequence[float], limits: Sequence[Measures | None], curve: str
) -> Series:
    """A measure of the limit at each x, nan where there is none."""
    values = [np.nan if found is None else measure_at(found, name)[0] for found in limits]
    return Series("limit", [*x], values, curve)


def point_series(
    kind: str,
    name: str,
    x: Sequence[float],
    found: Sequence[Found],
    scales: Sequence[float],
    curve: str,
    look: Look,
) -> Series:
    """A measure of finite systems at each x, with the ends of its bounds or intervals."""
    numbers = [
        value_per_unit(one, name, scale) for (one, _), scale in zip(found, scales, strict=True)
    ]
    if any(how == "simulated" for _, how in found):
        kind = f"{kind}, simulated (95 %)"
    values = [value for value, _ in numbers]
    lower = [value - error for value, error in numbers]
    upper = [value + error for value, error in numbers]
    return Series(kind, [*x], values, curve, lower, upper, look)
