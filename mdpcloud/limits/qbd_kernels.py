"""Triangular factors of M-matrices without subtraction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Floats = NDArray[np.float64]


@kernel()
def factor_rates(rates: Floats, exits: Floats) -> bool:
    """Factor minus the generator of a chain that is left at given rates: L U, in place.

    Parameters
    ----------
    rates : (m, m) array
        Rates between the states, the diagonal is never read. In the end, below the diagonal minus
        L (whose diagonal is 1), above it minus U, on it U's diagonal.
    exits : (m,) array
        Rates out of all states; overwritten.

    Returns
    -------
    bool
        False where some states cannot be left.
    """
    m = exits.size
    for k in range(m):
        pivot = exits[k]
        source = rates[k, k + 1 :]
        for j in range(source.size):
            pivot += source[j]
        if not pivot > 0.0:
            return False
        rates[k, k] = pivot
        for i in range(k + 1, m):
            if rates[i, k] != 0.0:
                share = rates[i, k] / pivot
                rates[i, k] = share
                exits[i] += share * exits[k]
                target = rates[i, k + 1 :]
                for j in range(source.size):
                    target[j] += share * source[j]
    return True
