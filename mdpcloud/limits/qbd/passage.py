"""Passages between the levels of a quasi-birth-death process, without subtraction.

A level seen from the next one on the way to a reference level: with S its rates within the level,
excursions to the far side included, -S is minus the generator of a chain that is left at the rates
towards the reference. For levels that all are the same, logarithmic reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.qbd.algebra import Factored, dot

__all__ = ["Passage", "first_entries", "passage", "powers_sum"]

Array: TypeAlias = NDArray[np.float64]

MOST_STEPS = 100
"""Doublings: levels up to 2**100 matter."""


@dataclass(frozen=True, eq=False)
class Passage:
    """From a level to the next one on the way to the reference level.

    Attributes
    ----------
    factored : Factored
        Minus the rates within the level, excursions to its far side included.
    entries : (m, m') array
        Probability of each phase in which the next level is entered first.
    time : (m,) array
        Mean time until then.
    """

    factored: Factored
    entries: Array
    time: Array


def passage(
    local: Array, towards: Array, away: Array | None = None, beyond: Passage | None = None
) -> Passage:
    """Passage of a level, from its rates and the passage of the level on its far side."""
    exits = towards.sum(axis=1)
    if away is None or beyond is None:
        factored = Factored.of(local, exits)
        return Passage(factored, factored.solve(towards), factored.solve(np.ones(exits.size)))
    factored = Factored.of(local + dot(away, beyond.entries), exits)
    time = factored.solve(1.0 + dot(away, beyond.time))
    return Passage(factored, factored.solve(towards), time)


def first_entries(up: Array, local: Array, down: Array) -> tuple[Array, int]:
    """G of levels that all are the same, and the number of doublings, by logarithmic reduction.

    Raises
    ------
    SolveError
        When updates go on to change G; it carries G.
    """
    factored = Factored.of(local, (up + down).sum(axis=1))
    high, low = factored.solve(up), factored.solve(down)
    entries, share = low, high
    for steps in range(1, MOST_STEPS + 1):
        within, high, low = dot(high, low) + dot(low, high), dot(high, high), dot(low, low)
        factored = Factored.of(within, (high + low).sum(axis=1))
        high, low = factored.solve(high), factored.solve(low)
        before, entries = entries, entries + dot(share, low)
        share = dot(share, high)
        if np.array_equal(before, entries):
            return entries, steps
    raise SolveError(f"logarithmic reduction goes on after {MOST_STEPS} doublings", partial=entries)


def powers_sum(ratio: Array) -> Array:
    """I + R + R^2 + ..., by squaring: (I + R) (I + R^2) (I + R^4) ...

    Raises
    ------
    SolveError
        When the sum does not settle.
    """
    total, power = np.eye(ratio.shape[0]) + ratio, ratio
    for _ in range(MOST_STEPS):
        power = dot(power, power)
        before, total = total, total + dot(total, power)
        if np.array_equal(before, total):
            return total
    raise SolveError(f"the powers of R do not die out within {MOST_STEPS} squarings", total)
