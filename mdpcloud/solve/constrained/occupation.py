"""The linear program of occupation measures, one variable per row.

Under a stationary policy let y_l >= 0 be the part of the time spent in the state of row l with the
action of row l in force. The terms of a state decide independently of each other, so that joint
actions never appear: y has one number per state, term and action (as many as the problem has rows),
not one per state and combination of actions. With pi(x) the part of the time in state x and A_l the
rates of row l, y comes from a policy if and only if

    sum_{l of (x, e)} y_l = pi(x)                              for every state x and term e,
    sum_l y_l A_lz = sum_{l of z} y_l sum_y A_ly               for every state z (balance),
    sum_x pi(x) = 1,

and its average cost is sum_x c(x) pi(x) + sum_l k_l y_l (Manne 1960; Altman, Constrained Markov
Decision Processes, 1999, chapters 4 and 5; terms as in Koole 1998). pi is eliminated: in a state
with decisions it is the sum over the one with most actions, so that a problem with one decision has
a variable per row of that decision, and n + 1 equations. The dual variables of the balance
equations are relative values h, that of the last equation is the gain, those of inequalities are
multipliers.

Under discounting by alpha with every state equally likely at the start, alpha (1/n - pi(z)) is
added to what flows into z, the last equation follows from the others, and h are the values.

HiGHS's tolerances are absolute, so what is small has to be scaled up. Where a law is known near
which the solution is expected, variables are divided by that law (what is very small in it is
raised), and the balance equation of a state by the flow through it, the law times the state's
largest rate; else each balance equation is divided by the state's largest rate. Objective and
inequalities are divided by their largest possible values. What `mdpcloud.solve.constrained.highs`
says is not certified; who uses it does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Matrix, Rows
from mdpcloud.errors import InputError
from mdpcloud.solve.constrained.columns import Columns
from mdpcloud.solve.constrained.highs import ATTEMPTS, Attempts, Basis, linear_program
from mdpcloud.solve.limits import Monitor

__all__ = ["MOST_ROWS", "Average", "Occupation", "OccupationProgram"]

MOST_ROWS = 200_000
"""Rows up to which the program is solved."""

LEAST_PART = 1e-4  # of the largest time or flow expected in a state: smaller ones are raised to it
NOISE = 1e-9  # of a variable's expected size: what the tolerances leave of it


@dataclass(frozen=True, eq=False)
class Average:
    """A long-run average that is linear in the occupation measure.

    Parameters
    ----------
    state : (n,) array
        Rate at which it grows in a state, whatever is done there, per unit of time.
    row : (L,) array
        The same for each row.
    """

    state: Floats
    row: Floats

    def __add__(self, other: Average) -> Average:
        return Average(self.state + other.state, self.row + other.row)

    def __mul__(self, factor: float) -> Average:
        return Average(factor * self.state, factor * self.row)

    def size(self, rows: Rows) -> float:
        """Bound of its absolute value under every policy."""
        return float((np.abs(self.state) + rows.largest_per_state(np.abs(self.row))).max())


@dataclass(frozen=True, eq=False)
class Occupation:
    """What the program found.

    Attributes
    ----------
    law : (n,) array
        pi.
    weight : (L,) array
        y.
    values : (n,) array
        Relative values; values under discounting.
    multipliers : (K,) array
        Of the inequalities, >= 0: cost per unit of their averages.
    noise : (n,) array
        What is below it, in the law or the weights of a state, may be due to HiGHS's tolerances.
    """

    law: Floats
    weight: Floats
    values: Floats
    multipliers: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class OccupationProgram:
    """The equations of a problem, for any objective and inequalities.

    Parameters
    ----------
    rows : Rows
    discount : float
        1/time; 0 for average cost.
    expected : (n,) array, optional
        A law that the solution's is expected to be near.
    start : (groups,) array, optional
        Rows, one per state and term, of a policy with that law, whose basis the simplex method
        starts from; with one recurrent class.

    Raises
    ------
    InputError
        When there are more than `MOST_ROWS` rows.
    """

    rows: Rows
    discount: float = 0.0
    expected: Floats | None = None
    start: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        count = self.rows.state.size
        if count > MOST_ROWS:
            raise InputError(
                f"the linear program has {count} rows (state, event, action); at most {MOST_ROWS} "
                "are solved. Without constraints take policy_iteration or value_iteration, with "
                "constraints a smaller state space"
            )

    def minimise(
        self,
        cost: Average,
        limited: Sequence[tuple[Average, float]] = (),
        *,
        monitor: Monitor,
        attempts: Attempts = ATTEMPTS,
    ) -> Occupation:
        """Minimise an average subject to other averages <= their limits.

        Raises
        ------
        Unsolved
            Of `mdpcloud.solve.constrained.highs`.
        Stopped
            At a limit of the monitor.
        """
        unit = (cost.size(self.rows) or 1.0) / self._count
        objective = self._coefficients(cost) / unit
        relaxed = np.zeros(len(limited))
        return self._solve(objective, unit, limited, relaxed, monitor, attempts)

    def least_violation(
        self,
        limited: Sequence[tuple[Average, float]],
        units: Sequence[float],
        *,
        monitor: Monitor,
    ) -> Occupation:
        """Minimise t such that each average <= its limit + t times its unit, t >= 0.

        Of the multipliers, sum_j units_j multipliers_j = 1 where t > 0.

        Raises
        ------
        Unsolved
            Of `mdpcloud.solve.constrained.highs`.
        Stopped
            At a limit of the monitor.
        """
        objective = np.zeros(self._columns.count)
        return self._solve(objective, 1.0, limited, np.asarray(units, np.float64), monitor)

    @cached_property
    def _columns(self) -> Columns:
        return Columns.of(self.rows)

    def _coefficients(self, average: Average) -> Floats:
        """Coefficients of an average in the scaled variables."""
        plain = self._columns.coefficients(average.state, average.row)
        return plain * self._time[self._columns.state]

    @cached_property
    def _rate(self) -> Floats:
        """Largest rate out of each state (n,), 1/time; 1 where nothing moves."""
        out = np.asarray(self.rows.transitions.sum(axis=1), np.float64).ravel()
        largest = self.rows.largest_per_state(out) + self.discount
        return np.where(largest > 0.0, largest, 1.0)

    @cached_property
    def _time(self) -> Floats:
        """What the variables of each state are divided by, (n,)."""
        if self.expected is None:
            return np.ones(self.rows.n)
        law, rate = self.expected, self._rate
        least = LEAST_PART * np.minimum(law.max(), (law * rate).max() / rate)
        return np.asarray(np.maximum(law, least), np.float64)

    @cached_property
    def _count(self) -> float:
        """What the scaled variables are expected to sum to."""
        return 1.0 if self.expected is None else float((self.expected / self._time).sum())

    @cached_property
    def _equations(self) -> tuple[Matrix, Floats]:
        """Matrix and right-hand side: balance, links, and the sum of pi."""
        columns, n, links = self._columns, self.rows.n, self._columns.links()
        total = sparse.csr_array(columns.carries[None, :].astype(np.float64))
        blocks = [columns.flows(self.discount), links] + ([] if self.discount else [total])
        left = np.ones(n + links.shape[0] + (0 if self.discount else 1))
        left[:n] = 1.0 / (self._rate * self._time)
        left[n : n + links.shape[0]] = 1.0 / self._time[columns.linked_states]
        matrix = sparse.diags_array(left) @ sparse.vstack(blocks, format="csr")
        matrix = matrix @ sparse.diags_array(self._time[columns.state])
        right = np.zeros(left.size)
        right[:n] = -self.discount / n * left[:n]
        if not self.discount:
            right[-1] = 1.0
        return sparse.csr_array(matrix), right

    def _solve(
        self,
        objective: Floats,
        unit: float,
        limited: Sequence[tuple[Average, float]],
        relaxed: Floats,
        monitor: Monitor,
        attempts: Attempts = ATTEMPTS,
    ) -> Occupation:
        """Minimise the objective; where inequalities are relaxed, one more variable t."""
        matrix, right = self._equations
        sizes = np.array([average.size(self.rows) or 1.0 for average, _ in limited])
        lines = [
            self._coefficients(average) / size
            for (average, _), size in zip(limited, sizes, strict=True)
        ]
        left = sparse.csr_array(np.array(lines).reshape(sizes.size, objective.size))
        if relaxed.any():
            objective = np.append(objective, 1.0)
            matrix = sparse.csr_array(sparse.hstack([matrix, sparse.csr_array((right.size, 1))]))
            left = sparse.csr_array(sparse.hstack([left, -(relaxed / sizes)[:, None]]))
        bound = np.array([limit for _, limit in limited]) / sizes
        basis = self._basis(objective.size, right.size, bound.size)
        found = linear_program(objective, (matrix, right), (left, bound), monitor, basis, attempts)
        columns = self._columns
        y = found.x[: columns.count] * self._time[columns.state]
        law, weight = columns.spread(y)
        return Occupation(
            law=law,
            weight=weight,
            values=unit * found.equal[: self.rows.n] / (self._rate * self._time),
            multipliers=unit * found.below / sizes,
            noise=NOISE * self._time,
        )

    def _basis(self, count: int, equations: int, inequalities: int) -> Basis | None:
        """The basis of the policy to start from: of its balance equations one is redundant."""
        if self.start is None or self.expected is None:
            return None
        columns, taken = self._columns, np.zeros(self.rows.state.size + 1, np.bool_)
        taken[self.start] = True
        taken[-1] = True  # row -1 stands for a state without a choice
        variables, equal = np.zeros(count, np.bool_), np.zeros(equations, np.bool_)
        variables[: columns.count] = taken[columns.row]
        equal[int(np.argmax(self.expected))] = True
        return Basis(variables, equal, np.ones(inequalities, np.bool_))
