"""The rows of results that a figure shows: which count, their panels, their curves, their numbers.

A row counts where its columns have the values of ``where``. An instance without results has a row
of its labels alone; it belongs to every panel, and breaks every curve, that its labels allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.outputs import Figure
from mdpcloud.study.reports.exactness import OPTIMUM, RELATIVE
from mdpcloud.study.reports.where import is_among

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Results

__all__ = [
    "NothingToDraw",
    "PanelRows",
    "Row",
    "Rows",
    "Selection",
    "bounds_of",
    "number",
    "select",
]

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
MOST = 8  # values that are named


class NothingToDraw(InputError):
    """No row that a figure wants has a number yet; the message says why."""


@dataclass(frozen=True)
class PanelRows:
    """Rows of a panel, and those of instances without results."""

    rows: Rows
    lost: Rows


@dataclass(frozen=True)
class Selection:
    """What a figure shows.

    Attributes
    ----------
    figure : Figure
    axes : tuple of str
        Labels of the instances.
    panels : mapping of values to PanelRows
        In the order of the study.
    curves : tuple
        Values of the curves of the whole study, without the optimum, each of which has its look.
    """

    figure: Figure
    axes: tuple[str, ...]
    panels: Mapping[tuple[Any, ...], PanelRows]
    curves: tuple[Any, ...]

    @property
    def x(self) -> str:
        """The column along the horizontal axis of lines and bars."""
        assert self.figure.x is not None
        return self.figure.x

    def of_curve(self, panel: PanelRows, curve: Any) -> list[Row]:
        """Rows of a curve that have a number."""
        mine = [row for row in panel.rows if row[self.figure.curves] == curve]
        return [row for row in mine if number(row, self.figure.y) is not None]


def number(row: Row, column: str) -> float | None:
    """A finite number of a row, or None."""
    value: Any = row.get(column)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def bounds_of(column: str, rows: Rows) -> tuple[str, ...]:
    """Names of the columns that enclose a column; empty where they are not there."""
    pair = ("lower", "upper") if column == "cost" else (f"{column}_lower", f"{column}_upper")
    return pair if any(number(row, pair[0]) is not None for row in rows) else ()


def select(results: Results, figure: Figure) -> Selection:
    """The rows that a figure shows.

    Raises
    ------
    InputError
        When a column is not there, holds no numbers, or no row is as ``where`` wants it.
    NothingToDraw
        When there is no number, as instances failed or are missing.
    """
    axes = results.study.labels
    rows, lost = _parted(results, figure)
    if not rows:
        raise NothingToDraw(f"{_of(figure)} has nothing to draw: {_why_no_rows(lost)}")
    _check_columns(rows[0], figure)
    figure = _with_x(rows, axes, figure)
    kept = [row for row in rows if _counts(row, figure)]
    if not kept:
        raise InputError(f"{_of(figure)} has nothing to draw: {_why_none(rows, figure)}")
    shown = [row for row in kept if number(row, figure.y) is not None]
    if not shown:
        raise _no_numbers(kept, figure)
    panels = dict.fromkeys(_panel(row, figure) for row in shown)
    of = {values: [row for row in kept if _panel(row, figure) == values] for values in panels}
    without = [row for row in lost if _may_count(row, axes, figure)]
    return Selection(
        figure,
        axes,
        {
            values: PanelRows(those, [row for row in without if _fits(row, values, axes, figure)])
            for values, those in of.items()
        },
        _curves(rows, figure, _usual(results)),
    )


# --- which rows count -----------------------------------------------------------------------------


def _parted(results: Results, figure: Figure) -> tuple[list[Row], list[Row]]:
    """Rows with results; those of instances without them: failed, or not computed."""
    rows: list[Row] = []
    lost: list[Row] = []
    for row in results.rows():
        empty = row["error"] is not None and row.get(figure.curves) is None
        (lost if empty else rows).append(row)
    for one in results.study.instances:
        if one.key not in results.records:
            blank = dict.fromkeys(results.study.labels)
            lost.append({**blank, **one.labels, "instance": one.number, "error": "not computed"})
    return rows, lost


def _check_columns(first: Row, figure: Figure) -> None:
    wanted = {"x": figure.x, "y": figure.y, "curves": figure.curves}
    named = [(where, name) for where, name in wanted.items() if name is not None]
    named += [("panels", name) for name in figure.panels]
    named += [("where", name) for name in figure.where or {}]
    for where, name in named:
        if name not in first:
            near = did_you_mean(name, first) or f"; there are {', '.join(first)}"
            raise InputError(f"{_of(figure)}: {where}: there is no column {name!r}{near}")


def _with_x(rows: Rows, axes: tuple[str, ...], figure: Figure) -> Figure:
    """The figure with the axis along which it runs, if it needs one."""
    if figure.kind == "distribution" or figure.x is not None:
        return figure
    taken = {figure.curves, *figure.panels, *(figure.where or {})}
    free = [name for name in axes if name not in taken and len({row[name] for row in rows}) > 1]
    if len(free) != 1:
        among = f"one of {', '.join(free or axes)}" if free or axes else "a column"
        raise InputError(f"{_of(figure)} needs x: {among}")
    return replace(figure, x=free[0])


def _counts(row: Row, figure: Figure) -> bool:
    if figure.x is not None and row[figure.x] is None:
        return False
    if row[figure.curves] == OPTIMUM and (figure.y in RELATIVE or figure.kind != "lines"):
        return False
    return all(is_among(row[name], wanted) for name, wanted in (figure.where or {}).items())


def _may_count(row: Row, axes: tuple[str, ...], figure: Figure) -> bool:
    """Whether an instance without results would count, as far as its labels tell."""
    if figure.x is not None and figure.x in axes and row[figure.x] is None:
        return False
    where = figure.where or {}
    return all(is_among(row[name], wanted) for name, wanted in where.items() if name in axes)


def _panel(row: Row, figure: Figure) -> tuple[Any, ...]:
    return tuple(row[name] for name in figure.panels)


def _fits(row: Row, values: tuple[Any, ...], axes: tuple[str, ...], figure: Figure) -> bool:
    """Whether an instance without results belongs to a panel."""
    pairs = zip(figure.panels, values, strict=True)
    return all(row[name] == value for name, value in pairs if name in axes)


def _usual(results: Results) -> tuple[str, ...]:
    """Names of the policies that the systems of the study have, in their order."""
    systems = dict.fromkeys(type(one.scenario.system) for one in results.study.instances)
    return tuple(name for one in systems for name in getattr(one, "policy_names", ()))


def _curves(rows: Rows, figure: Figure, usual: Sequence[str]) -> tuple[Any, ...]:
    """Values of the curves; numbers in their order, texts in the order of the study.

    The usual policies come first where one of them is shown, so that they look alike in all studies
    of a system.
    """
    found = [*dict.fromkeys(row[figure.curves] for row in rows)]
    found = [value for value in found if value is not None and value != OPTIMUM]
    if not any(isinstance(value, str) for value in found):
        return tuple(sorted(found))
    first = usual if any(value in usual for value in found) else ()
    return tuple(dict.fromkeys([*first, *found]))


# --- why there is nothing -------------------------------------------------------------------------


def _of(figure: Figure) -> str:
    return f"figure {figure.name!r}"


def _why_no_rows(lost: Rows) -> str:
    return f"no instance is done{_first_error(lost)}"


def _why_none(rows: Rows, figure: Figure) -> str:
    """Which part of ``where`` no row has."""
    for name, wanted in (figure.where or {}).items():
        there = [*dict.fromkeys(row[name] for row in rows)]
        if not any(is_among(value, wanted) for value in there):
            return f"where: no row has {name} = {wanted!r}; there are {', '.join(_named(there))}"
    if figure.where:
        return f"where: no row has all of {dict(figure.where)!r}"
    return f"no row has a value of {figure.x!r}"


def _named(values: Sequence[Any]) -> Iterator[str]:
    yield from map(repr, values[:MOST])
    if len(values) > MOST:
        yield "..."


def _no_numbers(kept: Rows, figure: Figure) -> InputError:
    texts = [row[figure.y] for row in kept if isinstance(row[figure.y], str)]
    if texts:
        return InputError(f"{_of(figure)}: y: column {figure.y!r} must hold numbers: {texts[0]!r}")
    reason = f"no row has a number in {figure.y!r}{_first_error(kept)}"
    return NothingToDraw(f"{_of(figure)} has nothing to draw: {reason}")


def _first_error(rows: Rows) -> str:
    errors = [row["error"] for row in rows if row["error"] is not None]
    return f"; the first error is: {errors[0]}" if errors else ""
