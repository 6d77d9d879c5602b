"""How the series of a panel are drawn: lines, points, bars, distribution functions, intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mdpcloud.plots.chart import Panel, Series
from mdpcloud.plots.looks import Looks, open_mark
from mdpcloud.plots.scales import Scale

__all__ = ["draw_ends", "draw_series"]

VISIBLE = 4e-3  # part of a panel's height from which an interval is drawn
BARS = 0.8  # of the distance between places, together


def draw_series(axes: Axes, panel: Panel, looks: Looks, scales: Mapping[str, Scale]) -> None:
    """Draw what decides the ends of the axes; then `draw_ends` draws what depends on them."""
    bars = [one for one in panel.series if one.look == "bars"]
    for one in panel.series:
        if one.look == "bars":
            _draw_bars(axes, one, bars, looks, scales["y"])
        elif one.look == "shares":
            ends = scales["y"].factor * np.array([0.0, 1.0])
            axes.update_datalim([(x, y) for x in scales["x"].drawn(one.x) for y in ends])
        else:
            _draw_points(axes, one, looks, scales)
    axes.autoscale_view()


def draw_ends(axes: Axes, panel: Panel, looks: Looks, scales: Mapping[str, Scale]) -> None:
    """Draw distribution functions from edge to edge, and the intervals that can be seen."""
    for one in panel.series:
        if one.look == "shares":
            _draw_shares(axes, one, looks, scales)
        else:
            _draw_intervals(axes, one, looks, scales["y"])


def _draw_points(axes: Axes, one: Series, looks: Looks, scales: Mapping[str, Scale]) -> None:
    """A line or points; those at the foot of the axis are open."""
    style = looks.style(one)
    x, y = scales["x"].drawn(one.x), scales["y"].drawn(one.y)
    foot = scales["y"].at_foot(one.y, one.lower)
    y[foot] = scales["y"].foot
    marked: dict[str, Any] = {"markevery": [*np.flatnonzero(~foot)]} if foot.any() else {}
    axes.plot(x, y, **style, **marked)
    if foot.any():
        axes.plot(x[foot], y[foot], **open_mark(style), clip_on=False)
    ends = [scales["y"].drawn(end) for end in (one.lower, one.upper) if len(end)]
    axes.update_datalim([*zip([*x] * len(ends), [v for end in ends for v in end], strict=True)])


def _draw_bars(axes: Axes, one: Series, bars: Sequence[Series], looks: Looks, scale: Scale) -> None:
    """Bars beside those of the other series of the panel."""
    width = BARS / len(bars)
    left = width * (bars.index(one) - 0.5 * (len(bars) - 1))
    x, y = np.array(one.x, float) + left, scale.drawn(one.y)
    axes.bar(x, y, 0.92 * width, zorder=2, **looks.bar(one))
    empty = x[np.asarray(y) == 0.0]  # a bar of height 0 is a line
    ends = empty - 0.46 * width, empty + 0.46 * width
    axes.hlines(np.zeros(empty.size), *ends, color=looks.colour(one), linewidth=0.9, zorder=2.5)


def _draw_shares(axes: Axes, one: Series, looks: Looks, scales: Mapping[str, Scale]) -> None:
    """The steps of a distribution function, from the left edge of the panel to the right one."""
    left, right = axes.get_xlim()
    x, y = scales["x"].drawn(one.x), scales["y"].drawn(one.y)
    foot = scales["x"].at_foot(one.x, one.lower)
    first, full = y[foot].max(initial=0.0), scales["y"].factor
    axes.plot(np.r_[left, x[~foot], right], np.r_[first, y[~foot], y[-1]], **looks.style(one))
    axes.set(xlim=(left, right), ylim=(-0.02 * full, 1.02 * full))


def _draw_intervals(axes: Axes, one: Series, looks: Looks, scale: Scale) -> None:
    """Whiskers where an interval is wide enough to be seen."""
    if not len(one.lower):
        return
    low, high = axes.get_ylim()
    lower, upper, y = (scale.factor * np.array(v, float) for v in (one.lower, one.upper, one.y))
    if scale.logarithmic:
        y[scale.at_foot(one.y, one.lower)] = scale.foot
        lower = np.maximum(lower, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.log(upper / lower) > VISIBLE * np.log(high / low)
    else:
        wide = upper - lower > VISIBLE * (high - low)
    if not wide.any():
        return
    x = np.array(one.x, float)[wide]
    reach = np.maximum([(y - lower)[wide], (upper - y)[wide]], 0.0)
    axes.errorbar(
        x,
        y[wide],
        yerr=reach,
        fmt="none",
        ecolor=looks.colour(one),
        elinewidth=1.1 * looks.thickness,
        capsize=2.5 * looks.thickness,
    )
