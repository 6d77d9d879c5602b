"""Measures of finite systems against their scale, and how fast they approach the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import (
    Effort,
    at_scale,
    curves_of,
    evaluated,
    measure_label,
    point_series,
)
from mdpcloud.asymptotics.measures import limit_measures
from mdpcloud.asymptotics.places import measure_at
from mdpcloud.asymptotics.settings import Scales
from mdpcloud.plots.curves import Chart, Panel, Series
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
    scales = settings.scales
    named = [
        (", ".join(filter(None, (f"N = {scale:g}", curve))), at_scale(one, scale))
        for curve, one in curves
        for scale in scales
    ]
    found = evaluated(named, effort)
    groups = [found[k * len(scales) : (k + 1) * len(scales)] for k in range(len(curves))]
    limits = [limit_measures(one) for _, one in curves]
    notes = [reason for _, reasons in limits for reason in reasons]
    panels: list[Panel] = []
    for name, title in zip(settings.measures, settings.titles or settings.measures, strict=True):
        values: list[Series] = []
        errors: list[Series] = []
        for (curve, _), group, (limit, _) in zip(curves, groups, limits, strict=True):
            points = point_series("finite N", name, scales, group, scales, curve, "joined")
            values.append(points)
            if limit is not None:
                values.append(_level(name, limit, scales, curve))
                errors.append(_distance(points, name, limit))
        panels.append(Panel(title, "scale N", measure_label(name), tuple(values), logarithmic="x"))
        if errors:
            guides = _guides(errors)
            label = f"{title}: distance from the limit"
            panels.append(
                Panel(label, "scale N", "|finite − limit|", (*guides, *errors), logarithmic="xy")
            )
    return Chart(tuple(panels), tuple(dict.fromkeys(notes)))


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
