"""Restless arms whose state goes up and down by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.arm import Arm, Label, named_costs, per_state, rate_arm
from mdpcloud.model.calls import call
from mdpcloud.model.matrices import Floats
from mdpcloud.queues.border import checked_count

__all__ = ["BirthDeathArm", "Rates", "birth_death_arm"]

Rates: TypeAlias = "ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]"
"""A number, one per state, or a function of the array of states."""


@dataclass(frozen=True, eq=False, repr=False)
class BirthDeathArm:
    """A checked birth-death arm in continuous time; `birth_death_arm` builds it.

    Attributes
    ----------
    births, deaths : (2, n) arrays
        Rates (1/time) of a step up and down, passive and active; no births in the last state, no
        deaths in state 0.
    costs, work : (2, n) arrays
        Passive and active, per unit of time.
    enlarged : function without arguments, or None
        Builds the same arm with twice the room, where the room is a cut of an unbounded arm.
    top : int or None
        The only action allowed in the last state, whose numbers then stand in both rows; None if
        both are.
    label : function from state number to str
        Names of the states in messages.
    """

    births: Floats
    deaths: Floats
    costs: Floats
    work: Floats
    enlarged: Callable[[], BirthDeathArm] | None = None
    top: int | None = None
    label: Label = str

    def __repr__(self) -> str:
        return f"<BirthDeathArm of {self.n} states>"

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.births.shape[1])

    @property
    def discrete(self) -> bool:
        """Whether time is discrete: it is not."""
        return False

    def general(self) -> Arm:
        """The same arm with sparse generators."""
        generators = (_generator(*rates) for rates in zip(self.births, self.deaths, strict=True))
        costs, work = self.costs, self.work
        arm = rate_arm(*generators, *costs, work0=work[0], work1=work[1])
        if self.top is not None:
            last = np.arange(self.n) == self.n - 1
            arm = replace(arm, free=~last, forced=last & (self.top == 1))
        enlarged = self.enlarged
        if enlarged is None:
            return arm
        return replace(arm, enlarged=lambda: enlarged().general())


def birth_death_arm(
    births0: Rates,
    births1: Rates,
    deaths0: Rates,
    deaths1: Rates,
    costs0: Rates | None = None,
    costs1: Rates | None = None,
    *,
    rewards0: Rates | None = None,
    rewards1: Rates | None = None,
    work0: Rates = 0.0,
    work1: Rates = 1.0,
    room: int | None = None,
    unbounded: bool = True,
) -> BirthDeathArm:
    """Build an arm that moves between neighbouring states 0, 1, ... in continuous time.

    Every argument is a number for all states, an array of one number per state, or a function of
    the array of states.

    Parameters
    ----------
    births0, births1, deaths0, deaths1
        Rates (1/time) of a step up and down, passive and active. Numbers and functions are set to 0
        where the step leads out of the states; arrays must be 0 there.
    costs0, costs1
        Costs per unit of time; 0 by default.
    rewards0, rewards1
        Rewards per unit of time, instead of costs.
    work0, work1
        Work per unit of time.
    room : int, optional
        The largest state; needed if no argument is an array.
    unbounded : bool
        Whether the room is a cut of an arm without a largest state. Such an arm can be built again
        with twice the room, unless an argument is an array. Where nothing but births told the
        actions apart in its last state, the arm must take that of fewer births there.

    Returns
    -------
    BirthDeathArm

    Raises
    ------
    InputError
        Wrong shapes, rates that are negative or not finite, costs that are not finite; the message
        names the state.

    Examples
    --------
    Refusing jobs at a queue, at a price for each job refused:

    >>> arm = birth_death_arm(0.8, 0.0, 1.0, 1.0, lambda i: i, lambda i: i, work1=0.8, room=100)
    >>> arm.n
    101
    """
    priced = (costs0, costs1, rewards0, rewards1)
    rates = (births0, births1, deaths0, deaths1)
    given = (*rates, *priced, work0, work1)
    states = np.arange(_size(given, room))
    births = _rates("births", births0, births1, states, end=-1)
    deaths = _rates("deaths", deaths0, deaths1, states, end=0)
    names = ("costs0", "costs1", "rewards0", "rewards1")
    costs = named_costs(*(_on_states(v, states, n) for n, v in zip(names, priced, strict=True)))
    work = tuple(
        (name, _on_states(value, states, name))
        for name, value in (("work0", work0), ("work1", work1))
    )
    build = None
    if unbounded and not any(map(_is_array, given)):
        build = partial(
            birth_death_arm,
            *(births0, births1, deaths0, deaths1, costs0, costs1),
            rewards0=rewards0,
            rewards1=rewards1,
            work0=work0,
            work1=work1,
            room=max(2 * (states.size - 1), 1),
        )
    found = BirthDeathArm(births, deaths, _stacked(costs, states), _stacked(work, states), build)
    return found if build is None else _closed(found, births0, births1)


def _closed(arm: BirthDeathArm, *births: Any) -> BirthDeathArm:
    """The cut of an arm; in its last state the action is decided if only births differed there."""
    last = arm.n - 1
    states = np.arange(arm.n)
    wanted = [float(np.broadcast_to(_on_states(b, states, "births"), arm.n)[last]) for b in births]
    if arm.deaths[0, last] != arm.deaths[1, last] or wanted[0] == wanted[1]:
        return arm
    top = int(wanted[1] < wanted[0])
    for values in (arm.costs, arm.work):
        values[:, last] = values[top, last]
    return replace(arm, top=top)


def _is_array(value: Any) -> bool:
    return not callable(value) and np.ndim(value) > 0


def _size(given: tuple[Any, ...], room: int | None) -> int:
    """Number of states, from the room or the first array."""
    if room is not None:
        return checked_count("room", room, least=0) + 1
    for value in given:
        if _is_array(value):
            return max(len(value), 1)
    raise InputError("room is needed: no argument is an array of one number per state")


def _on_states(value: Any, states: NDArray[np.int64], name: str) -> Any:
    if not callable(value):
        return value
    found = call(value, states, name)
    if found is None:
        raise InputError(f"{name}: the function {value!r} returns None; numbers are needed")
    return found


def _stacked(pair: tuple[tuple[str, Any], ...], states: NDArray[np.int64]) -> Floats:
    return np.stack([per_state(value, name, states.size) for name, value in pair])


def _rates(name: str, first: Any, second: Any, states: NDArray[np.int64], end: int) -> Floats:
    """Checked rates of both actions, none of which leads out of the states at the end."""
    named = tuple((f"{name}{a}", value) for a, value in enumerate((first, second)))
    found = _stacked(tuple((key, _on_states(value, states, key)) for key, value in named), states)
    for (key, value), rates in zip(named, found, strict=True):
        if rates.min() < 0.0:
            state = int(np.argmax(rates < 0.0))
            raise InputError(f"{key} of state {state} is {rates[state]:g}; rates must be >= 0")
        if _is_array(value) and rates[end] != 0.0:
            raise InputError(
                f"{key} of state {states[end]} is {rates[end]:g}; it must be 0 at that end"
            )
        rates[end] = 0.0
    return found


def _generator(births: Floats, deaths: Floats) -> Any:
    from scipy import sparse

    diagonals: Any = [deaths[1:], -(births + deaths), births[:-1]]
    return sparse.diags_array(diagonals, offsets=[-1, 0, 1]).tocsr()
