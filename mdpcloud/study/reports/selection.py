"""The rows of results of which a table is made, and what a reader has to know of the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.outputs import Table
from mdpcloud.study.reports.statistics import Bounded, Entry
from mdpcloud.study.reports.where import is_among

__all__ = [
    "CERTIFIED",
    "ESTIMATED",
    "GIVEN",
    "OPTIMUM",
    "RELATIVE",
    "RESTRICTED",
    "SIMULATED",
    "UNBOUNDED",
    "Selected",
    "select",
]

Row: TypeAlias = Mapping[str, Any]
OPTIMUM = "optimum"
RELATIVE = ("gap", "absolute_gap", "profit_gap", "difference")  # in the order of the costs
GOOD = ("exact", "closed_form", "converged")  # statuses of rows with certified bounds
CERTIFIED, ESTIMATED, SIMULATED = "certified", "estimated", "simulated"
RESTRICTED, UNBOUNDED, GIVEN = "restricted", "unbounded", "given"
MOST = 8  # values that are named


@dataclass(frozen=True, eq=False)
class Selected:
    """What a table is made of.

    Attributes
    ----------
    table : Table
    entries : mapping of split to list of Entry
        In the order of the study.
    kinds : mapping of kind of exactness to largest half width
    number : mapping of kind of exactness to number of entries
    lacking : mapping of line to number of instances
        In which it has no number, though another line has a row.
    left_out : int
        Instances that match but failed or did not converge.
    errors : tuple of str
        Of these.
    whole : bool
        Whether all numbers are integers.
    """

    table: Table
    entries: Mapping[tuple[Any, ...], list[Entry]]
    kinds: Mapping[str, float]
    number: Mapping[str, int]
    lacking: Mapping[Any, int]
    left_out: int
    errors: tuple[str, ...]
    whole: bool

    @property
    def instances(self) -> set[int]:
        """Numbers of the instances that count."""
        return {entry.instance for group in self.entries.values() for entry in group}


def select(rows: Sequence[Row], labels: Iterable[str], table: Table) -> Selected:
    """The rows that count in a table.

    Parameters
    ----------
    rows : sequence of flat mappings with the same columns
    labels : iterable of str
        Columns that tell instances apart.
    table : Table

    Raises
    ------
    InputError
        When a column is not there or holds no numbers, or no row is as ``where`` wants it.
    """
    _check_columns(rows, table)
    wanted = [row for row in rows if _matches(row, table, labels)]
    _check_some(rows, wanted, table)
    unfinished = [row for row in wanted if row["error"] is not None]
    finished = [row for row in wanted if row["error"] is None and not _is_apart(row, table)]
    counting = [row for row in finished if row[table.value] is not None]
    counting = _in_order(counting, (*table.by, table.rows))
    made = [_entry(row, table) for row in counting]
    entries: dict[tuple[Any, ...], list[Entry]] = {}
    for row, entry in zip(counting, made, strict=True):
        entries.setdefault(tuple(row[name] for name in table.by), []).append(entry)
    kinds, number = _exactness(counting, (entry.number for entry in made), table.value)
    return Selected(
        table,
        entries,
        kinds,
        number,
        _lacking(finished, counting, table),
        len({row["instance"] for row in unfinished}),
        tuple(dict.fromkeys(row["error"] for row in unfinished)),
        all(isinstance(row[table.value], int) for row in counting),
    )


# --- which rows count -----------------------------------------------------------------------------


def _check_columns(rows: Sequence[Row], table: Table) -> None:
    if not rows:
        return
    named = [("value", table.value), ("rows", table.rows)]
    named += [("by", name) for name in table.by] + [("where", name) for name in table.where or ()]
    for place, name in named:
        if name not in rows[0]:
            near = did_you_mean(name, rows[0]) or f"; there are {', '.join(rows[0])}"
            raise InputError(f"table {table.name!r}: {place}: there is no column {name!r}{near}")
    for row in rows:
        value = row[table.value]
        if value is not None and not isinstance(value, int | float):
            raise InputError(
                f"table {table.name!r}: value: column {table.value!r} must hold numbers; it holds "
                f"{value!r}"
            )


def _matches(row: Row, table: Table, labels: Iterable[str]) -> bool:
    """Whether a row is as wanted; one without results, as far as its labels tell."""
    where = table.where or {}
    if row["error"] is not None:
        where = {name: wanted for name, wanted in where.items() if name in labels}
    return all(is_among(row[name], wanted) for name, wanted in where.items())


def _check_some(rows: Sequence[Row], wanted: Sequence[Row], table: Table) -> None:
    """Tell which part of ``where`` no row has."""
    if wanted or not any(row["error"] is None for row in rows):
        return
    for name, values in (table.where or {}).items():
        if not any(is_among(row[name], values) for row in rows):
            there = list(dict.fromkeys(row[name] for row in rows))
            more = ", ..." if len(there) > MOST else ""
            raise InputError(
                f"table {table.name!r}: where: no row has {name} = {values!r}; there are "
                f"{', '.join(map(repr, there[:MOST]))}{more}"
            )
    raise InputError(f"table {table.name!r}: where: no row has all of {dict(table.where or {})!r}")


def _is_apart(row: Row, table: Table) -> bool:
    """Whether a row is the optimum's own and has nothing to tell."""
    return row.get("policy") == OPTIMUM and row[table.value] is None


