"""A policy that changes with time: piecewise constant, stored as its changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.plugins import did_you_mean

__all__ = ["Changes", "TimedPolicy"]

Array = NDArray[Any]


class Changes(NamedTuple):
    """Changes of one decision, in the order of time: from a time on, a state takes an action."""

    times: Array  # (m,), never decreasing
    states: Array  # (m,)
    actions: Array  # (m,)


NO_CHANGES = Changes(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int8))


@dataclass(frozen=True, eq=False, repr=False)
class TimedPolicy:
    """What each decision does in every state at every time from 0 to the horizon.

    Memory is in proportion to the number of changes.

    Parameters
    ----------
    first : Policy
        In force from time 0 on; deterministic.
    changes : mapping from decisions to (times, states, actions), three arrays (m,)
        In the order of time; each holds from its time on, that time included. A decision left out
        never changes.
    horizon : float
        Time (in discrete time the number of steps) from 0 to the end.

    Raises
    ------
    InputError
        When the arrays do not fit each other, the policy or the horizon.

    Examples
    --------
    >>> join = Policy({"arrival": np.array([0, 0])}, {"arrival": ("join", "lost")}, (2,))
    >>> policy = TimedPolicy(join, {"arrival": ([3.0], [1], [1])}, horizon=5.0)
    >>> policy.at(2.9).table(), policy.at(3.0).table()
    (array([0, 0]), array([0, 1]))
    """

    first: Policy
    changes: Mapping[str, Changes]
    horizon: float

    def __post_init__(self) -> None:
        if self.first.randomised:
            raise InputError("a policy that changes with time is deterministic")
        for name in self.changes:
            if name not in self.first.actions:
                hint = did_you_mean(name, self.first.actions)
                raise InputError(
                    f"the policy has no decision {name!r}"
                    f"{hint or f'; there are {list(self.first.actions)}'}"
                )
        changes = {
            name: self._checked(name, self.changes.get(name, NO_CHANGES))
            for name in self.first.actions
        }
        object.__setattr__(self, "changes", MappingProxyType(changes))
        object.__setattr__(self, "horizon", float(self.horizon))

    def _checked(self, name: str, given: Any) -> Changes:
        """Changes of a decision as read-only arrays of the right types."""
        base = self.first.actions[name]
        times, states, actions = (np.array(part) for part in given)
        if not times.shape == states.shape == actions.shape == (times.size,):
            raise InputError(
                f"changes of {name!r} have shapes {times.shape}, {states.shape} and "
                f"{actions.shape}; they must be three arrays of one length"
            )
        inside = (times >= 0) & (times <= self.horizon)
        if not inside.all() or (np.diff(times) < 0).any():
            raise InputError(
                f"times of the changes of {name!r} must never decrease, from 0 to {self.horizon}"
            )
        wrong = (states < 0) | (states >= base.size)
        wrong |= (actions < 0) | (actions >= len(self.first.names[name]))
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InputError(
                f"a change of {name!r} takes action {actions[k]} in state {states[k]}; there are "
                f"{base.size} states and {len(self.first.names[name])} actions"
            )
        parts = times.astype(np.float64), states.astype(np.int32), actions.astype(base.dtype)
        for part in parts:
            part.flags.writeable = False
        return Changes(*parts)

    def __repr__(self) -> str:
        changes = ", ".join(f"{name!r}: {c.times.size}" for name, c in self.changes.items())
        return f"TimedPolicy(horizon={self.horizon:g}, changes={{{changes}}}; shape={self.shape})"

    def __reduce__(self) -> tuple[Any, ...]:
        changes = {name: tuple(parts) for name, parts in self.changes.items()}
        return TimedPolicy, (self.first, changes, self.horizon)

    @property
    def actions(self) -> Mapping[str, Array]:
        """Actions at time 0; decision to array (n,)."""
        return self.first.actions

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Decision to its action names."""
        return self.first.names

    @property
    def shape(self) -> tuple[int, ...]:
        """The lattice's shape where the states fill it, else (n,)."""
        return self.first.shape

    @property
    def randomised(self) -> bool:
        """Whether some decision is given by probabilities: no."""
        return False

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The times at which something changes, increasing."""
        return np.unique(np.concatenate([NO_CHANGES.times, *(c.times for c in self._all)]))

    @property
    def _all(self) -> list[Changes]:
        return list(self.changes.values())

    def at(self, time: float) -> Policy:
        """The policy in force at a time from 0 to the horizon.

        Raises
        ------
        InputError
            When the time lies elsewhere.
        """
        if not 0 <= time <= self.horizon:
            raise InputError(f"time is {time!r}; it must lie between 0 and {self.horizon:g}")
        actions = {name: self._at(name, time) for name in self.first.actions}
        return replace(self.first, actions=actions)

    def _at(self, name: str, time: float) -> Array:
        times, states, actions = self.changes[name]
        count = np.searchsorted(times, time, side="right")
        array = self.first.actions[name].copy()
        array[states[:count]] = actions[:count]  # the last of several changes of a state stays
        return array

    def switches(self, decision: str, state: int) -> list[tuple[float, str]]:
        """When a decision changes in a state, and to which action.

        Raises
        ------
        InputError
            When the decision or the state is unknown.
        """
        if decision not in self.changes:
            hint = did_you_mean(decision, self.changes) or f"; there are {list(self.changes)}"
            raise InputError(f"the policy has no decision {decision!r}{hint}")
        if not 0 <= state < self.first.actions[decision].size:
            raise InputError(
                f"state is {state}; there are {self.first.actions[decision].size} states"
            )
        times, states, actions = self.changes[decision]
        here = states == state
        names = self.first.names[decision]
        return [(float(t), names[a]) for t, a in zip(times[here], actions[here], strict=True)]

    def check(self, problem: Any) -> None:
        """Raise `InputError` unless a problem has its decisions, with its states and actions.

        Whether the actions are allowed is open.
        """
        self.first.check(problem)

    def backwards(self) -> Iterator[tuple[float, float, Policy]]:
        """The pieces (begin, end, policy) from the last one to the first."""
        actions = {name: self._at(name, self.horizon) for name in self.changes}
        before = {name: self._before(name) for name in self.changes}
        end = self.horizon
        for time in self.times[::-1]:
            if time < end:
                yield float(time), end, self._copy(actions)
                end = float(time)
            for name, changes in self.changes.items():
                part = slice(*np.searchsorted(changes.times, [time, np.nextafter(time, np.inf)]))
                # Undone from the last to the first, so that the earliest action stays.
                actions[name][changes.states[part][::-1]] = before[name][part][::-1]
        if end > 0:
            yield 0.0, end, self._copy(actions)

    def _copy(self, actions: Mapping[str, Array]) -> Policy:
        return replace(self.first, actions={name: a.copy() for name, a in actions.items()})

    def _before(self, name: str) -> Array:
        """What each change replaces."""
        _, states, actions = self.changes[name]
        order = np.argsort(states, kind="stable")
        before = self.first.actions[name][states]
        again = np.flatnonzero(np.diff(states[order]) == 0) + 1
        before[order[again]] = actions[order[again - 1]]
        return before
