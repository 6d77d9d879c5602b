"""Lattice form: a box of cells with a halo, swept slab by slab, without a single stored target.

A slab is a run of trailing axes, some thousand cells. Each axis has a halo as wide as the longest
step, so a move is a constant offset in the flat array. Long slabs are cut into pieces. Cells
outside the box or the region hold FAR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import Grid, Transition
from mdpcloud.engine.vector_kernels import FAR
from mdpcloud.model.space import Lattice

__all__ = ["LatticeLayout", "lattice_grid"]

SHORTEST_SLAB = 128  # cells; shorter slabs pay too much for their beginning
LONGEST_BLOCK = 8192  # cells; a bound, so that threads find enough blocks

Array = NDArray[Any]


def lattice_grid(space: Lattice) -> Grid:
    """The open mesh of a lattice, with its region."""
    columns = tuple(np.ogrid[tuple(slice(0, n) for n in space.shape)])
    return Grid(space.axes, columns, space.shape, space.inside())


class LatticeLayout:
    """Cells and blocks of a box with halo.

    The halo behind a row of cells is also the halo before the next row.

    Parameters
    ----------
    grid : Grid
    shifts : sequence of sequences of int
        The displacements of all moves; they set the halo.
    """

    targets = np.zeros((0, 0), dtype=np.int32)

    def __init__(self, grid: Grid, shifts: Sequence[Sequence[int]]) -> None:
        self.grid = grid
        self.shape = grid.shape
        steps = np.array(list(shifts), dtype=np.int64).reshape(-1, len(grid.shape))
        halo = np.abs(steps).max(axis=0, initial=0)
        self.padded = tuple(int(n + k) for n, k in zip(self.shape, halo, strict=True))
        self.strides = np.array([math.prod(self.padded[i + 1 :]) for i in range(len(self.padded))])
        self.front = int(-(steps @ self.strides).min(initial=0))
        self.cells = self.front + math.prod(self.padded)
        self.n = int(grid.inside.sum()) if grid.inside is not None else math.prod(self.shape)
        self._cut_blocks()

    def _span(self, axis: int) -> int:
        """Cells from the first to the last inside cell of a slab of the axes from ``axis`` on."""
        extent = np.array(self.shape[axis:]) - 1
        return int((extent * self.strides[axis:]).sum()) + 1

    def _cut_blocks(self) -> None:
        axis = len(self.shape) - 1
        while axis > 0 and self._span(axis) < SHORTEST_SLAB:
            axis -= 1
        self.axis, self.span = axis, self._span(axis)
        outer = np.ogrid[tuple(slice(0, n) for n in self.shape[:axis])] if axis else []
        origin: Array = np.zeros(self.shape[:axis], dtype=np.int64)
        for place, stride in zip(outer, self.strides, strict=False):
            origin = origin + place * stride
        self._slabs = origin.size
        count = -(-self.span // LONGEST_BLOCK)
        length = -(-self.span // count)
        pieces = np.arange(count, dtype=np.int64) * length
        self._slab = np.repeat(np.arange(self._slabs), count)
        self._piece = np.tile(pieces, self._slabs)
        self.base = np.repeat(self.front + origin.ravel(), count) + self._piece
        self.size = np.minimum(length, self.span - self._piece)
        self._trim()
        inside = self.grid.inside
        if inside is None:
            inside = np.ones((1,) * axis + self.shape[axis:], dtype=bool)
        numbers, self.mask, _ = self.cut(inside)
        self.inside = numbers.astype(np.int8)

    def _trim(self) -> None:
        """Let blocks begin and end with cells of the space, and drop those without any."""
        cells = np.zeros(self.cells, dtype=bool)
        self.box(cells)[...] = True if self.grid.inside is None else self.grid.inside
        places = np.flatnonzero(cells)
        first = np.searchsorted(places, self.base)
        last = np.searchsorted(places, self.base + self.size)
        used = last > first
        base = places[first[used]]
        self._slab = self._slab[used]
        self._piece = self._piece[used] + base - self.base[used]
        self.base, self.size = base, places[last[used] - 1] + 1 - base

    def box(self, cells: Array) -> Array:
        """The box inside a flat array of cells, as a view of the lattice's shape."""
        return cells[self.front :].reshape(self.padded)[tuple(slice(0, n) for n in self.shape)]

    def cut(self, array: Array) -> tuple[Array, Array, bool]:
        """An array over the states as numbers, their start per block, and whether per cell."""
        compact = array.reshape((1,) * len(self.shape)) if array.ndim == 0 else array
        outer = compact.shape[: self.axis]
        place = np.broadcast_to(np.arange(math.prod(outer)).reshape(outer), self.shape[: self.axis])
        place = place.ravel()[self._slab]
        if all(n == 1 for n in compact.shape[self.axis :]):
            return np.array(compact, dtype=np.float64).ravel(), place, False
        expanded = np.zeros((math.prod(outer), *self.padded[self.axis :]))
        window = tuple(slice(0, n) for n in self.shape[self.axis :])
        expanded[(slice(None), *window)] = compact.reshape(-1, *compact.shape[self.axis :])
        rows = expanded.reshape(math.prod(outer), -1)[:, : self.span]
        return np.ascontiguousarray(rows).ravel(), place * self.span + self._piece, True

    def merge(self, arrays: Sequence[Array]) -> list[Array]:
        """Sum arrays that one table can hold: those of inner axes, and those of the same shape."""
        merged: dict[tuple[int, ...], Array] = {}
        for array in arrays:
            outer = array.shape[: self.axis]
            shape = array.shape if math.prod(outer) > 1 or array.size == 1 else outer
            merged[shape] = merged[shape] + array if shape in merged else array
        return list(merged.values())

    def offset(self, move: Transition) -> int:
        """Cells between a state and the target of a move."""
        return int(sum(int(a) * int(s) for a, s in zip(move.shift, self.strides, strict=True)))

    def cell(self, state: int) -> int:
        """Cell of a state."""
        place = state
        if self.grid.inside is not None:
            place = np.flatnonzero(self.grid.inside)[state]
        return self.front + int(np.dot(np.unravel_index(place, self.shape), self.strides))

    def states(self, cells: Array) -> Array:
        """Numbers of the states in some cells inside the space."""
        places = np.unravel_index(cells - self.front, self.padded)
        numbers = np.ravel_multi_index(places, self.shape)
        if self.grid.inside is None:
            return numbers
        return np.asarray(np.cumsum(self.grid.inside, dtype=np.int32)[numbers] - 1)

    def leaves(self, move: Transition) -> Array:
        """Where a move leaves the space; broadcasts over the lattice."""
        outside: Array = np.array(False)
        for column, amount, n in zip(self.grid.columns, move.shift, self.shape, strict=True):
            if amount:
                outside = outside | (column + amount < 0) | (column + amount >= n)
        if self.grid.inside is None or not any(move.shift):
            return outside
        target = np.zeros(self.shape, dtype=bool)
        here, there = [], []
        for amount, n in zip(move.shift, self.shape, strict=True):
            here.append(slice(max(0, -amount), max(0, n - max(0, amount))))
            there.append(slice(max(0, amount), max(0, n + min(0, amount))))
        target[tuple(here)] = self.grid.inside[tuple(there)]
        return ~target

    def pack(self, values: Array, fill: float = FAR, dtype: Any = np.float64) -> Array:
        """States' values as an array of cells; the others hold fill."""
        cells = np.full(self.cells, fill, dtype=dtype)
        box = self.box(cells)
        if self.grid.inside is None:
            box[...] = values.reshape(self.shape)
        else:
            box[self.grid.inside] = values
        return cells

    def unpack(self, cells: Array) -> Array:
        """Values of the states, in rank order."""
        box = self.box(cells)
        return _flat(box) if self.grid.inside is None else box[self.grid.inside]

    def spread(self, array: Array) -> Array:
        """An array that broadcasts over the lattice, as one number per state."""
        full = np.broadcast_to(array, self.shape)
        return _flat(full) if self.grid.inside is None else full[self.grid.inside]

    def over_box(self, values: Array) -> Array:
        """States' values in the lattice's shape, 0 outside the region."""
        if self.grid.inside is None:
            return values.reshape(self.shape)
        full = np.zeros(self.shape)
        full[self.grid.inside] = values
        return full

    @cached_property
    def rank_of_cell(self) -> Array:
        """State number of each cell, -1 outside."""
        return self.pack(np.arange(self.n, dtype=np.int32), -1, np.int32)

    @cached_property
    def cell_of_state(self) -> Array:
        """Cell of each state."""
        return np.flatnonzero(self.rank_of_cell >= 0)


def _flat(box: Array) -> Array:
    """A box as a new array of one axis, copied once."""
    return np.array(box, order="C").reshape(-1)
