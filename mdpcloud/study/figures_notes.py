"""Notes on figures: what is missing in a panel, and what did not converge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdpcloud.study.figures_rows import Row, Rows, Selection
from mdpcloud.study.figures_words import curve_words, some, text_of

__all__ = ["count_notes", "place_notes"]


def place_notes(
    selection: Selection, title: str, rows: Rows, found: Mapping[Any, Mapping[Any, Row]]
) -> list[str]:
    """What is missing, and what did not converge, at which places of the axis.

    Parameters
    ----------
    selection : Selection
    title : str
        Of the panel.
    rows : rows
        Of the panel.
    found : mapping of curve to its row at each place
    """
    curves, x = selection.figure.curves, selection.x
    inside = f" ({title})" if title else ""
    notes = []
    lost = {row[x] for row in rows if row[curves] is None}
    rough = {row[x] for those in found.values() for row in those.values() if row.get("error")}
    for places, what in ((lost, "no result"), (rough, "not converged, with its bounds")):
        if places:
            notes.append(f"{what} at {x} = {some(map(text_of, _ordered(places)))}{inside}")
    for curve, those in found.items():
        mine = {row[x] for row in rows if row[curves] == curve}
        if mine - set(those):
            where = some(map(text_of, _ordered(mine - set(those))))
            name = curve_words(curves, curve)
            notes.append(f"{name} has no {selection.figure.y} at {x} = {where}{inside}")
    return notes


def _ordered(places: set[Any]) -> list[Any]:
    return sorted(places, key=lambda value: (isinstance(value, str), value))


def count_notes(
    selection: Selection, title: str, rows: Rows, found: Mapping[Any, Rows]
) -> list[str]:
    """How many instances are missing, and how many did not converge; see `place_notes`."""
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
