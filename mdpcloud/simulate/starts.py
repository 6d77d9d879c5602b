"""Where paths begin, and states in which functions are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.calls import call
from mdpcloud.model.model import Model
from mdpcloud.model.space import Axes, Lattice, Reachable

__all__ = ["caps_of", "coordinates", "start_state", "states_near"]

UNBOUNDED = 2**62  # cap of a coordinate that has none
LARGEST_BOX = 1 << 18  # points of a lattice in which a first state is looked for
NEAR = 6  # steps from the start


def caps_of(model: Model) -> tuple[int, ...]:
    """The largest coordinates of a model's space."""
    if isinstance(model.space, Lattice):
        return tuple(model.space.axes.sizes)
    return (UNBOUNDED,) * len(model.space.axes)


def start_state(model: Model, start: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Coordinates of the state in which paths begin.

    Raises
    ------
    InputError
        When the start has other coordinates than the model, or is no state of it.
    """
    space = model.space
    if start is not None:
        return _checked(model, coordinates(start, space.axes))
    if isinstance(space, Reachable):
        return space.axes.sizes
    return _checked(model, _first_inside(space))


def coordinates(start: Any, axes: Axes) -> tuple[int, ...]:
    """A start as one number per flat axis.

    Raises
    ------
    InputError
        When it has other coordinates.
    """
    if not isinstance(start, Mapping):
        raise InputError(
            f"start is {start!r}; give the coordinates of a state, as {{axis: coordinate}}; there "
            f"are {list(axes.values)}"
        )
    given = Axes(start, "start")
    if given.flat != axes.flat:
        raise InputError(f"start has the coordinates {_named(given)}; the model has {_named(axes)}")
    return given.sizes


def _named(axes: Axes) -> str:
    """Names of coordinates; families with their number of members."""
    return str(
        [
            f"{name} ({len(value)})" if isinstance(value, tuple) else name
            for name, value in axes.values.items()
        ]
    )


def _first_inside(space: Lattice) -> tuple[int, ...]:
    origin = (0,) * len(space.axes)
    if _is_inside(space, origin):
        return origin
    if np.prod(np.array(space.shape, dtype=np.float64)) > LARGEST_BOX:
        raise InputError("the origin is no state of the space; give a start")
    inside = space.inside()
    place = 0 if inside is None else int(np.argmax(inside))
    return tuple(int(k) for k in np.unravel_index(place, space.shape))


def _checked(model: Model, state: Sequence[int]) -> tuple[int, ...]:
    space = model.space
    if isinstance(space, Lattice):
        beyond = any(x > cap for x, cap in zip(state, space.axes.sizes, strict=True))
        if beyond or not _is_inside(space, state):
            raise InputError(f"the start {space.axes.describe(state)} is no state of the space")
    return tuple(state)


def _is_inside(space: Lattice, state: Sequence[int]) -> bool:
    if space.where is None:
        return True
    columns = [np.array([x], dtype=np.int64) for x in state]
    return bool(np.all(call(space.where, space.axes.state(columns), "where")))


def states_near(model: Model, start: Sequence[int], count: int) -> NDArray[np.int64]:
    """Some states for trying a function, (at most count, axes); the start first."""
    draws = np.random.default_rng(0)
    most = [min(cap, x + NEAR) + 1 for cap, x in zip(caps_of(model), start, strict=True)]
    states = draws.integers(0, most, size=(count, len(most)))
    states[0] = start
    where = getattr(model.space, "where", None)
    if where is None:
        return states
    columns = [np.ascontiguousarray(column) for column in states.T]
    inside = np.asarray(call(where, model.space.axes.state(columns), "where"), dtype=bool)
    return np.asarray(states[np.broadcast_to(inside, (count,))], np.int64)
