"""Dense matrices of numbers >= 0: products, and triangular factors of M-matrices.

Compiled here rather than left to BLAS, whose threads wait for each other by spinning: on a machine
with other work to do, matrices of 100 phases took a hundred times longer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Floats = NDArray[np.float64]

ROWS = 32  # of a factor, that stay in the cache while they are used


@kernel()
def factor_rates(rates: Floats, exits: Floats) -> bool:
    """Factor minus the generator of a chain that is left at given rates: L U, in place.

    Parameters
    ----------
    rates : (m, m) array
        Rates between the states, the diagonal is never read. In the end, below the diagonal minus
        L (whose diagonal is 1), above it minus U, on it U's diagonal: all numbers are >= 0.
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


@kernel()
def multiply(left: Floats, right: Floats, product: Floats) -> None:
    """Product of matrices, left (m, k) times right (k, n), added to an array (m, n)."""
    for start in range(0, right.shape[0], ROWS):
        stop = min(start + ROWS, right.shape[0])
        for i in range(left.shape[0]):
            _add_rows(left[i], right, start, stop, product[i])


@kernel()
def solve_lower(factors: Floats, unit: bool, x: Floats) -> None:
    """Solve in place with 1 or the diagonal of the factors, minus what is below it."""
    for i in range(x.shape[0]):
        _add_rows(factors[i], x, 0, i, x[i])
        if not unit:
            for j in range(x.shape[1]):
                x[i, j] /= factors[i, i]


@kernel()
def solve_upper(factors: Floats, unit: bool, x: Floats) -> None:
    """Solve in place with 1 or the diagonal of the factors, minus what is above it."""
    m = x.shape[0]
    for i in range(m - 1, -1, -1):
        _add_rows(factors[i], x, i + 1, m, x[i])
        if not unit:
            for j in range(x.shape[1]):
                x[i, j] /= factors[i, i]


@kernel()
def _add_rows(weights: Floats, rows: Floats, start: int, stop: int, total: Floats) -> None:
    """Add weighted rows to a total; four at a time, so that it is read and written less often."""
    k = start
    while k + 4 <= stop:
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
            r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
            for j in range(total.size):
                total[j] += (w0 * r0[j] + w1 * r1[j]) + (w2 * r2[j] + w3 * r3[j])
        k += 4
    while k < stop:
        w0 = weights[k]
        r0 = rows[k]
        for j in range(total.size):
            total[j] += w0 * r0[j]
        k += 1
