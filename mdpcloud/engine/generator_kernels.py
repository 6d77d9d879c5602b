"""Fills a sparse matrix of rates, a row per state that is left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["count_moves", "place_moves"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@kernel()
def count_moves(rate: Floats, target: Ints, counts: Ints) -> None:
    """Count the moves with a positive rate that change the state, per state left."""
    for x in range(target.size):
        if rate[x] > 0.0 and target[x] != x:
            counts[x] += 1


@kernel()
def place_moves(rate: Floats, target: Ints, place: Ints, targets: Ints, rates: Floats) -> None:
    """Write target and rate of these moves at the next place of the row."""
    for x in range(target.size):
        if rate[x] > 0.0 and target[x] != x:
            targets[place[x]] = target[x]
            rates[place[x]] = rate[x]
            place[x] += 1
