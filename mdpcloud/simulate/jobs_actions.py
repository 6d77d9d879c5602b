"""The actions of routing: what rules answer, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.calls import unknown_axis
from mdpcloud.model.space import Axes
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.jobs_state import ArrayOfFloats, ArrayOfInts

__all__ = ["Actions", "some"]

SUM_ERROR = 1e-9  # of probabilities that shall sum to 1


class Actions:
    """Names of the actions, and the states in which functions are called.

    Parameters
    ----------
    rooms : sequence of int or None
        Most jobs at each node.
    """

    def __init__(self, rooms: Sequence[int | None]) -> None:
        self.rooms = rooms
        self.names = ("outside", *(f"node {k}" for k in range(len(rooms))))
        self._axes = Axes({"node": (0,) * len(rooms)}, "cap")

    def label(self, state: ArrayOfInts) -> str:
        """A state for messages."""
        return self._axes.describe(state.tolist())

    def number(self, action: Any, owner: str) -> int:
        """Number of an action, given by name or number."""
        if isinstance(action, str) and action in self.names:
            return self.names.index(action)
        whole = isinstance(action, (int, np.integer)) and not isinstance(action, bool)
        if whole and 0 <= action < len(self.names):
            return int(action)
        hint = did_you_mean(str(action), self.names) or f"; there are {some(self.names)}"
        raise InputError(f"{owner} gives {action!r}, which is no action{hint}")

    def call(self, function: Callable[[Any], Any], state: ArrayOfInts) -> Any:
        """What a function of x returns in a state, one value."""
        x = self._axes.state(list(state))
        try:
            answer = np.asarray(function(x))
        except AttributeError as error:
            raise self._named(unknown_axis(error, x, "the rule"), state) from error
        except Exception as error:
            raise self._named(error, state) from error
        if answer.size != 1:
            raise InputError(
                f"the rule returns {answer.tolist()!r} in state {self.label(state)}; it must "
                "return one value"
            )
        return answer.item()

    def _named(self, error: Exception, state: ArrayOfInts) -> Exception:
        """The error of a rule with its state."""
        if isinstance(error, InputError):
            return error
        return InputError(f"the rule fails in state {self.label(state)}: {error!r}")

    def answer(self, rule: Callable[[Any], Any], state: ArrayOfInts) -> int:
        """Number of the action that a rule takes."""
        action = self.call(rule, state)
        if isinstance(action, bool) or (isinstance(action, float) and action.is_integer()):
            action = int(action)
        return self.number(action, f"the rule in state {self.label(state)}")

    def row(self, parts: Mapping[int, Any], state: ArrayOfInts) -> ArrayOfFloats:
        """Probabilities (n + 1,) in a state."""
        weights = np.zeros(len(self.names))
        for number, value in parts.items():
            found = self.call(value, state) if callable(value) else value
            if not isinstance(found, (int, float)):
                raise InputError(
                    f"the probability of {self.names[number]!r} is {found!r} in state "
                    f"{self.label(state)}; it must be a number"
                )
            weights[number] = found
        return self.checked(weights, self.label(state), state)

    def checked(
        self, weights: ArrayOfFloats, label: str, state: ArrayOfInts | None = None
    ) -> ArrayOfFloats:
        """The probabilities, if they are some and, in a state, take no job to a full node."""
        where = f" in state {label}" if label else ""
        if not (weights >= 0.0).all() or not abs(weights.sum() - 1.0) <= SUM_ERROR:
            raise InputError(
                f"the probabilities of the actions are {some(weights.tolist())}{where}; they must "
                "be >= 0 and sum to 1"
            )
        for k, room in enumerate(self.rooms if state is not None else ()):
            if room is not None and state is not None and state[k] >= room and weights[k + 1] > 0:
                raise InputError(
                    f"the rule takes action {self.names[k + 1]!r} with positive probability{where},"
                    " where it is not allowed"
                )
        return weights


def some(values: Sequence[Any]) -> str:
    """Values for a message, the first of them if there are many."""
    return f"{[*values[:6]]}"[:-1] + (", ...]" if len(values) > 6 else "]")
