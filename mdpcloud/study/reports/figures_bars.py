"""Bars: the mean of a column over the instances, at each value of another column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mdpcloud.plots.chart import Panel, Series
from mdpcloud.study.reports.figures_lines import places_of
from mdpcloud.study.reports.figures_notes import count_notes
from mdpcloud.study.reports.figures_rows import PanelRows, Rows, Selection, number
from mdpcloud.study.reports.figures_words import column_words, value_words
from mdpcloud.study.reports.words import FRACTIONS

__all__ = ["bars_panel"]

NAN = float("nan")


def bars_panel(selection: Selection, title: str, rows: PanelRows) -> tuple[Panel, list[str]]:
    """A panel of bars beside each other, and how many instances are missing in it.

    A column of zeros and ones, or of truth values, is told as a share of the instances.
    """
    figure = selection.figure
    places, _, _ = places_of(selection, rows)
    found = {curve: selection.of_curve(rows, curve) for curve in selection.curves}
    x = [float(i) for i in range(len(places))]
    panel = Panel(
        title,
        figure.x_label or column_words(selection.x),
        figure.y_label or _words(selection),
        tuple(
            Series(figure.y, x, _means(selection, those, places), str(curve), look="bars")
            for curve, those in found.items()
            if those
        ),
        percent="y" if figure.y in FRACTIONS or _is_share(selection) else "",
        categories=tuple(map(value_words, places)),
    )
    return panel, count_notes(selection, title, rows, found)


def _means(selection: Selection, rows: Rows, places: Sequence[Any]) -> list[float]:
    """Mean at each place; nan where there is no row."""
    means = []
    for place in places:
        those = (number(row, selection.figure.y) for row in rows if row[selection.x] == place)
        values = [value for value in those if value is not None]
        means.append(math.fsum(values) / len(values) if values else NAN)
    return means


def _is_share(selection: Selection) -> bool:
    numbers = (
        number(row, selection.figure.y) for panel in selection.panels.values() for row in panel.rows
    )
    return all(value in (0.0, 1.0) for value in numbers if value is not None)


def _words(selection: Selection) -> str:
    words = column_words(selection.figure.y)
    if _is_share(selection):
        return f"{words} (% of instances)"
    return f"mean {words}" if _are_several(selection) else words


def _are_several(selection: Selection) -> bool:
    """Whether some bar is a mean of several rows."""
    names = (*selection.figure.panels, selection.figure.curves, selection.x)
    bars = [
        tuple(row[name] for name in names)
        for panel in selection.panels.values()
        for row in panel.rows
    ]
    return len(set(bars)) < len(bars)
