"""Arrays of one number per state, as functions of the coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.indexed import Codec, enumerate_states
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice

__all__ = ["ByState", "StateNumbers", "flat_columns"]

Array = NDArray[Any]


class StateNumbers:
    """Numbers of the states of a model, by their coordinates."""

    def __init__(self, model: Model) -> None:
        space = model.space
        self.shape: tuple[int, ...] | None = None
        if isinstance(space, Lattice) and space.where is None:
            self.shape = space.shape
            self.n = int(np.prod(np.array(self.shape, dtype=object)))
        else:
            columns = enumerate_states(model).columns
            self.largest = [int(column.max()) for column in columns]
            self.codec = Codec(self.largest)
            self.keys = self.codec.encode(columns)
            self.n = self.keys.size

    def __call__(self, columns: Sequence[Array]) -> Array:
        """Numbers (n,), -1 for what is no state."""
        if self.shape is not None:
            inside = _below(columns, [size - 1 for size in self.shape])
            safe = tuple(np.where(inside, column, 0) for column in columns)
            return np.where(inside, np.ravel_multi_index(safe, self.shape), -1)
        inside = _below(columns, self.largest)
        keys = self.codec.encode([np.where(inside, column, 0) for column in columns])
        place = np.minimum(np.searchsorted(self.keys, keys), self.n - 1)
        return np.where(inside & (self.keys[place] == keys), place, -1)


def _below(columns: Sequence[Array], largest: Sequence[int]) -> Array:
    inside = np.ones(len(columns[0]), dtype=bool)
    for column, top in zip(columns, largest, strict=True):
        inside &= column <= top
    return inside


class ByState:
    """An array of one number per state, as a function of x; nan where there is no state."""

    def __init__(self, numbers: StateNumbers, values: Array) -> None:
        self.numbers, self.values = numbers, np.append(values.astype(np.float64), np.nan)

    def __call__(self, x: Any) -> Array:
        """Values (n,) in n states."""
        columns = [np.asarray(column) for column in flat_columns(x)]
        return np.asarray(self.values[self.numbers(columns)])


def flat_columns(x: Any) -> list[Any]:
    """The coordinates of x, families flattened."""
    columns: list[Any] = []
    for part in x:
        columns += part if type(part) is tuple else [part]
    return columns
