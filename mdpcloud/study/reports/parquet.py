"""Columns of results as a Parquet file, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Cell

__all__ = ["as_parquet"]

LARGEST = 2**63  # integers of a column lie below


def as_parquet(columns: Mapping[str, Sequence[Cell]]) -> bytes | None:
    """The same cells as in the CSV file with types, or None where there is no pyarrow.

    A column of integers, of truth values, or of numbers has nulls where there are none; a column
    that also holds text is one of text, spelt as in the CSV file.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return None
    arrays = {name: pyarrow.array(*_typed(cells, pyarrow)) for name, cells in columns.items()}
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(arrays), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _typed(cells: Sequence[Cell], pyarrow: Any) -> tuple[Sequence[Cell], Any]:
    """Cells, and the type of their column."""
    kinds = set(map(type, cells)) - {type(None)}
    if not kinds:
        return cells, pyarrow.null()
    if kinds == {bool}:
        return cells, pyarrow.bool_()
    if kinds == {float}:
        return cells, pyarrow.float64()
    if kinds == {str}:
        return cells, pyarrow.string()
    if kinds == {int} and all(abs(cell) < LARGEST for cell in cells if isinstance(cell, int)):
        return cells, pyarrow.int64()
    if kinds == {int, float} and _exact(cells):
        return [None if cell is None else float(cell) for cell in cells], pyarrow.float64()
    return [None if cell is None else str(cell) for cell in cells], pyarrow.string()


def _exact(cells: Sequence[Cell]) -> bool:
    """Whether floats hold all the integers among the cells."""
    return all(abs(cell) <= 2**53 for cell in cells if isinstance(cell, int))
