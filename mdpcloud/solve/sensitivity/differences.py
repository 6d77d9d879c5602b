"""Derivatives of array functions of one number, by extrapolated differences.

Central differences at steps s, s/2, s/4, ... have errors in powers of s^2, one-sided ones in powers
of s; Richardson's extrapolation removes them one by one (Romberg's tableau). It ends as soon as two
successive diagonal entries agree, which functions that are affine reach at once; their difference
is the estimate of the error, rounding included. Central differences do not see a kink at the point
itself, so the jump of the derivative there is extrapolated as well, from second differences, and
added to the estimate. Nothing here is certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError

__all__ = ["Side", "Stencil", "differentiate", "find_stencil"]

Side = Literal["central", "forward", "backward"]
FIRST_STEPS = (2.0**-6, 2.0**-10, 2.0**-14)  # of the point, or of 1 where it is 0
LEVELS = 6  # rows of the tableau
AGREED = 1e-11  # of the largest derivative: successive entries this close end the tableau


@dataclass(frozen=True)
class Stencil:
    """Where a function of one number is evaluated: around a point, or on one side of it."""

    at: float
    step: float
    side: Side

    def ends(self, level: int) -> tuple[float, float]:
        """The two points of a difference, after ``level`` halvings of the step."""
        step = self.step / 2.0**level
        lower = self.at if self.side == "forward" else self.at - step
        upper = self.at if self.side == "backward" else self.at + step
        return lower, upper

    @property
    def ratio(self) -> float:
        """By how much the leading error shrinks when the step is halved."""
        return 4.0 if self.side == "central" else 2.0


def find_stencil(exists: Callable[[float], str | None], at: float) -> Stencil:
    """The widest stencil on which a function exists: central if possible, else one-sided.

    Parameters
    ----------
    exists : function of a number
        None where the function exists, else the reason why it does not.
    at : float

    Raises
    ------
    InputError
        When it exists on neither side.
    """
    scale = abs(at) or 1.0
    reason: str | None = None
    sides: list[Stencil] = []
    for step in (part * scale for part in FIRST_STEPS):
        above, below = exists(at + step), exists(at - step)
        if above is None and below is None:
            return Stencil(at, step, "central")
        if above is None or below is None:
            sides.append(Stencil(at, step, "forward" if above is None else "backward"))
        reason = reason or above or below
    if not sides:
        raise InputError(f"there is no model near the value {at:g}: {reason}")
    return sides[0]


def differentiate(function: Callable[[float], Floats], stencil: Stencil) -> tuple[Floats, Floats]:
    """Derivative and estimate of its error, entry by entry.

    Parameters
    ----------
    function : function of a number
        Returns an array, always of the same shape.
    stencil : Stencil

    Examples
    --------
    >>> value, error = differentiate(lambda t: np.array([t**3]), Stencil(2.0, 0.03, "central"))
    >>> bool(abs(value[0] - 12.0) <= error[0] + 1e-11), bool(error[0] < 1e-9)
    (True, True)
    """
    slopes, jumps = Tableau(stencil.ratio, stencil.ratio), Tableau(2.0, 4.0)
    middle = function(stencil.at)
    best, error = middle, np.full_like(middle, np.inf)
    for level in range(LEVELS):
        lower, upper = stencil.ends(level)
        below, above = (middle if t == stencil.at else function(t) for t in (lower, upper))
        slope, change = slopes.add((above - below) / (upper - lower))
        if stencil.side == "central":
            change += np.abs(jumps.add((above - 2.0 * middle + below) / (upper - stencil.at))[0])
        if level > 0 and _largest(change) < _largest(error):
            best, error = slope, change
        if _largest(error) <= AGREED * _largest(best):
            break
    return best, error


class Tableau:
    """Romberg's tableau for steps that are halved.

    Parameters
    ----------
    first : float
        By how much the leading error shrinks.
    ratio : float
        How much faster each further one shrinks than the one before it.
    """

    def __init__(self, first: float, ratio: float) -> None:
        self.first, self.ratio = first, ratio
        self.row: list[Floats] = []

    def add(self, entry: Floats) -> tuple[Floats, Floats]:
        """Add the value at the next step: the extrapolated value, and by how much it changed."""
        row, power = [entry], self.first
        for before in self.row:
            row.append(row[-1] + (row[-1] - before) / (power - 1.0))
            power *= self.ratio
        change = np.abs(row[-1] - self.row[-1]) if self.row else np.full_like(entry, np.inf)
        self.row = row
        return row[-1], change


def _largest(array: Floats) -> float:
    return float(np.abs(array).max(initial=0.0))
