"""Cost and measures of a given policy; one step of policy improvement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mdpcloud.criteria import (
    AverageCost,
    Criterion,
    FiniteHorizon,
    TotalCost,
    discount_rate,
)
from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rules import policy_for
from mdpcloud.engine.structure import end_components
from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.model.policy import Policy, policy_of
from mdpcloud.solve.certificate import rounding_margin
from mdpcloud.solve.chains import SingularChainError
from mdpcloud.solve.classes import evaluate_classes
from mdpcloud.solve.fixed import FixedResult, FixedSolver
from mdpcloud.solve.limits import Goal, Monitor, Progress, Status, check_tolerance
from mdpcloud.solve.measures import measure_rates
from mdpcloud.solve.result import Evaluation, Solution, insist
from mdpcloud.solve.reward import costs_of, signed, signed_progress, value_bounds

__all__ = ["evaluate", "evaluate_compiled", "improve"]

Bounds = tuple[float, float]
TINY = 1e-300  # cost/time: a width of 0


def evaluate(
    model: Any,
    policy: Any,
    criterion: Criterion = AverageCost(),  # noqa: B008  (frozen)
    *,
    tolerance: float = 1e-10,
    time_limit: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Evaluation:
    """Cost, relative values and measures of a policy.

    Parameters
    ----------
    model : Model or TabularModel
    policy : Policy, TimedPolicy, or what `mdpcloud.policy` takes
        Deterministic or randomised; one that changes with time needs a finite horizon.
    criterion : AverageCost, Discounted, FiniteHorizon or TotalCost
    tolerance : float
        Relative width of the certified bounds; no finer than 1e-12 times the largest cost rate.
    time_limit : float, optional
        Seconds.
    threads : int
    progress : function of (iterations, lower, upper), optional
    strict : bool
        Raise `SolveError` when the tolerance is not met; it carries the partial result.

    Returns
    -------
    Evaluation
        ``measures`` holds certified bounds of the long-run average of each of the model's measures
        (average cost only).

    Raises
    ------
    InputError
        When the policy does not fit the model.
    SolveError
        When the tolerance was not met.
    """
    monitor = Monitor(None, time_limit, signed_progress(model, progress))
    check_tolerance(tolerance)
    entry = _special(criterion)
    if entry is None:
        problem = compile_model(model, threads=threads)
        policy = policy_for(problem, policy)
        evaluation = evaluate_compiled(model, problem, policy, criterion, tolerance, monitor)
    else:
        evaluation = entry(
            model, policy, criterion, tolerance=tolerance, monitor=monitor, threads=threads
        )
    if strict:
        insist(evaluation, tolerance, _missed(evaluation, tolerance))
    return evaluation


def _missed(evaluation: Evaluation, tolerance: float) -> str:
    """The measure that is furthest from the tolerance, if the cost met it; else an empty string."""
    if evaluation.converged or not evaluation.measures or np.ndim(evaluation.bounds[0]):
        return ""
    goal = Goal(tolerance, 0.0)

    def excess(bounds: Bounds) -> float:
        return (bounds[1] - bounds[0]) / max(goal.width(*bounds), TINY)

    worst = max(evaluation.measures, key=lambda name: excess(evaluation.measures[name]))
    return worst if excess(evaluation.bounds) <= 1.0 < excess(evaluation.measures[worst]) else ""


def _special(criterion: Criterion) -> Any:
    """What evaluates under a criterion with an entry of its own; None where there is none."""
    if isinstance(criterion, FiniteHorizon):
        from mdpcloud.solve.horizon.horizon import evaluate_horizon

        return evaluate_horizon
    if isinstance(criterion, TotalCost):
        from mdpcloud.solve.total.total import evaluate_total

        return evaluate_total
    return None


def evaluate_compiled(
    model: Any,
    problem: Any,
    policy: Policy,
    criterion: Criterion,
    tolerance: float,
    monitor: Monitor,
) -> Evaluation:
    """Average or discounted cost of a policy of a model that is compiled; partial if need be."""
    discount = discount_rate(criterion, problem.discrete)
    choice = policy.choice(problem)
    fixed: Any = problem.mixed(choice) if policy.randomised else problem.under(choice)
    wanted = {} if discount else measure_rates(model, problem, choice)
    found = _solve_each(fixed, wanted, tolerance, discount, monitor)
    if found is None:
        return evaluate_classes(model, policy, fixed, wanted, tolerance, monitor)
    return _assemble(model, policy, criterion, *found, discount, monitor)


def _solve_each(
    fixed: Any, wanted: Mapping[str, Floats], tolerance: float, discount: float, monitor: Monitor
) -> tuple[FixedResult, dict[str, FixedResult]] | None:
    """The cost and each measure; None where there are several recurrent classes."""
    solver = FixedSolver(tolerance, discount, monitor)
    try:
        cost = solver.solve(fixed)
        measures = solver.solve_rates(fixed, wanted)
    except SingularChainError as error:
        if discount:
            raise SolveError(f"the discounted values cannot be computed: {error}") from error
        return None
    if _worst(cost, measures) in (Status.STALLED, Status.PRECISION) and not discount:
        return None if end_components(fixed.rows()).count > 1 else (cost, measures)
    return cost, measures


def _worst(cost: FixedResult, measures: Mapping[str, FixedResult]) -> Status:
    missed = (r.status for r in (cost, *measures.values()) if r.status is not Status.CONVERGED)
    return next(missed, Status.CONVERGED)


def _assemble(
    model: Any,
    policy: Policy,
    criterion: Criterion,
    result: FixedResult,
    measures: Mapping[str, FixedResult],
    discount: float,
    monitor: Monitor,
) -> Evaluation:
    lower, upper = value_bounds(result.values, result.low, result.high, criterion, discount)
    values = 0.5 * (np.asarray(lower) + np.asarray(upper)) if discount else result.values
    gains = np.full(0 if discount else values.size, 0.5 * (result.low + result.high))
    gains, bounds, values = signed(model, gains, (lower, upper), values)
    return Evaluation(
        gains=gains,
        bounds=bounds,
        values=values,
        policy=policy,
        status=_worst(result, measures),
        iterations=monitor.iterations,
        solver="fixed_policy",
        elapsed=monitor.elapsed,
        criterion=criterion,
        measures={name: (r.low, r.high) for name, r in measures.items()},
    )


def improve(model: Any, policy_or_evaluation: Any) -> Policy:
    """One exact step of policy improvement: the greedy policy of a policy's relative values.

    Parameters
    ----------
    model : Model or TabularModel
    policy_or_evaluation : Policy, Evaluation, Solution, or what `mdpcloud.policy` takes

    Returns
    -------
    Policy
        Its gain is no larger than that of the policy (under discounting: its values); ties go to
        the first action.

    Raises
    ------
    MultichainError
        When the policy has several recurrent classes: its relative values in different classes
        cannot be compared.
    """
    evaluation = policy_or_evaluation
    if not isinstance(evaluation, (Evaluation, Solution)):
        evaluation = evaluate(model, policy_or_evaluation)
    average = isinstance(evaluation.criterion, AverageCost)
    if average and np.ndim(evaluation.bounds[0]):
        raise MultichainError(
            "the policy has several recurrent classes, so that its relative values do not say what "
            f"is better; its gains lie between {evaluation.gains.min():.6g} and "
            f"{evaluation.gains.max():.6g}"
        )
    if isinstance(evaluation.criterion, FiniteHorizon):
        raise InputError("over a finite horizon solve gives the optimal policy at once")
    problem = compile_model(model)
    if evaluation.values.size != problem.n:
        raise InputError(
            f"the evaluation has {evaluation.values.size} states, the model {problem.n}"
        )
    h = problem.pack(costs_of(model, evaluation.values, evaluation.criterion))
    return policy_of(problem, problem.greedy(h, rounding_margin(problem, h)))