def _lacking(finished: Sequence[Row], counting: Sequence[Row], table: Table) -> dict[Any, int]:
    """Lines that have no number in some instances in which they, or others, might have one."""
    every = {row["instance"] for row in finished}
    has: dict[Any, set[int]] = {row[table.rows]: set() for row in finished}
    for row in counting:
        has[row[table.rows]].add(row["instance"])
    if table.rows != "policy":  # instances have different values there
        every_of = {of: {r["instance"] for r in finished if r[table.rows] == of} for of in has}
        return {of: n for of, mine in has.items() if (n := len(every_of[of] - mine))}
    return {of: len(every - mine) for of, mine in has.items() if every - mine}


def _in_order(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """Rows by the values of columns: numbers by size, others as they first appear."""
    ranks = [_ranks(list(dict.fromkeys(row[name] for row in rows))) for name in columns]
    pairs = list(zip(columns, ranks, strict=True))
    return sorted(rows, key=lambda row: [rank[row[name]] for name, rank in pairs])


def _ranks(values: list[Any]) -> dict[Any, int]:
    if all(isinstance(value, int | float) for value in values):
        values.sort()
    return {value: place for place, value in enumerate(values)}


# --- numbers --------------------------------------------------------------------------------------


def _entry(row: Row, table: Table) -> Entry:
    number = _bounded(row, table.value)
    compared = table.value in RELATIVE and row.get("cost") is not None
    rival = _bounded(row, "cost") if compared else number
    return Entry(row["instance"], row[table.rows], number, rival)


def _bounded(row: Row, column: str) -> Bounded:
    """A number with its bounds; infinite ones where it has some that are not known."""
    value = float(row[column])
    names = _bounds_of(row, column)
    if names is None:
        return Bounded(value, value, value)
    lower, upper = row[names[0]], row[names[1]]
    return Bounded(
        value,
        -math.inf if lower is None else min(lower, value),
        math.inf if upper is None else max(upper, value),
    )


def _bounds_of(row: Row, column: str) -> tuple[str, str] | None:
    """Names of the columns of the bounds of a column, if it has any."""
    names = _names_of_bounds(column)
    return names if names[0] in row else None


@cache
def _names_of_bounds(column: str) -> tuple[str, str]:
    return ("lower", "upper") if column == "cost" else (f"{column}_lower", f"{column}_upper")


def _exactness(
    rows: Sequence[Row], numbers: Iterable[Bounded], column: str
) -> tuple[dict[str, float], Counter[str]]:
    """Largest half width and number of the rows of each kind."""
    widths: dict[str, float] = {}
    kinds = [_kind(row, column) for row in rows]
    for kind, (value, lower, upper) in zip(kinds, numbers, strict=True):
        widths[kind] = max(widths.get(kind, 0.0), upper - value, value - lower)
    return widths, Counter(kinds)


def _kind(row: Row, column: str) -> str:
    """What is known of the error of a number."""
    if _bounds_of(row, column) is None:
        return UNBOUNDED
    status, cut = row.get("status"), row.get("truncation") if column in RELATIVE else None
    if status in (SIMULATED, "absorbed"):
        return SIMULATED
    if ESTIMATED in (status, cut):
        return ESTIMATED
    if cut == RESTRICTED:
        return RESTRICTED
    return CERTIFIED if status in GOOD else GIVEN
