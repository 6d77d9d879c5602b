"""Distribution functions: the share of the instances whose column is at most a value.

Of n instances with values v the curve is F(x) = #{v <= x} / n, a step of 1/n at each v.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdpcloud.plots.chart import Panel, Series
from mdpcloud.study.figures_rows import Rows, Selection, bounds_of, number
from mdpcloud.study.figures_words import FRACTIONS, column_words, curve_words

__all__ = ["distribution_panel"]

NAN = float("nan")


def distribution_panel(selection: Selection, title: str, rows: Rows) -> tuple[Panel, list[str]]:
    """A panel of distribution functions, and how many instances are missing in it."""
    figure = selection.figure
    found = {curve: selection.of_curve(rows, curve) for curve in selection.curves}
    panel = Panel(
        title,
        figure.y_label or column_words(figure.y),
        figure.x_label or "share of instances (%)",
        tuple(_series(figure.y, curve, those) for curve, those in found.items() if those),
        logarithmic=_logarithmic(figure),
        percent="xy" if figure.y in FRACTIONS else "y",
        zeros=True,
    )
    return panel, _notes(selection, title, rows, found)


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


def _notes(selection: Selection, title: str, rows: Rows, found: Mapping[Any, Rows]) -> list[str]:
    curves, y = selection.figure.curves, selection.figure.y
    inside = f" ({title})" if title else ""
    lost = len({row["instance"] for row in rows if row[curves] is None})
    notes = [f"{_instances(lost)} without a result left out{inside}"] if lost else []
    rough = len({row["instance"] for those in found.values() for row in those if row.get("error")})
    if rough:
        notes.append(f"{_instances(rough)} did not converge{inside}")
    for curve, those in found.items():
        without = sum(row[curves] == curve for row in rows) - len(those)
        if without:
            name = curve_words(curves, curve)
            notes.append(f"{name} has no {y} in {_instances(without)}{inside}")
    return notes


def _instances(count: int) -> str:
    return f"{count} instance{'s' * (count != 1)}"
