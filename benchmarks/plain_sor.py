"""Stationary laws by successive over-relaxation, as one would write it by hand for one lattice."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["residual", "sweeps"]


@numba.njit(nogil=True, cache=True)
def inflow_2(x: Any, d0: Any, d1: Any, b0: Any, b1: Any, i: int, j: int) -> Any:
    flow = 0.0
    if i + 1 < x.shape[0]:
        flow += d0[i + 1] * x[i + 1, j]
    if j + 1 < x.shape[1]:
        flow += d1[j + 1] * x[i, j + 1]
    if i > 0:
        flow += b0[i - 1, j] * x[i - 1, j]
    if j > 0:
        flow += b1[i, j - 1] * x[i, j - 1]
    return flow


@numba.njit(nogil=True, cache=True)
def sweeps_2(x: Any, inverse: Any, d0: Any, d1: Any, b0: Any, b1: Any, w: float, n: int) -> None:
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                flow = inflow_2(x, d0, d1, b0, b1, i, j)
                x[i, j] += w * (flow * inverse[i, j] - x[i, j])


@numba.njit(nogil=True, cache=True)
def residual_2(x: Any, out: Any, d0: Any, d1: Any, b0: Any, b1: Any) -> float:
    gap, total = 0.0, 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            flow = x[i, j] * out[i, j]
            gap += abs(inflow_2(x, d0, d1, b0, b1, i, j) - flow)
            total += flow
    return gap / abs(total)


@numba.njit(nogil=True, cache=True)
def inflow_3(
    x: Any, d0: Any, d1: Any, d2: Any, b0: Any, b1: Any, b2: Any, i: int, j: int, k: int
) -> Any:
    flow = 0.0
    if i + 1 < x.shape[0]:
        flow += d0[i + 1] * x[i + 1, j, k]
    if j + 1 < x.shape[1]:
        flow += d1[j + 1] * x[i, j + 1, k]
    if k + 1 < x.shape[2]:
        flow += d2[k + 1] * x[i, j, k + 1]
    if i > 0:
        flow += b0[i - 1, j, k] * x[i - 1, j, k]
    if j > 0:
        flow += b1[i, j - 1, k] * x[i, j - 1, k]
    if k > 0:
        flow += b2[i, j, k - 1] * x[i, j, k - 1]
    return flow


@numba.njit(nogil=True, cache=True)
def sweeps_3(
    x: Any,
    inverse: Any,
    d0: Any,
    d1: Any,
    d2: Any,
    b0: Any,
    b1: Any,
    b2: Any,
    w: float,
    n: int,
) -> None:
    for _ in range(n):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for k in range(x.shape[2]):
                    flow = inflow_3(x, d0, d1, d2, b0, b1, b2, i, j, k)
                    x[i, j, k] += w * (flow * inverse[i, j, k] - x[i, j, k])


@numba.njit(nogil=True, cache=True)
def residual_3(x: Any, out: Any, d0: Any, d1: Any, d2: Any, b0: Any, b1: Any, b2: Any) -> float:
    gap, total = 0.0, 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                flow = x[i, j, k] * out[i, j, k]
                gap += abs(inflow_3(x, d0, d1, d2, b0, b1, b2, i, j, k) - flow)
                total += flow
    return gap / abs(total)


def outflow(deaths: Any, births: Any) -> Any:
    """Total rate out of every state."""
    return sum(births) + sum(np.ix_(*deaths))


def sweeps(law: Any, deaths: Any, births: Any, factor: float, count: int) -> None:
    """Sweep a law (a table of the lattice) in place."""
    inverse = 1.0 / outflow(deaths, births)
    kernel = sweeps_2 if law.ndim == 2 else sweeps_3
    kernel(law, inverse, *deaths, *births, factor, count)


def residual(law: Any, deaths: Any, births: Any) -> float:
    """sum_y |inflow(y) - outflow(y)| / |sum_y outflow(y)|."""
    kernel = residual_2 if law.ndim == 2 else residual_3
    return float(kernel(law, outflow(deaths, births), *deaths, *births))
