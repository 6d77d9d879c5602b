"""Which states can reach the targets for certain, by which rows, and where that costs nothing.

A policy is *proper* from a state if it reaches the targets with probability 1. The states from
which some policy is proper are found by repeating: search backwards from the targets; what was not
found dies, and with it every row into it (de Alfaro, Computing minimum and maximum reachability
times in probabilistic systems, 1999, section 3). Every row left keeps to such states, so that any
choice among them by which every state has a way to the targets is proper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.rows import Rows
from mdpcloud.engine.rows_kernels import prune
from mdpcloud.engine.structure import EndComponents, end_components
from mdpcloud.solve.total.kernels import search_back

__all__ = ["Backwards", "Hopeful", "free_components", "hopeful"]

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Backwards:
    """Rows looked at from the states that they lead to."""

    table: Rows

    @cached_property
    def moves(self) -> tuple[Longs, Ints]:
        """Pointers (n + 1,) and numbers of the rows with a move to each state."""
        matrix = self.table.transitions
        ones = np.ones(matrix.nnz, np.int8)
        turned = sparse.csr_array((ones, matrix.indices, matrix.indptr), matrix.shape).tocsc()
        return turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False)

    def search(self, targets: Bools, alive: Bools) -> tuple[Ints, Ints]:
        """Search backwards from the targets by rows alive.

        Returns
        -------
        level : (n,) int32 array
            Moves to the nearest target, -1 where there is no way.
        order : int32 array
            The states with a way, targets apart, by level.
        """
        level, order = np.where(targets, 0, -1).astype(np.int32), np.empty(self.table.n, np.int32)
        starts = np.flatnonzero(targets)
        order[: starts.size] = starts
        found = search_back(*self.moves, self.table.state, alive, level, order, starts.size)
        return level, order[starts.size : found]

    def without(self, states: Bools, alive: Bools, kept: Bools) -> tuple[Bools, Bools]:
        """Remove states, rows into them, states with a term without a row, and so on.

        ``alive`` (L,) are the rows there are to begin with, ``kept`` (n,) states that need none;
        returned are the states and the rows left.
        """
        table = self.table
        row_alive, state_alive = alive & ~states[table.state], ~states
        left = np.bincount(table.group[row_alive], minlength=table.groups.size).astype(np.int32)
        left[kept[table.state[table.groups]]] = 1
        state_alive[table.state[table.groups[left == 0]]] = False
        stack = np.empty(table.n, np.int32)
        dead = np.flatnonzero(~state_alive)
        stack[: dead.size] = dead
        prune(table.group, left, *self.moves, table.state, row_alive, state_alive, stack, dead.size)
        return state_alive, row_alive & state_alive[table.state]


@dataclass(frozen=True, eq=False)
class Hopeful:
    """The states from which some policy reaches the targets with probability 1.

    Parameters
    ----------
    states : (n,) bool array
        The targets among them.
    rows : (L,) bool array
        The rows of such states, targets apart, that lead to such states only.
    order : int32 array
        The states by the number of moves to the targets, these first.
    """

    states: Bools
    rows: Bools
    order: Ints


def hopeful(back: Backwards, targets: Bools) -> Hopeful:
    """Find the states from which some policy reaches the targets with probability 1."""
    table = back.table
    rows = ~targets[table.state]
    level, _ = back.search(targets, rows)
    while True:
        states, rows = back.without(level < 0, rows, targets)
        level, order = back.search(targets, rows)
        if not (states & (level < 0)).any():
            first = np.flatnonzero(targets).astype(np.int32)
            return Hopeful(level >= 0, rows, np.append(first, order))


def free_components(back: Backwards, rows: Bools, terminal: Bools) -> EndComponents | None:
    """The maximal end components in which the process can be kept for ever at no cost.

    Only rows that cost nothing count, and only states whose cost rate is 0; None if there is none.

    Parameters
    ----------
    back : Backwards
    rows : (L,) bool array
        The rows that may be taken.
    terminal : (n,) bool array
        States that do not count.
    """
    table = back.table
    free = rows & (table.cost == 0.0)
    barred = terminal | (table.cost_rate != 0.0)
    if not (free & ~barred[table.state]).any():
        return None
    states, free = back.without(barred, free, np.zeros_like(barred))
    inside = np.flatnonzero(states)
    if inside.size == 0:
        return None
    parts = end_components(table.restrict(inside, free))
    if parts.count == 0:
        return None
    return _spread(table, inside, free, parts)


def _spread(table: Rows, inside: Longs, free: Bools, parts: Any) -> EndComponents:
    """Components of some states as components of all."""
    label, kept = np.full(table.n, -1, np.int32), np.zeros(table.state.size, np.bool_)
    label[inside] = parts.label
    numbers = table.of(inside)
    kept[numbers[free[numbers]][parts.inside]] = True
    return EndComponents(parts.count, label, kept)
