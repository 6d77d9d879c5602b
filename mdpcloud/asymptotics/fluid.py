"""The fluid trajectory, and simulated paths of finite systems over their scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import Effort, at_scale
from mdpcloud.asymptotics.paths import path_of, variables_of
from mdpcloud.asymptotics.settings import Fluid
from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel, Series

__all__ = ["fluid_chart"]


def fluid_chart(system: Any, settings: Fluid, effort: Effort) -> Chart:
    """The chart of a trajectory, a panel for each coordinate; what is hit is marked.

    Parameters
    ----------
    system : object
        An allocation system with a method ``fluid``, see `mdpcloud.systems.base`.
    settings : Fluid
    effort : Effort

    Raises
    ------
    InputError
        When the system has no fluid limit, or the start or the titles are not as many as its
        coordinates.
    NoLimitError
        When there is no fluid limit with these parameters.
    """
    if not hasattr(system, "fluid"):
        raise InputError(f"{type(system).__name__} has no fluid limit")
    times = np.linspace(0.0, settings.horizon, settings.points)
    effort.tell(0, 1 + len(settings.scales), "fluid limit")
    found = system.fluid(settings.horizon, start=settings.start, times=times)
    for name, given in (("start", settings.start or ()), ("titles", settings.titles)):
        if given and len(given) != len(found.labels):
            raise InputError(
                f"{name} must be as many as the coordinates, {len(found.labels)}, not {len(given)}"
            )
    paths = [*_paths(system, settings, len(found.labels), effort)]
    panels = []
    for k, title in enumerate(settings.titles or found.labels):
        limit = Series("fluid limit", times.tolist(), found.states[:, k].tolist())
        series = (limit, *(path[k] for path in paths))
        panels.append(Panel(title, "time", "jobs / N", series, _marks(found.changes, k)))
    return Chart(tuple(panels))


def _marks(changes: Sequence[tuple[float, str]], panel: int) -> tuple[tuple[float, str], ...]:
    """Times at which a surface is hit; what happens is told in the first panel, once for a time."""
    told: dict[float, list[str]] = {}
    for when, what in changes:
        told.setdefault(round(when, 9), []).append(what)
    return tuple(
        (when, "\n".join([*what, f"t = {when:.4g}"]) if panel == 0 else "")
        for when, what in told.items()
    )


def _paths(
    system: Any, settings: Fluid, coordinates: int, effort: Effort
) -> Iterator[list[Series]]:
    """Per scale the path of each coordinate."""
    for done, scale in enumerate(settings.scales, start=1):
        effort.tell(done, 1 + len(settings.scales), f"a path of N = {scale:g}")
        finite = at_scale(system, scale)
        if len(variables_of(finite)) != coordinates:
            raise InputError(
                f"the states of {type(system).__name__} have {len(variables_of(finite))} "
                f"coordinates, its fluid limit {coordinates}: paths cannot be drawn beside it"
            )
        start = [round(scale * value) for value in settings.start or (0.0,) * coordinates]
        yield [
            Series(f"N = {scale:g}", times.tolist(), (values / scale).tolist(), look="steps")
            for times, values in path_of(finite, start, settings.horizon, effort.simulate.seed)
        ]
