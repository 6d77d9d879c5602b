"""When and where to stop: what is left of a multichain problem.

Each end component is one state that may stop at a known cost or leave; the equations are in
`mdpcloud.solve.multichain`. Every policy comes to a stop, so that the solution u* is unique,
T u >= u implies u <= u*, and T u <= u implies u >= u* (Bertsekas and Tsitsiklis, An analysis of
stochastic shortest path problems, 1991). The bounds returned are such vectors: solutions by policy
iteration, moved by a multiple of the expected time to the stop until the inequalities hold with the
rounding bound of `RowsProblem.enclose`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.problem import Floats, TermInfo
from mdpcloud.engine.rounding import UNIT_ROUNDOFF
from mdpcloud.engine.rows import Rows, RowsProblem
from mdpcloud.engine.structure import EndComponents
from mdpcloud.errors import SolveError
from mdpcloud.solve.stationary.irreducible import factor

__all__ = ["Stopping"]

Longs: TypeAlias = NDArray[np.int64]

MAX_ITERATIONS = 1000
"""Policy improvements; the bounds hold wherever they end."""

MAX_WIDENINGS = 40
"""Each multiplies the distance by four; in the end the trivial bounds are returned."""


@dataclass(frozen=True, eq=False)
class Stopping:
    """A stopping problem.

    Parameters
    ----------
    problem : RowsProblem
        States: the K components, then the T states in none, then K where a component has stopped.
        Rates of a state are divided by a power of two near the largest of its rows (of each row,
        for components).
    count, size : int
        K and K + T.
    number : (n,) array
        State here of each state of the original problem.
    origin : (L,) array
        Original row of each row, -1 for stopping.
    """

    problem: RowsProblem
    count: int
    size: int
    number: Longs
    origin: Longs

    @classmethod
    def build(cls, table: Rows, parts: EndComponents) -> Stopping:
        """Collapse every component into one state."""
        count, outside = parts.count, parts.label < 0
        size = count + int(outside.sum())
        number = parts.label.astype(np.int64)
        number[outside] = np.arange(count, size)
        rows = np.flatnonzero(~parts.inside)
        state = number[table.state[rows]]
        row, target, rate = _scaled_moves(table, rows, state, number, count)
        stops = np.arange(count)
        collapsed = Rows.from_moves(
            np.zeros(size + count),
            (
                np.append(stops, state),
                np.append(0 * stops, np.where(state < count, 0, table.term[rows])),
                np.append(0 * stops, rows + 1),
            ),
            np.ones(count + rows.size),
            np.zeros(count + rows.size),
            (
                np.append(stops, row + count),
                np.append(size + stops, target),
                np.append(np.ones(count), rate),
            ),
            roundings=table.roundings + int(np.diff(table.transitions.indptr).max(initial=0)),
        )
        terms = (TermInfo("stopping", (), True),)
        return cls(
            RowsProblem(collapsed, terms),
            count,
            size,
            number,
            collapsed.action.astype(np.int64) - 1,
        )

    def lower_bound(self, gains: Floats) -> Floats:
        """Return a certified lower bound (K + T,) given lower bounds (K,) at the stops."""
        values, _ = self._optimum(0.0, gains)
        time = -self._optimum(-1.0, np.zeros(self.count))[0]

        def holds(u: Floats) -> tuple[bool, float]:
            least = float(self.problem.enclose(u)[0].min())
            return least >= 0.0, -least

        bound = _moved(self._stopped(values, gains), -time, holds)
        if bound is None:
            bound = np.full(self.size, gains.min())
        bound = np.asarray(np.maximum(bound[: self.size], gains.min()), np.float64)
        never_left = np.diff(self.problem.table.first[: self.count + 1]) == 1
        bound[: self.count][never_left] = gains[never_left]
        return bound

    def upper_bound(self, gains: Floats) -> tuple[Floats, Longs]:
        """Return an upper bound (K + T,) given those at the stops, and the rows that attain it.

        The rows are original numbers, one per component (-1: it stops) and one per term of the
        states in none.
        """
        values, chosen = self._optimum(0.0, gains)
        time = self._evaluate(chosen, 1.0, np.zeros(self.count))
        fixed = RowsProblem(self.problem.table.select(chosen), self.problem.terms)

        def holds(u: Floats) -> tuple[bool, float]:
            largest = float(fixed.enclose(u)[1].max())
            return largest <= 0.0, largest

        bound = _moved(self._stopped(values, gains), time, holds)
        if bound is None:
            bound = np.full(self.size, gains.max())
        bound = np.minimum(bound[: self.size], gains.max())
        stopped = self.origin[chosen[: self.count]] < 0
        bound[: self.count][stopped] = gains[stopped]
        return bound, self.origin[chosen]

    def _stopped(self, values: Floats, gains: Floats) -> Floats:
        """Put the costs of stopping behind values kept between the extreme ones."""
        return np.append(np.clip(values[: self.size], gains.min(), gains.max()), gains)

    def _optimum(self, cost: float, stop: Floats) -> tuple[Floats, Longs]:
        """Policy iteration: values (K + T + K,) and one row per state and term.

        Parameters
        ----------
        cost : float
            Cost rate before the stop.
        stop : (K,) array
            Cost at the stop.
        """
        table = self.problem.table
        chosen = table.groups.copy()
        for _ in range(MAX_ITERATIONS):
            values = self._evaluate(chosen, cost, stop)
            scores, margin = self._scores(values)
            best = np.minimum.reduceat(scores, table.groups)
            better = best < scores[chosen] - margin
            if not better.any():
                break
            hits = np.flatnonzero(scores == best[table.group])
            _, first = np.unique(table.group[hits], return_index=True)
            chosen[better] = hits[first][better]
        return values, chosen

    def _evaluate(self, chosen: Longs, cost: float, stop: Floats) -> Floats:
        """Values (K + T + K,) of stopping under one row per state and term."""
        table, size = self.problem.table, self.size
        entries = np.ones(chosen.size), (table.state[chosen], np.arange(chosen.size))
        collect = sparse.csr_array(entries, shape=(size, chosen.size))
        moves = sparse.csr_array(collect @ table.transitions[chosen])
        out = np.asarray(moves.sum(axis=1), np.float64).ravel()
        system = sparse.csr_array(sparse.diags_array(out, format="csr") - moves[:, :size])
        try:
            values = factor(system)(cost + cast(Floats, moves[:, size:] @ stop))
        except RuntimeError as error:
            raise SolveError(f"the stopping problem could not be factored: {error}") from error
        return np.append(values, stop)

    def _scores(self, values: Floats) -> tuple[Floats, Floats]:
        """Value of each row, sum_y A_ly (u(y) - u(x)), and per group what is below rounding."""
        table = self.problem.table
        matrix = table.transitions
        row = np.repeat(np.arange(table.state.size), np.diff(matrix.indptr))
        terms = matrix.data * (values[matrix.indices] - values[table.state[row]])
        scores = np.bincount(row, terms, minlength=table.state.size).astype(np.float64)
        sizes = np.bincount(row, np.abs(terms), minlength=table.state.size)
        margin: Floats = 1e-13 * np.maximum.reduceat(sizes, table.groups)
        margin += 8 * UNIT_ROUNDOFF * np.abs(values).max()
        return scores, margin


def _scaled_moves(
    table: Rows, rows: Longs, state: Longs, number: Longs, count: int
) -> tuple[Longs, Longs, Floats]:
    """Row, target and rate of those moves of the rows that change the state here."""
    matrix = table.transitions[rows]
    row = np.repeat(np.arange(rows.size), np.diff(matrix.indptr))
    target = number[matrix.indices]
    moved = target != state[row]
    row, target, rate = row[moved], target[moved], matrix.data[moved]
    out = np.bincount(row, rate, minlength=rows.size)
    largest = np.zeros(number.size + 1)
    np.maximum.at(largest, state, out)
    _, exponent = np.frexp(np.where(state < count, out, largest[state]))
    return row, target, np.ldexp(rate, -exponent[row])


def _moved(values: Floats, direction: Floats, holds: Any) -> Floats | None:
    """Return values + distance direction for a small distance at which the inequality holds."""
    fits, violation = holds(values)
    distance = 4 * UNIT_ROUNDOFF * float(np.abs(values).max()) + 2 * max(violation, 0.0)
    for _ in range(MAX_WIDENINGS):
        if fits:
            return values
        shifted = values + distance * direction
        fits, _ = holds(shifted)
        if fits:
            return np.asarray(shifted, np.float64)
        distance *= 4
    return None
