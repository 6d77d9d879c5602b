"""A problem written out row by row.

One row per state, term and allowed action; see `mdpcloud.engine.rows` for the equation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdpcloud.engine.moves import Matrix, picked, pointers, targets
from mdpcloud.engine.problem import Floats

__all__ = ["Matrix", "Rows"]

Ints: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rows:
    """A problem written out.

    Parameters
    ----------
    n : int
        Number of states.
    cost_rate : (n,) array
        Cost rate c(x), cost/time.
    state, term, action : (L,) int32 arrays
        What each row belongs to; sorted by state, then term, then action. Rows of rate 0 are
        absent.
    rate : (L,) array
        Rate of the term, 1/time, positive.
    cost : (L,) array
        Cost rate of the row, rate times lump cost, cost/time.
    transitions : (L, n) CSR array
        Rates of the moves, rate times weight, 1/time; moves back to the row's own state are left
        out.
    roundings : int, default 0
        How many roundings separate each stored number from the model's (as relative error). 0: the
        arrays are the model.
    """

    n: int
    cost_rate: Floats
    state: Ints
    term: Ints
    action: Ints
    rate: Floats
    cost: Floats
    transitions: Matrix
    roundings: int = 0

    @classmethod
    def from_moves(
        cls,
        cost_rate: ArrayLike,
        rows: tuple[ArrayLike, ArrayLike, ArrayLike],
        rate: ArrayLike,
        cost: ArrayLike,
        moves: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        roundings: int = 0,
    ) -> Rows:
        """Sort rows given in any order and collect their moves.

        Parameters
        ----------
        cost_rate : (n,) array
            Cost rate, cost/time.
        rows : (state, term, action), each (L,)
            What each row belongs to.
        rate, cost : (L,) arrays
            Rate (1/time) and cost rate (cost/time) of each row; rows of rate 0 are dropped.
        moves : (row, target, rate), each (M,)
            Row number (in the order given), target state and rate of each move. Moves to the own
            state and of rate 0 are dropped, several moves of a row to one state add up.
        roundings : int
            See `Rows`.
        """
        cost_rate = np.asarray(cost_rate, np.float64)
        state, term, action = (np.asarray(part, np.int32) for part in rows)
        rate, cost = np.asarray(rate, np.float64), np.asarray(cost, np.float64)
        row, target, weight = (np.asarray(part) for part in moves)
        keep = (weight > 0) & (target != state[row])
        entries = np.asarray(weight[keep], np.float64), (row[keep], target[keep])
        matrix = sparse.csr_array(entries, shape=(state.size, cost_rate.size))
        order = np.lexsort((action, term, state))
        order = order[rate[order] > 0]
        return cls(
            cost_rate.size,
            cost_rate,
            state[order],
            term[order],
            action[order],
            rate[order],
            cost[order],
            matrix[order],
            roundings,
        )

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """First row of each group, a group being the rows of one state and term."""
        if self.state.size == 0:
            return np.zeros(0, np.int64)
        new = (np.diff(self.state) != 0) | (np.diff(self.term) != 0)
        return np.concatenate(([0], np.flatnonzero(new) + 1)).astype(np.int64)

    @cached_property
    def group(self) -> Ints:
        """Group of each row, (L,)."""
        lengths = np.diff(np.append(self.groups, self.state.size))
        return np.repeat(np.arange(self.groups.size, dtype=np.int32), lengths)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """First row of each state, (n + 1,)."""
        return _starts(self.state, self.n)

    @cached_property
    def moves(self) -> tuple[NDArray[np.int64], Ints, Floats]:
        """Row pointers (L + 1,), targets and rates of the moves."""
        matrix = self.transitions
        return (
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the kernels get, in their types; see `mdpcloud.engine.rows_kernels`."""
        matrix = self.transitions
        return (
            _starts(self.state[self.groups], self.n),
            np.append(self.groups, self.state.size),
            np.ascontiguousarray(self.cost_rate),
            np.ascontiguousarray(self.cost),
            pointers(matrix),
            targets(matrix),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )

    @property
    def out(self) -> Floats:
        """Total rate of the moves of each row, 1/time, (L,)."""
        return np.asarray(self.transitions @ np.ones(self.n), np.float64)

    def largest_per_state(self, values: Floats) -> Floats:
        """Sum over the terms of the largest of values (L,) among each term's rows, (n,)."""
        if values.size == 0:
            return np.zeros(self.n)
        largest = np.maximum.reduceat(values, self.groups)
        states = self.state[self.groups]
        return np.bincount(states, largest, minlength=self.n).astype(np.float64, copy=False)

    def of(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Return the numbers of the rows of these states, state by state."""
        begin, length = self.first[states], self.first[states + 1] - self.first[states]
        shift = np.repeat(begin - np.cumsum(length) + length, length)
        numbers: NDArray[np.int64] = np.arange(shift.size) + shift
        return numbers

    def select(self, rows: NDArray[Any]) -> Rows:
        """Keep only the rows with these numbers (increasing)."""
        return replace(
            self,
            state=self.state[rows],
            term=self.term[rows],
            action=self.action[rows],
            rate=self.rate[rows],
            cost=self.cost[rows],
            transitions=picked(self.transitions, rows),
        )

    def restrict(self, states: NDArray[Any], keep: NDArray[np.bool_]) -> Rows:
        """Keep only these states (increasing) and those of their rows in keep (L,), renumbered.

        No kept row may leave the states.
        """
        rows = self.of(states)
        part = self.select(rows[keep[rows]])
        matrix = part.transitions
        targets = np.searchsorted(states, matrix.indices).astype(np.int32)
        inside = sparse.csr_array(
            (matrix.data, targets, matrix.indptr), shape=(part.state.size, states.size)
        )
        return replace(
            part,
            n=states.size,
            cost_rate=self.cost_rate[states],
            state=np.searchsorted(states, part.state).astype(np.int32),
            transitions=inside,
        )


def _starts(sorted_states: Ints, n: int) -> NDArray[np.int64]:
    """Where each state begins in a sorted array, and the end, (n + 1,)."""
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sorted_states, minlength=n), out=starts[1:])
    return starts
