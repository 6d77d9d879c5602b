"""How exact the numbers of results are: their bounds, and what kind of bounds these are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from mdpcloud.study.reports.statistics import Bounded

__all__ = [
    "CAPPED",
    "CERTIFIED",
    "ESTIMATED",
    "GIVEN",
    "OPTIMUM",
    "RELATIVE",
    "RESTRICTED",
    "SIMULATED",
    "UNBOUNDED",
    "bounded",
    "exactness",
]

Row: TypeAlias = Mapping[str, Any]
OPTIMUM = "optimum"
RELATIVE = ("gap", "absolute_gap", "profit_gap", "difference")  # in the order of the costs
GOOD = ("exact", "closed_form", "converged")  # statuses of rows with certified bounds
CERTIFIED, ESTIMATED, SIMULATED = "certified", "estimated", "simulated"
RESTRICTED, CAPPED, UNBOUNDED, GIVEN = "restricted", "capped", "unbounded", "given"


def bounded(row: Row, column: str) -> Bounded:
    """A number of a row with its bounds; infinite ones where it has some that are not known."""
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


def exactness(
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
    status, cut = row.get("status"), row.get("truncation") if _is_of_optimum(row, column) else None
    if status in (SIMULATED, "absorbed"):
        return SIMULATED
    if ESTIMATED in (status, cut):
        return ESTIMATED
    if cut == RESTRICTED:
        return RESTRICTED if column in RELATIVE else CAPPED
    return CERTIFIED if status in GOOD else GIVEN


def _is_of_optimum(row: Row, column: str) -> bool:
    """Whether a number is that of the optimum, or relative to it, and so of its cut of states."""
    return column in (*RELATIVE, OPTIMUM) or row.get("policy") == OPTIMUM
