"""The proper policy of least total cost, with proved bounds, however the search for it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.engine.rows import Rows, RowsProblem
from mdpcloud.engine.structure import EndComponents
from mdpcloud.errors import SolveError
from mdpcloud.solve.limits import Monitor, Status, Stopped
from mdpcloud.solve.multichain import outer_choice
from mdpcloud.solve.total.border import check_reached
from mdpcloud.solve.total.bounds import (
    above_policy,
    exactly_below,
    margins,
    scaled,
    scaled_lower,
    scaled_upper,
    shortfall,
    trivial,
    wider,
)
from mdpcloud.solve.total.chains import DIRECT, chain_solver, refined
from mdpcloud.solve.total.paths import Pair, Paths, paths_of
from mdpcloud.solve.total.policies import SMALL, ImproperError, Search
from mdpcloud.solve.total.structure import Backwards, Bools, Longs, free_components, hopeful

__all__ = ["Optimum", "optimal"]

MAX_WIDENINGS = 40
"""Each at least doubles the change of the cost rates."""

Refusal = Callable[[RowsProblem, Bools, Callable[[Any], Any]], None]
"""Raises an error if a policy that is not proper earns where it stays.

Called with the policy, the states from where it does not reach the end, and a function from states
of it to those of the model.
"""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least total cost.

    Parameters
    ----------
    lower, upper : (n,) arrays
        Certified bounds on it, infinite where no policy is proper.
    choice : (n_terms, n) array
        A policy whose total cost is at most the upper bound.
    proper : (n,) bool array
        From where some policy reaches the targets with probability 1.
    status : Status
        PRECISION unless the search was stopped.
    """

    lower: Floats
    upper: Floats
    choice: Choice
    proper: Bools
    status: Status


def optimal(
    problem: Any, targets: Bools, monitor: Monitor, refuse: Refusal, tolerance: float
) -> Optimum:
    """Minimise the total cost before the targets over the proper policies.

    The bounds are as narrow as floats allow; on large problems a relative tolerance will do.
    """
    table = problem.rows()
    able = hopeful(Backwards(table), targets)
    check_reached(problem, table, targets, able.states)
    free = free_components(Backwards(table), able.rows, targets | ~able.states)
    paths = paths_of(table, able, targets, free)
    run = _Run(problem, paths, monitor, refuse)
    lower, upper, status = run.bounds(tolerance)
    chosen = paths.origin[run.search.chosen]
    return Optimum(
        np.where(able.states, lower[paths.number], np.inf),
        np.where(able.states, upper[paths.number], np.inf),
        _choice(problem, table, free, chosen),
        able.states,
        status,
    )


class _Run:
    """A search, and the bounds of what it found, however it ended."""

    def __init__(self, problem: Any, paths: Paths, monitor: Monitor, refuse: Refusal) -> None:
        self.problem, self.paths, self.monitor, self.refuse = problem, paths, monitor, refuse
        self.search = Search(paths, paths.approach()[0], Pair.of(np.zeros(paths.n)), monitor)

    def bounds(self, tolerance: float) -> tuple[Floats, Floats, Status]:
        """Lower and upper bounds (m,), and how it ended."""
        paths, search, lower, upper = self.paths, self.search, None, None
        status = Status.PRECISION
        try:
            if paths.n > SMALL:
                search.warm_up()
            search.run(np.zeros(paths.n))
            quick = self._scaled(tolerance) if paths.n > DIRECT else None
            if quick is not None:
                return *quick, status
            upper = self._upper(self.monitor)
            lower = self._lower()
        except Stopped as stop:
            status = stop.status
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except ImproperError as improper:
            self._refuse(improper)
        except SolveError:  # too large or too hard to reach for floats: the trivial bounds are left
            search.u = Pair.of(np.zeros(paths.n))
        if lower is None:
            lower = scaled_lower(paths, search.u)
        if upper is None:
            upper = self._upper(Monitor()) if paths.n <= DIRECT else self._scaled_upper()
        least = trivial(paths)
        return least if lower is None else np.maximum(least, lower), self._finite(upper), status

    def _fixed(self) -> Paths:
        return self.paths.under(self.search.chosen)

    def _scaled(self, tolerance: float) -> tuple[Floats, Floats] | None:
        return scaled(self.paths, self._fixed(), self.search.u, tolerance)

    def _scaled_upper(self) -> Floats | None:
        return scaled_upper(self._fixed(), self.search.u)

    def _finite(self, upper: Floats | None) -> Floats:
        return np.where(self.paths.terminal, 0.0, np.inf) if upper is None else upper

    def _upper(self, monitor: Monitor) -> Floats | None:
        """A bound above the cost of the policy found."""
        fixed = self._fixed()
        try:
            solve = chain_solver(fixed, monitor)
            u = refined(fixed, solve, self.search.u, np.zeros(fixed.n))
            return above_policy(fixed, solve, u)
        except SolveError:
            return None

    def _lower(self) -> Floats | None:
        """A bound below the optimum: the optimum for cost rates that are a little smaller."""
        margin = margins(self.paths, self.search.u)
        other = Search(self.paths, self.search.chosen, self.search.u, self.monitor)
        for _ in range(MAX_WIDENINGS):
            try:
                other.run(-margin)
            except ImproperError as improper:
                self._refuse(improper)
                u = self.search.u
                return u.below() if exactly_below(self.paths, u) else None
            wrong = shortfall(self.paths, other.u)
            if wrong.max(initial=0.0) <= 0.0:
                return other.u.below()
            margin = wider(self.paths, margin, other.u.high - self.search.u.high, wrong)
        return None

    def _refuse(self, improper: ImproperError) -> None:
        number = self.paths.number
        fixed = RowsProblem(self.paths.table.select(improper.rows), self.problem.terms)
        self.refuse(fixed, improper.states, lambda kept: np.flatnonzero(np.isin(number, kept)))


def _choice(problem: Any, table: Rows, free: EndComponents | None, chosen: Longs) -> Choice:
    """The choice with these rows; where there are none, the first action, or the way to an exit."""
    rows = table.groups.copy()
    rows[table.group[chosen]] = chosen
    if free is None:
        return RowsProblem(table, problem.terms).choice_of(rows)
    exits = chosen[free.label[table.state[chosen]] >= 0]
    outside = rows[free.label[table.state[rows]] < 0]
    return outer_choice(problem, table, free, np.append(outside, exits), exits)
