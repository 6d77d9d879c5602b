"""The linear program of a constrained problem, scaled by a law near the one it will find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.structure import end_components
from mdpcloud.errors import MultichainError, SolveError
from mdpcloud.solve.constrained.dual import go_on
from mdpcloud.solve.constrained.highs import WARM, Unsolved
from mdpcloud.solve.constrained.occupation import Average, Occupation, OccupationProgram
from mdpcloud.solve.constrained.report import InfeasibleError, message_of, report_of
from mdpcloud.solve.constrained.terms import Constraint
from mdpcloud.solve.limits import Goal, Monitor
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.stationary.stationary import stationary

__all__ = ["Guess", "law_of_chain", "occupation", "refuse_components", "unconstrained"]

EASED = 1e-9  # of a constraint's unit: how far a limit that can just be met is relaxed
ROUGH = 1e-10  # relative: how well the unconstrained optimum is solved for


def refuse_components(problem: RowsProblem) -> None:
    """Raise `MultichainError` where a policy can stay in different sets of states."""
    parts = end_components(problem.table)
    if parts.count > 1:
        firsts = [problem.label(int(parts.states(k)[0])) for k in range(2)]
        raise MultichainError(
            f"the model has {parts.count} end components (sets of states that a policy can stay "
            f"in), such as those of states {firsts[0]} and {firsts[1]}; what is best within limits "
            "then depends on the initial state and need not be a stationary policy: solve each "
            "part as a model of its own"
        )


@dataclass(frozen=True, eq=False)
class Guess:
    """What is known before the program is solved.

    Attributes
    ----------
    law : (n,) array or None
        A law that the solution's is expected to be near.
    rows : (groups,) array or None
        Rows of the policy with that law, if it is deterministic.
    """

    law: Floats | None = None
    rows: NDArray[np.int64] | None = None


def unconstrained(problem: Any, explicit: RowsProblem, monitor: Monitor) -> Guess:
    """The best policy without constraints.

    Its basis is optimal but for the constraints: the dual simplex method adds them one by one.

    Raises
    ------
    Stopped
        At a limit of the monitor.
    """
    goal = Goal(ROUGH, problem.cost_scale or 1.0)
    start = problem.pack(np.zeros(problem.n))
    outcome = PolicyIteration().run(problem, goal, monitor, start)
    go_on(outcome.status)
    choice = outcome.certificate.choice
    law = law_of_chain(explicit.under(choice))
    return Guess(law, None if law is None else explicit.chosen(choice))


def law_of_chain(fixed: Any) -> Floats | None:
    """Stationary law (n,) of an uncontrolled problem, None if there is not one that is found."""
    generator, _ = fixed.chain()
    try:
        return stationary(generator, tolerance=1e-6)
    except (MultichainError, SolveError):
        return None


def occupation(
    problem: RowsProblem,
    wanted: Sequence[Constraint],
    guess: Guess,
    tolerance: float,
    monitor: Monitor,
) -> Occupation:
    """The program's solution, with limits relaxed a little where they can only just be met.

    Raises
    ------
    InfeasibleError
        When no policy meets the constraints, which is proved.
    Unsolved
        When HiGHS does not solve the program.
    Stopped
        At a limit of the monitor.
    """
    rows = problem.table
    program = OccupationProgram(rows, expected=guess.law, start=guess.rows)
    cost = Average(rows.cost_rate, rows.cost)
    limited = [(c.average, c.limit) for c in wanted]
    try:
        return program.minimise(cost, limited, monitor=monitor, attempts=WARM)
    except Unsolved:
        report = report_of(problem, program, wanted, monitor)
    lower, missed = report.violation
    if lower > 0.0 and missed > 0.5 * tolerance:
        raise InfeasibleError(message_of(report), report)
    try:
        return program.minimise(cost, limited, monitor=monitor)
    except Unsolved as error:
        if not error.infeasible:
            raise
    eased = [(c.average, c.limit + (missed + EASED) * c.unit) for c in wanted]
    return program.minimise(cost, eased, monitor=monitor)
