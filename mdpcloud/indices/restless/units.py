"""Units of time, cost and work in which the numbers of an arm are near 1.

With rates, costs and work times powers of two nothing is rounded, and squares, products and norms
stay within the range of float64. If values v solve alpha v = c + p w + Q v then v / (t k) solves it
with t alpha, t Q, k c, and with the price p k / m if work is m w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdpcloud.errors import SolveError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.model.matrices import Floats

__all__ = ["Units", "in_units", "restored"]

NEAR = 100  # binary exponents of numbers that are near enough to 1
LEAST = -1000  # of rates where the largest is near 1


@dataclass(frozen=True)
class Units:
    """Binary exponents of the factors that numbers were divided by."""

    time: int = 0
    cost: int = 0
    work: int = 0

    @property
    def price(self) -> int:
        """Exponent of prices."""
        return self.cost - self.work


def in_units(arm: Arm, alpha: float) -> tuple[Arm, float, Units]:
    """The same arm and discount rate with numbers near 1, and their units.

    Raises
    ------
    SolveError
        If rates are too far apart for float64.
    """
    fastest = max(float(np.max(np.abs(matrix.diagonal()))) for matrix in arm.moves)
    units = Units(
        0 if arm.discrete else _exponent(max(fastest, alpha)),
        _exponent(float(np.max(np.abs(arm.costs)))),
        _exponent(float(np.max(np.abs(arm.work)))),
    )
    if not arm.discrete:
        _check_range(arm, alpha, units.time)
    if units == Units():
        return arm, alpha, units
    moves = arm.moves
    if units.time:
        moves = (_shifted(moves[0], -units.time), _shifted(moves[1], -units.time))
        alpha = float(np.ldexp(alpha, -units.time))
    costs, work = np.ldexp(arm.costs, -units.cost), np.ldexp(arm.work, -units.work)
    return replace(arm, moves=moves, costs=costs, work=work, enlarged=None), alpha, units


def restored(numbers: Floats, exponent: int) -> Floats:
    """Numbers times a power of two.

    Raises
    ------
    SolveError
        If one is too large for float64.
    """
    if exponent == 0:
        return numbers
    with np.errstate(over="ignore"):
        found: Floats = np.ldexp(numbers, exponent)
    if (np.isinf(found) & np.isfinite(numbers)).any():
        raise SolveError("the index, or a cost, is too large for float64")
    return found


def _exponent(largest: float) -> int:
    """Exponent to divide by; 0 where the largest number is near enough to 1."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > NEAR else 0


def _check_range(arm: Arm, alpha: float, exponent: int) -> None:
    rates = [_entries(matrix) for matrix in arm.moves]
    least = min(float(np.min(x, where=x > 0.0, initial=np.inf)) for x in [*rates, np.array(alpha)])
    if np.isfinite(least) and np.frexp(least)[1] - exponent < LEAST:
        raise SolveError("the rates of the arm are too far apart for float64")


def _entries(matrix: Any) -> Floats:
    found: Floats = matrix if isinstance(matrix, np.ndarray) else matrix.data
    return found


def _shifted(matrix: Any, exponent: int) -> Any:
    if isinstance(matrix, np.ndarray):
        return np.ldexp(matrix, exponent)
    found = matrix.copy()
    found.data = np.ldexp(matrix.data, exponent)
    return found
