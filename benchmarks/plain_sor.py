"""Stationary laws by successive over-relaxation, as one would write it by hand for one lattice."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["outflow", "residual", "sweeps"]


@numba.njit(nogil=True, cache=True)
def sweeps_2(x: Any, inverse: Any, death: Any, birth: Any, w: float, n: int) -> None:
    a, b = x.shape
    for _ in range(n):
        for i in range(a):
            for j in range(b):
                flow = 0.0
                if i + 1 < a:
                    flow += death[0, i + 1] * x[i + 1, j]
                if j + 1 < b:
                    flow += death[1, j + 1] * x[i, j + 1]
                if i > 0:
                    flow += birth[0, i - 1, j] * x[i - 1, j]
                if j > 0:
                    flow += birth[1, i, j - 1] * x[i, j - 1]
                x[i, j] += w * (flow * inverse[i, j] - x[i, j])


@numba.njit(nogil=True, cache=True)
def sweeps_3(x: Any, inverse: Any, death: Any, birth: Any, w: float, n: int) -> None:
    a, b, c = x.shape
    for _ in range(n):
        for i in range(a):
            for j in range(b):
                for k in range(c):
                    flow = 0.0
                    if i + 1 < a:
                        flow += death[0, i + 1] * x[i + 1, j, k]
                    if j + 1 < b:
                        flow += death[1, j + 1] * x[i, j + 1, k]
                    if k + 1 < c:
                        flow += death[2, k + 1] * x[i, j, k + 1]
                    if i > 0:
                        flow += birth[0, i - 1, j, k] * x[i - 1, j, k]
                    if j > 0:
                        flow += birth[1, i, j - 1, k] * x[i, j - 1, k]
                    if k > 0:
                        flow += birth[2, i, j, k - 1] * x[i, j, k - 1]
                    x[i, j, k] += w * (flow * inverse[i, j, k] - x[i, j, k])


def outflow(death: Any, birth: Any) -> Any:
    """Total rate out of every state."""
    return sum(np.ix_(*death), birth.sum(axis=0))


def sweeps(law: Any, inverse: Any, death: Any, birth: Any, factor: float, count: int) -> None:
    """Sweep a law (a table of the lattice) in place.

    Parameters
    ----------
    law : (n, ..., n) array
    inverse : (n, ..., n) array
        1 / total rate out of every state.
    death : (d, n) array
        Departure rate of each axis by its coordinate.
    birth : (d, n, ..., n) array
        Arrival rate along each axis in every state.
    """
    kernel = sweeps_2 if law.ndim == 2 else sweeps_3
    kernel(law, inverse, death, birth, factor, count)


def residual(law: Any, death: Any, birth: Any) -> float:
    """sum_y |inflow(y) - outflow(y)| / |sum_y outflow(y)|."""
    flow = law * outflow(death, birth)
    gap = -flow
    for axis in range(law.ndim):
        low = tuple(slice(None, -1) if k == axis else slice(None) for k in range(law.ndim))
        high = tuple(slice(1, None) if k == axis else slice(None) for k in range(law.ndim))
        shape = [-1 if k == axis else 1 for k in range(law.ndim)]
        gap[high] += (birth[axis] * law)[low]
        gap[low] += (death[axis].reshape(shape) * law)[high]
    return float(np.abs(gap).sum() / abs(flow.sum()))
