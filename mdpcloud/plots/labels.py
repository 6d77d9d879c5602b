"""The texts of a chart: titles, labels of axes, names of categories, marks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Panel
from mdpcloud.plots.style import FAINT, INK, LETTER, SMALL, Page, clean, title

__all__ = ["check_formulas", "label_once", "label_panel", "upright_height"]

MARK = 30  # letters in a line beside a mark
MARK_LINE = 0.062  # height of such a line, part of a panel's height
SIDE = 6  # letters on the left of a panel
UPRIGHT = 20  # letters in a line of a category's upright name


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


def label_panel(axes: Axes, panel: Panel, width: float, page: Page) -> None:
    """Draw the marks, title, labels and names of categories of a panel of a width in inches."""
    _draw_marks(axes, panel.marks)
    letters = int(page.letters(page.large) * width / page.width) - 3
    if panel.categories:
        _name_categories(axes, panel.categories, letters)
    title(axes, panel.title if "$" in panel.title else textwrap.fill(panel.title, letters), page)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    bars = any(one.look == "bars" for one in panel.series)
    clean(axes, grid="y" if bars else "both", page=page)


def _name_categories(axes: Axes, categories: Sequence[str], letters: int) -> None:
    """Texts below the places 0, 1, ... in lines; upright where they are too long."""
    room = max((letters - SIDE) // len(categories) - 1, 1)
    lines = [textwrap.wrap(text, room, break_long_words=False) for text in categories]
    upright = max(len(line) for those in lines for line in those) > room
    if upright:
        lines = [textwrap.wrap(text, UPRIGHT) for text in categories]
    axes.set_xticks(range(len(lines)), ["\n".join(those) for those in lines])
    axes.set_xlim(-0.5, len(lines) - 0.5)
    if upright:
        for label in axes.get_xticklabels():
            label.set(rotation=90, linespacing=1.0)


def upright_height(axes: Axes) -> float:
    """The height of upright names below a panel, inches; 0 where they lie."""
    labels = axes.get_xticklabels()
    if not labels or labels[0].get_rotation() == 0.0:
        return 0.0
    longest = max(len(line) for label in labels for line in label.get_text().split("\n"))
    return longest * LETTER * float(labels[0].get_fontsize()) / 72.0


def label_once(figure: Figure, grid: Sequence[Axes], page: Page, height: float) -> None:
    """Leave out numbers and labels that are those of the panel below or on the left.

    A vertical label that all panels have stands once, at the middle of the figure's upper part of a
    height in inches.
    """
    for axes in grid:
        _label_outer(axes)
    labels = {axes.get_ylabel() for axes in grid}
    if len(grid) > 1 and len(labels) == 1:
        middle = 1.0 - (0.5 * height - 0.15) / figure.get_figheight()
        figure.supylabel(*labels, y=middle, fontsize=page.large, color=INK)
        for axes in grid:
            axes.set_ylabel("")


def _label_outer(axes: Axes) -> None:
    place = axes.get_subplotspec()
    figure = axes.get_figure()
    assert place is not None
    assert figure is not None
    if _is_shared(axes.get_shared_y_axes(), axes) and not place.is_first_col():
        axes.tick_params(axis="y", labelleft=False)
    others = [other.get_subplotspec() for other in figure.axes]
    covered = any(
        other is not None
        and other.colspan == place.colspan
        and other.rowspan.start > place.rowspan.start
        for other in others
    )
    if _is_shared(axes.get_shared_x_axes(), axes):
        axes.tick_params(axis="x", labelbottom=not covered)
        axes.set_xlabel("" if covered else axes.get_xlabel())


def _is_shared(groups: Any, axes: Axes) -> bool:
    return len(groups.get_siblings(axes)) > 1


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
