"""The rows of results of which a table is made, and what a reader has to know of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.outputs import Table
from mdpcloud.study.reports.exactness import OPTIMUM, RELATIVE, bounded, exactness
from mdpcloud.study.reports.statistics import Entry
from mdpcloud.study.reports.where import is_among

__all__ = ["Selected", "select"]

Row: TypeAlias = Mapping[str, Any]
MOST = 8  # values that are named


@dataclass(frozen=True, eq=False)
class Selected:
    """What a table is made of.

    Attributes
    ----------
    table : Table
    entries : mapping of split to list of Entry
        In the order of the study.
    others : mapping of split to list of Entry
        Rows without the number, but with a cost by which they compete with those that have it.
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
    others: Mapping[tuple[Any, ...], list[Entry]]
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
    others = _others(finished, counting, table)
    kinds, number = exactness(counting, (entry.number for entry in made), table.value)
    return Selected(
        table,
        _split(counting, made, table),
        _split(others, (_rival(row, table) for row in others), table),
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
    number = bounded(row, table.value)
    compared = table.value in RELATIVE and row.get("cost") is not None
    rival = bounded(row, "cost") if compared else number
    return Entry(row["instance"], row[table.rows], number, rival)


def _others(finished: Sequence[Row], counting: Sequence[Row], table: Table) -> list[Row]:
    """Rows that have a cost but none of the numbers that are in the order of the costs."""
    if table.value not in RELATIVE or any(row.get("cost") is None for row in counting):
        return []
    return [row for row in finished if row[table.value] is None and row.get("cost") is not None]


def _rival(row: Row, table: Table) -> Entry:
    cost = bounded(row, "cost")
    return Entry(row["instance"], row[table.rows], cost, cost)


def _split(
    rows: Sequence[Row], entries: Iterable[Entry], table: Table
) -> dict[tuple[Any, ...], list[Entry]]:
    """Entries of rows, by the columns that split a table."""
    found: dict[tuple[Any, ...], list[Entry]] = {}
    for row, entry in zip(rows, entries, strict=True):
        found.setdefault(tuple(row[name] for name in table.by), []).append(entry)
    return found
