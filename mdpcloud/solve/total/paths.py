"""A shortest-path problem in the form that solvers take: states that end, and rows of the others.

    0 = c(x) + sum_e min_l [ k_l + sum_y A_ly ( u(y) - u(x) ) ],    u = 0 at the end.

Where the process can be kept for ever at no cost (an end component of rows that cost nothing), u is
one number, and the component becomes one state whose rows are those that leave it:

    0 = min_l [ k_l + sum_y A_ly ( u(y) - u ) ].

Values are pairs high + low: where a target is reached with probability 1e-9 per step, close values
have differences that one array of floats does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from scipy import sparse

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import Matrix, Rows
from mdpcloud.engine.structure import EndComponents
from mdpcloud.errors import SolveError
from mdpcloud.solve.total.kernels import head_for, improve_rows, row_values, state_bounds
from mdpcloud.solve.total.structure import Backwards, Bools, Hopeful, Ints, Longs

__all__ = ["Pair", "Paths", "paths_of"]


@dataclass(frozen=True, eq=False)
class Pair:
    """Numbers (n,) as unevaluated sums high + low."""

    high: Floats
    low: Floats

    @classmethod
    def of(cls, values: Floats) -> Pair:
        """Return floats as pairs."""
        return cls(values, np.zeros_like(values))

    def plus(self, change: Floats) -> Pair:
        """Add a change, whose rounding is of no account; low stays below half a unit of high.

        What overflows is not finite, which the bounds refuse.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            low = self.low + change
            high = self.high + low
            part = high - self.high
            return Pair(high, (self.high - (high - part)) + (low - part))

    def below(self) -> Floats:
        """Return floats below; 0 stays 0."""
        return self._beside(-np.inf)

    def above(self) -> Floats:
        """Return floats above; 0 stays 0."""
        return self._beside(np.inf)

    def _beside(self, end: float) -> Floats:
        total = self.high + self.low
        exact = (self.high == 0.0) & (self.low == 0.0)
        return np.where(exact, 0.0, np.nextafter(total, end))


@dataclass(frozen=True, eq=False)
class Paths:
    """A shortest-path problem.

    Parameters
    ----------
    table : Rows
        States that end have no rows and cost nothing.
    terminal : (n,) bool array
        Where the process has ended.
    number : (N,) array
        State here of each state of the original problem.
    origin : (L,) array
        Original row of each row.
    """

    table: Rows
    terminal: Bools
    number: Longs
    origin: Longs

    @property
    def n(self) -> int:
        """Number of states."""
        return self.table.n

    @cached_property
    def back(self) -> Backwards:
        """The rows by the states they lead to."""
        return Backwards(self.table)

    @cached_property
    def moves(self) -> tuple[Longs, Ints, Floats]:
        """Pointers (L + 1,), targets and rates of the moves of the rows, for kernels."""
        matrix = self.table.transitions
        indices = matrix.indices.astype(np.int32, copy=False)
        return matrix.indptr.astype(np.int64), indices, matrix.data

    @cached_property
    def _search(self) -> tuple[Ints, Ints]:
        return self.back.search(self.terminal, np.ones(self.table.state.size, np.bool_))

    @property
    def order(self) -> Ints:
        """The states that have not ended, by the number of moves to the end."""
        return self._search[1]

    def approach(self) -> tuple[Longs, Floats]:
        """A proper policy that comes nearer to the end in every state, and rough values of it."""
        table = self.table
        chosen, values = table.groups.copy(), np.zeros(self.n)
        level, order = self._search
        costs = table.cost_rate, table.cost
        head_for(order, level, table.first, table.group, *costs, *self.moves, chosen, values)
        return chosen, values

    def not_proper(self, chosen: Longs) -> Bools:
        """From where (n,) a policy does not reach the end for certain if other states do not."""
        alive = np.zeros(self.table.state.size, np.bool_)
        alive[chosen] = True
        return np.asarray(self.back.search(self.terminal, alive)[0] < 0)

    @cached_property
    def leaving(self) -> Floats:
        """Total rate of each row, (L,)."""
        return np.asarray(self.table.transitions.sum(axis=1), np.float64).ravel()

    @cached_property
    def scale(self) -> Floats:
        """What rows are compared by, (L,): of states with one term, the mean time until they move.

        The best row is then that of the smallest cost up to the move and from there.
        """
        table = self.table
        terms = np.bincount(table.state[table.groups], minlength=self.n)
        single = (terms[table.state] == 1) & (self.leaving > 0.0)
        return np.where(single, 1.0 / np.where(single, self.leaving, 1.0), 1.0)

    def under(self, chosen: Longs) -> Paths:
        """Keep one row per state and term."""
        return Paths(self.table.select(chosen), self.terminal, self.number, self.origin[chosen])

    def row_values(self, u: Pair, factor: float = 1.0) -> tuple[Floats, Floats]:
        """Value of each row, factor k_l + sum_y A_ly (u(y) - u(x)), and a bound of its error."""
        table = self.table
        value, error = np.empty(table.state.size), np.empty(table.state.size)
        row_values(
            table.state,
            table.cost,
            *self.moves,
            u.high,
            u.low,
            factor,
            table.roundings,
            value,
            error,
        )
        return value, error

    def bounds(
        self,
        u: Pair,
        shift: Floats,
        factor: float = 1.0,
        values: tuple[Floats, Floats] | None = None,
    ) -> tuple[Floats, Floats]:
        """Proved bounds (n,) of factor (c + ...) + shift, the right-hand side, at every state.

        Raises
        ------
        SolveError
            If one is not finite.
        """
        table = self.table
        lower, upper = np.empty(self.n), np.empty(self.n)
        finite = state_bounds(
            table.first,
            table.term,
            table.cost_rate,
            shift,
            factor,
            *(values or self.row_values(u, factor)),
            table.roundings,
            lower,
            upper,
        )
        if not finite:
            raise SolveError("a value of the certifying sweep is not finite")
        return lower, upper

    def improved(self, u: Pair, shift: Floats, chosen: Longs) -> Longs | None:
        """The rows that are surely better than those chosen, the others kept; None if none is."""
        table, better = self.table, chosen.copy()
        base = table.cost_rate + shift
        value, error = self.row_values(u)
        changed = improve_rows(table.first, table.term, base, value, error, self.scale, better)
        return better if changed else None

    def chain(self) -> tuple[Matrix, Floats]:
        """Moves (n, n) and total rates (n,) of a problem without decisions."""
        table = self.table
        ones = np.ones(table.state.size)
        collect = sparse.csr_array((ones, np.arange(ones.size), table.first), (self.n, ones.size))
        moves = sparse.csr_array(collect @ table.transitions)
        return cast(Matrix, moves), np.asarray(moves.sum(axis=1), np.float64).ravel()


