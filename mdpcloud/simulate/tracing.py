"""Which coordinates a user's function reads: found by hiding all of them.

A hidden coordinate raises `Touched` whatever is done with it, and remembers that it was touched, in
case the function catches the exception. A function that returns without that does not depend on the
coordinates that were hidden, so its values can be kept in a table of the others; one that touches a
coordinate is called again with that one in sight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from mdpcloud.engine.terms import Grid
from mdpcloud.model.space import Axes

__all__ = ["PartialGrid", "Touched", "axes_read", "grid_over", "watched"]

MANY = 24  # coordinates; a function that reads more is taken to read all of them


class Touched(Exception):
    """A hidden coordinate was used."""

    def __init__(self, axis: int) -> None:
        super().__init__(f"coordinate {axis} is hidden")
        self.axis = axis


class _Touches(threading.local):
    """Coordinates touched in the present call, in this thread."""

    def __init__(self) -> None:
        self.axes: list[int] = []


_touched = _Touches()


class Hidden(NDArrayOperatorsMixin):
    """Stands for a coordinate; any use raises `Touched`."""

    def __init__(self, axis: int) -> None:
        object.__setattr__(self, "_axis", axis)

    def _touch(self, *_: Any, **__: Any) -> NoReturn:
        _touched.axes.append(self._axis)
        raise Touched(self._axis)

    __class__ = property(_touch)  # isinstance asks for it
    __array__ = __array_ufunc__ = __array_function__ = _touch
    __bool__ = __int__ = __float__ = __index__ = __complex__ = _touch
    __len__ = __iter__ = __getitem__ = __contains__ = __setattr__ = _touch
    __setitem__ = __delitem__ = _touch
    __round__ = __trunc__ = __floor__ = __ceil__ = _touch
    __str__ = __repr__ = __format__ = __hash__ = _touch

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._touch()


@dataclass(frozen=True, eq=False)
class PartialGrid(Grid):
    """Some states of which only the coordinates ``seen`` are known; the others are hidden.

    ``columns`` holds 0 for the hidden ones, which messages show.
    """

    seen: frozenset[int] = frozenset()

    @property
    def x(self) -> Any:
        """The named tuple that functions take."""
        shown = _all_hidden(len(self.axes)).copy()
        for k in self.seen:
            shown[k] = np.array(self.columns[k])
        return self.axes.state(shown)

    def column(self, axis: int) -> NDArray[np.int64]:
        """One coordinate of the states, which counts as read."""
        if axis not in self.seen:
            _touched.axes.append(axis)
            raise Touched(axis)
        found: NDArray[np.int64] = self.columns[axis]
        return found


@cache
def _all_hidden(axes: int) -> list[Any]:
    return [Hidden(k) for k in range(axes)]


def grid_over(axes: Axes, seen: Sequence[int], states: NDArray[np.int64]) -> PartialGrid:
    """A grid of n states, given by their seen coordinates.

    Parameters
    ----------
    axes : Axes
    seen : sequence of int
        Numbers of the coordinates that are known.
    states : (n, len(seen)) int array
    """
    n = len(states)
    columns = [np.zeros(n, np.int64)] * len(axes)
    for j, k in enumerate(seen):
        columns[k] = np.ascontiguousarray(states[:, j])
    return PartialGrid(axes, tuple(columns), (n,), None, frozenset(seen))


def watched(function: Callable[[PartialGrid], Any], grid: PartialGrid) -> NDArray[Any]:
    """What a function of a grid returns, as an array.

    Raises
    ------
    Touched
        When it used a hidden coordinate, even if it went on.
    """
    _touched.axes.clear()
    try:
        found = np.asarray(function(grid))
    except Exception:
        if not _touched.axes:
            raise
    if _touched.axes:
        raise Touched(_touched.axes[0])
    return found


def axes_read(
    function: Callable[[PartialGrid], Any], axes: Axes, probe: Sequence[int]
) -> tuple[int, ...]:
    """Numbers of the coordinates that a function of a grid reads, in order.

    Parameters
    ----------
    function : function of a PartialGrid
    axes : Axes
    probe : sequence of int
        A state in which it is called. Branches taken in other states may read more; then it raises
        `Touched` again when it is tabulated, and has to be asked again with these.
    """
    seen: set[int] = set()
    while True:
        known = sorted(seen)
        state = np.array([[probe[k] for k in known]], dtype=np.int64)
        try:
            watched(function, grid_over(axes, known, np.repeat(state, 2, axis=0)))
        except Touched as touched:
            seen.add(touched.axis)
            if len(seen) > MANY:
                return tuple(range(len(axes)))
        else:
            return tuple(known)
