"""Compiled recursion for the law of the occupied capacity of a loss system.

The weight of the occupancy m = A n is the sum of prod_j rho_j^{n_j} / n_j! over the jobs n that
occupy it. In it the mean number of class-j jobs leaves its weight at m - A_j, so that for every
resource i with m_i > 0

    m_i q(m) = sum_j A_ij rho_j q(m - A_j),    q(0) = 1

(Kaufman 1981 and Roberts 1981 for one resource). All terms are positive. Weights are pairs, value
2^(256 exponent) with values from 2^-128 to 2^128, so that neither many jobs nor few can leave the
range of floats; a term 2^-200 times smaller than the others is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["BITS", "occupancy_weights", "sums_by_class"]

BITS = 256  # of one unit of an exponent
LARGE = 2.0**128
SMALL = 2.0**-128
UNIT = 2.0**BITS
PART = 2.0**-BITS
FAR = 3  # units between a term and a sum in which it is lost


@kernel()
def _scaled_sum(
    value: float, exponent: int, correction: float, term: float, power: int
) -> tuple[float, int, float]:
    """Add a term to a sum with Kahan's correction; both as value 2^(256 exponent)."""
    if value == 0.0:
        return term, power, 0.0
    if power > exponent:
        shift = PART ** min(power - exponent, FAR)
        value, correction, exponent = value * shift, correction * shift, power
    elif power < exponent:
        term *= PART ** min(exponent - power, FAR)
    term -= correction
    total = value + term
    correction = (total - value) - term
    if total >= LARGE:
        return total * PART, exponent + 1, correction * PART
    return total, exponent, correction


@kernel()
def occupancy_weights(
    capacities: NDArray[np.int64],
    requirements: NDArray[np.int64],
    load: NDArray[np.float64],
    load_exponent: NDArray[np.int64],
    value: NDArray[np.float64],
    exponent: NDArray[np.int64],
) -> None:
    """Weights of all occupancies, the last resource fastest, in place.

    The loads are pairs of the same kind as the weights, whose arrays begin with zeros.
    """
    resources, classes = requirements.shape
    offset = np.zeros(classes, dtype=np.int64)
    for i in range(resources):
        for j in range(classes):
            offset[j] = offset[j] * (capacities[i] + 1) + requirements[i, j]
    m = np.zeros(resources, dtype=np.int64)
    value[0], exponent[0] = 1.0, 0
    for cell in range(1, value.size):
        i = resources - 1
        while m[i] == capacities[i]:
            m[i] = 0
            i -= 1
        m[i] += 1
        i = 0
        while m[i] == 0:
            i += 1
        total, top = 0.0, 0
        for j in range(classes):
            if requirements[i, j] == 0 or load[j] == 0.0:
                continue
            fits = True
            for k in range(i, resources):
                fits &= requirements[k, j] <= m[k]
            for k in range(i):
                fits &= requirements[k, j] == 0
            if not fits or value[cell - offset[j]] == 0.0:
                continue
            term = requirements[i, j] * load[j] * value[cell - offset[j]]
            power = load_exponent[j] + exponent[cell - offset[j]]
            if total == 0.0:
                total, top = term, power
            elif power == top:
                total += term
            elif power < top:
                if top - power < FAR:
                    total += term * PART ** (top - power)
            else:
                total = term + total * PART ** min(power - top, FAR)
                top = power
        total /= m[i]
        if total >= LARGE:
            total, top = total * PART, top + 1
        elif 0.0 < total < SMALL:
            total, top = total * UNIT, top - 1
        value[cell], exponent[cell] = total, top


@kernel()
def sums_by_class(
    capacities: NDArray[np.int64],
    requirements: NDArray[np.int64],
    value: NDArray[np.float64],
    exponent: NDArray[np.int64],
    total: NDArray[np.float64],
    power: NDArray[np.int64],
) -> None:
    """Sums (2, classes) of the weights where one more job fits, and where it does not, in place.

    The arrays begin with zeros.
    """
    resources, classes = requirements.shape
    correction = np.zeros(total.shape)
    m = np.zeros(resources, dtype=np.int64)
    for cell in range(value.size):
        if cell > 0:
            i = resources - 1
            while m[i] == capacities[i]:
                m[i] = 0
                i -= 1
            m[i] += 1
        if value[cell] == 0.0:
            continue
        for j in range(classes):
            blocked = 0
            for i in range(resources):
                if m[i] + requirements[i, j] > capacities[i]:
                    blocked = 1
            total[blocked, j], power[blocked, j], correction[blocked, j] = _scaled_sum(
                total[blocked, j],
                power[blocked, j],
                correction[blocked, j],
                value[cell],
                exponent[cell],
            )
