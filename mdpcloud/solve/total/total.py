"""Expected total cost until the process reaches its targets (stochastic shortest path).

    0 = c(x) + sum_e min_a [...],    u = 0 at the targets,

the smallest over the *proper* policies: those that reach the targets with probability 1. In
continuous time the cost is the integral of the cost rate plus lump costs, in discrete time the sum
of the costs of the steps; costs may have any sign. To stay somewhere for ever is no way out, even
where it is free. Where no policy is proper the value is infinite (minus infinity for a model given
by rewards); where the process can earn as long as it likes there is no optimum, and that is said.

Policies are iterated from a proper one (`mdpcloud.solve.total.policies`) until no row is surely
better; then the bounds are proved (`mdpcloud.solve.total.bounds`). The tolerance is met if upper -
lower <= tolerance times the largest value, or 1e-12 times the largest cost rate over the
uniformisation rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rules import policy_for
from mdpcloud.errors import SolveError
from mdpcloud.model.policy import policy_of
from mdpcloud.solve.limits import FLOOR, Monitor, Status, Stopped
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.reward import sense_of, signed
from mdpcloud.solve.total.border import (
    check_reached,
    refuse_if_earning,
    refuse_improper,
    targets_of,
)
from mdpcloud.solve.total.bounds import above_policy, below_policy, scaled, trivial
from mdpcloud.solve.total.chains import DIRECT, chain_solver, refined
from mdpcloud.solve.total.optimum import optimal
from mdpcloud.solve.total.paths import Pair, Paths, paths_of
from mdpcloud.solve.total.structure import Backwards, Bools, hopeful

__all__ = ["evaluate_total", "solve_total"]

SMALLEST = 1e-200  # cost: bounds that are this close are equal


def solve_total(
    model: Any, criterion: Any, *, tolerance: float, monitor: Monitor, threads: int = 1
) -> Solution:
    """The proper policy of least total cost.

    Parameters
    ----------
    model : Model or TabularModel
    criterion : TotalCost
    tolerance : float
        Relative to the largest value.
    monitor : Monitor
    threads : int

    Returns
    -------
    Solution
        ``values`` (n,) is the expected total cost from each state, ``bounds`` two arrays (n,).

    Raises
    ------
    InputError
        When there are no targets, no policy reaches them, or the total cost is unbounded.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> model = mc.tabular([[[0.9, 0.1], [0, 1]], [[0.5, 0.5], [0, 1]]], costs=[[1, 3], [0, 0]])
    >>> solution = mc.solve(model, mc.TotalCost())
    >>> solution.values, solution.policy.table()
    (array([6., 0.]), array([1, 0], dtype=int8))
    """
    problem: Any = compile_model(model, threads=threads)
    targets = targets_of(problem, problem.rows(), criterion.targets)

    def refuse(fixed: Any, states: Bools, members: Any) -> None:
        refuse_if_earning(problem, fixed, states, members, sense_of(model))

    found = optimal(problem, targets, monitor, refuse, tolerance)
    bounds, values, status = _answer(
        model, problem, (found.lower, found.upper), tolerance, found.status
    )
    return Solution(
        gains=np.zeros(0),
        bounds=bounds,
        values=values,
        policy=policy_of(problem, found.choice),
        status=status,
        iterations=monitor.iterations,
        solver="policy_iteration",
        elapsed=monitor.elapsed,
        criterion=criterion,
    )


def evaluate_total(
    model: Any,
    policy: Any,
    criterion: Any,
    *,
    tolerance: float,
    monitor: Monitor,
    threads: int = 1,
) -> Evaluation:
    """Total cost of a policy.

    Parameters
    ----------
    model : Model or TabularModel
    policy : Policy, or what `mdpcloud.policy` takes
        Deterministic or randomised.
    criterion : TotalCost
    tolerance : float
        Relative to the largest value.
    monitor : Monitor
    threads : int

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        When the policy does not reach the targets with probability 1 from a state from which
        another policy does; the message names where it stays.
    """
    problem: Any = compile_model(model, threads=threads)
    targets = targets_of(problem, problem.rows(), criterion.targets)
    policy = policy_for(problem, policy)
    choice = policy.choice(problem)
    fixed: Any = problem.mixed(choice) if policy.randomised else problem.under(choice)
    paths, proper = _proper_paths(problem, fixed, targets)
    found, status = _policy_bounds(paths, monitor, tolerance)
    lower, upper = (np.where(proper, bound[paths.number], np.inf) for bound in found)
    bounds, values, status = _answer(model, problem, (lower, upper), tolerance, status)
    return Evaluation(
        gains=np.zeros(0),
        bounds=bounds,
        values=values,
        policy=policy,
        status=status,
        iterations=monitor.iterations,
        solver="fixed_policy",
        elapsed=monitor.elapsed,
        criterion=criterion,
    )


def _proper_paths(problem: Any, fixed: Any, targets: Bools) -> tuple[Paths, Bools]:
    """A policy's chain, and from where it reaches the targets; refuses where it ought to."""
    table = fixed.rows()
    able = hopeful(Backwards(table), targets)
    if not able.states.all():
        possible = hopeful(Backwards(problem.rows()), targets).states
        check_reached(problem, problem.rows(), targets, possible)
        missed = np.flatnonzero(possible & ~able.states)
        if missed.size:
            refuse_improper(problem, table, targets, int(missed[0]))
    return paths_of(table, able, targets, None), able.states


def _policy_bounds(
    fixed: Paths, monitor: Monitor, tolerance: float
) -> tuple[tuple[Floats, Floats], Status]:
    """Bounds of the cost of a policy, and how it ended; a direct solve goes on past a limit."""
    end = np.where(fixed.terminal, 0.0, np.inf)
    lower, upper, status = None, None, Status.PRECISION
    try:
        solve = chain_solver(fixed, monitor)
        monitor.iterations += 1
        u = refined(fixed, solve, Pair.of(np.zeros(fixed.n)), np.zeros(fixed.n))
        quick = scaled(fixed, fixed, u, tolerance) if fixed.n > DIRECT else None
        if quick is not None:
            return quick, status
        upper, lower = above_policy(fixed, solve, u), below_policy(fixed, solve, u)
    except Stopped as stop:
        status = stop.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except SolveError:  # too large or too hard to reach for floats: the trivial bounds are left
        pass
    return (trivial(fixed) if lower is None else lower, end if upper is None else upper), status


def _answer(
    model: Any, problem: Any, bounds: tuple[Floats, ...], tolerance: float, status: Status
) -> tuple[tuple[Floats, Floats], Floats, Status]:
    """Bounds and values in the user's sign, and whether they meet the tolerance."""
    lower, upper = bounds
    values = _middle(lower, upper)
    known = ~(np.isposinf(lower) & np.isposinf(upper))
    width = float((upper[known] - lower[known]).max(initial=0.0))
    size = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    floor = max(FLOOR * problem.cost_scale / problem.rate_bound, SMALLEST)
    if width <= max(tolerance * size, floor):
        status = Status.CONVERGED
    _, (lower, upper), values = signed(model, np.zeros(0), (lower, upper), values)
    return (lower + 0.0, upper + 0.0), values + 0.0, status  # no -0


def _middle(lower: Floats, upper: Floats) -> Floats:
    """A value within bounds: between them if both are finite."""
    both = np.isfinite(lower) & np.isfinite(upper)
    one = np.where(np.isfinite(upper), upper, lower)
    return 0.5 * np.where(both, lower, one) + 0.5 * np.where(both, upper, one)
