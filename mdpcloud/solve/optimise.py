"""`solve`: the optimal policy of a model, with certified bounds.

Policy iteration comes first; where its policies have several recurrent classes or its rounds do not
close the bracket, value iteration goes on from its values. Where the bracket stalls and the model
has several maximal end components, the gain may depend on the state: then each is solved by itself
(`mdpcloud.solve.multichain`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.policy import Policy, policy_of
from mdpcloud.solve.criteria import AverageCost, Criterion
from mdpcloud.solve.limits import Goal, Monitor, Progress, Status
from mdpcloud.solve.outcome import Outcome
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.reward import signed, value_bounds
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["SOLVERS", "Solver", "solve"]


class Solver(Protocol):
    """A solver: settings, a name, and one method."""

    @property
    def name(self) -> str:
        """For results and messages."""
        ...

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Solve from a work array of relative values."""
        ...


SOLVERS: dict[str, Callable[[], Solver]] = {
    solver.name: solver for solver in (PolicyIteration, ValueIteration)
}


def solve(
    model: Any,
    criterion: Criterion = AverageCost(),  # noqa: B008  (frozen)
    *,
    solver: str | Solver | None = None,
    tolerance: float = 1e-8,
    start: Any = None,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Solution:
    """The optimal policy and cost of a model.

    Parameters
    ----------
    model : Model or TabularModel
    criterion : AverageCost or Discounted
    solver : {"policy_iteration", "value_iteration"}, a solver, or None
        None takes policy iteration, then value iteration where that fails.
    tolerance : float
        Relative: it stops when upper - lower <= max(tolerance |gain|, 1e-12 times the largest cost
        rate).
    start : (n,) array, Solution or Evaluation, optional
        Values to start from.
    max_iterations : int, optional
        Sweeps, products with the generator and direct solves together.
    time_limit : float, optional
        Seconds.
    threads : int
    progress : function of (iterations, lower, upper), optional
        Called during the solve; the bounds are not yet certified.
    strict : bool
        Raise `SolveError` when the tolerance is not met; it carries the partial result. With False
        the partial result is returned, its ``status`` says what happened.

    Returns
    -------
    Solution

    Raises
    ------
    InputError
        When the model or an argument is wrong.
    SolveError
        When the tolerance was not met.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> solution = mc.solve(mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0]))
    >>> solution.gain, solution.bounds[0] <= 0.5 <= solution.bounds[1]
    (0.5, True)
    """
    problem: Any = compile_model(model, threads=threads)
    discount = (
        criterion.rate_for(problem.discrete) if not isinstance(criterion, AverageCost) else 0.0
    )
    goal = Goal(tolerance, problem.cost_scale, discount)
    monitor = Monitor(max_iterations, time_limit, progress)
    h = problem.pack(_start_values(start, problem, model))
    for candidate in _candidates(solver):
        outcome = candidate.run(problem, goal, monitor, h)
        if outcome.status is Status.STALLED and not discount:
            several = _several_components(model, problem, tolerance, monitor)
            if several is not None:
                return several
        if outcome.status is not Status.STALLED:
            break
        h = outcome.h
    solution = _assemble(model, problem, criterion, outcome, candidate.name, monitor, discount)
    if outcome.status is not Status.CONVERGED and strict:
        raise SolveError(_failure(solution, outcome, goal), solution)
    return solution


def _candidates(solver: str | Solver | None) -> Sequence[Solver]:
    if solver is None:
        return [make() for make in SOLVERS.values()]
    if not isinstance(solver, str):
        return [solver]
    if solver not in SOLVERS:
        raise InputError(f"solver {solver!r} is unknown; there are {list(SOLVERS)}")
    return [SOLVERS[solver]()]


def _start_values(start: Any, problem: Any, model: Any) -> Floats:
    if start is None:
        return np.zeros(problem.n)
    if isinstance(start, (Solution, Evaluation)):
        start = getattr(model, "sense", 1) * start.values
    if isinstance(start, Policy):
        raise InputError("start takes values, not a policy; give evaluate(model, policy)")
    values = np.asarray(start, dtype=np.float64)
    if values.shape != (problem.n,) or not np.isfinite(values).all():
        raise InputError(f"start has shape {values.shape}; it must be {problem.n} finite values")
    return values


def _several_components(
    model: Any, problem: Any, tolerance: float, monitor: Monitor
) -> Solution | None:
    """The solution by end components, where there are several; else None."""
    from mdpcloud.solve.classes import solve_components

    return solve_components(model, problem, tolerance, monitor)


def _assemble(
    model: Any,
    problem: Any,
    criterion: Criterion,
    outcome: Outcome,
    name: str,
    monitor: Monitor,
    discount: float,
) -> Solution:
    certificate = outcome.certificate
    h = problem.unpack(outcome.h)
    lower, upper = value_bounds(h, certificate.low, certificate.high, criterion, discount)
    values = 0.5 * (np.asarray(lower) + np.asarray(upper)) if discount else h - h[h.size // 2]
    gain = 0.5 * (certificate.low + certificate.high)
    gains, bounds, values = signed(model, np.full(h.size, gain), (lower, upper), values)
    return Solution(
        gains=gains,
        bounds=bounds,
        values=values,
        policy=policy_of(problem, certificate.choice),
        status=outcome.status,
        iterations=monitor.iterations,
        solver=name,
        elapsed=monitor.elapsed,
        criterion=criterion,
    )


def _failure(solution: Solution, outcome: Outcome, goal: Goal) -> str:
    low, high = outcome.certificate.low, outcome.certificate.high
    width = high - low
    if outcome.status is Status.PRECISION and not goal.discount:
        size = max(abs(low), abs(high))
        reachable = f"about {1.1 * width / size:.1g}" if size > 0 else "unknown"
        return (
            f"{outcome.status.value}: tolerance {goal.tolerance:g} asked, {reachable} can be "
            "reached; "
            f"bounds [{low:.12g}, {high:.12g}]"
        )
    return (
        f"{outcome.status.value} after {solution.iterations} iterations ({solution.elapsed:.3g} "
        "s): bounds "
        f"{'of the right-hand side ' if goal.discount else ''}[{low:.12g}, {high:.12g}]"
    )
