"""Panels of curves: limits as lines, finite systems as points.

Where there are several curves, colour tells them apart, and the marker or dash tells the kind of
each (the limit, or a finite system); where there is one curve, colour tells the kinds apart.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.mathtext import MathTextParser
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.style import (
    FAINT,
    INK,
    LINES,
    MARKERS,
    SMALL,
    add_legend,
    clean,
    heading,
    panels,
    title,
    whole_numbers,
)

__all__ = ["check_formulas", "draw_chart"]

Floats = NDArray[np.float64]
DASHES: tuple[Any, ...] = ((0, (3.4, 1.4)), (0, (1.1, 1.2)), (0, (6, 2, 1.2, 2)), (0, (9, 3)))
MARKED = ("marks", "dots", "joined")
TITLE = 46  # letters in a line of a panel's title
MARK = 30  # letters in a line beside a mark
MARK_LINE = 0.062  # height of such a line, part of a panel's height
HEIGHT = 2.9  # of a panel, inches
VISIBLE = 4e-3  # part of a panel's height from which an interval is drawn


def check_formulas(text: str) -> None:
    """Refuse a text whose formulas, between dollar signs, cannot be drawn.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check_formulas("a load that costs 1 $")
    >>> check_formulas("the load $r^$")
    Traceback (most recent call last):
    mdpcloud.errors.InputError: 'the load $r^$' cannot be drawn: ...
    """
    if not is_math_text(text):
        return
    try:
        MathTextParser("path").parse(text)
    except ValueError as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("ParseFatalException: ")
        raise InputError(f"{text!r} cannot be drawn: {reason}") from None


# --- drawing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Looks:
    """Colours, markers and dashes of the curves and kinds of a chart."""

    curves: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # those that are no guides, in order
    marked: list[str] = field(default_factory=list)  # kinds that are drawn with markers
    lines: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, chart: Chart) -> _Looks:
        every = [one for panel in chart.panels for one in panel.series if one.look != "guide"]
        marked = [one.kind for one in every if one.look in MARKED]
        lines = [one.kind for one in every if one.look in ("line", "dashed", "dotted", "steps")]
        curves = dict.fromkeys(one.curve for one in every if one.curve)
        kinds = dict.fromkeys(one.kind for one in every)
        return cls([*curves], [*kinds], [*dict.fromkeys(marked)], [*dict.fromkeys(lines)])

    @property
    def several(self) -> bool:
        return len(self.curves) > 1

    def colour(self, one: Series) -> Any:
        if one.look == "guide":
            return FAINT
        if self.several:
            return INK if not one.curve else LINES[self.curves.index(one.curve) % len(LINES)]
        others = [kind for kind in self.kinds if kind not in self.plain]
        return INK if one.kind in self.plain else LINES[others.index(one.kind) % len(LINES)]

    @property
    def plain(self) -> list[str]:
        """The first kind of line, drawn in ink where there is one curve and other kinds."""
        return self.lines[:1] if len(self.kinds) > 1 else []

    def style(self, one: Series) -> dict[str, Any]:
        colour = self.colour(one)
        if one.look == "guide":
            return {"color": colour, "linewidth": 1.0, "linestyle": (0, (2, 2)), "zorder": 1}
        if one.look in MARKED:
            marker = MARKERS[self.marked.index(one.kind) % len(MARKERS)]
            joined = {"linestyle": "-" if one.look == "joined" else "none", "linewidth": 0.9}
            inside = colour if one.look == "dots" else "white"
            face = {"markerfacecolor": inside, "markeredgewidth": 1.3, "markersize": 5.0}
            return {"color": colour, "marker": marker, "zorder": 3, **joined, **face}
        dash: Any = {"dashed": DASHES[0], "dotted": DASHES[1]}.get(one.look, "-")
        if one.look == "line" and self.several and one.kind != self.lines[0]:
            dash = DASHES[(self.lines.index(one.kind) - 1) % len(DASHES)]
        steps = {"drawstyle": "steps-post", "linewidth": 0.9, "zorder": 1.5}
        line = {"color": colour, "linestyle": dash, "linewidth": 1.7, "zorder": 2}
        return line | (steps if one.look == "steps" else {})


def draw_chart(chart: Chart, name: str = "") -> Figure:
    """Draw a chart; its legend is below.

    Parameters
    ----------
    chart : Chart
    name : str
        Title of the whole.
    """
    looks = _Looks.of(chart)
    figure, grid = panels(len(chart.panels), columns=chart.columns, height=HEIGHT)
    for axes, panel in zip(grid, chart.panels, strict=True):
        _draw_panel(axes, panel, looks)
    heading(figure, name)
    handles, labels = _legend(chart, looks)
    if len(labels) > 1:
        add_legend(figure, handles, labels)
    return figure


def _draw_panel(axes: Axes, panel: Panel, looks: _Looks) -> None:
    for one in panel.series:
        x, y = _positive(panel, "x", one.x), _positive(panel, "y", one.y)
        axes.plot(x, y, **looks.style(one))
        ends = [_positive(panel, "y", end) for end in (one.lower, one.upper) if len(end)]
        axes.update_datalim([*zip([*x] * len(ends), [v for end in ends for v in end], strict=True)])
    axes.autoscale_view()
    _set_scales(axes, panel)
    for one in panel.series:
        _draw_intervals(axes, panel, one, looks)
    _draw_marks(axes, panel.marks)
    title(axes, panel.title if "$" in panel.title else textwrap.fill(panel.title, TITLE))
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    clean(axes, grid="both")


def _positive(panel: Panel, axis: str, values: Sequence[float]) -> Floats:
    """Values; those that a logarithmic axis does not have are nan."""
    found = np.array(values, float)
    if axis in panel.logarithmic:
        found[~(found > 0.0)] = np.nan
    return found


def _set_scales(axes: Axes, panel: Panel) -> None:
    if "x" in panel.logarithmic:
        axes.set_xscale("log")
        _tell_decades(axes.xaxis, axes.get_xlim())
    else:
        axes.margins(x=0.02)
    if "y" in panel.logarithmic:
        axes.set_yscale("log")
        _tell_decades(axes.yaxis, axes.get_ylim())
    else:
        _begin_at_zero(axes, panel)
    if "x" in panel.whole and "x" not in panel.logarithmic:
        axes.xaxis.set_major_locator(whole_numbers())
    if "y" in panel.whole and "y" not in panel.logarithmic:
        axes.yaxis.set_major_locator(whole_numbers())


def _begin_at_zero(axes: Axes, panel: Panel) -> None:
    """Let the vertical axis begin a little below zero where the values are not far from it."""
    values = [value for one in panel.series for value in one.y if np.isfinite(value)]
    top = axes.get_ylim()[1]
    if values and 0.0 <= min(values) < 0.25 * top:
        axes.set_ylim(-0.02 * top, top)


def _tell_decades(axis: Any, ends: tuple[float, float]) -> None:
    """Plain numbers on a short logarithmic axis: 1, 2, 5, 10 ...; powers of ten on a long one."""
    low, high = ends
    if high <= 200.0 * low:
        subs = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0) if high <= 8.0 * low else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_intervals(axes: Axes, panel: Panel, one: Series, looks: _Looks) -> None:
    """Whiskers where an interval is wide enough to be seen."""
    if not len(one.lower):
        return
    low, high = axes.get_ylim()
    lower, upper, y = (np.array(v, float) for v in (one.lower, one.upper, one.y))
    if "y" in panel.logarithmic:
        lower = np.maximum(lower, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.log(upper / lower) > VISIBLE * np.log(high / low)
    else:
        wide = upper - lower > VISIBLE * (high - low)
    if not wide.any():
        return
    x = np.array(one.x, float)[wide]
    reach = np.maximum([(y - lower)[wide], (upper - y)[wide]], 0.0)
    colour = looks.colour(one)
    axes.errorbar(x, y[wide], yerr=reach, fmt="none", ecolor=colour, elinewidth=1.1, capsize=2.5)


def _draw_marks(axes: Axes, marks: Sequence[tuple[float, str]]) -> None:
    """Vertical lines; their texts are above each other, and to the left of lines far right."""
    low, high = axes.get_xlim()
    foot = 0.03
    for place, text in marks:
        axes.axvline(place, color=FAINT, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        lines = [line for part in text.split("\n") for line in textwrap.wrap(part, MARK)]
        right = place > 0.5 * (low + high)
        written = axes.annotate(
            "\n".join(lines),
            (place, foot),
            xytext=(-3 if right else 3, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=INK,
            fontsize=SMALL - 1,
            ha="right" if right else "left",
            va="bottom",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
            zorder=4,
        )
        written.set_in_layout(False)
        foot += MARK_LINE * len(lines) + (0.03 if lines else 0.0)


def _legend(chart: Chart, looks: _Looks) -> tuple[list[Any], list[str]]:
    """A handle for each curve by its colour, and for each kind by its marker or dash."""
    every = [one for panel in chart.panels for one in panel.series]
    found: dict[str, Any] = {}
    if looks.several:
        for one in every:
            if one.curve:
                found.setdefault(one.curve, Line2D([], [], color=looks.colour(one), linewidth=3.0))
    for one in every:
        style = looks.style(one)
        style["color"] = INK if looks.several and one.look != "guide" else style["color"]
        found.setdefault(one.kind, Line2D([], [], **style))
    if looks.several and len({one.kind for one in every}) == 1:
        del found[every[0].kind]
    return [*found.values()], [*found]
