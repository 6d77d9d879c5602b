"""Lattice form: a box of cells with a halo, swept slab by slab, without a single stored target.

A slab is a run of trailing axes, some thousand cells that stay in the first-level cache. Each axis has a
halo as wide as the longest step, so a move is a constant offset in the flat array. Long slabs are cut into
pieces. Cells outside the box or the region hold FAR and are in no run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import Grid, Transition
from mdpcloud.errors import InputError
from mdpcloud.model.space import Lattice

__all__ = ["FAR", "LatticeLayout", "lattice_grid"]

FAR = 1e300
SHORTEST_SLAB = 1024  # cells; shorter slabs pay more for slicing than for arithmetic
LONGEST_BLOCK = 4096  # cells; four working arrays of this size fit the second-level cache

Array = NDArray[Any]


def lattice_grid(space: Lattice) -> Grid:
    """The open mesh of a lattice, with its region."""
    columns = tuple(np.ogrid[tuple(slice(0, n) for n in space.shape)])
    if space.where is None:
        return Grid(space.axes, columns, space.shape)
    inside = np.asarray(space.where(space.mesh()), dtype=bool)
    if not inside.any():
        raise InputError("the space is empty: no point of the lattice meets its condition")
    return Grid(space.axes, columns, space.shape, np.array(np.broadcast_to(inside, space.shape)))


class LatticeLayout:
    """Cells, blocks and runs of a box with halo.

    Parameters
    ----------
    grid : Grid
    shifts : sequence of sequences of int
        The displacements of all moves; they set the halo.
    """

    targets = None

    def __init__(self, grid: Grid, shifts: Sequence[Sequence[int]]) -> None:
        self.grid = grid
        self.shape = grid.shape
        steps = np.array(list(shifts), dtype=np.int64).reshape(-1, len(grid.shape))
        self.below = np.maximum(0, -steps.min(axis=0, initial=0)).astype(int)
        self.above = np.maximum(0, steps.max(axis=0, initial=0)).astype(int)
        self.padded = tuple(
            int(n + a + b) for n, a, b in zip(self.shape, self.below, self.above, strict=True)
        )
        self.strides = np.array([math.prod(self.padded[i + 1 :]) for i in range(len(self.padded))])
        self.cells = math.prod(self.padded)
        self.n = int(grid.inside.sum()) if grid.inside is not None else math.prod(self.shape)
        self._cut_blocks()
        self._find_runs()

    def _span(self, axis: int) -> tuple[int, int]:
        """First inside cell of a slab of the axes from ``axis`` on, and cells to its last one."""
        inner = self.strides[axis:]
        first = int((self.below[axis:] * inner).sum())
        extent = np.array(self.shape[axis:]) - 1
        return first, int((extent * inner).sum()) + 1

    def _cut_blocks(self) -> None:
        axis = len(self.shape) - 1
        while axis > 0 and self._span(axis)[1] < SHORTEST_SLAB:
            axis -= 1
        self.axis = axis
        self.first, self.span = self._span(axis)
        outer = np.ogrid[tuple(slice(0, n) for n in self.shape[:axis])] if axis else []
        origin: Array = np.zeros(self.shape[:axis], dtype=np.int64)
        for place, below, stride in zip(outer, self.below, self.strides, strict=False):
            origin = origin + (place + below) * stride
        pieces = -(-self.span // LONGEST_BLOCK)
        length = -(-self.span // pieces)
        self.pieces = np.arange(pieces, dtype=np.int64) * length
        self.base = (origin.reshape(-1, 1) + self.first + self.pieces).ravel()
        self.size = np.tile(np.minimum(length, self.span - self.pieces), origin.size)

    def _find_runs(self) -> None:
        inside = np.zeros(self.cells + 1, dtype=np.int8)
        self.box(inside[:-1])[...] = 1 if self.grid.inside is None else self.grid.inside
        edges = np.diff(inside, prepend=0)
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        run = np.searchsorted(starts, self.base, side="right") - 1
        split = self.base[(run >= 0) & (self.base > starts[run]) & (self.base < ends[run])]
        starts, ends = np.sort(np.append(starts, split)), np.sort(np.append(ends, split))
        block = np.searchsorted(self.base, starts, side="right") - 1
        self.run = np.searchsorted(block, np.arange(self.base.size + 1)).astype(np.int64)
        self.run_first = (starts - self.base[block]).astype(np.int64)
        self.run_last = (ends - self.base[block]).astype(np.int64)

    def box(self, cells: Array) -> Array:
        """The box inside a flat array of cells, as a view of the lattice's shape."""
        inner = tuple(slice(b, b + n) for b, n in zip(self.below, self.shape, strict=True))
        return cells.reshape(self.padded)[inner]

    def cut(self, array: Array) -> tuple[Array, Array, bool]:
        """An array over the states as stored numbers, their start per block, and whether per cell."""
        compact = array.reshape((1,) * len(self.shape)) if array.ndim == 0 else array
        outer = compact.shape[: self.axis]
        place = np.broadcast_to(np.arange(math.prod(outer)).reshape(outer), self.shape[: self.axis])
        place = np.repeat(place.ravel(), self.pieces.size)
        if all(n == 1 for n in compact.shape[self.axis :]):
            return np.array(compact, dtype=np.float64).ravel(), place, False
        inner = self.padded[self.axis :]
        expanded = np.zeros((math.prod(outer), *inner))
        window = tuple(
            slice(b, b + n)
            for b, n in zip(self.below[self.axis :], self.shape[self.axis :], strict=True)
        )
        expanded[(slice(None), *window)] = compact.reshape(-1, *compact.shape[self.axis :])
        rows = expanded.reshape(math.prod(outer), -1)[:, self.first : self.first + self.span]
        start = place * self.span + np.tile(self.pieces, place.size // self.pieces.size)
        return np.ascontiguousarray(rows).ravel(), start, True

    def offset(self, move: Transition) -> int:
        """Cells between a state and the target of a move."""
        return int(sum(int(a) * int(s) for a, s in zip(move.shift, self.strides, strict=True)))

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
        return np.array(box.ravel() if self.grid.inside is None else box[self.grid.inside])

    def spread(self, array: Array) -> Array:
        """An array that broadcasts over the lattice, as one number per state."""
        full = np.broadcast_to(array, self.shape)
        return np.array(full.ravel() if self.grid.inside is None else full[self.grid.inside])

    def over_box(self, values: Array) -> Array:
        """States' values in the lattice's shape, 0 outside the region."""
        if self.grid.inside is None:
            return values.reshape(self.shape)
        full = np.zeros(self.shape)
        full[self.grid.inside] = values
        return full

    def rank_of_cell(self) -> Array:
        """State number of each cell, -1 outside."""
        return self.pack(np.arange(self.n, dtype=np.int32), -1, np.int32)
