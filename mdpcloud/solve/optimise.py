"""`solve`: the optimal policy of a model, with certified bounds.

`mdpcloud.solve.choice` decides which solver comes first; where its bounds do not close, the next
one goes on from its values. Where the bracket stalls and the model has several maximal end
components, the gain may depend on the state: then each is solved by itself
(`mdpcloud.solve.multichain`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from mdpcloud.criteria import (
    AverageCost,
    Criterion,
    Discounted,
    FiniteHorizon,
    TotalCost,
    discount_rate,
)
from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy, policy_of
from mdpcloud.plugins import did_you_mean
from mdpcloud.solve.certificate import Certificate, certify
from mdpcloud.solve.chains import likely_state
from mdpcloud.solve.choice import candidates
from mdpcloud.solve.classes import solve_components
from mdpcloud.solve.fixed import largest_cost
from mdpcloud.solve.limits import Goal, Monitor, Progress, Status, check_tolerance
from mdpcloud.solve.linear_programming import LinearProgramming
from mdpcloud.solve.nested import start_values
from mdpcloud.solve.outcome import Outcome
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.result import Evaluation, Solution, insist
from mdpcloud.solve.reward import costs_of, signed, signed_progress, value_bounds
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["SOLVERS", "Solver", "solve", "solve_compiled"]


class Solver(Protocol):
    """A solver: settings, a name, and one method."""

    @property
    def name(self) -> str:
        """For results and messages."""
        ...

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Solve from a work array of relative values."""
        ...


TOLERANCE = 1e-8
ROUGH_TOLERANCE = 1e-6  # where bounds cost time in proportion to 1/sqrt(tolerance), or are an LP's

SOLVERS: dict[str, Callable[[], Solver]] = {
    solver.name: solver for solver in (PolicyIteration, ValueIteration, LinearProgramming)
}


