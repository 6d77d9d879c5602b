"""Linear programming over occupation measures (Manne 1960), certified.

HiGHS solves the program of `mdpcloud.solve.constrained.occupation`. Its duals satisfy the
optimality equation to about 1e-10 of the largest cost rate where the chain is often, but where it
hardly ever is nothing ties them down. So the policy of the program's basis is evaluated, and policy
iteration goes on from its values until the certified bounds meet the goal: one or two rounds, as a
rule, which repair the rare states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.certificate import certify
from mdpcloud.solve.chains import SingularChainError
from mdpcloud.solve.constrained.highs import Unsolved
from mdpcloud.solve.constrained.occupation import Average, Occupation, OccupationProgram
from mdpcloud.solve.fixed import FixedSolver
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.outcome import Outcome
from mdpcloud.solve.policy_iteration import PolicyIteration

__all__ = ["LinearProgramming", "likeliest_rows"]


@dataclass(frozen=True)
class LinearProgramming:
    """The linear program of occupation measures, by HiGHS's simplex method through cvxpy.

    Parameters
    ----------
    polish : PolicyIteration
        Goes on from the values of the program's policy.
    """

    polish: PolicyIteration = field(default_factory=lambda: PolicyIteration(warm_up=1))
    name = "linear_programming"

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Solve; the start is what is left where the program cannot be solved.

        Raises
        ------
        InputError
            When there are more than `mdpcloud.solve.constrained.occupation.MOST_ROWS` rows.
        """
        if not problem.rows().state.size:  # nothing to decide and nothing that moves
            return self.polish.run(problem, goal, monitor, start)
        program = OccupationProgram(problem.rows(), goal.discount)
        try:
            h = problem.pack(_values(problem, program, goal, monitor))
        except Unsolved:
            return _at(start, problem, goal, Status.STALLED)
        except Stopped as stop:
            return _at(start, problem, goal, stop.status)
        except KeyboardInterrupt:
            return _at(start, problem, goal, Status.INTERRUPTED)
        return self.polish.run(problem, goal, monitor, h)


def _at(h: Floats, problem: Any, goal: Goal, status: Status) -> Outcome:
    return Outcome(h, certify(problem, h, goal.discount), status)


def _values(problem: Any, program: OccupationProgram, goal: Goal, monitor: Monitor) -> Floats:
    """Values of the program's policy, or its duals where the policy has several classes."""
    rows = program.rows
    found = program.minimise(Average(rows.cost_rate, rows.cost), monitor=monitor)
    explicit = RowsProblem(rows, problem.terms, problem.discrete)
    fixed = explicit.under(explicit.choice_of(likeliest_rows(rows, found)))
    try:
        return FixedSolver(goal.tolerance, goal.discount, monitor).solve(fixed).values
    except SingularChainError:
        return found.values


def likeliest_rows(rows: Rows, found: Occupation) -> NDArray[np.int64]:
    """Row of the largest weight of each state and term; the first one in states never visited."""
    order = np.lexsort((-np.arange(rows.state.size), found.weight, rows.group))
    last = np.append(rows.groups[1:], rows.state.size) - 1
    return np.sort(order[last])
