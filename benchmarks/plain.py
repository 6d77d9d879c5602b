"""The yardstick: relative value iteration written by hand for three nodes, and nothing else.

One compiled kernel with branches at the edges of the box. It shares no code with mdpcloud.

    h <- h + (v - s) / L,
    v = sum_k loss_k(i_k) + a min(C, min_k h(i + e_k) - h(i)) + sum_k d_k(i_k) (h(i - e_k) - h(i)),

with s the middle of the last bounds and L the largest total rate; it stops when
max v - min v <= tolerance |s|.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["Optimum", "iterate", "tables"]


@numba.njit(nogil=True, cache=True, fastmath=True)
def sweep(
    h: Any,
    out: Any,
    death: Any,
    loss: Any,
    arrival: float,
    outside: float,
    shift: float,
    step: float,
) -> Any:
    n0, n1, n2 = h.shape
    low, high = 1e300, -1e300
    for i in range(n0):
        for j in range(n1):
            d0, d1 = death[0, i], death[1, j]
            cost = loss[0, i] + loss[1, j]
            for k in range(n2):
                here = h[i, j, k]
                best = here + outside
                if i < n0 - 1:
                    best = min(best, h[i + 1, j, k])
                if j < n1 - 1:
                    best = min(best, h[i, j + 1, k])
                if k < n2 - 1:
                    best = min(best, h[i, j, k + 1])
                v = cost + loss[2, k] + arrival * (best - here)
                if i > 0:
                    v += d0 * (h[i - 1, j, k] - here)
                if j > 0:
                    v += d1 * (h[i, j - 1, k] - here)
                if k > 0:
                    v += death[2, k] * (h[i, j, k - 1] - here)
                out[i, j, k] = here + step * (v - shift)
                low = min(low, v)
                high = max(high, v)
    return low, high


@numba.njit(nogil=True, cache=True)
def sweeps(
    h: Any,
    out: Any,
    death: Any,
    loss: Any,
    arrival: float,
    outside: float,
    step: float,
    tolerance: float,
    most: int,
) -> Any:
    low, high, shift, count = -np.inf, np.inf, 0.0, 0
    while count < most and high - low > tolerance * abs(shift):
        low, high = sweep(h, out, death, loss, arrival, outside, shift, step)
        h, out = out, h
        shift = 0.5 * (low + high)
        count += 1
    return low, high, count


class Optimum(NamedTuple):
    """Bounds of the gain (up to rounding) and the number of sweeps."""

    lower: float
    upper: float
    sweeps: int


def tables(nodes: Sequence[Any], caps: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Death and loss rates (3, largest cap + 1)."""
    i = np.arange(max(caps) + 1)
    loss = np.array([n.abandonment_rate * np.maximum(i - n.servers, 0) for n in nodes])
    served = np.array([n.service_rate * np.minimum(i, n.servers) for n in nodes])
    return served + loss, loss


def iterate(
    nodes: Sequence[Any],
    arrival: float,
    outside: float,
    caps: Sequence[int],
    tolerance: float,
    most: int = 1_000_000,
) -> Optimum:
    """Solve the routing model on the box 0..caps from zero values."""
    death, loss = tables(nodes, caps)
    rate = arrival + sum(float(d[cap]) for d, cap in zip(death, caps, strict=True))
    h = np.zeros([cap + 1 for cap in caps])
    out = np.empty_like(h)
    return Optimum(*sweeps(h, out, death, loss, arrival, outside, 1.0 / rate, tolerance, most))
