"""Cyclic reduction of a walk by blocks of levels, without subtractions.

Generators are kept as their rates between different states; the diagonal is what the rows sum to
(W. K. Grassmann, M. I. Taksar and D. P. Heyman, Operations Research 33 (1985) 1107-1116), so that
every number is found to a few roundings of itself, however small the rates between groups of
states.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["censored_on_first", "inverse_of_leaving", "law_of_rates"]

NOTHING = 1e-100  # rate to higher blocks below which no path goes there
MOST = 100  # reductions; each doubles the number of blocks that are passed over

Floats: TypeAlias = NDArray[np.float64]


@kernel()
def inverse_of_leaving(rates: Floats, leaving: Floats) -> Floats:
    """Mean times spent in each state (column) from each (row) until the states are left.

    The inverse of D - rates with row sums `leaving`, by Gauss-Jordan elimination; a state that is
    eliminated passes its rates on.
    """
    size = leaving.size
    inner, out = rates.copy(), leaving.copy()
    found = np.eye(size)
    for k in range(size - 1, -1, -1):
        away = out[k]
        for j in range(k):
            away += inner[k, j]
        for i in range(k):
            share = inner[i, k] / away
            out[i] += share * out[k]
            for j in range(k):
                inner[i, j] += share * inner[k, j]
            for j in range(k, size):
                found[i, j] += share * found[k, j]
        for j in range(k, size):
            found[k, j] /= away
        for j in range(k):
            inner[k, j] /= away
    for k in range(size):
        for j in range(k):
            for column in range(size):
                found[k, column] += inner[k, j] * found[j, column]
    return found


@kernel()
def law_of_rates(rates: Floats) -> Floats:
    """Stationary law, up to a factor: 1 in state 0."""
    size = rates.shape[0]
    inner = rates.copy()
    for k in range(size - 1, 0, -1):
        away = 0.0
        for j in range(k):
            away += inner[k, j]
        for i in range(k):
            inner[i, k] /= away
            for j in range(k):
                inner[i, j] += inner[i, k] * inner[k, j]
    law = np.zeros(size)
    law[0] = 1.0
    for k in range(1, size):
        for i in range(k):
            law[k] += law[i] * inner[i, k]
    return law


@kernel()
def censored_on_first(up: Floats, within: Floats, down: Floats) -> tuple[Floats, float]:
    """Rates among the states of the first block with the visits to higher ones cut out.

    Parameters
    ----------
    up, within, down : (w, w) arrays
        Rates to the next block, in the block (the diagonal does not count) and to the one before.

    Returns
    -------
    rates : (w, w) array
    left : float
        Largest rate to higher blocks that remains.
    """
    first, middle = within.copy(), within.copy()
    higher, lower = up.copy(), down.copy()
    for _ in range(MOST):
        if higher.max() <= NOTHING:
            break
        times = inverse_of_leaving(middle, higher.sum(axis=1) + lower.sum(axis=1))
        rise, fall = higher @ times, lower @ times
        back = rise @ lower
        first += back
        middle += back + fall @ higher
        higher, lower = rise @ higher, fall @ lower
    return first, higher.max()
