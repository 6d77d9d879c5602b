"""The fluid trajectory, and simulated paths of finite systems over their scale."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import Effort, at_scale
from mdpcloud.asymptotics.settings import Fluid
from mdpcloud.errors import InputError
from mdpcloud.plots.curves import Chart, Panel, Series
from mdpcloud.simulate.events_path import CHANGES

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
    paths, notes = _paths(system, settings, len(found.labels), effort)
    panels = []
    for k, title in enumerate(settings.titles or found.labels):
        limit = Series("fluid limit", times.tolist(), found.states[:, k].tolist())
        series = (limit, *(path[k] for path in paths))
        panels.append(Panel(title, "time", "jobs / N", series, _marks(found.changes, k)))
    return Chart(tuple(panels), notes)


def _marks(changes: Sequence[tuple[float, str]], panel: int) -> tuple[tuple[float, str], ...]:
    """Times at which a surface is hit; what happens is told in the first panel, once for a time."""
    told: dict[float, list[str]] = {}
    for when, what in changes:
        told.setdefault(round(when, 9), []).append(what)
    return tuple(
        (when, f"{' and '.join(what)}\nt = {when:.4g}" if panel == 0 else "")
        for when, what in told.items()
    )


def _paths(
    system: Any, settings: Fluid, coordinates: int, effort: Effort
) -> tuple[list[list[Series]], tuple[str, ...]]:
    """Per scale the path of each coordinate, and which of them end early."""
    found, notes = [], []
    for done, scale in enumerate(settings.scales, start=1):
        effort.tell(done, 1 + len(settings.scales), f"a path of N = {scale:g}")
        one = _simulated(at_scale(system, scale), settings, scale, coordinates, effort)
        found.append(one)
        end = min(series.x[-1] for series in one)
        if end < settings.horizon:
            notes.append(f"the path of N = {scale:g} was recorded up to time {end:.4g} only")
    return found, tuple(notes)


def _simulated(
    system: Any, settings: Fluid, scale: float, coordinates: int, effort: Effort
) -> list[Series]:
    from mdpcloud.simulate import SimulationWarning, simulate

    axes = system.model().space.axes
    names = [name if k is None else f"{name}[{k}]" for name, k in axes.flat]
    if len(names) != coordinates:
        raise InputError(
            f"the states of {type(system).__name__} have {len(names)} coordinates, its fluid limit "
            f"{coordinates}: paths cannot be drawn beside it, leave scales out"
        )
    start = _start(axes, settings.start or (0.0,) * coordinates, scale)
    with warnings.catch_warnings():  # a single path is shown, nothing is estimated
        warnings.simplefilter("ignore", SimulationWarning)
        found = simulate(
            system,
            system.heuristic(system.own_policy, "first").rule,
            rng=effort.simulate.seed,
            time=settings.horizon,
            warm_up=0.0,
            replications=2,
            start=start,
            paths=names,
            strict=False,
        )
    kind = f"N = {scale:g}"
    return [_series(kind, found.records[name][0], settings.horizon, scale) for name in names]


def _start(axes: Any, start: Sequence[float], scale: float) -> dict[str, Any]:
    """The state of the finite system that is next to a fluid state."""
    counts = axes.state([round(scale * value) for value in start])
    return dict(counts._asdict())


def _series(kind: str, record: Any, horizon: float, scale: float) -> Series:
    """A recorded path over the scale, to the horizon unless it was cut short."""
    times, values = record.times, record.values
    inside = times <= horizon
    times, values = times[inside], values[inside]
    if times.size < record.values.size or record.values.size < CHANGES:
        times, values = np.append(times, horizon), np.append(values, values[-1])
    return Series(kind, times.tolist(), (values / scale).tolist(), look="steps")
