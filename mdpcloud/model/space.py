"""State spaces: a box of integer coordinates, a part of it, or what can be reached from a start."""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.calls import call
from mdpcloud.plugins import did_you_mean

__all__ = ["Axes", "Lattice", "Reachable"]

Sizes = Mapping[str, int | Sequence[int]]


class Axes:
    """Names of the coordinates: single axes and indexed families, flattened in order.

    Parameters
    ----------
    sizes : mapping from name to an integer, or to a sequence of integers for a family
    what : str
        What the integers are, for messages.
    """

    def __init__(self, sizes: Sizes, what: str) -> None:
        if not isinstance(sizes, Mapping) or not sizes:
            raise InputError(
                f"axes are {sizes!r}; a space needs a mapping of at least one name to its {what}"
            )
        self.values: dict[str, int | tuple[int, ...]] = {}
        for name, value in sizes.items():
            if not str(name).isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
                raise InputError(f"axis name {name!r} is not a Python identifier")
            if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
                self.values[name] = tuple(_integer(name, v, what) for v in value)
                if not len(value):
                    raise InputError(f"family {name!r} is empty; it needs at least one {what}")
            else:
                self.values[name] = _integer(name, value, what)
        self.flat: list[tuple[str, int | None]] = [
            (name, k)
            for name, value in self.values.items()
            for k in (range(len(value)) if isinstance(value, tuple) else [None])
        ]
        self.position = {key: i for i, key in enumerate(self.flat)}
        self.sizes = tuple(
            v
            for value in self.values.values()
            for v in (value if isinstance(value, tuple) else (value,))
        )
        self._tuple = _point(tuple(self.values))

    def __len__(self) -> int:
        return len(self.flat)

    def state(self, columns: Sequence[Any]) -> Any:
        """Named tuple of coordinates from one column per flat axis; families become tuples."""
        parts: list[Any] = []
        start = 0
        for value in self.values.values():
            if isinstance(value, tuple):
                parts.append(tuple(columns[start : start + len(value)]))
                start += len(value)
            else:
                parts.append(columns[start])
                start += 1
        return self._tuple(*parts)

    def describe(self, coordinates: Sequence[int]) -> str:
        """A state for messages, as ``(node=(0, 3), phase=1)``."""
        state = self.state([int(c) for c in coordinates])
        inside = ", ".join(f"{name}={value}" for name, value in state._asdict().items())
        return f"({inside})"

    def displacement(self, amounts: Mapping[str, Any], owner: str) -> list[Any]:
        """One amount per flat axis of a step's ``amounts``; 0 where it says nothing."""
        flat: list[Any] = [0] * len(self)
        for name, amount in amounts.items():
            if name not in self.values:
                hint = did_you_mean(name, self.values) or f"; there are {list(self.values)}"
                raise InputError(f"{owner}: the space has no axis {name!r}{hint}")
            for k, value in self._members(name, amount, owner):
                flat[self.position[name, k]] = value
        return flat

    def _members(self, name: str, amount: Any, owner: str) -> list[tuple[int | None, Any]]:
        size = self.values[name]
        if not isinstance(size, tuple):
            if isinstance(amount, (Mapping, tuple, list)):
                raise InputError(f"{owner}: axis {name!r} takes one integer, not {amount!r}")
            return [(None, amount)]
        if isinstance(amount, Mapping):
            for k in amount:
                if k not in range(len(size)):
                    raise InputError(
                        f"{owner}: {name}[{k!r}] does not exist; indices are 0..{len(size) - 1}"
                    )
            return list(amount.items())
        if isinstance(amount, (tuple, list)) and len(amount) == len(size):
            return list(enumerate(amount))
        raise InputError(
            f"{owner}: family {name!r} takes {{index: amount}} or {len(size)} amounts, not "
            f"{amount!r}"
        )


@lru_cache(maxsize=256)  # making a class takes longer than all else in a small space
def _point(names: tuple[str, ...]) -> Any:
    return namedtuple("x", names)


def _integer(name: str, value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{what} of axis {name!r} is {value!r}; it must be an integer >= 0")
    if value < 0:
        raise InputError(f"{what} of axis {name!r} is {value}; it must be an integer >= 0")
    return int(value)


@dataclass(frozen=True, init=False, eq=False)
class Lattice:
    """All integer points of a box, or those that meet a condition.

    Parameters
    ----------
    axes : mapping
        Name to the largest value of that coordinate (the smallest is 0); a sequence makes an
        indexed family, ``{"node": (20, 30)}``.
    where : function of x returning booleans, or None
        Keeps the points where it is true; must broadcast.

    Examples
    --------
    >>> Lattice({"node": (2, 3), "phase": 1}).shape
    (3, 4, 2)
    """

    caps: Mapping[str, int | tuple[int, ...]]
    where: Callable[[Any], Any] | None

    def __init__(self, axes: Sizes, *, where: Callable[[Any], Any] | None = None) -> None:
        object.__setattr__(self, "caps", Axes(axes, "cap").values)
        object.__setattr__(self, "where", where)

    @cached_property
    def axes(self) -> Axes:
        """The coordinates' names, with the caps as sizes."""
        return Axes(self.caps, "cap")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values per flat axis."""
        return tuple(cap + 1 for cap in self.axes.sizes)

    def mesh(self) -> Any:
        """Named tuple of coordinates as an open mesh of shape (n_0, 1, ...), (1, n_1, ...), ..."""
        return self.axes.state(np.ogrid[tuple(slice(0, n) for n in self.shape)])

    def inside(self) -> NDArray[np.bool_] | None:
        """Which points of the box belong to the space, of its shape; None: all of them.

        Raises
        ------
        InputError
            When the condition does not broadcast, or no point meets it.
        """
        if self.where is None:
            return None
        found = np.asarray(call(self.where, self.mesh(), "where"), dtype=bool)
        try:
            inside = np.array(np.broadcast_to(found, self.shape))
        except ValueError:
            raise InputError(
                f"where has shape {found.shape}, which does not broadcast over the box {self.shape}"
            ) from None
        if not inside.any():
            raise InputError("the space is empty: no point of the lattice meets its condition")
        return inside


@dataclass(frozen=True, init=False, eq=False)
class Reachable:
    """The states that a model's own events can reach from a start; coordinates stay >= 0.

    Parameters
    ----------
    start : mapping
        Name to the initial value of that coordinate; a sequence makes an indexed family.
    max_states : int
        An `InputError` is raised when more states are found.
    """

    start: Mapping[str, int | tuple[int, ...]]
    max_states: int

    def __init__(self, start: Sizes, *, max_states: int = 20_000_000) -> None:
        if not max_states >= 1:
            raise InputError(f"max_states is {max_states}; it must be >= 1")
        object.__setattr__(self, "start", Axes(start, "start").values)
        object.__setattr__(self, "max_states", max_states)

    @cached_property
    def axes(self) -> Axes:
        """The coordinates' names, with the start as sizes."""
        return Axes(self.start, "start")
