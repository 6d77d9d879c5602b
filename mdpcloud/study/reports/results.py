"""Results of a study: its records as rows of one table, which is all that outputs are made of.

Rows are pure functions of the study and of its records, without what a run does not repeat (times,
hosts), so the files are the same to the byte however often the study was interrupted.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import in_words
from mdpcloud.study.records.garbage import no_collections
from mdpcloud.study.records.identity import canonical
from mdpcloud.study.records.record import DONE, FAILED, NOT_CONVERGED, Record, sayable
from mdpcloud.study.records.temporary import replace_file
from mdpcloud.study.reports.parquet import as_parquet
from mdpcloud.study.study import Study

__all__ = ["Cell", "Results"]

Cell: TypeAlias = str | int | float | bool | None
MISSING = "missing"
APART = ("measures", "status")  # of a row, which are no columns like others
UNKNOWN = (None, None)
PLAIN = {float, int, bool, type(None)}


@dataclass(frozen=True, eq=False)
class Results:
    """What a study found.

    Attributes
    ----------
    study : Study
    records : mapping of key to record
        Of the instances that were computed.
    """

    study: Study
    records: Mapping[str, Record]

    def counts(self) -> dict[str, int]:
        """Number of instances that are done, not_converged, failed and missing."""
        found = Counter(
            self.records[one.key]["status"] if one.key in self.records else MISSING
            for one in self.study.instances
        )
        return {status: found[status] for status in (DONE, NOT_CONVERGED, FAILED, MISSING)}

    @no_collections()
    def rows(self) -> list[dict[str, Cell]]:
        """Rows of all instances that have a record, in the order of the study.

        Every row has the same columns: ``instance``, the labels, what the task found, the measures
        that the study wants (``NAME``, the middle of its bounds, ``NAME_lower``, ``NAME_upper``),
        ``status``, ``error`` and ``key``. A column of the task with the name of a label begins with
        ``result_``. An instance without results has one row; ``error`` says why, as it does in the
        rows of an instance that did not converge. ``status`` is the row's own where the task gives
        one, such as "exact", else the record's.

        Raises
        ------
        InputError
            When no row has a measure that the study wants.
        """
        names = self.columns
        return [
            dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True)
        ]

    def write(self, folder: str | Path) -> list[Path]:
        """Write results.csv, and results.parquet where pyarrow is installed; their paths.

        Raises
        ------
        InputError
            As for `rows`.
        OSError
            When a file cannot be written; one that is there stays as it was.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files = {"results.csv": as_csv(self.columns), "results.parquet": as_parquet(self.columns)}
        return [replace_file(place / name, raw) for name, raw in files.items() if raw is not None]

    @cached_property
    @no_collections()
    def columns(self) -> Mapping[str, Sequence[Cell]]:
        """Name of each column to its cells, in the order of `rows`."""
        found = [
            (one, record, row)
            for one in self.study.instances
            if (record := self.records.get(one.key)) is not None
            for row in _rows_of(record)
        ]
        instances = [one for one, _, _ in found]
        rows = [row for _, _, row in found]
        columns: dict[str, list[Cell]] = {"instance": [one.number for one in instances]}
        for name in self.study.labels:
            columns[name] = _cells([one.labels.get(name) for one in instances])
        taken = {*columns, "error", "key"}
        for name in _names(rows):
            if name not in APART:
                column = f"result_{name}" if name in taken else name
                columns[column] = _cells([row.get(name) for row in rows])
        columns |= self._measures(rows)
        columns["status"] = _cells(
            [row.get("status") or record["status"] for _, record, row in found]
        )
        columns["error"] = _cells([record["error"] for _, record, _ in found])
        columns["key"] = [one.key for one in instances]
        return {sayable(name): cells for name, cells in columns.items()}

    def _measures(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Cell]]:
        """Columns of the measures that the study wants."""
        wanted = self.study.outputs.measures
        if not wanted:
            return {}
        mappings = [row.get("measures") or {} for row in rows]
        if self.counts()[DONE]:
            _check_measures(wanted, mappings)
        columns: dict[str, list[Cell]] = {}
        for name in wanted:
            bounds = [mapping.get(name, UNKNOWN) for mapping in mappings]
            columns[name] = [_middle(*pair) for pair in bounds]
            columns[f"{name}_lower"] = [lower for lower, _ in bounds]
            columns[f"{name}_upper"] = [upper for _, upper in bounds]
        return columns


def _rows_of(record: Record) -> Sequence[Mapping[str, Any]]:
    """Rows of a record; an empty one where there is no result."""
    return (record["result"] or {}).get("rows") or [{}]


def _names(mappings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names in mappings, in the order in which they first appear."""
    found: dict[str, Any] = {}
    for mapping in mappings:
        found.update(mapping)
    return list(found)


def _check_measures(wanted: Iterable[str], mappings: Iterable[Mapping[str, Any]]) -> None:
    known = _names(mappings)
    for name in wanted:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "the task gives none"
            near = did_you_mean(name, known) or f"; {there}"
            raise InputError(f"measures: no row has a measure {name!r}{near}")


def _middle(lower: float | None, upper: float | None) -> float | None:
    return None if lower is None or upper is None else lower + 0.5 * (upper - lower)


def _cells(values: list[Any]) -> list[Cell]:
    """Values of rows as cells; most columns are fit to be ones as they are."""
    if set(map(type, values)) <= PLAIN:
        return values
    return [_cell(value) for value in values]


def _cell(value: Any) -> Cell:
    """A value of a row as one cell: parameters and lists as text."""
    if type(value) is str:
        return sayable(value)
    if type(value) in PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, float):  # of a subclass, such as numpy's
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(one, int | float) for one in value.values()):
        return in_words(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return sayable("; ".join(value))
    return canonical(value)


def as_csv(columns: Mapping[str, Sequence[Cell]]) -> bytes:
    """Columns as in RFC 4180, in UTF-8; floats with as few digits as give them back."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()
