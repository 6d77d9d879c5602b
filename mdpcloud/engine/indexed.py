"""Indexed form: enumerated states, one column of target states per move.

It takes state-dependent steps, regions that fill little of their box, and spaces found by
reachability. One extra cell holds FAR; moves that leave the space point to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.lattice import lattice_grid
from mdpcloud.engine.terms import Grid, Term, Transition, evaluate_terms
from mdpcloud.engine.vector_kernels import FAR
from mdpcloud.errors import InputError
from mdpcloud.model.model import Model
from mdpcloud.model.space import Axes, Reachable

__all__ = ["IndexedLayout", "enumerate_states", "grid_of_states", "inside_states"]

BLOCK = 2048
DENSE = 16  # times as many keys as states, up to which a table of their numbers pays
FARTHEST = 20_000  # events from the start, beyond which a space counts as unbounded
Array = NDArray[Any]


class Codec:
    """Coordinates as one sorted integer key: mixed radix, first axis most significant."""

    def __init__(self, largest: Sequence[int]) -> None:
        self.largest = [int(v) for v in largest]
        radix = [v + 1 for v in self.largest]
        self.weights = [1] * len(radix)
        for i in range(len(radix) - 2, -1, -1):
            self.weights[i] = self.weights[i + 1] * radix[i + 1]
        if self.weights[0] * radix[0] >= 2**63:
            raise InputError(
                f"coordinates up to {tuple(self.largest)} span too large a space to number"
            )

    def encode(self, columns: Sequence[Array]) -> Array:
        """Keys of states given by one column per axis."""
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, weight in zip(columns, self.weights, strict=True):
            key += column.astype(np.int64) * weight
        return key

    def decode(self, keys: Array) -> list[Array]:
        """Columns of the states with the given keys."""
        return [
            keys // weight % (top + 1)
            for weight, top in zip(self.weights, self.largest, strict=True)
        ]


def grid_of_states(axes: Axes, columns: Sequence[Array]) -> Grid:
    """A grid whose points are enumerated states, one column per axis."""
    return Grid(axes, tuple(columns), (len(columns[0]),))


def enumerate_states(model: Model) -> Grid:
    """All states of a model's space as columns, sorted by coordinates."""
    if isinstance(model.space, Reachable):
        return _reach(model, model.space)
    return inside_states(lattice_grid(model.space))


def inside_states(grid: Grid) -> Grid:
    """The points of a lattice that belong to its region, as columns."""
    inside = np.ones(grid.shape, dtype=bool) if grid.inside is None else grid.inside
    return grid_of_states(grid.axes, [c.astype(np.int64, copy=False) for c in np.nonzero(inside)])


def _reach(model: Model, space: Reachable) -> Grid:
    """Breadth first through the model's own events, a frontier at a time."""
    frontier = [np.array([value], dtype=np.int64) for value in space.axes.sizes]
    codec = Codec([2 * max(1, int(c[0])) for c in frontier])
    known = codec.encode(frontier)
    for _ in range(FARTHEST):
        grid = grid_of_states(space.axes, frontier)
        found = _targets_of(evaluate_terms(model.events, grid), grid)
        codec, known = _widen(codec, known, found)
        known, keys = _merge(known, np.unique(codec.encode(found)))
        if known.size > space.max_states:
            raise InputError(
                f"more than {space.max_states} states can be reached{_example(space, frontier)}; "
                "bound the coordinates by conditions, or raise max_states"
            )
        if not keys.size:
            return grid_of_states(space.axes, codec.decode(known))
        frontier = codec.decode(keys)
    raise InputError(
        f"states more than {FARTHEST} events from the start can be reached"
        f"{_example(space, frontier)}; bound the coordinates by conditions, or give a Lattice"
    )


def _example(space: Reachable, columns: Sequence[Array]) -> str:
    return f", such as {space.axes.describe([int(c[-1]) for c in columns])}"


def _merge(known: Array, found: Array) -> tuple[Array, Array]:
    """Sorted keys with those of ``found`` that are new, and these alone."""
    place = np.searchsorted(known, found)
    new = known[np.minimum(place, known.size - 1)] != found
    return np.insert(known, place[new], found[new]), found[new]


def _widen(codec: Codec, known: Array, found: list[Array]) -> tuple[Codec, Array]:
    largest = [int(c.max(initial=0)) for c in found]
    if all(new <= old for new, old in zip(largest, codec.largest, strict=True)):
        return codec, known
    grown = [max(old, 2 * new) for new, old in zip(largest, codec.largest, strict=True)]
    wider = Codec(grown)
    return wider, wider.encode(codec.decode(known))


