"""Problems as explicit rows: one row per state, term and allowed action, its moves in a CSR matrix.

The optimality equation in rows, with l running over the rows of state x and term e:

    g = c(x) + sum_e min_l [ k_l + sum_y A_ly ( h(y) - h(x) ) ].

The float64 arrays given are the model; `Rows.roundings` tells how far they may be from another one.
This is the form of tabular models and of everything that needs a matrix (structure, direct solves).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.moves import Matrix, balanced
from mdpcloud.engine.problem import Choice, Floats, Mixture, TermInfo, choice_dtype
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows_kernels import HELD, best_rows, enclose, sweeps
from mdpcloud.engine.terms import Grid
from mdpcloud.errors import InputError, SolveError

__all__ = ["Matrix", "Rows", "RowsProblem"]

SUM_TOLERANCE = 1e-9
"""How far the probabilities of a randomised choice may sum from 1."""


@dataclass(frozen=True, eq=False)
class RowsProblem:
    """A `Problem` on explicit rows.

    Parameters
    ----------
    table : Rows
        The rows.
    terms : tuple of TermInfo
        The terms of the rows.
    discrete : bool, default False
        Whether time is discrete.
    labels : function from state number to str, optional
        Names of the states in messages; by default their numbers.
    grid : Grid, optional
        The states as points of a lattice, where they are.
    """

    table: Rows
    terms: tuple[TermInfo, ...]
    discrete: bool = False
    labels: Callable[[int], str] | None = None
    grid: Grid | None = None

    @property
    def n(self) -> int:
        """Number of states."""
        return self.table.n

    @cached_property
    def rate_bound(self) -> float:
        """Return 1.05 times the largest total rate out of a state, 1/time (1 if nothing moves)."""
        largest = float(self.table.largest_per_state(self.table.out).max(initial=0.0))
        return 1.05 * largest if largest > 0.0 else 1.0

    @cached_property
    def cost_scale(self) -> float:
        """Return the largest cost rate, cost/time."""
        table = self.table
        lumps = table.largest_per_state(np.abs(table.cost))
        return float((np.abs(table.cost_rate) + lumps).max(initial=0.0))

    def pack(self, values: Floats) -> Floats:
        """Copy values (n,) into a new work array."""
        return np.array(values, dtype=np.float64)

    def unpack(self, work: Floats) -> Floats:
        """Copy the values (n,) out of a work array."""
        return work.copy()

    def backup(
        self, h: Floats, out: Floats, *, step: float, shift: float = 0.0, discount: float = 0.0
    ) -> tuple[float, float]:
        """Sweep once, fast: out = h + step (v - shift), see `Problem.backup`."""
        _, low, high, _ = self.sweeps(h, out, 1, step=step, shift=shift, discount=discount)
        return low, high

    def sweeps(
        self,
        h: Floats,
        out: Floats,
        count: int,
        *,
        step: float,
        shift: float = 0.0,
        discount: float = 0.0,
        target: float = 0.0,
        recentre: bool = False,
    ) -> tuple[int, float, float, bool]:
        """Sweep up to count times; (done, low, high, whether the result is in out).

        With recentre, where only the limit matters, some sweeps keep the policy of the one before
        (`rows_kernels.sweeps`); low and high are those of a sweep over all actions.
        """
        if count < 1:
            return 0, -np.inf, np.inf, False
        groups = self.table.groups.size
        decides = recentre and self.table.state.size > groups
        done, low, high = sweeps(
            *self.table.arrays,
            h,
            out,
            np.empty(groups, np.uint32),
            count,
            step,
            shift,
            discount,
            target,
            recentre,
            HELD if decides else 0,
        )
        return int(done), float(low), float(high), done % 2 == 1

    def enclose(self, h: Floats, *, discount: float = 0.0) -> tuple[Floats, Floats]:
        """Return proved lower and upper bounds (n,) on v at every state, cost/time.

        The widening per state is at most gamma_k sum_e max_l [|k_l| + sum_y A_ly |h(y) - h(x)|]
        plus gamma_k (|c(x)| + discount |h(x)|), k being a few more than the terms plus the moves
        of a row; the proof is in `rows_kernels.enclose`.

        Raises
        ------
        SolveError
            If a value is not finite.
        """
        table = self.table
        lower, upper = np.empty(self.n), np.empty(self.n)
        finite = enclose(
            *table.arrays,
            h,
            lower,
            upper,
            discount,
            table.roundings,
        )
        if not finite:
            raise SolveError("a value of the certifying sweep is not finite")
        return lower, upper

    def certify(self, h: Floats, *, discount: float = 0.0) -> tuple[float, float]:
        """Return a number below every exact v(x) and one above, see `Problem.certify`."""
        lower, upper = self.enclose(h, discount=discount)
        return float(lower.min()), float(upper.max())

    def greedy(self, h: Floats, margin: float) -> Choice:
        """Choose per state and term the first action within margin (cost/time) of the best."""
        table = self.table
        chosen = np.empty(table.groups.size, np.int64)
        best_rows(*table.arrays, h, max(float(margin), 0.0), chosen)
        return self.choice_of(chosen)

    def choice_of(self, rows: NDArray[Any]) -> Choice:
        """Return the choice that consists of these rows, at most one per state and term."""
        table = self.table
        choice = np.full((len(self.terms), self.n), -1, choice_dtype(self.terms))
        choice[table.term[rows], table.state[rows]] = table.action[rows]
        return choice

    def chosen(self, choice: Choice) -> NDArray[np.int64]:
        """Return the numbers of the chosen rows, one per state and term.

        Raises
        ------
        InputError
            If an action is chosen that has no row (it is not allowed in that state).
        """
        table = self.table
        several = len(self.terms) > 1
        taken = choice[table.term, table.state] if several else choice[0].take(table.state)
        rows = np.flatnonzero(taken == table.action)
        if rows.size != table.groups.size:
            missing = np.setdiff1d(np.arange(table.groups.size), table.group[rows])[0]
            row = table.groups[missing]
            state, term = int(table.state[row]), int(table.term[row])
            raise InputError(self._not_allowed(state, term, int(choice[term, state])))
        return rows

    def _not_allowed(self, state: int, term: int, action: int) -> str:
        table, info = self.table, self.terms[term]
        here = (table.state == state) & (table.term == term)
        allowed = ", ".join(info.actions[a] for a in table.action[here])
        name = info.actions[action] if 0 <= action < len(info.actions) else str(action)
        return (
            f"action {name!r} of {info.name!r} is not allowed in state {self.label(state)}; "
            f"allowed there: {allowed}"
        )

    def under(self, choice: Choice) -> RowsProblem:
        """Build the uncontrolled problem in which every term takes the chosen action.

        The last one is kept: a solver certifies a policy, and its caller asks for it again.
        """
        kept = self._kept
        if kept and np.array_equal(kept[0][0], choice):
            return kept[0][1]
        kept.clear()
        fixed = self._uncontrolled(self.table.select(self.chosen(choice)))
        kept[:] = [(choice.copy(), fixed)]
        return fixed

    @cached_property
    def _kept(self) -> list[tuple[Choice, RowsProblem]]:
        """The choice that was fixed last and its problem, if any."""
        return []

    def mixed(self, mixture: Mixture) -> RowsProblem:
        """Build the uncontrolled problem of a randomised choice.

        The rows of a state and term become one, with the probabilities as weights; where costs of
        both signs meet, those below 0 get a row of their own, so that no sum cancels.
        """
        table = self.table
        matrix = self._mixing(mixture)
        rows = table.select(table.groups)
        mean = replace(
            rows,
            action=np.zeros_like(rows.action),
            cost=cast(Floats, matrix @ np.maximum(table.cost, 0.0)),
            transitions=_without_zeros(matrix @ table.transitions),
            roundings=table.roundings + 2 + max((len(t.actions) for t in self.terms), default=0),
        )
        credit = cast(Floats, matrix @ np.minimum(table.cost, 0.0))
        return self._uncontrolled(_with_credit(mean, credit, len(self.terms)))

    def _uncontrolled(self, rows: Rows) -> RowsProblem:
        terms = tuple(replace(term, decision=False) for term in self.terms)
        if rows.term.max(initial=-1) >= len(terms):
            terms += tuple(replace(term, name=f"credit of {term.name}") for term in terms)
        return replace(self, table=rows, terms=terms)

    def _mixing(self, mixture: Mixture) -> Matrix:
        """Probabilities of the rows, one matrix row per group; they sum to 1."""
        table = self.table
        share = np.empty(table.state.size)
        for e, probabilities in enumerate(mixture):
            here = table.term == e
            share[here] = np.asarray(probabilities)[table.action[here], table.state[here]]
        total = np.add.reduceat(share, table.groups) if share.size else share
        wrong = ~(np.abs(total - 1.0) <= SUM_TOLERANCE) if share.size else np.zeros(0, bool)
        bad = np.flatnonzero(~(share >= 0.0))
        if bad.size or wrong.any():
            row = bad[0] if bad.size else table.groups[np.flatnonzero(wrong)[0]]
            raise InputError(
                f"probabilities of {self.terms[table.term[row]].name!r} in state "
                f"{self.label(int(table.state[row]))} must be >= 0 and sum to 1 over the allowed "
                f"actions; they sum to {total[table.group[row]]:g}"
            )
        shape = (table.groups.size, table.state.size)
        pointer = np.append(table.groups, table.state.size)
        return sparse.csr_array((share / total[table.group], np.arange(shape[1]), pointer), shape)

    def generator(self, choice: Choice | Mixture) -> tuple[Matrix, Floats]:
        """Return the generator (n, n), 1/time, and the cost rate (n,), cost/time, under a choice.

        Parameters
        ----------
        choice : (n_terms, n) integer array, or per term the probabilities (n_actions, n)
            What every term does in every state.
        """
        integers = isinstance(choice, np.ndarray) and choice.dtype.kind == "i"
        fixed = self.under(choice) if integers else self.mixed(choice)  # type: ignore[arg-type]
        return fixed.chain()

    def flow(self, h: Floats, out: Floats, shift: float = 0.0) -> None:
        """Set out = Q h - shift for an uncontrolled problem."""
        out[:] = cast(Floats, self._chain[0] @ h)
        out -= shift

    def moves_from(self, state: int) -> tuple[int, NDArray[Any], Floats]:
        """Return the state, the targets of the moves out of it and their rates; uncontrolled."""
        row = self._chain[0][[state]]
        return state, row.indices, row.data

    def cost_work(self) -> Floats:
        """Return the cost rate (n,) of an uncontrolled problem."""
        return self._chain[1].copy()

    @cached_property
    def _chain(self) -> tuple[Matrix, Floats]:
        return self.chain()

    def with_cost(self, values: Floats) -> RowsProblem:
        """Return the same problem with the cost rate values (n,) alone."""
        table = replace(
            self.table,
            cost_rate=np.asarray(values, np.float64),
            cost=np.zeros_like(self.table.cost),
        )
        return replace(self, table=table)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a table over the states."""
        return (self.n,)

    def state(self, index: Any) -> Any:
        """Return the number of a state (int), or the numbers of several (slice)."""
        numbers = np.arange(self.n)[index]
        return int(numbers) if np.ndim(numbers) == 0 else numbers

    def allowed(self, e: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where the actions of term e have rows, (A, n), and where any has, (n,)."""
        table = self.table
        here = table.term == e
        possible = np.zeros((len(self.terms[e].actions), self.n), np.bool_)
        possible[table.action[here], table.state[here]] = True
        return possible, np.asarray(possible.any(axis=0), np.bool_)

    def chain(self) -> tuple[Matrix, Floats]:
        """Return generator and cost rate of a problem with one row per state and term."""
        table = self.table
        if table.groups.size != table.state.size:
            raise InputError("the problem has decisions; fix them first with under(choice)")
        if len(self.terms) == 1 and table.state.size == self.n:
            return balanced(table.transitions), table.cost_rate + table.cost
        ones = np.ones(table.state.size)
        collect = sparse.csr_array(
            (ones, np.arange(ones.size), table.first), shape=(self.n, ones.size)
        )
        cost = table.cost_rate + cast(Floats, collect @ table.cost)
        return balanced(cast(Matrix, collect @ table.transitions)), cost

    @property
    def chain_roundings(self) -> int:
        """Return how many roundings separate a rate of `chain` from the model's."""
        return self.table.roundings + len(self.terms)

    def rows(self) -> Rows:
        """Return the rows."""
        return self.table

    def label(self, state: int) -> str:
        """Return the name of a state."""
        return self.labels(state) if self.labels is not None else str(state)


def _with_credit(rows: Rows, credit: Floats, terms: int) -> Rows:
    """Add costs below 0 (L,), in rows of terms further on where the rows' own are above 0."""
    both = np.flatnonzero((rows.cost > 0.0) & (credit < 0.0))
    if not both.size:
        return replace(rows, cost=rows.cost + credit)
    alone = np.where(rows.cost > 0.0, 0.0, credit)
    blank = sparse.csr_array((both.size, rows.n))
    parts = (
        (rows.state, rows.state[both]),
        (rows.term, rows.term[both] + np.int32(terms)),
        (rows.action, rows.action[both]),
        (rows.rate, rows.rate[both]),
        (rows.cost + alone, credit[both]),
    )
    state, term, action, rate, cost = (np.concatenate(part) for part in parts)
    stacked = sparse.vstack([rows.transitions, blank], format="csr")
    whole = replace(
        rows, state=state, term=term, action=action, rate=rate, cost=cost, transitions=stacked
    )
    return whole.select(np.lexsort((term, state)))


def _without_zeros(matrix: Matrix) -> Matrix:
    matrix.eliminate_zeros()
    return matrix
