"""Measures of finite systems against their scale, and how fast they approach the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import (
    Effort,
    Found,
    at_scale,
    curves_of,
    evaluated,
    finite_notes,
    measure_label,
    point_series,
)
from mdpcloud.asymptotics.measures import limit_measures
from mdpcloud.asymptotics.places import measure_at
from mdpcloud.asymptotics.settings import Scales
from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.systems.measures import Measures

__all__ = ["scales_chart"]


def scales_chart(system: Any, settings: Scales, effort: Effort) -> Chart:
    """The chart of convergence: for each measure its values, and its distance from the limit.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    settings : Scales
    effort : Effort

    Raises
    ------
    InputError
        When a path, a value or a measure is not one of the system's.
    """
    curves = curves_of(system, settings.curves)
    rows, notes = [], []
    for (curve, one), found in zip(curves, _found(curves, settings.scales, effort), strict=True):
        limit, reasons = limit_measures(one)
        notes += (
            [] if limit is not None else [f"{curve}: {why}" if curve else why for why in reasons]
        )
        notes += finite_notes(settings.scales, found)
        rows.append(_Row(curve, found, limit))
    titles = settings.titles or settings.measures
    panels = [
        panel
        for name, title in zip(settings.measures, titles, strict=True)
        for panel in _panels(name, title, settings.scales, rows)
    ]
    return Chart(tuple(panels), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Row:
    """A curve, what was found at each of the scales, and the limit."""

    curve: str
    found: list[Found]
    limit: Measures | None


def _found(
    curves: Sequence[tuple[str, Any]], scales: Sequence[float], effort: Effort
) -> list[list[Found]]:
    """Per curve the measures at each of the scales."""
    named = [
        (", ".join(filter(None, (f"N = {scale:g}", curve))), at_scale(one, scale))
        for curve, one in curves
        for scale in scales
    ]
    found, size = evaluated(named, effort), len(scales)
    return [found[k : k + size] for k in range(0, len(found), size)]


def _panels(
    name: str, title: str, scales: Sequence[float], rows: Sequence[_Row]
) -> Iterator[Panel]:
    """A measure against the scale, and its distance from the limit where there is one."""
    values: list[Series] = []
    errors: list[Series] = []
    for row in rows:
        points = point_series("finite N", name, scales, row.found, scales, row.curve, "joined")
        values.append(points)
        if row.limit is not None:
            values.append(_level(name, row.limit, scales, row.curve))
            errors.append(_distance(points, name, row.limit))
    yield Panel(title, "scale N", measure_label(name), tuple(values), logarithmic="x")
    if errors:
        about, series = f"{title}: distance from the limit", (*_guides(errors), *errors)
        yield Panel(about, "scale N", "|finite − limit|", series, logarithmic="xy")


def _level(name: str, limit: Measures, scales: Sequence[float], curve: str) -> Series:
    value, _ = measure_at(limit, name)
    return Series("limit", [min(scales), max(scales)], [value, value], curve)


def _distance(points: Series, name: str, limit: Measures) -> Series:
    """Distance from the limit; nan where it is within the errors of both."""
    value, error = measure_at(limit, name)
    distances, lower, upper = [], [], []
    for y, low, high in zip(points.y, points.lower, points.upper, strict=True):
        half = 0.5 * (high - low) + error
        known = abs(y - value) > half
        distances.append(abs(y - value) if known else np.nan)
        lower.append(abs(y - value) - half if known else np.nan)
        upper.append(abs(y - value) + half if known else np.nan)
    return Series(points.kind, points.x, distances, points.curve, lower, upper, "joined")


def _guides(errors: Sequence[Series]) -> list[Series]:
    """Lines of slope -1/2 and -1 through the first of the largest distances."""
    known = [(x, y) for one in errors for x, y in zip(one.x, one.y, strict=True) if np.isfinite(y)]
    if not known:
        return []
    first, last = min(x for x, _ in known), max(x for x, _ in known)
    largest = max(y for x, y in known if x == first)
    if first == last:
        return []
    x = [first, last]
    return [
        Series(kind, x, [largest, largest * (first / last) ** power], look="guide")
        for kind, power in (("slope −1/2 and −1", 0.5), ("slope −1/2 and −1", 1.0))
    ]