def solve(
    model: Any,
    criterion: Criterion = AverageCost(),  # noqa: B008  (frozen)
    *,
    constraints: Mapping[str, Any] | None = None,
    solver: str | Solver | None = None,
    tolerance: float | None = None,
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
    criterion : AverageCost, Discounted, FiniteHorizon or TotalCost
    constraints : mapping, optional
        Limits of long-run averages of the model's measures, by name: a number is what the average
        may be at most, a `Limit` says more, and ``"a / b"`` is the ratio of two. The policy may be
        randomised then.
    solver : {"policy_iteration", "value_iteration", "linear_programming"}, a solver, or None
        None lets the size decide which comes first; the other takes over where it fails. For
        average and discounted cost.
    tolerance : float, optional
        Relative: it stops when upper - lower <= max(tolerance |gain|, 1e-12 times the largest cost
        rate under the policy). By default 1e-8; 1e-6 for a finite horizon and with constraints.
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
    >>> mc.solve(mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0]), mc.FiniteHorizon(3)).values
    array([2., 1.])
    """
    monitor = Monitor(max_iterations, time_limit, signed_progress(model, progress))
    special = _special(criterion, constraints, solver, start)
    if special is not None:
        tolerance = special.tolerance if tolerance is None else tolerance
        check_tolerance(tolerance)
        solution = special.solve(model, tolerance=tolerance, monitor=monitor, threads=threads)
    else:
        tolerance = TOLERANCE if tolerance is None else tolerance
        problem = compile_model(model, threads=threads)
        solution = solve_compiled(
            model, problem, criterion, solver, tolerance, monitor, threads, start
        )
    if strict:
        insist(solution, tolerance)
    return solution


def solve_compiled(
    model: Any,
    problem: Any,
    criterion: Criterion,
    solver: str | Solver | None,
    tolerance: float,
    monitor: Monitor,
    threads: int,
    start: Any = None,
) -> Solution:
    """Average or discounted cost of a model that is compiled; partial if need be."""
    discount = discount_rate(criterion, problem.discrete)
    goal = Goal(tolerance, problem.cost_scale, discount)
    solvers: Sequence[tuple[Solver, str]]
    solvers = candidates(problem) if solver is None else [(_named(solver), "as asked")]
    try:
        if start is None and solver is None and not discount:
            start = start_values(model, goal, monitor.time_limit, threads)
        h = problem.pack(_start_values(start, problem, model))
        start = None  # its memory serves the solver
    except KeyboardInterrupt:
        h = problem.pack(np.zeros(problem.n))
        solvers = [(_Interrupted(), "interrupted before the first sweep")]
    return _first_success(model, problem, criterion, solvers, goal, monitor, h)


@dataclass(frozen=True)
class _Special:
    """A problem with an entry of its own: its default tolerance, and what solves it."""

    tolerance: float
    solve: Callable[..., Solution]


def _special(
    criterion: Criterion, constraints: Mapping[str, Any] | None, solver: Any, start: Any
) -> _Special | None:
    """What solves a problem with an entry of its own; None for average and discounted cost."""
    if isinstance(criterion, AverageCost | Discounted) and constraints is None:
        return None
    if solver is not None or start is not None:
        raise InputError("solver and start are for average and discounted cost without constraints")
    if constraints is not None:
        if not isinstance(criterion, AverageCost):
            raise InputError(
                "constraints are on long-run averages; they need the criterion AverageCost()"
            )
        from mdpcloud.solve.constrained.constrained import solve_constrained

        return _Special(ROUGH_TOLERANCE, partial(solve_constrained, constraints=constraints))
    if isinstance(criterion, FiniteHorizon):
        from mdpcloud.solve.horizon.horizon import solve_horizon

        return _Special(ROUGH_TOLERANCE, partial(solve_horizon, criterion=criterion))
    if isinstance(criterion, TotalCost):
        from mdpcloud.solve.total.total import solve_total

        return _Special(TOLERANCE, partial(solve_total, criterion=criterion))
    return None


def _first_success(
    model: Any,
    problem: Any,
    criterion: Criterion,
    solvers: Sequence[tuple[Solver, str]],
    goal: Goal,
    monitor: Monitor,
    h: Floats,
) -> Solution:
    """What the first solver finds, or the next one where it stalls; by components if need be."""
    for solver, reason in solvers:
        chosen = solver.name, reason
        outcome = _run(solver, problem, goal, monitor, h)
        h = outcome.h
        stuck = outcome.status in (Status.STALLED, Status.PRECISION) and not outcome.handed_over
        if stuck and not goal.discount:
            several = solve_components(model, problem, goal.tolerance, monitor)
            if several is not None:
                return several
        if outcome.status not in (Status.STALLED, Status.MEMORY):
            break
    finer = _finer(problem, goal, outcome)
    if finer is not None:
        return _first_success(model, problem, criterion, solvers, finer, monitor, h)
    if outcome.status is not Status.CONVERGED and not goal.discount:
        outcome = replace(outcome, certificate=_at_least_trivial(problem, outcome.certificate))
    return _assemble(model, problem, criterion, outcome, chosen, monitor, goal.discount)


def _run(solver: Solver, problem: Any, goal: Goal, monitor: Monitor, h: Floats) -> Outcome:
    """What a solver finds; where it runs out of memory, the bounds of the values reached."""
    try:
        return solver.run(problem, goal, monitor, h)
    except MemoryError:
        return Outcome(h, certify(problem, h, goal.discount), Status.MEMORY)
    except SystemError as error:  # an interrupt while a kernel was being loaded
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return Outcome(h, certify(problem, h, goal.discount), Status.INTERRUPTED)


def _finer(problem: Any, goal: Goal, outcome: Outcome) -> Goal | None:
    """The goal for the costs of the policy found, where dearer ones made it too easy; else None."""
    certificate, largest = outcome.certificate, 0.0
    if outcome.status is not Status.CONVERGED:
        return None
    if goal.discount:
        largest = float(np.abs(problem.unpack(outcome.h)).max())
    if certificate.width <= goal.tolerance * goal.size(certificate.low, certificate.high, largest):
        return None
    finer = replace(goal, cost_scale=largest_cost(problem.under(certificate.choice)))
    wanted = finer.width(certificate.low, certificate.high, largest)
    return finer if 0.0 < wanted < certificate.width else None


def _at_least_trivial(problem: Any, found: Certificate) -> Certificate:
    """The better of the bounds found and of those of h = 0: the extreme cost rates of one step."""
    trivial = certify(problem, problem.pack(np.zeros(problem.n)))
    better = min(found, trivial, key=lambda certificate: certificate.high)
    return replace(better, low=max(found.low, trivial.low))


class _Interrupted:
    """The solver of who was interrupted before solving: it only certifies where it starts."""

    name = "none"

    def run(self, problem: Any, goal: Goal, monitor: Monitor, start: Floats) -> Outcome:
        """Stop at once."""
        return Outcome(start, certify(problem, start, goal.discount), Status.INTERRUPTED)


def _named(solver: Any) -> Solver:
    if hasattr(solver, "run"):
        own: Solver = solver
        return own
    if not isinstance(solver, str):
        raise InputError(f"solver is {solver!r}; it must be a name or have a method run")
    if solver not in SOLVERS:
        hint = did_you_mean(solver, SOLVERS) or f"; there are {list(SOLVERS)}"
        raise InputError(f"solver {solver!r} is unknown{hint}")
    return SOLVERS[solver]()


def _start_values(start: Any, problem: Any, model: Any) -> Floats:
    if start is None:
        return np.zeros(problem.n)
    if isinstance(start, (Solution, Evaluation)):
        start = costs_of(model, start.values, start.criterion)
    if isinstance(start, Policy):
        raise InputError("start takes values, not a policy; give evaluate(model, policy)")
    try:
        values = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"start is {start!r}; it must hold one number per state") from None
    if values.shape != (problem.n,):
        raise InputError(f"start has shape {values.shape}; it must have one value per state")
    if not np.isfinite(values).all():
        state = int(np.argmin(np.isfinite(values)))
        raise InputError(
            f"start is {values[state]} in state {problem.label(state)}; it must be finite"
        )
    return values


def _assemble(
    model: Any,
    problem: Any,
    criterion: Criterion,
    outcome: Outcome,
    chosen: tuple[str, str],
    monitor: Monitor,
    discount: float,
) -> Solution:
    certificate = outcome.certificate
    h = problem.unpack(outcome.h)
    lower, upper = value_bounds(h, certificate.low, certificate.high, criterion, discount)
    if discount:
        values = 0.5 * (np.asarray(lower) + np.asarray(upper))
    else:
        values = h
        values -= h[likely_state(problem.under(certificate.choice))]
    gain = np.float64(0.5 * (certificate.low + certificate.high))
    gains = np.broadcast_to(gain, (0 if discount else h.size,))
    gains, bounds, values = signed(model, gains, (lower, upper), values)
    return Solution(
        gains=gains,
        bounds=bounds,
        values=values,
        policy=policy_of(problem, certificate.choice),
        status=outcome.status,
        iterations=monitor.iterations,
        solver=chosen[0],
        elapsed=monitor.elapsed,
        criterion=criterion,
        reason=chosen[1],
    )
