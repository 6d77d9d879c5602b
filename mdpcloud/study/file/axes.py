"""Axes of a study: what changes along each, and the values it takes.

A grid axis has values that are listed, or first, last and points or step; a zipped one changes
several things together; a design changes its ranges at seeded random points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Le, MinLen

from mdpcloud.errors import InputError
from mdpcloud.plugins import is_reference
from mdpcloud.study.file.axis_mistakes import mistakes_in
from mdpcloud.study.file.designs import DesignKind, Range, design_points
from mdpcloud.study.file.grids import LARGEST, AsWritten, Spacing, by_points, by_step, rounded
from mdpcloud.study.file.paths import parse_path, short_name
from mdpcloud.study.study import Label

__all__ = ["TAKEN", "Axis", "Point", "column_of"]

Text: TypeAlias = Annotated[str, MinLen(1)]
Number: TypeAlias = Annotated[float, AsWritten()]

TAKEN = ("instance", "key", "error", "policy", "cost", "lower", "upper", "status", "states")
"""Columns that the results have anyway, and that no axis can have."""


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
        if mistakes := [*mistakes_in(self)]:
            raise InputError("; ".join(mistakes))

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
        return self.size or 0 if self.design else len(self.grid)

    @cached_property
    def all_points(self) -> tuple[Point, ...]:
        """Every point, in order."""
        if self.design:
            assert self.ranges is not None
            found = design_points(
                self.design, list(self.ranges.values()), self.size or 0, self.seed or 0
            )
            return tuple(self._point(values, values) for values in found)
        shown = self.labels or self.grid
        return tuple(
            self._point(tuple(value) if self.paths else (value,), label)
            for value, label in zip(self.grid, shown, strict=True)
        )

    def _point(self, values: tuple[Any, ...], shown: Any) -> Point:
        parts = shown if self.design or self.is_split else [shown]
        return Point(values, dict(zip(self.columns, map(_label, parts), strict=True)))

    @property
    def is_split(self) -> bool:
        """Whether each part of a zipped value has a column."""
        return self.paths is not None and self.label is None

    @cached_property
    def grid(self) -> Sequence[Any]:
        """Values of an axis that is no design."""
        if self.values is not None:
            return self.values
        assert self.first is not None
        assert self.last is not None
        if self.step is not None:
            found = by_step(self.first, self.last, self.step)
        else:
            found = by_points(self.first, self.last, self.points or 2, self.spacing)
        return rounded(found) if self.whole else found


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
