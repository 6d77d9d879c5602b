"""Notes on figures: what is missing in a panel, and what did not converge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mdpcloud.study.reports.figures_rows import PanelRows, Row, Rows, Selection
from mdpcloud.study.reports.figures_words import curve_words, some, value_words
from mdpcloud.study.reports.words import counted

__all__ = ["count_notes", "place_notes"]


def place_notes(
    selection: Selection, title: str, rows: PanelRows, found: Mapping[Any, Mapping[Any, Row]]
) -> list[str]:
    """What is missing, and what did not converge, at which places of the axis.

    Parameters
    ----------
    selection : Selection
    title : str
        Of the panel.
    rows : PanelRows
    found : mapping of curve to its row at each place
    """
    if selection.x not in selection.axes:
        return count_notes(
            selection, title, rows, {c: [*those.values()] for c, those in found.items()}
        )
    curves, x = selection.figure.curves, selection.x
    inside = f" ({title})" if title else ""
    notes = []
    lost = {row[x] for row in rows.lost}
    rough = {row[x] for those in found.values() for row in those.values() if row["error"]}
    for places, what in ((lost, "no result"), (rough, "not converged, with its bounds,")):
        if places:
            notes.append(f"{what} at {x} = {_listed(places)}{inside}")
    for curve, those in found.items():
        without = {row[x] for row in rows.rows if row[curves] == curve} - set(those)
        if without:
            name = curve_words(curves, curve)
            notes.append(f"{name} has no {selection.figure.y} at {x} = {_listed(without)}{inside}")
    return notes


def _listed(places: Iterable[Any]) -> str:
    ordered = sorted(places, key=lambda value: (isinstance(value, str), value))
    return some(map(value_words, ordered))


def count_notes(
    selection: Selection, title: str, rows: PanelRows, found: Mapping[Any, Rows]
) -> list[str]:
    """How many instances are missing, and how many did not converge; see `place_notes`."""
    curves, y = selection.figure.curves, selection.figure.y
    inside = f" ({title})" if title else ""
    lost = {row["instance"] for row in rows.lost}
    rough = {row["instance"] for those in found.values() for row in those if row["error"]}
    notes = [
        f"{counted(len(numbers), 'instance')} {what}{inside}"
        for numbers, what in ((lost, "without a result left out"), (rough, "did not converge"))
        if numbers
    ]
    for curve, those in found.items():
        every = {row["instance"] for row in rows.rows if row[curves] == curve}
        without = every - {row["instance"] for row in those}
        if without:
            name = curve_words(curves, curve)
            notes.append(f"{name} has no {y} in {counted(len(without), 'instance')}{inside}")
    return notes
