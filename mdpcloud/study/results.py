"""Results of a study: its records as rows of one table, which is all that outputs are made of.

Rows are pure functions of the study and of its records, without what a run does not repeat (times,
hosts), so the files are the same to the byte however often the study was interrupted.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import in_words
from mdpcloud.study.identity import canonical
from mdpcloud.study.record import DONE, FAILED, NOT_CONVERGED, Record
from mdpcloud.study.study import Instance, Study

__all__ = ["Cell", "Results"]

Cell: TypeAlias = str | int | float | bool | None
MISSING = "missing"
LAST = ("status", "error", "key")  # columns of every study, after those of its task


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
        return [dict(row) for row in self._rows]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows."""
        return tuple(self._rows[0]) if self._rows else ("instance", *self.study.labels, *LAST)

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
        path = place / "results.csv"
        path.write_bytes(as_csv(self.columns, self._rows))
        return [path]

    @cached_property
    def _rows(self) -> list[dict[str, Cell]]:
        found = [
            (one, row)
            for one in self.study.instances
            if one.key in self.records
            for row in _task_rows(self.records[one.key])
        ]
        if not found:
            return []
        own = list(dict.fromkeys(name for _, row in found for name in row))
        self._check_measures([row for _, row in found])
        labels = self.study.labels
        taken = {"instance", "error", "key", *labels}
        names = {
            name: f"result_{name}" if name in taken else name
            for name in own
            if name not in ("measures", "status")
        }
        return [self._row(one, row, labels, names) for one, row in found]

    def _row(
        self,
        one: Instance,
        row: Mapping[str, Any],
        labels: tuple[str, ...],
        names: Mapping[str, str],
    ) -> dict[str, Cell]:
        record = self.records[one.key]
        found: dict[str, Cell] = {"instance": one.number}
        for label in labels:
            found[label] = one.labels.get(label)
        for name, column in names.items():
            found[column] = _cell(row.get(name))
        if self.study.outputs.measures:
            found.update(_measured(self.study.outputs.measures, row.get("measures") or {}))
        found["status"] = _cell(row.get("status", record["status"]))
        found["error"] = record["error"]
        found["key"] = one.key
        return found

    def _check_measures(self, rows: list[Mapping[str, Any]]) -> None:
        known = list(dict.fromkeys(name for row in rows for name in row.get("measures") or {}))
        finished = any(self.records[key]["status"] == DONE for key in self.records)
        for name in self.study.outputs.measures:
            if finished and name not in known:
                there = f"there are {', '.join(known)}" if known else "the task gives none"
                near = did_you_mean(name, known) or f"; {there}"
                raise InputError(f"measures: no row has a measure {name!r}{near}")


def _task_rows(record: Record) -> list[Mapping[str, Any]]:
    """Rows of a record; an empty one where there is no result."""
    return (record["result"] or {}).get("rows") or [{}]


def _measured(
    names: tuple[str, ...], measures: Mapping[str, Any]
) -> Iterator[tuple[str, float | None]]:
    for name in names:
        lower, upper = measures.get(name, (None, None))
        known = lower is not None and upper is not None
        yield name, lower + 0.5 * (upper - lower) if known else None
        yield f"{name}_lower", lower
        yield f"{name}_upper", upper


def _cell(value: Any) -> Cell:
    """A value of a row as one cell: parameters and lists as text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping) and all(isinstance(one, int | float) for one in value.values()):
        return in_words(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return "; ".join(value)
    return canonical(value)


def as_csv(columns: tuple[str, ...], rows: list[dict[str, Cell]]) -> bytes:
    """Rows as in RFC 4180, in UTF-8; floats with as few digits as give them back."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([row.values() for row in rows])
    return text.getvalue().encode()
