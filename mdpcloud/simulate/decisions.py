"""What a policy answers to each event of a model, as functions of a grid of states.

Nothing is enumerated, so a rule is asked about the states that a path meets, and an answer that is
no action is told when such a state is met: its code is `NO_ACTION` until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.rules import action_number, by_decision, check_arguments, hint
from mdpcloud.engine.terms import read_field
from mdpcloud.errors import InputError
from mdpcloud.model.event import Control, Event
from mdpcloud.model.matrices import as_floats
from mdpcloud.model.model import Model, choices_of
from mdpcloud.model.policy import Policy
from mdpcloud.model.space import Axes, Lattice
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.simulate.separable import SeparableRule
from mdpcloud.simulate.state_arrays import ByState, StateNumbers
from mdpcloud.simulate.tracing import PartialGrid, Touched, axes_read, grid_over

__all__ = [
    "NO_ACTION",
    "answers",
    "chances",
    "is_asked_singly",
    "rules_by_event",
]

NO_ACTION = -3.0
LARGEST = 200_000  # states up to which a model is enumerated to see what is a decision
SPOT_CHECKS = 32  # states in which a rule called with arrays is compared with one call per state

Array = NDArray[Any]
Rule = Any


def rules_by_event(model: Model, policy: Any) -> dict[str, Rule]:
    """The rule for each event or control that a policy speaks of.

    Raises
    ------
    InputError
        When the policy changes with time, names an event that there is not, or was made for another
        model.
    """
    own = getattr(policy, "policy", None)
    policy = own if isinstance(own, Policy | TimedPolicy) else policy
    if isinstance(policy, TimedPolicy):
        raise InputError(
            "the policy changes with time, and a simulation estimates long-run averages; its part "
            "at a time is policy.at(time)"
        )
    several = [event for event in model.events if len(choices_of(event)) > 1]
    if policy is None or not several:
        return {}
    if isinstance(policy, Policy):
        return _from_policy(model, policy, several)
    names = [event.name for event in model.events]
    if isinstance(policy, Mapping) and not _is_of_one_event(policy, names, several):
        for name in policy:
            if name not in names:
                raise InputError(f"the model has no event {name!r}{hint(name, names)}")
        return {event.name: policy[event.name] for event in several if event.name in policy}
    decisions = [several[0].name] if len(several) == 1 else _decisions(model, several)
    if callable(policy) and decisions and not isinstance(policy, SeparableRule):
        return by_decision(policy, decisions, names)
    if len(decisions) <= 1:
        return dict.fromkeys(decisions, policy)
    raise InputError(
        "give a rule per decision, as a mapping, or a function that returns a mapping; "
        f"decisions are {decisions}"
    )


def _is_of_one_event(
    policy: Mapping[Any, Any], names: Sequence[str], several: Sequence[Event | Control]
) -> bool:
    """Whether a mapping holds the probabilities of the actions of the only decision."""
    if len(several) > 1 or any(key in names for key in policy):
        return False
    actions = [choice.name for choice in choices_of(several[0])]
    return any(key in actions or isinstance(key, (int, np.integer)) for key in policy)


def _decisions(model: Model, several: Sequence[Event | Control]) -> list[str]:
    """Names of the events with a real choice; of all with several actions in a large space."""
    from mdpcloud.engine import compile_model

    names = [event.name for event in several]
    space = model.space
    if isinstance(space, Lattice):
        if np.prod(np.array(space.shape, dtype=np.float64)) > LARGEST:
            return names
    elif space.max_states > LARGEST:
        return names
    return [term.name for term in compile_model(model).terms if term.decision]


# --- policies made of arrays ----------------------------------------------------------------------


def _from_policy(
    model: Model, policy: Policy, several: Sequence[Event | Control]
) -> dict[str, Rule]:
    numbers = StateNumbers(model)
    rules: dict[str, Rule] = {}
    for event in several:
        array = policy.actions.get(event.name)
        if array is None:
            continue
        names = tuple(choice.name for choice in choices_of(event))
        if (array.shape[-1], policy.names[event.name]) != (numbers.n, names):
            raise InputError(
                f"the policy was made for another model: {event.name!r} has {array.shape[-1]} "
                f"states and actions {list(policy.names[event.name])} there, {numbers.n} states "
                f"and actions {list(names)} here"
            )
        one = array.ndim == 1
        rules[event.name] = (
            ByState(numbers, array)
            if one
            else {a: ByState(numbers, row) for a, row in enumerate(array)}
        )
    return rules


# --- rules as functions of a grid -----------------------------------------------------------------


def answers(rule: Rule, event: Event | Control, singly: bool, model: Model) -> Any:
    """Reader of the numbers of the actions that a rule takes.

    Parameters
    ----------
    rule : function of x, array (states,), name or number
    event : Event or Control
    singly : bool
        Whether to ask state by state.
    model : Model
    """
    number = _numbers_of(event)
    names = list(number)
    if isinstance(rule, (np.ndarray, list, tuple)):
        rule = ByState(*_checked(np.asarray(rule), event, model))
    if not callable(rule):
        code = _codes(np.asarray(rule), number)
        if code == NO_ACTION:
            raise InputError(
                f"the rule for {event.name!r} is {rule!r}, which is no action{hint(rule, names)}"
            )
        return lambda grid: code
    if singly:
        return lambda grid: np.array([_codes(a, number) for a in _each(rule, grid)])
    return lambda grid: _codes(_called(rule, grid), number)


def _numbers_of(event: Event | Control) -> dict[Any, float]:
    """Number of each action or mode by its name."""
    return {choice.name: float(a) for a, choice in enumerate(choices_of(event))}


def _checked(values: Array, event: Event | Control, model: Model) -> tuple[StateNumbers, Array]:
    numbers = StateNumbers(model)
    if values.size != numbers.n:
        raise InputError(
            f"the rule for {event.name!r} gives {values.size} actions for {numbers.n} states"
        )
    if values.dtype.kind in "UO":
        number = _numbers_of(event)
        values = _codes(values, number)
    return numbers, values.ravel()


def _called(rule: Callable[[Any], Any], grid: PartialGrid) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(rule(grid.x))


def _each(rule: Callable[[Any], Any], grid: PartialGrid) -> list[Any]:
    """Answers state by state; None where the rule fails, which is told if the state is met."""
    found = []
    for state in np.column_stack([grid.column(k) for k in range(len(grid.axes))]):
        try:
            answer = np.asarray(rule(grid.axes.state([int(c) for c in state])))
            found.append(answer.reshape(()) if answer.size == 1 else np.asarray(None))
        except Exception:
            found.append(np.asarray(None))
    return found


def _codes(answer: Array, number: Mapping[Any, float]) -> Any:
    """Numbers of actions as floats; `NO_ACTION` for what is none."""
    if answer.dtype.kind in "iub":
        codes = answer.astype(np.float64)
    elif answer.dtype.kind == "f":
        codes = np.where(answer == np.round(answer), answer, NO_ACTION)
    elif answer.dtype.kind == "U":
        unique, inverse = np.unique(answer, return_inverse=True)
        codes = np.array([number.get(str(name), NO_ACTION) for name in unique])[inverse]
        codes = codes.reshape(answer.shape)
    else:
        listed = [_code(item, number) for item in answer.ravel().tolist()]
        codes = np.array(listed, dtype=np.float64).reshape(answer.shape)
    return np.where((codes >= 0) & (codes < len(number)), codes, NO_ACTION)


def _code(item: Any, number: Mapping[Any, float]) -> float:
    if isinstance(item, str):
        return number.get(item, NO_ACTION)
    return float(item) if isinstance(item, (int, np.integer)) else NO_ACTION


def is_asked_singly(rule: Rule, event: Event | Control, axes: Axes, probe: Array) -> bool:
    """Whether a rule does not work on arrays of states, and is asked state by state.

    Parameters
    ----------
    rule : function of x
    event : Event or Control
    axes : Axes
    probe : (n, axes) int array
        Some states.
    """
    check_arguments(rule, event.name)
    grid = grid_over(axes, range(len(axes)), probe)
    number = _numbers_of(event)
    try:
        answer = _called(rule, grid)
        if answer.ndim == 0:
            return bool(axes_read(lambda g: _called(rule, g), axes, probe[0]))
        if answer.shape != (len(probe),) or answer.dtype.kind not in "iubfU":
            return True
        codes = _codes(answer, number)
    except (InputError, Touched):
        raise
    except Exception:  # it fails for arrays, or in a state that is none
        return True
    for code, one in zip(codes, _each(rule, grid), strict=True):
        alone = _codes(one, number)
        if alone not in (code, NO_ACTION):
            return True
    return False


def chances(rule: Mapping[Any, Any], event: Event | Control, model: Model) -> list[Any]:
    """Readers of the probabilities of each action.

    Raises
    ------
    InputError
        When an action is unknown.
    """
    names = [choice.name for choice in choices_of(event)]
    readers: list[Any] = [lambda grid: 0.0] * len(names)
    for key, value in rule.items():
        readers[action_number(key, event.name, names)] = _chance(key, value, event, model)
    return readers


def _chance(key: Any, value: Any, event: Event | Control, model: Model) -> Any:
    owner = f"the probability of {key!r} for {event.name!r}"
    if callable(value):
        return lambda grid: read_field(value, grid, owner)
    weights = as_floats(value, owner)
    if weights.size == 1:
        number = float(weights.item())
        return lambda grid: number
    numbers = StateNumbers(model)
    if weights.size != numbers.n:
        raise InputError(f"{owner} has {weights.size} numbers for {numbers.n} states")
    by_state = ByState(numbers, weights.ravel())
    return lambda grid: by_state(grid.x)
