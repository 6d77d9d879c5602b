"""Figures of a column against an axis: a point per instance, joined along each curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Panel, Series
from mdpcloud.study.reports.exactness import OPTIMUM
from mdpcloud.study.reports.figures_notes import place_notes
from mdpcloud.study.reports.figures_rows import PanelRows, Row, Selection, bounds_of, number
from mdpcloud.study.reports.figures_words import column_words, value_words
from mdpcloud.study.reports.words import FRACTIONS

__all__ = ["lines_panel", "places_of"]

NAN = float("nan")


def lines_panel(selection: Selection, title: str, rows: PanelRows) -> tuple[Panel, list[str]]:
    """A panel of curves, and what is missing in it.

    Raises
    ------
    InputError
        When several instances stand at the same place.
    """
    figure = selection.figure
    places, x, names = places_of(selection, rows)
    found = {curve: _by_place(selection, rows, curve) for curve in (*selection.curves, OPTIMUM)}
    series = [
        _series(selection, curve, x, [those.get(place) for place in places])
        for curve, those in found.items()
        if those
    ]
    panel = Panel(
        title,
        figure.x_label or column_words(selection.x),
        figure.y_label or column_words(figure.y),
        tuple(series),
        logarithmic=(figure.logarithmic or "").replace("x", "" if names else "x"),
        whole="x" if all(isinstance(value, int) for value in places) else "",
        percent="y" if figure.y in FRACTIONS else "",
        zeros=True,
        categories=names,
    )
    return panel, place_notes(selection, title, rows, found)


def places_of(
    selection: Selection, rows: PanelRows
) -> tuple[list[Any], list[float], tuple[str, ...]]:
    """Values of the axis in a panel, where they are drawn, and their texts if they are no numbers.

    Numbers are in their order, texts in the order of the study.
    """
    every = [*rows.rows, *(rows.lost if selection.x in selection.axes else ())]
    every.sort(key=lambda row: row["instance"])
    values = [*dict.fromkeys(row[selection.x] for row in every)]
    if any(isinstance(value, str | bool) for value in values):
        return values, [float(i) for i in range(len(values))], tuple(map(value_words, values))
    values.sort()
    return values, [float(value) for value in values], ()


def _by_place(selection: Selection, rows: PanelRows, curve: Any) -> dict[Any, Row]:
    """The row of a curve at each value of the axis."""
    found: dict[Any, Row] = {}
    for row in selection.of_curve(rows, curve):
        other = found.setdefault(row[selection.x], row)
        if other is not row:
            raise InputError(_collision(selection, other, row))
    return found


def _collision(selection: Selection, one: Row, other: Row) -> str:
    """Why two rows stand at the same place."""
    x, curves = selection.x, selection.figure.curves
    begin = (
        f"figure {selection.figure.name!r}: several rows of {curves} {one[curves]!r} stand at "
        f"{x} = {one[x]!r}"
    )
    free = [axis for axis in selection.axes if one[axis] != other[axis]]
    free = free or [name for name in one if _tells_apart(one[name], other[name])]
    if not free:
        return f"{begin}; their labels are the same"
    named = " and ".join(f"{name} ({one[name]!r}, {other[name]!r}, ...)" for name in free)
    return f"{begin}; they differ in {named}: name it in panels or curves, or a value in where"


def _tells_apart(one: Any, other: Any) -> bool:
    """Whether values of a column of the task can tell rows apart, as names and counts do."""
    return isinstance(one, str | int) and isinstance(other, str | int) and one != other


def _series(
    selection: Selection, curve: Any, x: Sequence[float], rows: Sequence[Row | None]
) -> Series:
    y = selection.figure.y
    ends = [_column(rows, name) for name in bounds_of(y, [row for row in rows if row])]
    lower, upper = ends or ([], [])
    look: Any = "dashed" if curve == OPTIMUM else "joined"
    return Series(y, x, _column(rows, y), str(curve), lower, upper, look)


def _column(rows: Sequence[Row | None], name: str) -> list[float]:
    values = [None if row is None else number(row, name) for row in rows]
    return [NAN if value is None else value for value in values]
