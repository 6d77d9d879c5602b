"""Axes of a study: what changes along each, and the values it takes.

A grid axis has values that are listed, or first, last and points or step; a zipped one changes
several things together; a design changes its ranges at seeded random points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Le, MinLen

from mdpcloud.errors import InputError
from mdpcloud.plugins import is_reference
from mdpcloud.study.designs import DesignKind, Range, check_size, design_points
from mdpcloud.study.grids import LARGEST, AsWritten, Spacing, by_points, by_step, rounded
from mdpcloud.study.paths import parse_path, short_name
from mdpcloud.study.study import Label

__all__ = ["TAKEN", "Axis", "Point", "column_of"]

Text: TypeAlias = Annotated[str, MinLen(1)]
Number: TypeAlias = Annotated[float, AsWritten()]

TAKEN = ("instance", "key", "error", "policy", "cost", "lower", "upper", "status", "states")
"""Columns that the results have anyway, and that no axis can have."""

PLAIN = ("path", "paths", "values", "first", "last", "points", "step", "spacing", "whole")
GRID = (*PLAIN, "label", "labels")  # keys of axes without a design
DESIGN = ("size", "seed", "ranges")  # keys of those with one


@dataclass(frozen=True)
class Point:
    """One of the points of an axis.

    Attributes
    ----------
    values : tuple
        One for each of the axis's targets.
    labels : mapping of str to Label
        Name of each of its columns to what stands there.
    """

    values: tuple[Any, ...]
    labels: Mapping[str, Label]


@dataclass(frozen=True)
class Axis:
    """An axis of a study: the table ``[[axes]]`` of its file.

    Parameters
    ----------
    path : str, optional
        What changes: a dotted path into the scenario, such as ``parameters.nodes[0].servers`` or
        ``parameters.nodes[*].servers`` for all nodes; or ``load`` for the system's method
        ``with_load(value)``, which returns a changed system; or ``my_axes.py:at_load``, a function
        of a system and a value that returns a system.
    paths : tuple of str, optional
        Instead, what changes together; each of the values is a list with one for each.
    values : tuple, optional
    first, last : float, optional
        Instead of values, the ends of a range; both are values, with a step the last may not be.
    points : int, optional
        Number of values in the range.
    step : float, optional
        Instead of points, the difference of values.
    spacing : {"equal", "logarithmic"}
        Whether points have equal distances or equal ratios.
    whole : bool
        Whether values are rounded to integers; each of them stays once.
    label : str, optional
        Name of the column. By default the last name of the path, with the list whose item it is in
        (``nodes[0].servers``, ``arrival_rate``); zipped axes have a column for each path, but one
        only where they have a label.
    labels : tuple, optional
        What stands in the column instead of the values, one for each.
    design : {"latin_hypercube", "sobol", "uniform"}, optional
        Instead of all of these, a random design.
    size, seed : int
        Its number of points (a power of two for Sobol points), and what decides them.
    ranges : mapping of str to Range
        What changes to what it may be; a column each.
    """

    path: Text | None = None
    paths: Annotated[tuple[Text, ...], MinLen(1)] | None = None
    values: Annotated[tuple[Any, ...], MinLen(1)] | None = None
    first: Number | None = None
    last: Number | None = None
    points: Annotated[int, Ge(2), Le(LARGEST)] | None = None
    step: Number | None = None
    spacing: Spacing = "equal"
    whole: bool = False
    label: Text | None = None
    labels: Annotated[tuple[str | int | float | bool, ...], MinLen(1)] | None = None
    design: DesignKind | None = None
    size: Annotated[int, Ge(1), Le(LARGEST)] | None = None
    seed: Annotated[int, Ge(0)] | None = None
    ranges: Mapping[str, Range] | None = None

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) != one.default]
        mistakes = list(self._in_design(given) if self.design else self._in_grid(given))
        if not mistakes:
            mistakes = list(self._in_points())
        if mistakes:
            raise InputError("; ".join(mistakes))

    # --- what there is ----------------------------------------------------------------------------

    @property
    def targets(self) -> tuple[str, ...]:
        """What changes along the axis, as the file spells it."""
        return tuple(self.ranges or self.paths or (self.path or "",))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in the results."""
        if self.ranges:
            return tuple(one.label or column_of(path) for path, one in self.ranges.items())
        if self.label is not None:
            return (self.label,)
        return tuple(map(column_of, self.targets))

    @property
    def count(self) -> int:
        """Number of its points."""
        return self.size or 0 if self.design else len(self._grid)

    @cached_property
    def all_points(self) -> tuple[Point, ...]:
        """Every point, in order."""
        if self.design:
            assert self.ranges is not None
            found = design_points(
                self.design, list(self.ranges.values()), self.size or 0, self.seed or 0
            )
            return tuple(self._point(values, values) for values in found)
        shown = self.labels or self._grid
        return tuple(
            self._point(tuple(value) if self.paths else (value,), label)
            for value, label in zip(self._grid, shown, strict=True)
        )

    def _point(self, values: tuple[Any, ...], shown: Any) -> Point:
        columns = self.columns
        parts = shown if len(columns) > 1 or self.design or self._is_split else [shown]
        return Point(values, dict(zip(columns, map(_label, parts), strict=True)))

    @property
    def _is_split(self) -> bool:
        """Whether each part of a zipped value has a column."""
        return self.paths is not None and self.label is None

    @cached_property
    def _grid(self) -> Sequence[Any]:
        if self.values is not None:
            return self.values
        assert self.first is not None
        assert self.last is not None
        if self.step is not None:
            found = by_step(self.first, self.last, self.step)
        else:
            found = by_points(self.first, self.last, self.points or 2, self.spacing)
        return rounded(found) if self.whole else found

    # --- what is wrong ----------------------------------------------------------------------------

    def _in_design(self, given: Sequence[str]) -> Iterator[str]:
        """What is wrong with a design."""
        if extra := [name for name in GRID if name in given]:
            yield f"{', '.join(extra)} cannot be given for a design; its ranges say what changes"
        if missing := [name for name in DESIGN if getattr(self, name) in (None, {})]:
            yield f"a design needs size, seed and ranges; {', '.join(missing)} is missing"
        elif self.design:
            yield from _told(check_size, self.design, self.size)

    def _in_grid(self, given: Sequence[str]) -> Iterator[str]:
        """What is wrong with an axis that is no design."""
        if extra := [name for name in DESIGN if name in given]:
            yield f"{', '.join(extra)} can be given for a design only"
        if (self.path is None) == (self.paths is None):
            yield "either path or paths must be given"
        if self.labels and self._is_split:
            yield "labels of several paths need a label, the name of their column"
        ends = [name for name in ("first", "last", "points", "step", "whole") if name in given]
        if self.values is not None:
            if ends:
                yield f"{', '.join(ends)} cannot be given together with values"
        elif self.first is None or self.last is None:
            yield "either values or first and last must be given"
        else:
            yield from self._in_range(self.first, self.last)

    def _in_range(self, first: float, last: float) -> Iterator[str]:
        if self.paths is not None:
            yield "several paths need values, each a list with one for each path"
        if (self.points is None) == (self.step is None):
            yield "with first and last, either points or step must be given"
        elif self.step is not None:
            if self.spacing == "logarithmic":
                yield "a logarithmic axis needs points, not a step"
            yield from _told(by_step, first, last, self.step)
        elif first >= last:
            yield f"last must be > first, {first!r}, not {last!r}"
        elif self.spacing == "logarithmic" and first <= 0:
            yield f"first must be > 0 on a logarithmic axis, not {first!r}"

    def _in_points(self) -> Iterator[str]:
        """What is wrong with the values and labels."""
        for path in self.targets:
            if not is_reference(path):
                yield from _told(parse_path, path)
        if self.design:
            return
        if self.paths is not None:
            yield from self._in_zipped(len(self.paths))
        yield from _twice("values", self._grid)
        if self.labels is not None:
            if len(self.labels) != len(self._grid):
                yield f"labels must be as many as the values, {len(self._grid)}, not " + str(
                    len(self.labels)
                )
            yield from _twice("labels", self.labels)

    def _in_zipped(self, size: int) -> Iterator[str]:
        for place, value in enumerate(self._grid):
            if not isinstance(value, list) or len(value) != size:
                yield (
                    f"values[{place}] must be a list of {size}, one for each of the paths, not "
                    f"{value!r}"
                )


def column_of(path: str) -> str:
    """Name of the column of what changes, where it has no label.

    Examples
    --------
    >>> [column_of(path) for path in ("parameters.nodes[0].servers", "load", "own.py:at_load")]
    ['nodes[0].servers', 'load', 'at_load']
    """
    return path.rpartition(":")[2] if is_reference(path) else short_name(parse_path(path))


def _label(value: Any) -> Label:
    """What stands for a value in a table: itself, or its JSON where it is a table or a list."""
    if isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def _twice(what: str, values: Sequence[Any]) -> Iterator[str]:
    """The first value that is there twice."""
    seen: set[str] = set()
    for place, value in enumerate(values):
        text = json.dumps(value, sort_keys=True, default=str)
        if text in seen:
            yield f"{what}[{place}]: {value!r} is given twice"
            return
        seen.add(text)


def _told(function: Any, *arguments: Any) -> Iterator[str]:
    """What a function says of arguments that it refuses."""
    try:
        function(*arguments)
    except InputError as error:
        yield str(error)
