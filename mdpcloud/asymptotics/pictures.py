"""Pictures of a system and its limit: convergence in the scale, and the fluid trajectory."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mdpcloud.asymptotics.evaluation import Effort
from mdpcloud.asymptotics.figures import chart_of
from mdpcloud.asymptotics.settings import Fluid, Scales
from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.plots.files import write_figure
from mdpcloud.plots.style import plain
from mdpcloud.simulate.events_path import MOST_VALUES
from mdpcloud.systems.measures import Measures, classes

__all__ = ["draw"]

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the scale
MOST_POINTS = 60_000  # of the box of a finite system in the picture of convergence
MOST_MEASURES = 3
LARGER = 16.0  # the larger of the systems beside the trajectory, over the scale
MEAN_SERVICES = 10.0  # horizon of the trajectory, in the longest mean service times


def draw(
    system: Any, measures: Measures, name: str, folder: Path, effort: Effort | None = None
) -> tuple[list[Path], list[str]]:
    """Write ``limit`` and, where there is a fluid limit, ``fluid``, as PNG and PDF.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    measures : Measures
        Of the finite system, whose probabilities are shown.
    name : str
        Title of the pictures.
    folder : Path
        Made where it is missing.
    effort : Effort, optional

    Returns
    -------
    list of Path
        Of the files; numbers are written beside the pictures as JSON and CSV.
    list of str
        Why there is no picture, where one cannot be drawn.
    """
    heading = {"format": 1, "system": type(system).__name__, "name": name}
    pictures: Mapping[str, Callable[[Any], Any]] = {
        "limit": lambda one: Scales(_scales(one), _shown(measures)),
        "fluid": lambda one: Fluid(_horizon(one), scales=_recorded(one)),
    }
    paths: list[Path] = []
    notes: list[str] = []
    for stem, settings in pictures.items():
        if stem == "fluid" and not hasattr(system, "fluid"):
            continue
        try:
            chart = chart_of(system, settings(system), effort)
            paths += write_figure(chart, folder, stem, plain(name), heading)
        except (NoLimitError, SolveError) as error:
            notes.append(f"no picture {stem}: {error}")
    return paths, notes


def _scales(system: Any) -> tuple[float, ...]:
    """Scales at which the finite system exists and is solved at once; its own at least."""
    found = [factor * system.scale for factor in FACTORS if _is_small(system, factor)]
    return tuple(found) or (system.scale,)


def _recorded(system: Any) -> tuple[float, ...]:
    """Scales at which the counts of jobs are small enough to be recorded."""
    scales = (system.scale, LARGER * system.scale)
    return tuple(scale for scale in scales if _values(system, scale) <= MOST_VALUES)


def _values(system: Any, scale: float) -> int:
    shape: tuple[int, ...] = dataclasses.replace(system, scale=scale).model().space.shape
    return max(shape)


def _is_small(system: Any, factor: float) -> bool:
    try:
        other = dataclasses.replace(system, scale=factor * system.scale)
        return hasattr(other, "exact") or math.prod(other.model().space.shape) <= MOST_POINTS
    except InputError:
        return False


def _shown(measures: Measures) -> tuple[str, ...]:
    """The probabilities that are not 0 and differ, the largest first."""
    known = {
        f"{kind}{place}": value
        for kind in ("blocking", "downgraded", "forwarded")
        for place, value in classes(getattr(measures, kind))
    }
    first: dict[float, str] = {}
    for name, value in known.items():
        if value > 0.0:
            first.setdefault(float(f"{value:.9g}"), name)
    chosen = sorted(first.values(), key=lambda name: -known[name])[:MOST_MEASURES]
    return tuple(sorted(chosen)) or tuple(known)[:1]


def _horizon(system: Any) -> float:
    rates: tuple[float, ...] = getattr(system, "service_rates", None) or (system.service_rate,)
    return MEAN_SERVICES / min(rates)
