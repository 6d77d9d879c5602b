"""Distribution functions: the share of the instances whose column is at most a value.

Of n instances with values v the curve is F(x) = #{v <= x} / n, a step of 1/n at each v.
"""

from __future__ import annotations

from typing import Any

from mdpcloud.plots.chart import Panel, Series
from mdpcloud.study.reports.figures_notes import count_notes
from mdpcloud.study.reports.figures_rows import PanelRows, Rows, Selection, bounds_of, number
from mdpcloud.study.reports.figures_words import column_words
from mdpcloud.study.reports.words import FRACTIONS

__all__ = ["distribution_panel"]

NAN = float("nan")


def distribution_panel(
    selection: Selection, title: str, rows: PanelRows
) -> tuple[Panel, list[str]]:
    """A panel of distribution functions, and how many instances are missing in it."""
    figure = selection.figure
    found = {curve: selection.of_curve(rows, curve) for curve in selection.curves}
    panel = Panel(
        title,
        figure.x_label or column_words(figure.y),
        figure.y_label or "share of instances (%)",
        tuple(_series(figure.y, curve, those) for curve, those in found.items() if those),
        logarithmic=_logarithmic(figure),
        percent="xy" if figure.y in FRACTIONS else "y",
        zeros=True,
    )
    return panel, count_notes(selection, title, rows, found)


def _logarithmic(figure: Any) -> str:
    if figure.logarithmic is None:
        return "x" if figure.y in FRACTIONS else ""
    return "x" if "x" in figure.logarithmic else ""


def _series(column: str, curve: Any, rows: Rows) -> Series:
    """Values in their order, with their bounds, and the share of those up to each."""
    ordered = sorted(rows, key=lambda row: number(row, column) or 0.0)
    x, *ends = (
        [NAN if (value := number(row, name)) is None else value for row in ordered]
        for name in (column, *bounds_of(column, rows))
    )
    lower, upper = ends or ([], [])
    shares = [(i + 1) / len(x) for i in range(len(x))]
    return Series(column, x, shares, str(curve), lower, upper, "shares")
