"""Rows of the groups that have no table: computed for the states that a path meets, and kept.

A row is found by the hash of its group's coordinates, sum_k m_k x_k modulo 2^64 with odd numbers
m_k, which the kernel updates as the coordinates change; the coordinates themselves are compared, so
that equal hashes do no harm. When the rows take too much memory all are forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.simulate.columns import ColumnError
from mdpcloud.simulate.events_kernels import free_slot
from mdpcloud.simulate.events_program import NONE
from mdpcloud.simulate.faults import failed
from mdpcloud.simulate.protocol import Floats

if TYPE_CHECKING:
    from mdpcloud.simulate.events_path import EventPath

__all__ = ["FIRST_SLOTS", "Remembered"]

FIRST_SLOTS = 1 << 12
PREFETCHED = 256  # states near the present one whose rows are computed with it
MOST_NUMBERS = 1 << 22  # numbers and coordinates that are kept by a path, 8 bytes each
TRIALS = 64  # rows computed for a group, after which it is seen whether its states come back
WORTH = 4  # events per row from which states near by are worth computing

Integers = NDArray[np.int64]


class Remembered:
    """What a path remembers of its groups without a table.

    Parameters
    ----------
    path : EventPath
    began : int
        Events of the path so far.
    """

    def __init__(self, path: EventPath, began: int) -> None:
        self.path = path
        self.filled = path.program.data.size
        self.entries = self.keys = 0
        self._met = np.zeros(len(path.tables.groups), dtype=np.int64)
        self._began = began

    def meet(self, g: int) -> None:
        """Keep the row of a group in the present state, and in states near it.

        Raises
        ------
        InputError
            When a function fails in the present state.
        """
        path = self.path
        group = path.tables.groups[g]
        here = path.state.x[list(group.axes)]
        states = here[None]
        if self._come_back(g):
            states = np.vstack([states, self._near(here, group.axes)])
        columns = path.simulation.plan.columns
        try:
            rows = columns.rows(group, states)
        except ColumnError:  # perhaps in a state near by that is none; the present one must do
            states = states[:1]
            try:
                rows = columns.rows(group, states)
            except ColumnError as failure:
                raise failed(path, failure) from failure.error
        self._store(g, states, rows)

    def _come_back(self, g: int) -> bool:
        """Whether a group's states are met again often enough to compute those near by."""
        self._met[g] += 1
        events = self.path.events - self._began
        return bool(self._met[g] < TRIALS or events >= WORTH * self._met[g])

    def _near(self, here: Integers, axes: Sequence[int]) -> Integers:
        """Coordinates that one or two moves lead to."""
        moves = self.path.tables.shifts[:, list(axes)]
        moves = np.unique(moves[(moves != 0).any(axis=1)], axis=0)
        if 0 < len(moves) <= int(PREFETCHED**0.5):
            pairs = (moves[:, None] + moves[None, :]).reshape(-1, len(axes))
            moves = np.unique(np.vstack([moves, pairs]), axis=0)
            moves = moves[(moves != 0).any(axis=1)]
        near = here + moves[:PREFETCHED]
        caps = np.array([self.path.simulation.caps[k] for k in axes])
        return np.asarray(near[((near >= 0) & (near <= caps)).all(axis=1)])

    def _store(self, g: int, states: Integers, rows: Floats) -> None:
        if self.filled + self.keys + rows.size + states.size > self._most:
            self.path.forget()
        self._reserve(len(states), states.size, rows.size)
        s, data = self.path.state, self.path.program.data
        hashes = self.path.tables.hashes(g, states)
        for state, key, row in zip(states, hashes, rows, strict=True):
            slot = free_slot(s, g, key, state)
            if slot == NONE:
                continue
            data[self.filled : self.filled + row.size] = row
            s.keys[self.keys : self.keys + state.size] = state
            s.entries[self.entries] = g, self.filled, self.keys
            s.slots[slot] = self.entries
            self.filled += row.size
            self.keys += state.size
            self.entries += 1

    @property
    def _most(self) -> int:
        return int(self.path.tables.data.size) + MOST_NUMBERS

    def forget(self) -> None:
        """Drop all rows."""
        self.filled = self.path.tables.data.size
        self.entries = self.keys = 0

    def _reserve(self, states: int, coordinates: int, numbers: int) -> None:
        """Make room for more rows; slots stay at most half full."""
        path, s = self.path, self.path.state
        data = path.program.data
        if self.filled + numbers > data.size or data is path.tables.data:
            path.program = path.program._replace(data=_longer(data, self.filled + numbers))
        if self.keys + coordinates > s.keys.size:
            s = s._replace(keys=_longer(s.keys, self.keys + coordinates))
        if self.entries + states > len(s.entries):
            s = s._replace(entries=_longer(s.entries, self.entries + states))
        if 2 * (self.entries + states) > s.slots.size:
            s = s._replace(slots=np.full(4 * s.slots.size, NONE, dtype=np.int64))
            path.state = s
            self._fill_slots()
        path.state = s

    def _fill_slots(self) -> None:
        s = self.path.state
        for entry in range(self.entries):
            g, _, key = (int(n) for n in s.entries[entry])
            state = s.keys[key : key + len(self.path.tables.groups[g].axes)]
            (hashed,) = self.path.tables.hashes(g, state[None])
            s.slots[free_slot(s, g, hashed, state)] = entry


def _longer(array: Any, needed: int) -> Any:
    """A copy with room for more along its first axis."""
    grown = np.zeros((max(2 * len(array), needed), *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
