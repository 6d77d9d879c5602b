"""The rows of results that a figure shows: which count, their panels, their curves, their numbers.

A row counts where its columns have the values of ``where``. Those of an instance without results
have no curve: they belong to every curve of their panel, as a place where it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.outputs import Figure

__all__ = ["COMMON", "OPTIMUM", "Row", "Rows", "Selection", "bounds_of", "number", "select"]

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
OPTIMUM = "optimum"  # a row of the optimum itself, among those of the policies
GAPS = ("gap", "profit_gap", "absolute_gap")  # which the optimum has none of
COMMON = ("instance", "key", "status", "error")  # columns that are no axes


@dataclass(frozen=True)
class Selection:
    """What a figure shows.

    Attributes
    ----------
    figure : Figure
    axes : tuple of str
        Columns that tell instances apart.
    panels : mapping of panel's values to rows
        In the order of the study.
    curves : tuple
        Values of the curves of the whole study, in its order, without the optimum.
    """

    figure: Figure
    axes: tuple[str, ...]
    panels: Mapping[tuple[Any, ...], Rows]
    curves: tuple[Any, ...]

    @property
    def x(self) -> str:
        """The column along the horizontal axis of lines and bars."""
        assert self.figure.x is not None
        return self.figure.x

    def of_curve(self, rows: Rows, curve: Any) -> list[Row]:
        """Rows of a curve that have a number."""
        mine = [row for row in rows if row[self.figure.curves] == curve]
        return [row for row in mine if number(row, self.figure.y) is not None]


def select(rows: Rows, axes: Iterable[str], figure: Figure) -> Selection:
    """The rows that a figure shows.

    Parameters
    ----------
    rows : sequence of flat mappings with the same columns
    axes : iterable of str
        Columns that tell instances apart.
    figure : Figure

    Raises
    ------
    InputError
        When a column is not there, or there is nothing to draw.
    """
    if not rows:
        raise InputError(f"figure {figure.name!r} has nothing to draw: there are no results")
    _check_columns(rows[0], figure)
    axes = tuple(axes)
    figure = _with_x(rows, axes, figure)
    kept = [row for row in rows if _counts(row, figure)]
    if not kept:
        raise InputError(f"figure {figure.name!r} has nothing to draw: {_why_none(rows, figure)}")
    numbers = [row for row in kept if number(row, figure.y) is not None]
    if not numbers:
        raise InputError(f"figure {figure.name!r} has nothing to draw: {_why_empty(kept, figure)}")
    there = {_panel(row, figure) for row in numbers}
    panels: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept:
        if _panel(row, figure) in there:
            panels.setdefault(_panel(row, figure), []).append(row)
    return Selection(figure, axes, panels, _curves(rows, figure))


def number(row: Row, column: str) -> float | None:
    """A finite number of a row, or None."""
    value: Any = row.get(column)
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


def _check_columns(first: Row, figure: Figure) -> None:
    wanted = {"x": figure.x, "y": figure.y, "curves": figure.curves}
    named = [(f"{where} = {name!r}", name) for where, name in wanted.items() if name is not None]
    named += [(f"{name!r} in panels", name) for name in figure.panels]
    named += [(f"{name!r} in where", name) for name in figure.where or {}]
    for text, name in named:
        if name not in first:
            near = did_you_mean(name, first) or f"; the columns are {', '.join(first)}"
            raise InputError(f"figure {figure.name!r}: {text} is no column of the results{near}")


def _with_x(rows: Rows, axes: tuple[str, ...], figure: Figure) -> Figure:
    """The figure with the axis along which it runs, if it needs one."""
    if figure.kind == "distribution":
        if figure.x is not None:
            raise InputError(
                f"figure {figure.name!r}: a distribution has no x: it is that of y = {figure.y!r}"
            )
        return figure
    if figure.x is not None:
        return figure
    taken = {figure.curves, figure.y, *figure.panels, *(figure.where or {})}
    free = [name for name in axes if name not in taken and len({row[name] for row in rows}) > 1]
    if len(free) != 1:
        among = f"one of {', '.join(free or axes)}" if free or axes else "a column"
        raise InputError(f"figure {figure.name!r} needs x: {among}")
    return replace(figure, x=free[0])


def _counts(row: Row, figure: Figure) -> bool:
    """Whether a row is to be shown; one without results stands for all curves."""
    empty = row[figure.curves] is None and row.get("error") is not None
    if figure.x is not None and row[figure.x] is None:
        return False
    if row[figure.curves] == OPTIMUM and figure.y in GAPS:
        return False
    where = figure.where or {}
    return all(
        _is_among(row[name], values) or (empty and row[name] is None)
        for name, values in where.items()
    )


def _is_among(value: Any, values: Any) -> bool:
    return value in (values if isinstance(values, list | tuple) else [values])


def _panel(row: Row, figure: Figure) -> tuple[Any, ...]:
    return tuple(row[name] for name in figure.panels)


def _curves(rows: Rows, figure: Figure) -> tuple[Any, ...]:
    """Values of the curves; numbers in their order, texts in the order of the study."""
    found = [*dict.fromkeys(row[figure.curves] for row in rows)]
    found = [value for value in found if value is not None and value != OPTIMUM]
    if all(isinstance(value, int | float) for value in found):
        return tuple(sorted(found))
    return tuple(found)


def _why_none(rows: Rows, figure: Figure) -> str:
    """Which part of ``where`` no row has."""
    for name, values in (figure.where or {}).items():
        there = [*dict.fromkeys(row[name] for row in rows)]
        if not any(_is_among(value, values) for value in there):
            shown = ", ".join(map(repr, there[:8])) + (", ..." if len(there) > 8 else "")
            return f"no row has {name} = {values!r}; it is {shown}"
    if figure.where:
        return f"no row has {', '.join(f'{k} = {v!r}' for k, v in figure.where.items())} at once"
    return f"no row has a value of {figure.x!r}"


def _why_empty(kept: Rows, figure: Figure) -> str:
    values = [row[figure.y] for row in kept if row[figure.y] is not None]
    if values:
        return f"y = {figure.y!r} must be a column of numbers; it has {values[0]!r}"
    errors = [row["error"] for row in kept if row.get("error")]
    because = f"; the first error is: {errors[0]}" if errors else ""
    return f"no row has a number in {figure.y!r}{because}"


def bounds_of(column: str, rows: Rows) -> tuple[str, ...]:
    """Names of the columns that enclose a column; empty where they are not there."""
    pair = ("lower", "upper") if column == "cost" else (f"{column}_lower", f"{column}_upper")
    return pair if any(number(row, pair[0]) is not None for row in rows) else ()
