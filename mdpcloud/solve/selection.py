"""Numbers and sets given per state: by an array, by state numbers, or by a function of x."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError

__all__ = ["selected_states", "values_per_state"]


def values_per_state(value: Any, problem: Any, owner: str) -> Floats:
    """A number, an array (n,) or a function of x as one finite number per state.

    Raises
    ------
    InputError
        When there are not n values, or one is not finite; the message names the owner.
    """
    if callable(value):
        value = _called(value, problem, owner)
    try:
        values = np.array(np.broadcast_to(np.asarray(value, np.float64), (problem.n,)))
    except (ValueError, TypeError):
        raise InputError(
            f"{owner} must be a number, a function of x, or one number for each of the "
            f"{problem.n} states"
        ) from None
    if not np.isfinite(values).all():
        state = int(np.argmin(np.isfinite(values)))
        raise InputError(
            f"{owner} is {values[state]} in state {problem.label(state)}; it must be finite"
        )
    return values


def selected_states(states: Any, problem: Any, owner: str) -> NDArray[np.bool_]:
    """State numbers, booleans (n,) or a function of x as booleans (n,), at least one of them true.

    Raises
    ------
    InputError
        When they select nothing, or are none of these; the message names the owner.
    """
    if callable(states):
        given = np.broadcast_to(np.asarray(_called(states, problem, owner)), (problem.n,))
        if given.dtype != np.bool_:
            raise InputError(f"{owner}: the function must return booleans, not {given.dtype}")
    else:
        given = np.atleast_1d(np.asarray(states))
    if given.dtype == np.bool_ and given.shape == (problem.n,):
        chosen = np.array(given)
    elif given.size == 0:
        raise InputError(f"{owner}: no state is selected")
    elif given.ndim == 1 and given.dtype.kind in "iu":
        chosen = _numbered(given, problem, owner)
    else:
        raise InputError(
            f"{owner} must be state numbers, {problem.n} booleans, or a function of x that "
            "returns booleans"
        )
    if not chosen.any():
        raise InputError(f"{owner}: no state is selected")
    return chosen


def _numbered(numbers: NDArray[Any], problem: Any, owner: str) -> NDArray[np.bool_]:
    wrong = (numbers < 0) | (numbers >= problem.n)
    if wrong.any():
        raise InputError(
            f"{owner}: {numbers[wrong][0]} is not one of the states 0 to {problem.n - 1}"
        )
    states, count = np.unique(numbers, return_counts=True)
    if (count > 1).any():
        raise InputError(
            f"{owner}: state {states[count > 1][0]} is named twice; one value for each state must "
            "be a boolean"
        )
    chosen = np.zeros(problem.n, np.bool_)
    chosen[states] = True
    return chosen


def _called(function: Any, problem: Any, owner: str) -> Any:
    try:
        return function(problem.state(slice(None)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{owner}: the function failed: {error}") from error
