"""What all pictures share: colours, sizes, names, files.

A `Page` is the size that a picture is made for. Colours are those of M. Okabe and K. Ito, "Color
universal design" (2008), which people with any common colour blindness can tell apart. Figures are
made without pyplot, so no global state is touched.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mdpcloud.plots.names import plain, pretty

__all__ = [
    "COLUMN",
    "PAGE",
    "SCREEN",
    "Page",
    "action_colours",
    "add_legend",
    "clean",
    "heading",
    "new_figure",
    "panels",
    "plain",
    "policy_colours",
    "pretty",
    "save",
    "title",
    "whole_numbers",
]

Colour = tuple[float, float, float]

INK = "#222222"
FAINT = "#8c8c8c"
GREY = "#d0d0d0"
SMALL = 9.0  # points
WIDTH = 8.0  # inches
DPI = 150
LETTER = 0.58  # mean width of a letter, in its size

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW = "#E69F00", "#56B4E9", "#F0E442"
LINES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)  # yellow is too pale for a line
AREAS = (SKY, ORANGE, GREEN, YELLOW, BLUE, PURPLE, VERMILLION)
REFUSALS = {"outside", "reject", "refuse", "block", "lost"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Page:
    """The size that a picture is made for.

    Attributes
    ----------
    width : float
        Inches.
    small, large : float
        Sizes of numbers, and of labels and titles, points.
    dpi : int
        Dots per inch of a PNG.
    thickness : float
        Of lines and marks, in that of a picture for the screen.
    margin : float
        Beside the first and the last point, part of a panel's width.
    """

    width: float
    small: float
    large: float
    dpi: int
    thickness: float = 1.0
    margin: float = 0.02

    def letters(self, size: float) -> int:
        """Number of letters of a size in points that fit into the width.

        Examples
        --------
        >>> COLUMN.letters(8.0), PAGE.letters(8.0)
        (54, 108)
        """
        return int(72.0 * self.width / (LETTER * size))


SCREEN = Page(WIDTH, SMALL, SMALL + 1, DPI)
PAGE = Page(7.0, 8.0, 8.5, 300, 0.75, 0.05)  # the width of a journal's page
COLUMN = Page(3.5, 8.0, 8.0, 300, 0.75, 0.05)  # one of its two columns


def new_figure(height: float, page: Page = SCREEN) -> Figure:
    """An empty figure of a page's width.

    Parameters
    ----------
    height : float
        Inches; it is shown at about 100 pixels per inch.
    page : Page, optional
    """
    return Figure(figsize=(page.width, height), dpi=page.dpi, layout="constrained")


def panels(
    count: int,
    *,
    columns: int,
    height: float,
    sharex: bool = False,
    sharey: bool = False,
    page: Page = SCREEN,
) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels, row by row.

    Parameters
    ----------
    count : int
        Number of panels.
    columns : int
        At most so many panels in a row.
    height : float
        Of a panel, inches.
    sharex, sharey : bool
        Whether the panels have the same axis.
    page : Page, optional
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(0.3 + height * rows, page)
    grid = figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    return figure, list(grid.flat[:count])


def heading(figure: Figure, text: str, page: Page = SCREEN) -> None:
    """A title at the left of a figure, which grows for every line but the first."""
    if text:
        size = page.large + 1
        lines = textwrap.wrap(text, page.letters(size))
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=size, color=INK)
        figure.set_figheight(figure.get_figheight() + 1.3 * size / 72.0 * (len(lines) - 1))


def title(axes: Axes, text: str, page: Page = SCREEN) -> None:
    """A title at the left of a panel."""
    axes.set_title(text, loc="left", fontsize=page.large, color=INK)


def add_legend(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    page: Page = SCREEN,
    handlelength: float = 1.4,
) -> None:
    """Name lines or areas once, below all panels, in rows for which the figure grows."""
    count = len(labels)
    for rows in range(1, count + 1):
        columns = -(-count // rows)
        legend = figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            labelcolor=INK,
            fontsize=page.large,
            handlelength=handlelength,
            borderpad=0.1,
            borderaxespad=0.2,
        )
        box = legend.get_window_extent()
        if rows == count or box.width <= 0.98 * figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG; its path."""
    figure.savefig(path, format="png", facecolor="white")
    return path


def clean(axes: Axes, *, grid: str | None = None, page: Page = SCREEN) -> Axes:
    """Take away what is not needed; draw faint grid lines along ``grid`` ("x", "y" or "both")."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color(FAINT)
    axes.tick_params(which="both", color=FAINT)
    axes.tick_params(labelcolor=INK, labelsize=page.small)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=INK, fontsize=page.large)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(axis=grid, color="#e6e6e6", linewidth=0.8 * page.thickness)  # type: ignore[arg-type]
    return axes


def whole_numbers() -> MaxNLocator:
    """Ticks at a few integers."""
    return MaxNLocator(6, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])


def policy_colours(names: Sequence[str]) -> dict[str, tuple[Any, str]]:
    """Per policy its colour and marker, the same in all pictures of a comparison."""
    return {
        name: (_varied(LINES, i), MARKERS[i % len(MARKERS)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def action_colours(names: Sequence[str]) -> dict[str, Colour]:
    """Per action the colour of its area; not serving a job is grey."""
    areas = iter(_varied(AREAS, i) for i in range(len(names)))
    grey = to_rgb(GREY)
    return {name: grey if name in REFUSALS else next(areas) for name in dict.fromkeys(names)}


def _varied(palette: Sequence[str], i: int) -> Colour:
    """The i-th colour, darker in every further round."""
    red, green, blue = to_rgb(palette[i % len(palette)])
    share = 0.6 ** (i // len(palette))
    return (share * red, share * green, share * blue)
