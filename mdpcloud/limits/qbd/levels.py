"""Levels of quasi-birth-death processes: rates up, within and down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import as_floats

__all__ = ["Level", "check_levels", "in_a_near_unit"]

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False)
class Level:
    """Rates out of a level of m phases.

    Parameters
    ----------
    local : (m, m) array_like
        Rates between the phases of the level, 1/time; the diagonal does not matter.
    up : (m, m') array_like
        Rates to the phases of the level above.
    down : (m, m'') array_like, optional
        Rates to the phases of the level below; none from level 0.

    Raises
    ------
    InputError
        When a rate is negative or not finite, or shapes do not fit.
    """

    local: Array
    up: Array
    down: Array

    def __init__(self, local: ArrayLike, up: ArrayLike, down: ArrayLike | None = None) -> None:
        within = as_floats(local, "local").copy()
        if within.ndim != 2 or within.shape[0] != within.shape[1] or not within.size:
            raise InputError(f"local has the shape {within.shape}; a square matrix is needed")
        np.fill_diagonal(within, 0.0)
        phases = within.shape[0]
        none = np.zeros((phases, 0))
        for name, rates in (
            ("local", within),
            ("up", as_floats(up, "up")),
            ("down", none if down is None else as_floats(down, "down")),
        ):
            if rates.ndim != 2 or rates.shape[0] != phases:
                raise InputError(f"{name} has the shape {rates.shape}; it must have {phases} rows")
            if rates.size and not (np.isfinite(rates).all() and rates.min() >= 0.0):
                raise InputError(f"{name} has a rate that is negative or not finite")
            object.__setattr__(self, name, rates)

    @property
    def phases(self) -> int:
        """Number of phases."""
        return int(self.local.shape[0])

    @property
    def out(self) -> Array:
        """Total rate out of each phase, (m,)."""
        total: Array = self.local.sum(axis=1) + self.up.sum(axis=1) + self.down.sum(axis=1)
        return total


def in_a_near_unit(levels: Sequence[Level]) -> tuple[Level, ...]:
    """The levels in the unit of time, a power of two, in which the largest total rate is near 1."""
    _, exponent = np.frexp(max(float(level.out.max()) for level in levels))
    return tuple(
        Level(*(np.ldexp(one, -exponent) for one in (level.local, level.up, level.down)))
        for level in levels
    )


def check_levels(boundary: Sequence[Level], repeating: Level) -> None:
    """Raise InputError unless every level leads to those beside it."""
    if not boundary:
        raise InputError("boundary has no level; give level 0 at least")
    if boundary[0].down.size:
        raise InputError("boundary[0] has rates down; there is nothing below level 0")
    levels = (*boundary, repeating, repeating)
    names = [f"boundary[{k}]" for k in range(len(boundary))] + ["repeating"] * 2
    for k, level in enumerate(levels):
        if k + 1 < len(levels):
            _check_width(f"{names[k]}.up", level.up, names[k + 1], levels[k + 1])
        if k:
            _check_width(f"{names[k]}.down", level.down, names[k - 1], levels[k - 1])


def _check_width(what: str, rates: Array, name: str, other: Level) -> None:
    if rates.shape[1] != other.phases:
        raise InputError(
            f"{what} has {rates.shape[1]} columns; {name} has {other.phases} phases, one column "
            "each is needed"
        )
