"""Figures of allocation systems: the charts that settings describe, with every number."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mdpcloud.asymptotics.evaluation import Effort
from mdpcloud.asymptotics.families import best_chart, family_chart
from mdpcloud.asymptotics.fluid import fluid_chart
from mdpcloud.asymptotics.places import check_measure
from mdpcloud.asymptotics.scales import scales_chart
from mdpcloud.asymptotics.settings import BestMember, FamilyCosts, Fluid, Scales, Sweep
from mdpcloud.asymptotics.sweeps import sweep_chart
from mdpcloud.errors import NoLimitError
from mdpcloud.plots.chart import Chart
from mdpcloud.plots.labels import check_formulas

__all__ = ["chart_of"]

CHARTS: Mapping[type[Any], Callable[..., Chart]] = {
    Sweep: sweep_chart,
    Scales: scales_chart,
    Fluid: fluid_chart,
    FamilyCosts: family_chart,
    BestMember: best_chart,
}


def chart_of(system: Any, settings: Any, effort: Effort | None = None) -> Chart:
    """The chart that settings describe, with its numbers.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    settings : Sweep, Scales, Fluid, FamilyCosts or BestMember
    effort : Effort, optional

    Raises
    ------
    InputError
        When the settings do not fit the system, or a label has a formula that cannot be drawn.
    NoLimitError
        When there is no number to draw.
    SolveError
        When a finite system was not evaluated to the tolerance.
    """
    for text in _texts(dataclasses.asdict(settings)):
        check_formulas(text)
    for name in getattr(settings, "measures", ()):
        check_measure(name)
    chart = CHARTS[type(settings)](system, settings, effort or Effort())
    if not any(math.isfinite(y) for panel in chart.panels for one in panel.series for y in one.y):
        raise NoLimitError("; ".join(("there is nothing to draw", *chart.notes)))
    return chart


def _texts(value: Any) -> Iterator[str]:
    """Every text in settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
