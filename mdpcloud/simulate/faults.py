"""Why a path cannot go on: messages that name the event, the state and what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.calls import unknown_axis
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.events_program import Answer, Mark, Stop
from mdpcloud.simulate.single_action import NONE_ALLOWED, SEVERAL_ALLOWED

if TYPE_CHECKING:
    from mdpcloud.simulate.events_path import EventPath

__all__ = ["explain"]


def explain(path: EventPath, stop: int) -> InputError:
    """The error for a code of `Stop`."""
    s = path.state
    clock = path.simulation.clocks[int(s.mark[Mark.CLOCK])]
    number = int(s.mark[Mark.ACTION])
    state = path.simulation.axes.describe(s.x.tolist())
    event = f"event {clock.name!r}"
    if stop == Stop.OUTSIDE:
        action = clock.actions[number].name
        return InputError(
            f"{event}, action {action!r}: its step leaves the space in or near the state {state}; "
            "give it rate 0 there, or an action that stays"
        )
    if stop == Stop.BARRED:
        action = clock.actions[number].name
        return InputError(
            f"the rule for {clock.name!r} takes action {action!r} in state {state}, where it is "
            "not allowed"
        )
    if stop == Stop.UNDECIDED:
        return InputError(_undecided(path, clock, number, state))
    return InputError(
        f"{event}: a rate, probability or price is negative, not finite or (probabilities) does "
        f"not sum to 1 in state {state}"
    )


def _undecided(path: EventPath, clock: Any, number: int, state: str) -> str:
    names = [action.name for action in clock.actions]
    if clock.answer == Answer.RANDOM:
        return (
            f"the probabilities for {clock.name!r} are negative or do not sum to 1 in state {state}"
        )
    if number == SEVERAL_ALLOWED:
        return (
            f"no rule for decision {clock.name!r}: several of its actions {names} are allowed in "
            f"state {state}; give a policy"
        )
    if number == NONE_ALLOWED:
        return f"event {clock.name!r} has a positive rate but no allowed action in state {state}"
    near = did_you_mean(str(answer := _asked(path, clock)), names)
    return (
        f"the rule for {clock.name!r} returns {answer!r} in state {state}, which is no action"
        f"{near or f'; actions are {names}, or their numbers 0..{len(names) - 1}'}"
    )


def _asked(path: EventPath, clock: Any) -> Any:
    """What a rule answers in the present state, alone."""
    if not callable(clock.rule):
        return clock.rule
    x = path.simulation.axes.state([int(c) for c in path.state.x])
    try:
        return np.asarray(clock.rule(x)).tolist()
    except AttributeError as error:
        raise unknown_axis(error, x, f"the rule for {clock.name!r}") from error
