"""How an estimate closes in on its value as the simulation goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from mdpcloud.plots.paths import name_parts, shade_warm_up
from mdpcloud.plots.style import (
    BLUE,
    SKY,
    VERMILLION,
    clean,
    new_figure,
    plain,
)
from mdpcloud.simulate.estimates import estimate
from mdpcloud.simulate.protocol import COST, Floats
from mdpcloud.simulate.result import Estimate, SimulationResult

__all__ = ["draw_convergence", "plot_convergence", "running"]

POINTS = 150  # of the line
WILD = 0.15  # part of the run in which the interval may be larger than the axis
SCALES = {1e9: "billion events", 1e6: "million events", 1e3: "thousand events", 1.0: "events"}


def plot_convergence(
    result: SimulationResult,
    name: str = COST,
    *,
    reference: float | None = None,
    unit: str = "",
) -> Figure:
    """The estimate and its 95 % interval after each part of the run, without the warm-up.

    Parameters
    ----------
    result : SimulationResult
    name : str
        ``"cost"`` or a measure.
    reference : float, optional
        A value to be compared, such as the exact one.
    unit : str
        Of the average, such as "euro per hour".

    Raises
    ------
    InputError
        When there is no measure of that name.
    """
    kept, segments = result.kept(name), result.series.shape[1]
    final = result.gain if name == COST else result.measures[name]
    sizes, estimates = running(kept)
    first, per_segment = segments - kept.shape[1], result.events / segments
    figure = new_figure(3.0)
    axes = figure.subplots()
    draw_convergence(axes, (first + sizes) * per_segment, estimates, final, reference)
    axes.set_xlim(0.0, result.events)
    shade_warm_up(axes, first * per_segment)
    scale = next(s for s in SCALES if result.events >= s or s == 1.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    plural = "s" * (result.replications != 1)
    axes.set_xlabel(f"{SCALES[scale]}, in {result.replications} replication{plural}")
    axes.set_ylabel(plain(f"{name}, {unit}" if unit else f"{name} per unit of time"))
    name_parts(figure, axes, ("estimate", "95 % interval", "interval at the end", "reference"))
    return figure


def draw_convergence(
    axes: Axes,
    events: Floats,
    estimates: Sequence[Estimate],
    final: Estimate,
    reference: float | None = None,
) -> Axes:
    """Draw the running estimate in its interval, over the band of the last one.

    Parameters
    ----------
    axes : Axes
    events : (P,) array
        Events in all replications so far.
    estimates : sequence of P Estimate
        What they make.
    final : Estimate
    reference : float, optional
        Drawn as a line.
    """
    values, low, high = np.array([(e.value, e.lower, e.upper) for e in estimates]).T
    known = np.isfinite(high - low)
    axes.fill_between(
        events,
        low,
        high,
        where=known.tolist(),
        color=SKY,
        alpha=0.45,
        linewidth=0,
        label="95 % interval",
    )
    axes.plot(events, values, color=BLUE, linewidth=1.6, label="estimate")
    if math.isfinite(final.half_width):
        for k, end in enumerate((final.lower, final.upper)):
            label = "interval at the end" if k == 0 else None
            axes.axhline(end, color=BLUE, linewidth=0.8, linestyle=(0, (2, 2)), label=label)
    if reference is not None:
        axes.axhline(
            reference, color=VERMILLION, linewidth=1.2, linestyle=(0, (6, 3)), label="reference"
        )
    shown = [final.value, final.lower, final.upper]
    _limit(axes, events, (values, low, high), shown if reference is None else [*shown, reference])
    return clean(axes, grid="y")


def running(kept: Floats) -> tuple[Floats, list[Estimate]]:
    """Estimates from the first segments alone: how many segments, and what they make.

    Parameters
    ----------
    kept : (R, S) array
        Averages over the segments of each replication, without the warm-up.
    """
    sizes = np.unique(np.linspace(1, kept.shape[1], POINTS).astype(int))
    return sizes.astype(np.float64), [estimate(kept[:, :size]) for size in sizes]


def _limit(axes: Axes, events: Floats, ends: Sequence[Floats], shown: Sequence[float]) -> None:
    """Leave no room for the wide intervals of the beginning."""
    late = events >= events[0] + WILD * (events[-1] - events[0])
    all_shown = np.concatenate([*(end[late] for end in ends), np.asarray(shown, np.float64)])
    all_shown = all_shown[np.isfinite(all_shown)]
    low, high = all_shown.min(), all_shown.max()
    room = 0.06 * (high - low) or 1e-3 * max(abs(high), 1.0)
    axes.set_ylim(low - room, high + room)
