"""Panels of curves: limits as lines, finite systems and instances as points.

`mdpcloud.plots.looks` says how curves are told apart, `mdpcloud.plots.scales` what their axes are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mdpcloud.plots.chart import Chart, Panel
from mdpcloud.plots.labels import label_once, label_panel, upright_height
from mdpcloud.plots.looks import Looks, legend
from mdpcloud.plots.scales import scale_of, set_scale
from mdpcloud.plots.series import draw_ends, draw_series
from mdpcloud.plots.style import COLUMN, PAGE, SCREEN, Page, add_legend, heading, panels

__all__ = ["draw_chart"]

PAGES = {"screen": SCREEN, "page": PAGE, "column": COLUMN}
HEIGHT = 2.9  # of a panel, inches
LOW, HIGH = 1.75, 2.5  # the least and the largest height of a panel of a page
MARGIN, TICK = 0.6, 0.42  # inches on the left of a panel, and of a number below it
MOST_TICKS = 8  # on a vertical axis
OWN, KIND = 2.6, 1.4  # length of a line in the legend: with a dash and a marker, or one of them
UNLIKE = 5.0  # ratio of the largest numbers of panels, beyond which each has its own linear axis


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
    shared = {axis: page is not SCREEN and _alike(axis, chart.panels) for axis in "xy"}
    figure, grid = panels(
        len(chart.panels),
        columns=chart.columns,
        height=_height(chart, page),
        sharex=shared["x"],
        sharey=shared["y"],
        page=page,
    )
    _draw_panels(grid, chart, looks, page, shared)
    heading(figure, name, page)
    height = figure.get_figheight()
    if page is not SCREEN:
        _make_room(figure, grid, shared["x"])
    handles, labels = legend(chart, looks)
    if len(labels) > 1:
        add_legend(figure, handles, labels, page, OWN if chart.curves else KIND)
    if page is not SCREEN:
        label_once(figure, grid, page, height)
    return figure


def _draw_panels(
    grid: Sequence[Axes], chart: Chart, looks: Looks, page: Page, shared: Mapping[str, bool]
) -> None:
    """Draw the panels together: the ends of a shared axis are known after all numbers are drawn."""
    scales = [
        {axis: scale_of(axis, chart.panels if shared[axis] else [panel]) for axis in "xy"}
        for panel in chart.panels
    ]
    every = [*zip(grid, chart.panels, scales, strict=True)]
    for axes, panel, those in every:
        draw_series(axes, panel, looks, those)
        if not those["x"].logarithmic:
            axes.margins(x=page.margin)
    width = page.width / min(chart.columns, len(chart.panels))
    most = {"x": max(int((width - MARGIN) / TICK), 3), "y": MOST_TICKS}
    for axes, panel, those in every:
        for axis, scale in those.items():
            set_scale(axes, panel, scale, most[axis])
    for axes, panel, those in every:
        draw_ends(axes, panel, looks, those)
        label_panel(axes, panel, width, page)


def _make_room(figure: Figure, grid: Sequence[Axes], shared: bool) -> None:
    """Let the figure grow for upright names, below each row of panels or below the last one."""
    place = grid[-1].get_subplotspec()
    assert place is not None
    rows = 1 if shared else place.rowspan.stop
    figure.set_figheight(figure.get_figheight() + rows * max(map(upright_height, grid)))


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