def _targets_of(terms: list[Term], grid: Grid) -> list[Array]:
    """States that allowed actions with positive rate reach, but for coordinates below 0."""
    parts: list[list[Array]] = [[column[:0]] for column in grid.columns]
    for term in terms:
        for choice in term.choices:
            open_ = np.broadcast_to(term.rate > 0, grid.shape)
            if choice.allowed is not None:
                open_ = open_ & choice.allowed
            for move in choice.moves:
                open_ = open_ & ~((move.weight > 0) & _below_zero(grid, move))
            for move in choice.moves:
                taken = open_ & (move.weight > 0)
                for part, column, amount in zip(parts, grid.columns, move.shift, strict=True):
                    part.append(np.broadcast_to(column + amount, grid.shape)[taken])
    return [np.concatenate(part).astype(np.int64) for part in parts]


def _below_zero(grid: Grid, move: Transition) -> Array:
    below: Array = np.zeros(grid.shape, dtype=bool)
    for column, amount in zip(grid.columns, move.shift, strict=True):
        below = below | (column + amount < 0)
    return below


class IndexedLayout:
    """Blocks of enumerated states; a target column per move, filled by `offset`."""

    def __init__(self, grid: Grid, moves: int) -> None:
        self.grid = grid
        self.n = grid.shape[0]
        self.cells = self.n + 1
        self.base = np.arange(0, self.n, BLOCK, dtype=np.int64)
        self.size = np.minimum(BLOCK, self.n - self.base)
        self.inside = np.ones(BLOCK, dtype=np.int8)
        self.mask = np.zeros_like(self.base)
        self.targets = np.empty((moves, self.n), dtype=np.int32)
        self._codec = Codec([int(c.max()) for c in grid.columns])
        self._keys = self._codec.encode(grid.columns)
        self._numbers = self._number_keys()
        self._filled = 0

    def cut(self, array: Array) -> tuple[Array, Array, bool]:
        """An array over the states as numbers, their start per block, and whether per state."""
        if array.ndim == 0:
            return array.reshape(1), np.zeros(self.base.size, dtype=np.int64), False
        return np.ascontiguousarray(array, dtype=np.float64), self.base, True

    def merge(self, arrays: Sequence[Array]) -> list[Array]:
        """The sum of some arrays, in a list."""
        return [np.asarray(sum(arrays, np.zeros(())))]

    def target(self, move: Transition) -> Array:
        """State number of the target of a move, ``n`` where it leaves the space."""
        outside = np.zeros(self.n, dtype=bool)
        for column, amount, top in zip(
            self.grid.columns, move.shift, self._codec.largest, strict=True
        ):
            if np.ndim(amount) or amount:
                outside |= (amount < -column) | (amount > top - column)
        keys = self._keys.copy()
        for amount, weight in zip(move.shift, self._codec.weights, strict=True):
            if np.ndim(amount) or amount:
                keys += np.where(outside, 0, amount) * weight
        if self._numbers is not None:
            return np.where(outside, self.n, self._numbers[keys])
        place = np.minimum(np.searchsorted(self._keys, keys), self.n - 1)
        return np.where(outside | (self._keys[place] != keys), self.n, place)

    def _number_keys(self) -> Array | None:
        """State number of every key, ``n`` where there is none; None where there are too many."""
        codec = self._codec
        keys = codec.weights[0] * (codec.largest[0] + 1)
        if keys > DENSE * self.n:
            return None
        numbers = np.full(keys, self.n, dtype=np.int32)
        numbers[self._keys] = np.arange(self.n, dtype=np.int32)
        return numbers

    def offset(self, move: Transition) -> int:
        """Store the target column of the next move."""
        self.targets[self._filled] = self.target(move)
        self._filled += 1
        if self._filled == len(self.targets):
            self._numbers = None  # no more targets to find
        return 0

    def cell(self, state: int) -> int:
        """Cell of a state."""
        return state

    def states(self, cells: Array) -> Array:
        """Numbers of the states in some cells: the same."""
        return cells

    def leaves(self, move: Transition) -> Array:
        """Where a move leaves the space."""
        return np.asarray(self.target(move) == self.n)

    def pack(self, values: Array, fill: float = FAR, dtype: Any = np.float64) -> Array:
        """States' values with the extra cell, which holds fill."""
        return np.append(values.astype(dtype, copy=False), np.array(fill, dtype=dtype))

    def unpack(self, cells: Array) -> Array:
        """Values of the states."""
        return np.array(cells[: self.n])

    def spread(self, array: Array) -> Array:
        """An array that broadcasts over the states, as one number per state."""
        return np.array(np.broadcast_to(array, (self.n,)))

    def over_box(self, values: Array) -> Array:
        """The values themselves: the states are the grid."""
        return values

    @cached_property
    def rank_of_cell(self) -> Array:
        """State number of each cell, -1 for the extra one."""
        return self.pack(np.arange(self.n, dtype=np.int32), -1, np.int32)
