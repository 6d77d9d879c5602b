"""Policy iteration for total cost.

It starts from a proper policy and takes rows only where they are surely better, so that costs fall
from round to round. A policy that is no longer proper then has a recurrent class whose mean cost is
negative, so that there is no optimum (Bertsekas and Tsitsiklis, An analysis of stochastic shortest
path problems, 1991, Proposition 2). Large problems begin with Gauss-Seidel sweeps, from the targets
backwards, over the optimality equation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.total.chains import chain_solver, refined
from mdpcloud.solve.total.kernels import relax_best
from mdpcloud.solve.total.paths import Pair, Paths
from mdpcloud.solve.total.structure import Bools, Longs

__all__ = ["ImproperError", "Search"]

SMALL = 150
"""States up to which no sweeps come before the policies."""

SWEEPS = 200

SETTLED = 1e-4
"""Part of the largest value: sweeps that change less are the last."""


class ImproperError(Exception):
    """A policy keeps the process in some states for ever.

    Parameters
    ----------
    rows : (m,) array
        Its rows, one per state and term.
    states : (n,) bool array
        From where it does not reach the end for certain.
    """

    def __init__(self, rows: Longs, states: Bools) -> None:
        super().__init__("a policy is not proper")
        self.rows, self.states = rows, states


@dataclass(eq=False)
class Search:
    """Policy iteration, which can be left at any point.

    Parameters
    ----------
    paths : Paths
    chosen : (m,) array
        Rows of a proper policy, one per state and term.
    u : Pair
        Values to start from.
    monitor : Monitor
    """

    paths: Paths
    chosen: Longs
    u: Pair
    monitor: Monitor

    def run(self, shift: Floats) -> None:
        """Improve until no row is surely better.

        Raises
        ------
        ImproperError
            When a policy is better than a proper one without being proper.
        """
        better: Longs | None = self.chosen
        while better is not None:
            self.accept(better)
            fixed = self.paths.under(better)
            self.u = refined(fixed, chain_solver(fixed, self.monitor), self.u, shift)
            self._count(1)
            better = self.paths.improved(self.u, shift, self.chosen)

    def accept(self, rows: Longs) -> None:
        """Go on with a policy, which has to be proper."""
        missed = self.paths.not_proper(rows)
        if missed.any():
            raise ImproperError(rows, missed)
        self.chosen = rows

    def warm_up(self) -> None:
        """Sweep over the optimality equation, and go on with the policy that is best then.

        Where that is not proper, the first policy leads back to where it is.
        """
        first, values = self.paths.approach()
        self.u = Pair.of(values)
        try:
            self._sweep(values)
        finally:
            better = self.paths.improved(self.u, np.zeros(self.paths.n), first)
            if better is not None:
                table = self.paths.table
                missed = self.paths.not_proper(better)[table.state[table.groups]]
                self.accept(np.where(missed, first, better))

    def _sweep(self, values: Floats) -> None:
        """Sweep in place until little changes."""
        paths, table = self.paths, self.paths.table
        parts = table.first, table.term, table.cost_rate, table.cost, *paths.moves, paths.leaving
        for _ in range(SWEEPS):
            change = relax_best(paths.order, *parts, values)
            self._count(1)
            if not change > SETTLED * float(np.abs(values).max(initial=0.0)):
                break

    def _count(self, done: int) -> None:
        self.monitor.report(-np.inf, float(self.u.high.max(initial=0.0)))
        self.monitor.count(done)
