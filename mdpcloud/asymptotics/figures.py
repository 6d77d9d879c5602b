"""Figures of allocation systems: computed, drawn, and written with every number that they show."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
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
from mdpcloud.plots.curves import check_formulas, draw_chart

__all__ = ["chart_of", "write_figure"]

CHARTS: Mapping[type[Any], Callable[..., Chart]] = {
    Sweep: sweep_chart,
    Scales: scales_chart,
    Fluid: fluid_chart,
    FamilyCosts: family_chart,
    BestMember: best_chart,
}
COLUMNS = ("panel", "curve", "kind", "x", "y", "lower", "upper")


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


def write_figure(
    chart: Chart, folder: Path, stem: str, name: str, heading: Mapping[str, Any]
) -> list[Path]:
    """Draw a chart as PNG and PDF, and write its numbers as JSON and CSV; their paths.

    Parameters
    ----------
    chart : Chart
    folder : Path
        Made where it is missing.
    stem : str
        Of the files' names.
    name : str
        Title of the figure.
    heading : mapping
        What the JSON tells first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{ending}" for ending in ("png", "pdf", "json", "csv")]
    figure = draw_chart(chart, name)
    figure.savefig(paths[0], format="png", facecolor="white")
    figure.savefig(paths[1], format="pdf", metadata={"CreationDate": None})
    record = {**heading, **chart.to_dict()}
    paths[2].write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with paths[3].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(chart.rows())
    return paths


def _texts(value: Any) -> Iterator[str]:
    """Every text in settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
