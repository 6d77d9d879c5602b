"""Costs of policies beside the optimum: a dot per policy, a line at the optimum."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from mdpcloud.plots.style import INK, SMALL, clean

__all__ = ["Cost", "draw_costs", "percent"]

FAR = 3.0  # the dearest policy over the optimum: beyond it the axis is logarithmic
LETTER = 0.0135  # of the axis, room for a letter of a label


@dataclass(frozen=True)
class Cost:
    """A policy's cost.

    Attributes
    ----------
    name : str
    cost, lower, upper : float
        Cost/time.
    label : str
        Written beside the dot.
    certain : bool
        False draws an error bar from lower to upper and an open dot.
    colour, marker
        Of the dot.
    """

    name: str
    cost: float
    lower: float
    upper: float
    label: str = ""
    certain: bool = True
    colour: Any = INK
    marker: str = "o"


def percent(share: float) -> str:
    """A gap in per cent with two digits or more.

    Examples
    --------
    >>> percent(0.0327), percent(1.3058), percent(-1e-4), percent(12.345), percent(1e-12)
    ('+3.3 %', '+131 %', '−0.01 %', '+1234 %', '< 0.0001 %')
    """
    if abs(share) < 1e-6:
        return "< 0.0001 %"
    size = 100 * abs(share)
    text = f"{size:.0f}" if size >= 10 else f"{size:.2g}"
    return f"{'+' if share > 0 else '−'}{text} %"


def draw_costs(axes: Axes, optimum: Cost, policies: Sequence[Cost], unit: str) -> Axes:
    """Draw a row per policy, the optimum first; logarithmic where the costs are far apart.

    Parameters
    ----------
    axes : Axes
    optimum : Cost
        Its lower and upper bound make a band.
    policies : sequence of Cost
        In the order of the rows.
    unit : str
        Of the costs, such as "euro per hour".
    """
    shown = [optimum, *policies]
    logarithmic = _scale(axes, shown)
    if math.isfinite(optimum.upper - optimum.lower):
        axes.axvspan(optimum.lower, optimum.upper, color="#bdbdbd", linewidth=0, zorder=0.5)
    axes.axvline(optimum.cost, color=INK, linewidth=1.0, zorder=1)
    for row, cost in enumerate(shown):
        _draw_row(axes, row, cost, optimum.cost)
    axes.set_yticks(range(len(shown)), [cost.name for cost in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    label = f"long-run cost, {unit}" + (" (logarithmic)" if logarithmic else "")
    axes.set_xlabel(textwrap.fill(label, 70))
    clean(axes, grid="x")
    axes.tick_params(axis="y", length=0, labelsize=SMALL + 1)
    axes.spines["left"].set_visible(False)
    return axes


def _draw_row(axes: Axes, row: int, cost: Cost, best: float) -> None:
    axes.plot([best, cost.cost], [row, row], color=cost.colour, linewidth=2.2, alpha=0.45)
    axes.plot(
        cost.cost,
        row,
        cost.marker,
        color=cost.colour,
        markerfacecolor=cost.colour if cost.certain else "white",
        markersize=8,
        zorder=4,
    )
    right = cost.cost
    ends = (cost.lower, cost.upper)
    if not cost.certain and all(map(math.isfinite, ends)):
        reach = [[max(cost.cost - ends[0], 0.0)], [max(ends[1] - cost.cost, 0.0)]]
        axes.errorbar(cost.cost, row, xerr=reach, color=cost.colour, capsize=4, linewidth=1.5)
        right = max(ends[1], right)
    axes.annotate(
        cost.label,
        (right, row),
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
        color=INK,
        fontsize=SMALL + 1,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
        zorder=3,
    )


def _scale(axes: Axes, shown: Sequence[Cost]) -> bool:
    """Choose the axis and its ends; whether it is logarithmic."""
    ends = [v for cost in shown for v in _ends(cost) if math.isfinite(v)]
    low, high = min(ends), max(ends)
    if low <= 0 or high <= FAR * low:
        span = (high - low) or 1e-3 * max(abs(high), 1.0)
        room = max((_right(cost) - low) / (1 - _letters(cost)) for cost in shown)
        axes.set_xlim(low - 0.04 * span, low + max(room, span))
        return False
    axes.set_xscale("log")
    room = max(math.log(_right(cost) / low) / (1 - _letters(cost)) for cost in shown)
    axes.set_xlim(low * (low / high) ** 0.04, low * math.exp(room))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    return True


def _right(cost: Cost) -> float:
    return max(v for v in _ends(cost) if math.isfinite(v))


def _letters(cost: Cost) -> float:
    """Part of the axis that a label needs beside its dot."""
    return min(0.04 + LETTER * len(cost.label), 0.7)


def _ends(cost: Cost) -> tuple[float, ...]:
    return (cost.cost,) if cost.certain else (cost.cost, cost.lower, cost.upper)
