"""State reduction without subtraction (Grassmann, Taksar and Heyman 1985); shares of the rates.

Rates are stored by diagonals: ``band[x, y - x + b]`` is the rate from x to y, |y - x| <= b. With
b = m - 1 that is any matrix. Diagonals are never read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@kernel()
def reduce_states(band: Floats, law: Floats) -> bool:
    """Write the stationary law, up to a factor, of an irreducible chain; the band is overwritten.

    Every number is a sum of products and quotients of positive numbers, so every entry of the law
    is accurate to a small multiple of the unit roundoff whatever the rates are. False if a rate
    underflowed. Entries below 1e-280 times the largest may become 0.
    """
    m, b = band.shape[0], band.shape[1] // 2
    for k in range(m - 1, 0, -1):
        low = max(0, k - b)
        source = band[k, low - k + b : b]
        out = 0.0
        for j in range(source.size):
            out += source[j]
        if not out > 0.0:
            return False
        for i in range(low, k):
            share = band[i, k - i + b] / out
            band[i, k - i + b] = share
            if share != 0.0:
                target = band[i, low - i + b : k - i + b]
                for j in range(target.size):
                    target[j] += share * source[j]
    law[0] = 1.0
    first = 0
    for k in range(1, m):
        flow = 0.0
        for i in range(max(0, k - b), k):
            flow += law[i] * band[i, k - i + b]
        law[k] = flow
        if flow > 1e200:
            for i in range(first, k + 1):
                law[i] *= 2.0**-600
            while law[first] == 0.0:
                first += 1
    return True


@kernel()
def push_mass(rates: Floats, mass: Floats) -> bool:
    """Move the mass of transient states 0 ... m-1 on to the classes m ... without subtraction.

    Parameters
    ----------
    rates : (m, m + c) array
        Rates from the transient states to all of them and to the c classes; overwritten.
    mass : (m + c,) array
        Initial mass; in the end the probability of ending in each class, 0 in the first m entries.
    """
    m, columns = rates.shape
    for k in range(m - 1, -1, -1):
        out = 0.0
        for j in range(columns):
            if j < k or j >= m:
                out += rates[k, j]
        if not out > 0.0:
            return False
        for j in range(columns):
            if j < k or j >= m:
                share = rates[k, j] / out
                mass[j] += mass[k] * share
                if share != 0.0:
                    for i in range(k):
                        rates[i, j] += rates[i, k] * share
        mass[k] = 0.0
    return True


@kernel()
def out_rates(origins: Ints, rates: Floats, n: int) -> Floats:
    """Total rate out of each of n states, given origin and rate of each move."""
    out = np.zeros(n)
    for j in range(rates.size):
        out[origins[j]] += rates[j]
    return out


@kernel()
def shares_of_rates(origins: Ints, rates: Floats, out: Floats) -> None:
    """Divide each rate by the total rate out of its origin."""
    for j in range(rates.size):
        rates[j] /= out[origins[j]]
