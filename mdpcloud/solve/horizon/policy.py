"""The cost of a policy over a finite horizon, piece of time by piece of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.rules import policy_for
from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.model.timed_policy import Changes, TimedPolicy
from mdpcloud.solve.horizon.advance import advance
from mdpcloud.solve.horizon.enclosure import bound_rest
from mdpcloud.solve.horizon.steps import advance_steps
from mdpcloud.solve.horizon.sweeps import Cut, Setting
from mdpcloud.solve.horizon.task import Outcome, Task
from mdpcloud.solve.limits import Status, Stopped

__all__ = ["checked", "evaluated"]

SHARE = 0.3  # of the width left to the cut of the series


def checked(policy: Any, task: Task) -> Policy | TimedPolicy:
    """A policy that fits a task.

    Raises
    ------
    InputError
        When it was made for another model or horizon, or takes an action that is not allowed.
    """
    if not isinstance(policy, TimedPolicy):
        return policy_for(task.problem, policy)
    policy.check(task.problem)
    if policy.horizon != task.horizon:
        raise InputError(
            f"the policy was made for the horizon {policy.horizon:g}; it is {task.horizon:g} here"
        )
    if task.problem.discrete and (policy.times != np.floor(policy.times)).any():
        raise InputError("in discrete time a policy changes at whole numbers of steps")
    policy_for(task.problem, policy.first)
    for e, term in enumerate(task.problem.terms):
        if term.decision:
            _check_changes(policy.changes[term.name], e, term, task.problem)
    return policy


def _check_changes(changes: Changes, e: int, term: TermInfo, problem: Any) -> None:
    allowed, active = problem.allowed(e)
    times, states, actions = changes
    wrong = active[states] & ~allowed[actions, states]
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"the policy takes action {term.actions[actions[k]]!r} of {term.name!r} at time "
            f"{times[k]:g} in state {problem.label(int(states[k]))}, where it is not allowed"
        )


def evaluated(task: Task, policy: Policy | TimedPolicy) -> Outcome:
    """Bounds of the cost; the cut of the series gets finer until they meet the goal."""
    budget = SHARE * task.guess
    while True:
        outcome = _followed(task, policy, budget)
        goal = task.goal(outcome)
        finer = SHARE * goal
        met = outcome.width <= goal or outcome.stopped is not None
        if met or finer > 0.5 * budget:
            return outcome
        budget = finer


def _followed(task: Task, policy: Policy | TimedPolicy, budget: float) -> Outcome:
    """Bounds for one budget; where a limit ends it, simple bounds of the rest of the time."""
    values, advance_by = task.final, advance_steps if task.problem.discrete else advance
    for begin, end, fixed in _pieces(task, policy):
        duration = end - begin
        part = budget * (duration / task.horizon)
        setting, stopped = task.setting, None
        if policy.randomised:
            setting = Setting.of(fixed, setting.monitor)  # listed and mixed: more roundings
        try:
            values = advance_by(fixed, values, duration, part, setting)
        except Cut as cut:
            values, stopped = cut.values, cut.status
        except Stopped as stop:
            values, stopped = bound_rest(fixed, values, duration), stop.status
        except (KeyboardInterrupt, MemoryError) as error:
            stopped = Status.MEMORY if isinstance(error, MemoryError) else Status.INTERRUPTED
            values = bound_rest(fixed, values, duration)
        if stopped is not None:
            values = task.bounded(values, begin)
            return Outcome(values.lower, values.upper, stopped)
    return Outcome(values.lower, values.upper)


def _pieces(task: Task, policy: Policy | TimedPolicy) -> Iterator[tuple[float, float, Any]]:
    """Begin, end and the uncontrolled problem of each piece, from the last one to the first."""
    problem = task.problem
    if isinstance(policy, Policy):
        choice = policy.choice(problem)
        fixed = problem.mixed(choice) if policy.randomised else problem.under(choice)
        yield 0.0, task.horizon, fixed
        return
    for begin, end, piece in policy.backwards():
        yield begin, end, problem.under(piece.choice(problem))