def paths_of(table: Rows, able: Hopeful, targets: Bools, free: EndComponents | None) -> Paths:
    """Keep the rows that may be taken, and make one state of each component that is free.

    States are numbered by their distance from the targets, so that sweeps read what they have just
    written. Rows that keep the process where it is at a cost are left out; they are never best.
    """
    terminal = targets | ~able.states
    number = _numbers(table.n, able, free)
    rows = np.flatnonzero(able.rows if free is None else able.rows & ~free.inside)
    rows = rows[np.argsort(number[table.state[rows]], kind="stable")]
    n = int(number.max()) + 1
    cost_rate, ended = np.zeros(n), np.zeros(n, np.bool_)
    cost_rate[number] = np.where(terminal, 0.0, table.cost_rate)
    ended[number] = terminal
    part = table.select(rows)
    merged = np.zeros(part.state.size, np.bool_) if free is None else free.label[part.state] >= 0
    renumbered = replace(
        part,
        n=n,
        cost_rate=cost_rate,
        state=number[part.state].astype(np.int32),
        term=np.where(merged, 0, part.term).astype(np.int32),
        transitions=_renumbered(part, number, n, free is not None),
        roundings=part.roundings + _additions(part, free),
    )
    used = np.flatnonzero(~_idle(renumbered))
    if used.size < rows.size:
        renumbered, rows = renumbered.select(used), rows[used]
    return Paths(renumbered, ended, number, rows)


def _numbers(n: int, able: Hopeful, free: EndComponents | None) -> Longs:
    """New numbers (n,), one for each component: by distance, states without hope last."""
    rank = np.empty(n, np.int64)
    rank[np.append(able.order, np.flatnonzero(~able.states))] = np.arange(n)
    if free is None:
        return rank
    nearest = np.full(free.count, n)
    inside = free.label >= 0
    np.minimum.at(nearest, free.label[inside], rank[inside])
    rank[inside] = nearest[free.label[inside]]
    return np.unique(rank, return_inverse=True)[1]


def _renumbered(part: Rows, number: Longs, n: int, merges: bool) -> Matrix:
    """Moves between states of the new numbers; several of a row into one component add up."""
    matrix = part.transitions
    indices = number[matrix.indices].astype(np.int32)
    moved = sparse.csr_array((matrix.data, indices, matrix.indptr), (part.state.size, n))
    if merges:
        home = np.repeat(number[part.state], np.diff(matrix.indptr))
        moved.data = np.where(indices == home, 0.0, moved.data)
        moved.sum_duplicates()
        moved.eliminate_zeros()
    return moved


def _additions(part: Rows, free: EndComponents | None) -> int:
    """Roundings of the rates into components."""
    longest = np.diff(part.transitions.indptr).max(initial=0)
    return 0 if free is None else int(longest)


def _idle(table: Rows) -> Bools:
    """Rows that move nowhere, of states with one term, where that surely costs something or 0."""
    terms = np.bincount(table.state[table.groups], minlength=table.n)
    still = (np.diff(table.transitions.indptr) == 0) & (terms[table.state] == 1)
    rate = table.cost_rate[table.state]
    total = rate + table.cost
    doubt = (table.roundings + 4) * 2.0**-52 * (np.abs(rate) + np.abs(table.cost))
    surely: Bools = (total > doubt) | ((rate == 0.0) & (table.cost == 0.0))
    return cast(Bools, still & surely)
