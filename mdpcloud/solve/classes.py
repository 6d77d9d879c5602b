"""Solutions and evaluations whose gain depends on the initial state.

The model is split into maximal end components (`mdpcloud.solve.multichain`); each is solved by the
solvers of this package, and bounds are given per state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.structure import end_components
from mdpcloud.model.policy import Policy, policy_of
from mdpcloud.solve.limits import Goal, Monitor, Status
from mdpcloud.solve.multichain import Multichain, multichain
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.reward import signed
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["bounds_by_state", "evaluate_classes", "solve_components"]

COMPONENT_TOLERANCE = 0.1  # share of the tolerance that each component gets


def solve_components(
    model: Any, problem: Any, tolerance: float, monitor: Monitor
) -> Solution | None:
    """The solution by end components; None where there is one, so that the gain is one number."""
    if end_components(problem.rows()).count < 2:
        return None
    found, status = bounds_by_state(problem, tolerance, monitor)
    gains, bounds, values = _signed(model, found)
    return Solution(
        gains=gains,
        bounds=bounds,
        values=values,
        policy=policy_of(problem, found.choice),
        status=status,
        iterations=monitor.iterations,
        solver="end_components",
        elapsed=monitor.elapsed,
        reason="there are several end components, so that the gain may depend on the state",
    )


def _signed(model: Any, found: Multichain) -> tuple[Floats, tuple[Any, Any], Floats]:
    middle = 0.5 * (found.lower + found.upper)
    return signed(model, middle, (found.lower, found.upper), found.values)


def bounds_by_state(problem: Any, tolerance: float, monitor: Monitor) -> tuple[Multichain, Status]:
    """Bounds by state, certified also where a component stopped early, and how it ended."""
    missed = Status.STALLED

    def solve_component(piece: RowsProblem) -> tuple[float, float, Floats, Choice]:
        nonlocal missed
        goal = Goal(COMPONENT_TOLERANCE * tolerance, piece.cost_scale or 1.0)
        start = piece.pack(np.zeros(piece.n))
        outcome = PolicyIteration().run(piece, goal, monitor, start)
        if outcome.status is Status.STALLED:
            outcome = ValueIteration().run(piece, goal, monitor, outcome.h)
        if outcome.status is not Status.CONVERGED:
            missed = outcome.status
        if outcome.status is Status.INTERRUPTED:
            monitor.end(outcome.status)
        certificate = outcome.certificate
        return certificate.low, certificate.high, piece.unpack(outcome.h), certificate.choice

    found = multichain(problem, solve_component)
    goal = Goal(tolerance, problem.cost_scale)
    widths = [goal.width(lo, hi) for lo, hi in zip(found.lower, found.upper, strict=True)]
    met = (found.upper - found.lower <= np.array(widths)).all()
    return found, Status.CONVERGED if met else missed


def evaluate_classes(
    model: Any,
    policy: Policy,
    fixed: Any,
    wanted: Mapping[str, Floats],
    tolerance: float,
    monitor: Monitor,
) -> Evaluation:
    """A policy whose chain has several recurrent classes: gains and measures per state."""
    found, status = bounds_by_state(fixed, tolerance, monitor)
    gains, bounds, values = _signed(model, found)
    measures: dict[str, Any] = {}
    for name, rate in wanted.items():
        measure, ended = bounds_by_state(fixed.with_cost(rate), tolerance, monitor)
        measures[name] = (measure.lower, measure.upper)
        status = ended if status is Status.CONVERGED else status
    return Evaluation(
        gains=gains,
        bounds=bounds,
        values=values,
        policy=policy,
        status=status,
        iterations=monitor.iterations,
        solver="end_components",
        elapsed=monitor.elapsed,
        measures=measures,
    )
