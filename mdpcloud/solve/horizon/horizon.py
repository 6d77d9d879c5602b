"""Expected cost over a finite horizon: the optimum, and the cost of a policy, enclosed.

    V'(s) = F(V(s)),   V(0) = final cost,
    F(V)(x) = c(x) + sum_e r_e(x) min_a [ k_a + sum_j w_aj (V(x + s_aj) - V(x)) ],

s being the time to go. In discrete time V(s + 1) = V(s) + F(V(s)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mdpcloud.criteria import FiniteHorizon
from mdpcloud.engine import compile_model
from mdpcloud.model.policy import policy_of
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.solve.horizon.advance import advance
from mdpcloud.solve.horizon.course import Course
from mdpcloud.solve.horizon.policy import checked, evaluated
from mdpcloud.solve.horizon.steps import solve_steps
from mdpcloud.solve.horizon.task import Outcome, Task
from mdpcloud.solve.limits import Monitor, Status, Stopped
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.reward import signed

__all__ = ["evaluate_horizon", "solve_horizon"]

ROUGH = 1e-2  # tolerance of the first look at the size of the values
BOLD = 2.5  # aim of the first course, in goals: widths shrink again on the way
ATTEMPTS = 6
NOISE = 0.7  # part of the goal: where rounding takes more, smaller steps do not help


def solve_horizon(
    model: Any, criterion: FiniteHorizon, *, tolerance: float, monitor: Monitor, threads: int = 1
) -> Solution:
    """The policy of least expected cost over a horizon, from every state at once.

    Parameters
    ----------
    model : Model or TabularModel
    criterion : FiniteHorizon
    tolerance : float
        Relative: the bounds are no further apart than tolerance max |V|, in every state; no finer
        than 1e-12 times (largest cost rate x horizon + largest final cost).
    monitor : Monitor
    threads : int
        Of a sweep.

    Returns
    -------
    Solution
        Bounds (n,) enclose the optimal cost, and the upper one also the cost of the policy, a
        `TimedPolicy`.

    Raises
    ------
    SolveError
        When more than 1e8 sweeps would be needed.
    """
    problem: Any = compile_model(model, threads=threads)
    task = Task.of(model, problem, criterion, tolerance, monitor)
    if not any(term.decision for term in problem.terms):
        choice = problem.greedy(problem.pack(task.final.h), 0.0)
        policy: Any = TimedPolicy(policy_of(problem, choice), {}, task.horizon)
        outcome = evaluated(task, policy)
    else:
        outcome, policy = solve_steps(task) if problem.discrete else _solved(task)
    return Solution(policy=policy, solver="uniformisation", **_parts(model, task, outcome))


def evaluate_horizon(
    model: Any,
    policy: Any,
    criterion: FiniteHorizon,
    *,
    tolerance: float,
    monitor: Monitor,
    threads: int = 1,
) -> Evaluation:
    """The expected cost of a policy over a horizon, from every state at once.

    Parameters
    ----------
    model : Model or TabularModel
    policy : TimedPolicy of the same horizon, Policy, or what `mdpcloud.policy` takes
    criterion : FiniteHorizon
    tolerance : float
        Relative, as in `solve_horizon`.
    monitor : Monitor
    threads : int
        Of a sweep.

    Returns
    -------
    Evaluation
        Without measures.

    Raises
    ------
    InputError
        When the policy does not fit the model or the horizon.
    SolveError
        When more than 1e8 sweeps would be needed.
    """
    problem: Any = compile_model(model, threads=threads)
    task = Task.of(model, problem, criterion, tolerance, monitor)
    policy = checked(policy, task)
    outcome = evaluated(task, policy)
    return Evaluation(policy=policy, solver="uniformisation", **_parts(model, task, outcome))


def _solved(task: Task) -> tuple[Outcome, TimedPolicy]:
    """Courses with ever smaller steps until the bounds meet the goal, or rounding forbids it."""
    aim = BOLD * task.width(_size(task))
    best, policy, noise = _course(task, aim)
    for _ in range(ATTEMPTS - 1):
        goal = task.goal(best)
        if best.stopped is not None or best.width <= goal or noise > NOISE * goal:
            break
        aim *= min(0.5, 0.6 * goal / best.width)
        outcome, another, noise = _course(task, aim)
        if outcome.width < best.width:
            best, policy = outcome, another
        best = replace(best, stopped=outcome.stopped)
    return best, policy


def _course(task: Task, aim: float) -> tuple[Outcome, TimedPolicy, float]:
    """Bounds, policy, and the part of the bounds' width that smaller steps would not save."""
    course = Course(task.problem, task.final, task.horizon, aim, task.setting)
    stopped = course.follow()
    end = course.point
    outcome = Outcome(end.lower.lower, end.upper.upper, stopped)
    return outcome, course.record.policy(), end.noise


def _size(task: Task) -> float:
    """About the largest value, by a rough lower bound; 0 where a limit ends this, and all."""
    budget = ROUGH * task.guess / task.tolerance
    try:
        lower = advance(task.problem, task.final, task.horizon, budget, task.setting).lower
    except Stopped as stop:
        task.setting.monitor.end(stop.status)
    except KeyboardInterrupt:
        task.setting.monitor.end(Status.INTERRUPTED)
    except MemoryError:
        task.setting.monitor.end(Status.MEMORY)
    else:
        return float(np.abs(lower).max())
    return 0.0


def _parts(model: Any, task: Task, outcome: Outcome) -> dict[str, Any]:
    """What a solution and an evaluation have in common, in the terms of the model."""
    bounds = outcome.lower, outcome.upper
    gains, bounds, values = signed(model, np.zeros(0), bounds, outcome.values)
    return {
        "gains": gains,
        "bounds": bounds,
        "values": values,
        "status": task.status(outcome),
        "iterations": task.setting.monitor.iterations,
        "elapsed": task.setting.monitor.elapsed,
        "criterion": task.criterion,
    }
