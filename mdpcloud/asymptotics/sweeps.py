"""Measures against a parameter: the large-scale limit as lines, finite systems beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import (
    Effort,
    Found,
    at_scale,
    curves_of,
    evaluated,
    finite_notes,
    limit_series,
    limits_along,
    measure_label,
    point_series,
)
from mdpcloud.asymptotics.places import with_value
from mdpcloud.asymptotics.settings import Finite, Sweep
from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.systems.measures import Measures

__all__ = ["sweep_chart"]


def sweep_chart(system: Any, settings: Sweep, effort: Effort) -> Chart:
    """The chart of a sweep, a panel for each measure.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    settings : Sweep
    effort : Effort

    Raises
    ------
    InputError
        When a path, a value or a measure is not one of the system's.
    """
    curves = curves_of(system, settings.curves)
    limits, notes = _limits(curves, settings, effort)
    points = _points(curves, settings, effort)
    x_label = settings.x.label or settings.x.path
    whole = "x" if all(value.is_integer() for value in settings.x.grid) else ""
    panels = []
    for name, title in zip(settings.measures, settings.titles or settings.measures, strict=True):
        lines = [limit_series(name, settings.x.grid, one, curve) for curve, one in limits]
        series = (*lines, *_finite(name, settings.finite, points))
        panels.append(Panel(title, x_label, measure_label(name), series, whole=whole))
    told = [note for _, scale, x, one in points for note in finite_notes([scale] * len(x), one)]
    return Chart(tuple(panels), tuple(dict.fromkeys([*notes, *told])))


def _limits(
    curves: Sequence[tuple[str, Any]], settings: Sweep, effort: Effort
) -> tuple[list[tuple[str, list[Measures | None]]], list[str]]:
    """Per curve the limits along the axis, where there are any; and why there are none."""
    limits, notes = [], []
    for curve, one in curves if settings.limit else ():
        systems = [with_value(one, settings.x.path, value) for value in settings.x.grid]
        found, reasons = limits_along(settings.x.grid, systems, curve, effort)
        notes += reasons
        if any(limit is not None for limit in found):
            limits.append((curve, found))
    return limits, notes


Points = list[tuple[str, float, list[float], list[Found]]]


def _points(curves: Sequence[tuple[str, Any]], settings: Sweep, effort: Effort) -> Points:
    """Per curve and scale the x and the measures of the finite systems."""
    if settings.finite is None:
        return []
    x = _some(settings.x.grid, settings.finite)
    groups = [(curve, one, scale) for scale in settings.finite.scales for curve, one in curves]
    named = [
        (
            ", ".join(filter(None, (f"N = {scale:g}", curve, f"{settings.x.path} = {value:g}"))),
            with_value(at_scale(one, scale), settings.x.path, value),
        )
        for curve, one, scale in groups
        for value in x
    ]
    found = evaluated(named, effort)
    return [
        (curve, scale, x, found[k * len(x) : (k + 1) * len(x)])
        for k, (curve, _, scale) in enumerate(groups)
    ]


def _some(grid: Sequence[float], finite: Finite) -> list[float]:
    if finite.values is not None:
        return [*finite.values]
    if finite.points is None:
        return [*grid]
    places = np.linspace(0, len(grid) - 1, min(finite.points, len(grid))).round().astype(int)
    return [grid[k] for k in dict.fromkeys(places.tolist())]


def _finite(name: str, finite: Finite | None, points: Points) -> list[Series]:
    if finite is None:
        return []
    look = "marks" if finite.look == "points" else "line"
    return [
        point_series(f"N = {scale:g}", name, x, found, [scale] * len(x), curve, look)  # type: ignore[arg-type]
        for curve, scale, x, found in points
    ]
