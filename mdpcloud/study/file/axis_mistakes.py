"""What can be wrong with an axis of a study, apart from the types of its settings."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import is_reference
from mdpcloud.study.file.designs import check_size
from mdpcloud.study.file.grids import by_step
from mdpcloud.study.file.paths import parse_path

if TYPE_CHECKING:
    from mdpcloud.study.file.axes import Axis

__all__ = ["mistakes_in"]

RANGE = ("first", "last", "points", "step", "spacing", "whole")  # instead of values
GRID = ("path", "paths", "values", *RANGE, "label", "labels")  # keys of axes without a design
DESIGN = ("size", "seed", "ranges")  # keys of those with one


def mistakes_in(axis: Axis) -> Iterator[str]:
    """What is wrong with an axis; its values are looked at if nothing else is."""
    given = {one.name for one in fields(axis) if getattr(axis, one.name) != one.default}
    found = [*_in_numbers(axis)]
    if not found:
        found = [*(_in_design(axis, given) if axis.design else _in_grid(axis, given))]
    yield from found
    if not found:
        for path in axis.targets:
            if not is_reference(path):
                yield from _told(parse_path, path)
        if not axis.design:
            yield from _in_values(axis)


def _in_numbers(axis: Axis) -> Iterator[str]:
    """What is wrong with numbers of an axis made in Python, as those of a file are checked."""
    for name in ("first", "last", "step"):
        value = getattr(axis, name)
        if value is not None and not math.isfinite(value):
            yield f"{name} must be a finite number, not {value!r}"
    if axis.seed is not None and axis.seed < 0:
        yield f"seed must be >= 0, not {axis.seed!r}"


def _in_design(axis: Axis, given: set[str]) -> Iterator[str]:
    if extra := [name for name in GRID if name in given]:
        yield f"{', '.join(extra)} cannot be given for a design; its ranges say what changes"
    if missing := [name for name in DESIGN if getattr(axis, name) in (None, {})]:
        yield f"a design needs size, seed and ranges; {', '.join(missing)} is missing"
    else:
        yield from _told(check_size, axis.design, axis.size)


def _in_grid(axis: Axis, given: set[str]) -> Iterator[str]:
    if extra := [name for name in DESIGN if name in given]:
        yield f"{', '.join(extra)} can be given for a design only"
    if (axis.path is None) == (axis.paths is None):
        yield "either path or paths must be given"
    if axis.labels and axis.is_split:
        yield "labels of several paths need a label, the name of their column"
    if axis.values is not None:
        if extra := [name for name in RANGE if name in given]:
            yield f"{', '.join(extra)} cannot be given together with values"
    elif axis.first is None or axis.last is None:
        yield "either values or first and last must be given"
    else:
        yield from _in_range(axis, axis.first, axis.last)


def _in_range(axis: Axis, first: float, last: float) -> Iterator[str]:
    if axis.paths is not None:
        yield "several paths need values, each a list with one for each path"
    if (axis.points is None) == (axis.step is None):
        yield "with first and last, either points or step must be given"
    elif axis.step is not None:
        if axis.spacing == "logarithmic":
            yield "a logarithmic axis needs points, not a step"
        yield from _told(by_step, first, last, axis.step)
    elif first >= last:
        yield f"last must be > first, {first!r}, not {last!r}"
    elif axis.spacing == "logarithmic" and first <= 0:
        yield f"first must be > 0 on a logarithmic axis, not {first!r}"


def _in_values(axis: Axis) -> Iterator[str]:
    """What is wrong with the values of an axis that is no design, and with their labels."""
    if axis.paths is not None:
        yield from _in_zipped(axis.grid, len(axis.paths))
    yield from _twice("values", axis.grid)
    if axis.labels is not None:
        if len(axis.labels) != len(axis.grid):
            counts = f"{len(axis.grid)}, not {len(axis.labels)}"
            yield f"labels must be as many as the values, {counts}"
        yield from _twice("labels", axis.labels)


def _in_zipped(values: Sequence[Any], size: int) -> Iterator[str]:
    for place, value in enumerate(values):
        if not isinstance(value, list) or len(value) != size:
            yield (
                f"values[{place}] must be a list of {size}, one for each of the paths, not "
                f"{value!r}"
            )


def _twice(what: str, values: Sequence[Any]) -> Iterator[str]:
    """The first value that is there twice."""
    seen: set[str] = set()
    for place, value in enumerate(values):
        text = json.dumps(value, sort_keys=True, default=str)
        if text in seen:
            yield f"{what}[{place}]: {value!r} is given twice"
            return
        seen.add(text)


def _told(function: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    """What a function says of arguments that it refuses."""
    try:
        function(*arguments)
    except InputError as error:
        yield str(error)
