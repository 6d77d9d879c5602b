"""What happens in a model: events with actions, controls with modes.

Both are one *term* of the optimality equation, which minimises term by term (Koole 1998,
"Structural results for the control of queueing systems using event-based dynamic programming"):

    g = c(x) + sum_e r_e(x) min_a [ k_a(x) + sum_j w_aj(x) ( h(x + s_aj) - h(x) ) ]

An `Event` happens at rate r_e; its action costs k_a once and moves the state. A `Control` is in
force all the time (r_e = 1); its mode costs k_a per unit of time and its flows are rates w_aj.
Decisions that depend on each other must be one event (or control) with joint actions.

Rates, costs, weights and conditions are numbers or functions of the state ``x`` that broadcast:
``x`` is a named tuple of coordinate arrays, so write ``np.where``, ``np.minimum`` and ``&``, not
``if``, ``min``, ``and``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError

__all__ = ["Action", "Control", "Event", "Flow", "Mode", "Move", "Step", "step"]

Amount: TypeAlias = Any  # an integer, or an integer array that broadcasts over the states
Value: TypeAlias = float | NDArray[np.float64] | Callable[..., Any]
Condition: TypeAlias = Callable[..., Any] | bool | None

MOST_CHOICES = 32_767  # actions of an event or modes of a control


@dataclass(frozen=True)
class Step:
    """A displacement of the state; made by `step`."""

    amounts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "amounts", MappingProxyType(dict(self.amounts)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Step, (dict(self.amounts),)


def step(**amounts: Amount | Mapping[int, Amount] | Sequence[Amount]) -> Step:
    """Displacement by axis name.

    Parameters
    ----------
    **amounts
        Per axis an integer; per indexed family a mapping from index to integer, or one integer per
        member. Integer arrays that broadcast over the states are allowed and make the step depend
        on the state.

    Examples
    --------
    >>> step(queue=+1, node={2: -1}).amounts["node"]
    {2: -1}
    """
    return Step(amounts)


@dataclass(frozen=True)
class Move:
    """A step taken with a weight: a probability in an event, a rate in a control."""

    weight: Value
    step: Step | None = None

    def __post_init__(self) -> None:
        _check_order("Move", "weight", self.weight)


@dataclass(frozen=True)
class Flow:
    """A transition rate (1/time) of a `Mode`."""

    rate: Value
    step: Step

    def __post_init__(self) -> None:
        _check_order("Flow", "rate", self.rate)


def _check_order(kind: str, first: str, value: Any) -> None:
    """Refuse the arguments of a move or flow in the wrong order."""
    if isinstance(value, Step):
        raise InputError(f"{kind} takes the {first} first and then the step")


Steps: TypeAlias = Step | Sequence[Move] | Callable[..., Any] | None


@dataclass(frozen=True)
class Action:
    """A way to answer an event.

    Parameters
    ----------
    name : str
    step : Step, sequence of Move, function of x returning either, or None
        Where the state goes; None leaves it. The weights of several moves are probabilities.
    cost : float or function of x
        Lump cost, paid each time.
    allowed : function of x returning booleans, or None
        Where the action may be taken. An action whose step leaves the space is never allowed there.
    """

    name: str
    step: Steps = None
    cost: Value = 0.0
    allowed: Condition = None


@dataclass(frozen=True)
class Event:
    """Something that happens at a rate and is answered by one of its actions.

    Parameters
    ----------
    name : str
    rate : float or function of x
        1/time, finite and >= 0.
    actions : Action, Step or sequence of Action
    """

    name: str
    rate: Value
    actions: tuple[Action, ...]

    def __init__(self, name: str, rate: Value, actions: Action | Step | Sequence[Action]) -> None:
        if isinstance(actions, Step):
            actions = Action(name, actions)
        listed = (actions,) if isinstance(actions, Action) else tuple(actions)
        _check_choices("event", name, listed, Action)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "actions", listed)


@dataclass(frozen=True)
class Mode:
    """A way to run a control.

    Parameters
    ----------
    name : str
    cost_rate : float or function of x
        Cost per unit of time while the mode is in force.
    flows : sequence of Flow
    allowed : function of x returning booleans, or None
    """

    name: str
    cost_rate: Value = 0.0
    flows: Sequence[Flow] = ()
    allowed: Condition = None

    def __post_init__(self) -> None:
        flows = (self.flows,) if isinstance(self.flows, Flow) else tuple(self.flows)
        for flow in flows:
            if not isinstance(flow, Flow):
                raise InputError(f"mode {self.name!r}: {flow!r} is not a flow")
        object.__setattr__(self, "flows", flows)


@dataclass(frozen=True)
class Control:
    """A decision in force all the time: in every state one of its modes is chosen."""

    name: str
    modes: tuple[Mode, ...]

    def __init__(self, name: str, modes: Mode | Sequence[Mode]) -> None:
        listed = (modes,) if isinstance(modes, Mode) else tuple(modes)
        _check_choices("control", name, listed, Mode)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "modes", listed)


def _check_choices(term: str, name: Any, listed: tuple[Any, ...], kind: type) -> None:
    """Refuse what is not of the kind, no choice at all, and names that are not distinct."""
    owner, word = f"{term} {name!r}", kind.__name__.lower()
    for item in listed:
        if not isinstance(item, kind):
            raise InputError(f"{owner}: {item!r} is no {word}")
    names = [item.name for item in listed]
    for text in (name, *names):
        if not isinstance(text, str):
            raise InputError(f"{owner}: the name {text!r} is not a string")
    if not names:
        raise InputError(f"{owner} has no {word}; it needs at least one")
    for text, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{owner} has two {word}s named {text!r}; names must differ")
    if len(names) > MOST_CHOICES:
        raise InputError(f"{owner} has {len(names)} {word}s; at most {MOST_CHOICES} are supported")
