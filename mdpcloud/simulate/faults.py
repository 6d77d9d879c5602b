"""Why a path cannot go on: messages that name the event, the state and what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.calls import unknown_axis
from mdpcloud.model.event import Control
from mdpcloud.model.model import choices_of
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.columns import ColumnError
from mdpcloud.simulate.events_program import Answer, Mark, Stop
from mdpcloud.simulate.single_action import NONE_ALLOWED, SEVERAL_ALLOWED

if TYPE_CHECKING:
    from mdpcloud.simulate.events_path import EventPath
    from mdpcloud.simulate.plans import ClockPlan

__all__ = ["explain", "failed"]


def explain(path: EventPath, stop: int) -> InputError:
    """The error for a code of `Stop`."""
    return InputError(_message(path, stop))


def _message(path: EventPath, stop: int) -> str:
    mark = path.state.mark
    clock = path.simulation.plan.clocks[int(mark[Mark.CLOCK])]
    state = path.simulation.axes.describe(path.state.x.tolist())
    event = f"event {clock.name!r}"
    if stop == Stop.NOT_FINITE:
        group = path.tables.groups[int(mark[Mark.GROUP])]
        return _not_finite(path, group.columns[int(mark[Mark.ACTION])].owner, state)
    if stop == Stop.UNDECIDED:
        return _undecided(path, clock, int(mark[Mark.ACTION]), state)
    if stop == Stop.INVALID:
        if clock.control is not None and np.isnan(_rate(path, clock)):
            return _no_mode(path, clock.control, state)
        return f"{event}: rate is {_rate(path, clock)} in state {state}; it must be finite and >= 0"
    if stop == Stop.NO_PRICE:
        return f"the rule of {event} has a price that is not a number in state {state}"
    action = clock.actions[int(mark[Mark.ACTION])].name
    if stop == Stop.NO_COST:
        return f"{event}, action {action!r}: cost is not finite in state {state}"
    if stop == Stop.OUTSIDE:
        return (
            f"{event}, action {action!r}: its step leaves the space in or near the state {state}; "
            "give it rate 0 there, or an action that stays"
        )
    if stop == Stop.BARRED:
        return (
            f"the rule for {clock.name!r} takes action {action!r} in state {state}, where it is "
            "not allowed"
        )
    return (
        f"{event}, action {action!r}: the weights of its moves are negative or do not sum to 1 in "
        f"state {state}"
    )


def _rate(path: EventPath, clock: ClockPlan) -> float:
    """The rate of a clock in the present state."""
    place = path.state.place[clock.rate.group] + clock.rate.place
    return float(path.program.data[place])


def _not_finite(path: EventPath, owner: str, state: str) -> str:
    for event in path.simulation.model.events:
        if isinstance(event, Control) and owner == f"control {event.name!r}":
            return _no_mode(path, event, state)
    return f"{owner} is not finite in state {state}"


def _no_mode(path: EventPath, control: Control, state: str) -> str:
    """What is wrong with the modes of a control."""
    names = [mode.name for mode in choices_of(control)]
    rule = path.simulation.plan.rules.get(control.name)
    if callable(rule):
        answer = _asked(path, rule, control.name)
        if answer in names or answer in range(len(names)):
            return (
                f"the rule for {control.name!r} takes mode {answer!r} in state {state}, where it "
                "is not allowed"
            )
        return (
            f"the rule for {control.name!r} takes {answer!r} in state {state}, which is no mode"
            f"{did_you_mean(str(answer), names) or f'; modes are {names}'}"
        )
    if rule is None:
        return f"no rule for decision {control.name!r} in state {state}; modes are {names}"
    return (
        f"the modes of control {control.name!r} are not allowed, or their probabilities are "
        f"negative or do not sum to 1, in state {state}"
    )


def _undecided(path: EventPath, clock: ClockPlan, number: int, state: str) -> str:
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
    answer = _asked(path, clock.rule, clock.name)
    near = did_you_mean(str(answer), names)
    return (
        f"the rule for {clock.name!r} returns {answer!r} in state {state}, which is no action"
        f"{near or f'; actions are {names}, or their numbers 0..{len(names) - 1}'}"
    )


def _asked(path: EventPath, rule: Any, name: str) -> Any:
    """What a rule answers in the present state, alone."""
    if not callable(rule):
        return rule
    x = path.simulation.axes.state([int(c) for c in path.state.x])
    owner = f"the rule for {name!r}"
    try:
        return np.asarray(rule(x)).tolist()
    except Exception as error:
        named = unknown_axis(error, x, owner) if isinstance(error, AttributeError) else error
        if isinstance(named, InputError):
            raise named from error
        state = path.simulation.axes.describe(path.state.x.tolist())
        raise InputError(f"{owner} fails in state {state}: {error!r}") from error


def failed(path: EventPath, failure: ColumnError) -> InputError:
    """The error for a function that fails in the present state."""
    state = path.simulation.axes.describe(path.state.x.tolist())
    error = failure.error
    reason = str(error) if isinstance(error, InputError) else repr(error)
    return InputError(f"{failure.column.owner} cannot be computed in state {state}: {reason}")
