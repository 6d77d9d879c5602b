"""The variables of the linear program of occupation measures, and its matrix.

See `mdpcloud.solve.constrained.occupation` for the equations. A *group* is the rows of one state
and term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Matrix, Rows

__all__ = ["Columns"]

Longs: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Columns:
    """The variables: the rows of all groups with a choice, and pi of the states without one.

    Parameters
    ----------
    rows : Rows
    lone : (L,) bool array
        Rows without an alternative; their variable is pi of their state.
    row : (N,) array
        Row of each variable, -1 where it is pi of a state without a choice.
    state : (N,) array
        State of each variable.
    link : (N,) array
        Number of the variable's group among those whose sum must equal pi; -1 where the variable is
        one of those that pi is the sum of.
    """

    rows: Rows
    lone: Bools
    row: Longs
    state: Longs
    link: Longs

    @classmethod
    def of(cls, rows: Rows) -> Columns:
        """Choose the largest group of each state to be the one whose sum is pi."""
        size = np.diff(np.append(rows.groups, rows.state.size))
        lone = np.asarray(size[rows.group] == 1, np.bool_)
        largest = np.argsort(size, kind="stable")
        carrier = np.full(rows.n, -1, np.int64)
        carrier[rows.state[rows.groups[largest]]] = largest
        carries = ~lone & (carrier[rows.state] == rows.group)
        own, linked = np.flatnonzero(carries), np.flatnonzero(~carries & ~lone)
        alone = np.setdiff1d(np.arange(rows.n), rows.state[own])
        _, link = np.unique(rows.group[linked], return_inverse=True)
        return cls(
            rows,
            lone,
            row=np.concatenate([np.full(alone.size, -1), own, linked]),
            state=np.concatenate([alone, rows.state[own], rows.state[linked]]).astype(np.int64),
            link=np.concatenate([np.full(alone.size + own.size, -1), link]),
        )

    @property
    def count(self) -> int:
        """Number of variables N."""
        return int(self.row.size)

    @cached_property
    def carries(self) -> Bools:
        """Whether a variable is part of pi, (N,)."""
        return np.asarray(self.link < 0, np.bool_)

    def coefficients(self, per_state: Floats, per_row: Floats) -> Floats:
        """Coefficients (N,) of sum_x per_state(x) pi(x) + sum_l per_row_l y_l."""
        lone, rows = self.lone, self.rows
        base = per_state + np.bincount(rows.state[lone], per_row[lone], minlength=rows.n)
        found = np.where(self.carries, base[self.state], 0.0)
        own = self.row >= 0
        found[own] += per_row[self.row[own]]
        return found

    def spread(self, y: Floats) -> tuple[Floats, Floats]:
        """Law pi (n,) and weights (L,) of a solution (N,)."""
        rows, carries, own = self.rows, self.carries, self.row >= 0
        law = np.bincount(self.state[carries], y[carries], minlength=rows.n).astype(np.float64)
        weight = np.where(self.lone, law[rows.state], 0.0)
        weight[self.row[own]] = y[own]
        return law, weight

    def flows(self, discount: float) -> Matrix:
        """What each variable adds to the flow into each state, (n, N), 1/time.

        Under discounting pi of the state is taken off it at that rate.
        """
        rows, lone = self.rows, np.flatnonzero(self.lone)
        out = np.asarray(rows.transitions.sum(axis=1), np.float64).ravel()
        net = rows.transitions - _selection(rows.state, rows.n, out)
        base = _selection(rows.state[lone], rows.n).T @ net[lone]
        base = base - discount * sparse.eye_array(rows.n, format="csr")
        own = (self.row >= 0).astype(np.float64)
        moves = _selection(np.maximum(self.row, 0), rows.state.size, own) @ net
        return sparse.csr_array((moves + self._membership @ base).T)

    def links(self) -> Matrix:
        """Sum of each linked group less pi of its state, (linked groups, N)."""
        linked, states = np.flatnonzero(~self.carries), self.linked_states
        entries = np.ones(linked.size), (self.link[linked], linked)
        sums = sparse.csr_array(entries, shape=(states.size, self.count))
        return sparse.csr_array(sums - sparse.csr_array(self._membership.T)[states])

    @cached_property
    def linked_states(self) -> Longs:
        """State of each linked group."""
        linked = np.flatnonzero(~self.carries)
        state = np.zeros(int(self.link.max(initial=-1)) + 1, np.int64)
        state[self.link[linked]] = self.state[linked]
        return state

    @cached_property
    def _membership(self) -> Matrix:
        """Which variables sum to pi of each state, (N, n)."""
        return _selection(self.state, self.rows.n, self.carries.astype(np.float64))


def _selection(index: NDArray[Any], n: int, values: Floats | None = None) -> Matrix:
    """Matrix with one entry per row, in the column of that index."""
    values = np.ones(index.size) if values is None else values
    return sparse.csr_array((values, (np.arange(index.size), index)), shape=(index.size, n))
