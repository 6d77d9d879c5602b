"""Policy iteration (Howard 1960), with inexact evaluation on large models.

Each round takes the greedy policy of h, solves its Poisson equation (`mdpcloud.solve.chains`),
directly where that is cheap (`mdpcloud.solve.direct`), else until its residual is a tenth of the
bracket, and sweeps on from there, which brackets the optimum. It stops when the certified bounds
meet the goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.solve.certificate import certify, rounding_margin
from mdpcloud.solve.chains import DirectChain, SingularChainError, solve_iteratively
from mdpcloud.solve.direct import direct_limit
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.outcome import FIRST_PART, Outcome, sharpen
from mdpcloud.solve.value_iteration import Sweeper

__all__ = ["PolicyIteration"]

IDLE = 6  # rounds without progress after which it gives up; at once where the policy is the same


@dataclass(frozen=True)
class PolicyIteration:
    """Policy iteration; fast wherever policies are cheap to evaluate.

    Parameters
    ----------
    direct : int, optional
        States up to which a policy is evaluated by sparse LU; None decides by the model's shape.
    forcing : float
        Residual of an iterative evaluation over the current bracket.
    warm_up : int
        Sweeps of value iteration at the start, so that the first policy is a sensible one.
    products : int
        Matrix-vector products per evaluation.
    polish : int
        Most sweeps after each evaluation. A round changes the policy along the edge of each
        action's region only; sweeps carry the change on, and cost less than more rounds.
    """

    direct: int | None = None
    forcing: float = 0.1
    warm_up: int = 30
    products: int = 400
    polish: int = 300
    name = "policy_iteration"

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Solve from a work array of relative values."""
        search = _Search(self, problem, goal, monitor, start)
        try:
            status = search.close()
        except Stopped as stop:
            status = stop.status
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return Outcome(search.h, certify(problem, search.h, goal.discount), status)


class _Search:
    """The rounds of policy iteration."""

    def __init__(
        self, solver: PolicyIteration, problem: Any, goal: Goal, monitor: Monitor, start: Floats
    ) -> None:
        self.solver, self.problem, self.goal, self.monitor = solver, problem, goal, monitor
        self.sweeper = Sweeper(problem, goal, monitor, start)
        self.pinned: int | None = None
        self.choice: Choice | None = None
        self.repeats = False
        self.direct = direct_limit(problem) if solver.direct is None else solver.direct

    @property
    def h(self) -> Floats:
        """Relative values so far."""
        return self.sweeper.h

    def close(self) -> Status:
        """Rounds until the certificate meets the goal or nothing improves."""
        sweeper = self.sweeper
        sweeper.sweep(self.solver.warm_up, 0.0)
        part: float | None = FIRST_PART
        best, idle = sweeper.plain, 0
        while part is not None:
            if sweeper.plain <= part * sweeper.width() or idle >= IDLE:
                certificate = certify(self.problem, self.h, self.goal.discount)
                if idle >= IDLE or certificate.width <= sweeper.width():
                    return sweeper.ending(certificate)
                part = sharpen(certificate, sweeper.plain, sweeper.width(), part)
                continue
            if not self._round(part):
                return Status.STALLED
            idle += IDLE if self.repeats else 1
            if sweeper.plain < 0.9 * best:
                idle = 0
            best = min(best, sweeper.plain)
        return Status.PRECISION

    def _round(self, part: float) -> bool:
        """Evaluate the greedy policy and sweep; False when its chain has several classes."""
        h = self.h
        choice = self.problem.greedy(h, rounding_margin(self.problem, h))
        self.repeats = self.choice is not None and np.array_equal(choice, self.choice)
        self.choice = choice
        fixed = self.problem.under(choice)
        try:
            values = self._evaluate(fixed, self.problem.unpack(h), part)
        except SingularChainError:
            return False
        if values is None:
            self.sweeper.sweep(10 * self.solver.warm_up, 0.0)
            return True
        self.sweeper.h = self.problem.pack(values)
        self.sweeper.shift = 0.0
        self.sweeper.sweep(self.solver.polish, part * self.sweeper.width())
        return True

    def _evaluate(self, fixed: Any, h: Floats, part: float) -> Floats | None:
        discount = self.goal.discount
        if fixed.n <= self.direct:
            generator, cost = fixed.chain()
            chain = DirectChain(generator, discount, self.pinned)
            self.pinned = chain.pinned
            self.monitor.count(1)
            return chain.solve(cost)
        plain = self.sweeper.plain
        aim = max(self.solver.forcing * plain, 0.3 * part * self.sweeper.width())
        values, spread = solve_iteratively(
            fixed, h, aim, self.solver.products, discount, self.monitor
        )
        return values if spread < 0.9 * plain and np.isfinite(values).all() else None
