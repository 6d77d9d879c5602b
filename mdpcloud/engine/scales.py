"""The largest total rate and the largest cost rate of a model.

Both are sums of arrays that broadcast over the states, with values for all states. They are made
for a part of the states at a time, as whole ones would take more memory than a solve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import Grid, Term

__all__ = ["cost_scale", "rate_bound"]

SAFETY = 1.05  # over the largest total rate: above 1, or periodic chains never settle
AT_A_TIME = 100_000  # states

Array: TypeAlias = NDArray[Any]
Cut: TypeAlias = Callable[[Array], Array]


def rate_bound(terms: list[Term], masks: list[list[Array]], grid: Grid) -> float:
    """1.05 times the largest total rate out of a state, 1/time; 1 where nothing moves.

    Parameters
    ----------
    terms : list of Term
    masks : list of lists of arrays
        Where each action of each term may be taken.
    grid : Grid
    """

    def total(cut: Cut) -> Array:
        rates: Array = np.zeros(())
        for term, allowed in zip(terms, masks, strict=True):
            most: Array = np.zeros(())
            for choice, mask in zip(term.choices, map(cut, allowed), strict=True):
                weight = sum((cut(move.weight) for move in choice.moves), np.zeros(()))
                most = np.maximum(most, weight if mask.all() else np.where(mask, weight, 0.0))
            rates = rates + cut(term.rate) * most
        return rates

    return SAFETY * _largest(total, grid) or 1.0


def cost_scale(
    costs: list[Array], terms: list[Term], masks: list[list[Array]], grid: Grid
) -> float:
    """The largest cost rate, lump costs at their rates included, cost/time."""

    def total(cut: Cut) -> Array:
        sizes: Array = np.abs(sum(map(cut, costs), np.zeros(())))
        for term, allowed in zip(terms, masks, strict=True):
            most: Array = np.zeros(())
            for choice, mask in zip(term.choices, map(cut, allowed), strict=True):
                if np.any(choice.cost):
                    most = np.maximum(most, np.where(mask, np.abs(cut(choice.cost)), 0.0))
            sizes = sizes + cut(term.rate) * most
        return np.asarray(sizes)

    return _largest(total, grid)


def _largest(total: Callable[[Cut], Array], grid: Grid) -> float:
    """The largest entry inside the space of an array that ``total`` makes for some rows."""
    largest = -math.inf
    for rows in _parts(grid):
        values = total(partial(_rows_of, rows))
        if grid.inside is not None and values.ndim:
            inside = grid.inside[rows]
            values = np.broadcast_to(values, inside.shape)[inside]
        largest = max(largest, float(values.max(initial=-math.inf)))
    return largest


def _parts(grid: Grid) -> Iterator[slice]:
    """Slices of the first axis with about `AT_A_TIME` states each."""
    length = grid.shape[0]
    parts = min(length, -(-math.prod(grid.shape) // AT_A_TIME))
    for part in range(parts):
        yield slice(part * length // parts, (part + 1) * length // parts)


def _rows_of(rows: slice, array: Array) -> Array:
    return array if array.ndim == 0 or array.shape[0] == 1 else array[rows]
