"""Panels of curves: limits as lines, finite systems and instances as points.

`mdpcloud.plots.looks` says how curves are told apart, `mdpcloud.plots.scales` what their axes are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.looks import Looks, legend, open_mark
from mdpcloud.plots.scales import Scale, scale_of, set_scale
from mdpcloud.plots.style import (
    COLUMN,
    FAINT,
    INK,
    PAGE,
    SCREEN,
    SMALL,
    Page,
    add_legend,
    clean,
    heading,
    panels,
    plain,
    title,
)

__all__ = ["check_formulas", "draw_chart"]

Floats = NDArray[np.float64]
PAGES = {"screen": SCREEN, "page": PAGE, "column": COLUMN}
MARK = 30  # letters in a line beside a mark
MARK_LINE = 0.062  # height of such a line, part of a panel's height
HEIGHT = 2.9  # of a panel, inches
LOW, HIGH = 1.75, 2.5  # the least and the largest height of a panel of a page
VISIBLE = 4e-3  # part of a panel's height from which an interval is drawn
MARGIN, TICK = 0.6, 0.42  # inches on the left of a panel, and of a number below it
MOST_TICKS = 8  # on a vertical axis
BARS = 0.8  # of the distance between places, together
UNLIKE = 5.0  # ratio of the largest numbers of panels, beyond which each has its own linear axis


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


def draw_chart(chart: Chart, name: str = "") -> Figure:
    """Draw a chart; its legend is below.

    Parameters
    ----------
    chart : Chart
    name : str
        Title of the whole.
    """
    page = PAGES[chart.page]
    looks = Looks.of(chart, page.thickness)
    shared = {axis: chart.page != "screen" and _alike(axis, chart.panels) for axis in "xy"}
    figure, grid = panels(
        len(chart.panels),
        columns=chart.columns,
        height=_height(chart, page),
        sharex=shared["x"],
        sharey=shared["y"],
        page=page,
    )
    scales = [
        {axis: scale_of(axis, chart.panels if shared[axis] else [panel]) for axis in "xy"}
        for panel in chart.panels
    ]
    width = page.width / min(chart.columns, len(chart.panels))
    ticks = {"x": max(int((width - MARGIN) / TICK), 3), "y": MOST_TICKS}
    for axes, panel, those in zip(grid, chart.panels, scales, strict=True):
        _draw_panel(axes, panel, looks, those)
        for scale in those.values():
            set_scale(axes, panel, scale, ticks[scale.axis])
    for axes, panel, those in zip(grid, chart.panels, scales, strict=True):
        _draw_ends(axes, panel, looks, those, page)
        _finish(axes, panel, chart, page)
    heading(figure, name, page)
    handles, labels = legend(chart, looks)
    if len(labels) > 1:
        long = 2.6 if chart.curves else 1.4
        add_legend(figure, handles, labels, page, long)
    return figure


def _height(chart: Chart, page: Page) -> float:
    """Of a panel, inches."""
    if page is SCREEN:
        return HEIGHT
    return min(max(0.75 * page.width / min(chart.columns, len(chart.panels)), LOW), HIGH)


def _alike(axis: str, those: Sequence[Panel]) -> bool:
    """Whether panels can have the same axis: of the same categories, or with similar numbers."""
    if len({(panel.categories, panel.x_label, panel.y_label) for panel in those}) > 1:
        return False
    if axis == "x" or axis in those[0].logarithmic:
        return True
    tops = [np.nanmax(np.abs([v for one in panel.series for v in one.y])) for panel in those]
    return bool(max(tops) <= UNLIKE * min(tops))


def _draw_panel(axes: Axes, panel: Panel, looks: Looks, scales: dict[str, Scale]) -> None:
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


def _draw_points(axes: Axes, one: Series, looks: Looks, scales: dict[str, Scale]) -> None:
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
    """Bars beside those of the other series."""
    width = BARS / len(bars)
    left = width * (bars.index(one) - 0.5 * (len(bars) - 1))
    x = np.array(one.x, float) + left
    axes.bar(x, scale.drawn(one.y), 0.92 * width, color=looks.colour(one), zorder=2)


def _draw_ends(
    axes: Axes, panel: Panel, looks: Looks, scales: dict[str, Scale], page: Page
) -> None:
    """What needs the final ends of the axes."""
    for one in panel.series:
        if one.look == "shares":
            _draw_shares(axes, one, looks, scales)
        else:
            _draw_intervals(axes, one, looks, scales["y"], page)


def _draw_shares(axes: Axes, one: Series, looks: Looks, scales: dict[str, Scale]) -> None:
    """The steps of a distribution function, from the left edge of the panel to the right one."""
    left, right = axes.get_xlim()
    x, y = scales["x"].drawn(one.x), scales["y"].drawn(one.y)
    foot = scales["x"].at_foot(one.x, one.lower)
    first, full = y[foot].max(initial=0.0), scales["y"].factor
    axes.plot(np.r_[left, x[~foot], right], np.r_[first, y[~foot], y[-1]], **looks.style(one))
    axes.set(xlim=(left, right), ylim=(-0.02 * full, 1.02 * full))


def _finish(axes: Axes, panel: Panel, chart: Chart, page: Page) -> None:
    """Marks, titles, labels, and the texts of categories."""
    _draw_marks(axes, panel.marks)
    if panel.categories:
        axes.set_xticks(range(len(panel.categories)), [*map(plain, panel.categories)])
        axes.set_xlim(-0.5, len(panel.categories) - 0.5)
    width = page.letters(page.large) // min(chart.columns, len(chart.panels)) - 3
    title(axes, panel.title if "$" in panel.title else textwrap.fill(panel.title, width), page)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    clean(axes, grid="both", page=page)
    if page is not SCREEN:
        _label_outer(axes)


def _label_outer(axes: Axes) -> None:
    """Leave out the texts of axes that are those of the panel below or on the left."""
    place = axes.get_subplotspec()
    assert place is not None
    shared = {
        axis: len(getattr(axes, f"get_shared_{axis}_axes")().get_siblings(axes)) > 1
        for axis in "xy"
    }
    below = [other.get_subplotspec() for other in axes.figure.axes]
    if shared["y"] and not place.is_first_col():
        axes.set_ylabel("")
        axes.tick_params(axis="y", labelleft=False)
    covered = any(
        b is not None and b.colspan == place.colspan and b.rowspan.start > place.rowspan.start
        for b in below
    )
    if shared["x"]:
        axes.tick_params(axis="x", labelbottom=not covered)
        axes.set_xlabel("" if covered else axes.get_xlabel())


def _draw_intervals(axes: Axes, one: Series, looks: Looks, scale: Scale, page: Page) -> None:
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
        elinewidth=1.1 * page.thickness,
        capsize=2.5 * page.thickness,
    )


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
