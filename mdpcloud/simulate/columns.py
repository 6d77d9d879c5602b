"""The functions of a model as columns of tables, one group of columns per set of coordinates.

Constants form group 0. A function belongs to the group of the coordinates that it reads. A group
with few combinations of coordinates is tabulated; the rows of a larger one are computed for the
states that a path meets (`Columns.rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.model.space import Axes
from mdpcloud.simulate.tracing import PartialGrid, Touched, axes_read, grid_over, watched

__all__ = ["Column", "ColumnError", "Columns", "Group", "Reader"]

Reader: TypeAlias = Callable[[PartialGrid], Any]
"""From a grid of n states to numbers that broadcast to (n,); nan where there is none."""

MOST_CELLS = 1 << 20  # combinations of the coordinates of a group that is tabulated
MOST_NUMBERS = 1 << 22  # numbers of such a table
MOST_ASKED = 1 << 14  # the same, where a reader is asked state by state


@dataclass(eq=False)
class Column:
    """A function of some coordinates; ``group`` and ``place`` are known after `Columns.arrange`.

    Attributes
    ----------
    read : function
        See `Reader`.
    axes : tuple of int
    owner : str
        What it is, for messages.
    summed : bool
        Whether its time integral is wanted.
    costly : bool
        Whether it is asked state by state.
    group, place : int
        The group, and the place in its rows.
    """

    read: Reader
    axes: tuple[int, ...]
    owner: str = ""
    summed: bool = False
    costly: bool = False
    group: int = -1
    place: int = -1

    @property
    def where(self) -> tuple[int, int]:
        """Group and place."""
        return self.group, self.place


class ColumnError(Exception):
    """A function failed in some of the states for which it was asked."""

    def __init__(self, column: Column, error: Exception) -> None:
        super().__init__(f"{column.owner}: {error}")
        self.column, self.error = column, error


@dataclass(eq=False)
class Group:
    """Columns that read the same coordinates; those to be integrated come first.

    ``partial`` tells that some function fails in states that may never be met.
    """

    axes: tuple[int, ...]
    columns: list[Column] = field(default_factory=list)
    partial: bool = False

    @property
    def summed(self) -> int:
        """Number of columns to be integrated."""
        return sum(column.summed for column in self.columns)

    def is_tabulated(self, sizes: Sequence[int]) -> bool:
        """Whether the group has a table, where coordinates are below ``sizes``."""
        if self.partial:
            return False
        cells = math.prod(sizes[k] for k in self.axes)
        most = MOST_ASKED if any(column.costly for column in self.columns) else MOST_CELLS
        return cells <= most and cells * len(self.columns) <= MOST_NUMBERS


class Columns:
    """Collects columns.

    Parameters
    ----------
    axes : Axes
    start : sequence of int
        A state of the space, in which functions are tried.
    """

    def __init__(self, axes: Axes, start: Sequence[int]) -> None:
        self.axes = axes
        self.start = tuple(start)
        self.groups: list[Group] = []
        self._columns: list[Column] = []
        self._known: dict[Any, Column] = {}

    def add(
        self,
        read: Reader,
        owner: str,
        key: Any = None,
        *,
        summed: bool = False,
        costly: bool = False,
    ) -> Column:
        """A column for a function; the same one for the same key, where one is given."""
        known = (key, summed)
        if key is not None and known in self._known:
            return self._known[known]
        axes = tuple(range(len(self.axes))) if costly else axes_read(read, self.axes, self.start)
        column = Column(read, axes, owner, summed, costly)
        self._columns.append(column)
        if key is not None:
            self._known[known] = column
        return column

    def arrange(self) -> None:
        """Put the columns into groups."""
        groups: dict[tuple[int, ...], Group] = {(): Group(())}
        for column in sorted(self._columns, key=lambda column: not column.summed):
            groups.setdefault(column.axes, Group(column.axes)).columns.append(column)
        self.groups = list(groups.values())
        for g, group in enumerate(self.groups):
            for place, column in enumerate(group.columns):
                column.group, column.place = g, place

    def rows(self, group: Group, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows (n, columns) of a group in states (n, axes of the group).

        Raises
        ------
        Touched
            When a function reads a coordinate that it did not read before; its column has been
            given all of them, and the columns have to be arranged again.
        ColumnError
            When a function fails.
        """
        grid = grid_over(self.axes, group.axes, states)
        found = np.empty((len(states), len(group.columns)))
        for c, column in enumerate(group.columns):
            try:
                found[:, c] = watched(column.read, grid)
            except Touched:
                column.axes = tuple(range(len(self.axes)))
                raise
            except Exception as error:
                raise ColumnError(column, error) from error
        return found

    def table(self, group: Group, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Rows of every combination of a group's coordinates below ``sizes``, last axis fastest."""
        shape = [sizes[k] for k in group.axes]
        states = np.indices(shape, dtype=np.int64).reshape(len(shape), math.prod(shape)).T
        try:
            return self.rows(group, states)
        except ColumnError:
            group.partial = True
            raise
