"""Sweeps over the balance of flows, and its restriction to groups of states.

The unknown z(y) is the flow out of state y. With the share s(o, y) of the flow out of o that goes
to y, the balance reads z(y) = sum_o z(o) s(o, y). Row y of (indptr, origins, shares) has its
origins below y first; those above y begin at middle[y]. Sweeps that start from positive flows add
and multiply positive numbers only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = [
    "FLOOR",
    "add_scaled",
    "correct",
    "defect",
    "defect_of_groups",
    "dot_weighted",
    "flow_by_size",
    "grouped",
    "imbalance",
    "scale_groups",
    "settle_backward",
    "settle_forward",
    "size",
    "split_rows",
    "spread_groups",
    "sweep_backward",
    "sweep_from_zero",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Pointers = NDArray[Any]

FLOOR = 1e-270
"""Least flow; smaller ones would end in slow subnormal numbers, and in 0."""

SHORT = 24
"""Most entries of a row that is sorted."""


@kernel()
def split_rows(indptr: Pointers, origins: Ints, shares: Floats) -> Pointers:
    """Put the origins below each state before those above it; return where the latter begin.

    Short rows are sorted, so that a sweep ends each sum with the neighbour it has just changed and
    waits for that one alone.
    """
    n = indptr.size - 1
    middle = np.empty(n, indptr.dtype)
    for y in range(n):
        begin, end = indptr[y], indptr[y + 1]
        if end - begin <= SHORT:
            for j in range(begin + 1, end):
                origin, share = origins[j], shares[j]
                i = j
                while i > begin and origins[i - 1] > origin:
                    origins[i], shares[i] = origins[i - 1], shares[i - 1]
                    i -= 1
                origins[i], shares[i] = origin, share
        i = begin
        for j in range(begin, end):
            if origins[j] < y:
                origins[i], origins[j] = origins[j], origins[i]
                shares[i], shares[j] = shares[j], shares[i]
                i += 1
        middle[y] = i
    return middle


@kernel()
def settle_forward(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, z: Floats
) -> None:
    """Set each flow to the inflow, in order of the states (Gauss-Seidel)."""
    for y in range(z.size):
        flow = 0.0
        for j in range(middle[y], indptr[y + 1]):
            flow += z[origins[j]] * shares[j]
        for j in range(indptr[y], middle[y]):
            flow += z[origins[j]] * shares[j]
        z[y] = max(flow, FLOOR)


@kernel()
def settle_backward(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, z: Floats
) -> None:
    """Set each flow to the inflow, from the last state to the first."""
    for y in range(z.size - 1, -1, -1):
        flow = 0.0
        for j in range(indptr[y], middle[y]):
            flow += z[origins[j]] * shares[j]
        for j in range(indptr[y + 1] - 1, middle[y] - 1, -1):
            flow += z[origins[j]] * shares[j]
        z[y] = max(flow, FLOOR)


@kernel()
def sweep_from_zero(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, right: Floats, e: Floats
) -> None:
    """First Gauss-Seidel sweep for e(y) - sum_o e(o) s(o, y) = right(y), from e = 0."""
    for y in range(e.size):
        flow = right[y]
        for j in range(indptr[y], middle[y]):
            flow += e[origins[j]] * shares[j]
        e[y] = flow


@kernel()
def defect_of_groups(
    indptr: Pointers,
    middle: Pointers,
    origins: Ints,
    shares: Floats,
    e: Floats,
    group: Ints,
    coarse: Floats,
) -> None:
    """Sum over each group what `sweep_from_zero` has left, the inflow from higher states."""
    coarse[:] = 0.0
    for y in range(e.size):
        flow = 0.0
        for j in range(middle[y], indptr[y + 1]):
            flow += e[origins[j]] * shares[j]
        coarse[group[y]] += flow


@kernel()
def sweep_backward(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, right: Floats, e: Floats
) -> None:
    """Gauss-Seidel sweep from the last state to the first."""
    for y in range(e.size - 1, -1, -1):
        flow = right[y]
        for j in range(indptr[y], middle[y]):
            flow += e[origins[j]] * shares[j]
        for j in range(indptr[y + 1] - 1, middle[y] - 1, -1):
            flow += e[origins[j]] * shares[j]
        e[y] = flow


@kernel()
def defect(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, z: Floats, out: Floats
) -> None:
    """Set out(y) = z(y) - sum_o z(o) s(o, y)."""
    for y in range(z.size):
        flow = 0.0
        for j in range(indptr[y], indptr[y + 1]):
            flow += z[origins[j]] * shares[j]
        out[y] = z[y] - flow


@kernel()
def imbalance(
    indptr: Pointers, middle: Pointers, origins: Ints, shares: Floats, z: Floats
) -> float:
    """Return sum_y |inflow(y) - z(y)| / sum_y z(y)."""
    gap = 0.0
    total = 0.0
    for y in range(z.size):
        flow = 0.0
        for j in range(indptr[y], indptr[y + 1]):
            flow += z[origins[j]] * shares[j]
        gap += abs(flow - z[y])
        total += z[y]
    return gap / total


@kernel()
def scale_groups(z: Floats, group: Ints, solved: Floats, before: Floats) -> None:
    """Scale the flows of each group by solved / before and all of them to the sum 1."""
    factor = solved / before
    total = 0.0
    for y in range(z.size):
        z[y] *= factor[group[y]]
        total += z[y]
    inverse = 1.0 / total
    for y in range(z.size):
        z[y] = max(z[y] * inverse, FLOOR)


@kernel()
def spread_groups(e: Floats, flow: Floats, group: Ints, solved: Floats, before: Floats) -> None:
    """Add to e the correction of each group, in proportion to the flows."""
    factor = solved / before
    for y in range(e.size):
        e[y] += flow[y] * factor[group[y]]


@kernel(fastmath=True)
def dot_weighted(a: Floats, b: Floats, weight: Floats) -> float:
    """Return sum_y a(y) b(y) weight(y)."""
    total = 0.0
    for y in range(a.size):
        total += a[y] * b[y] * weight[y]
    return total


@kernel(fastmath=True)
def size(a: Floats) -> float:
    """Return sum_y |a(y)|."""
    total = 0.0
    for y in range(a.size):
        total += abs(a[y])
    return total


@kernel(fastmath=True)
def add_scaled(a: Floats, factor: float, b: Floats) -> None:
    """Add factor * b to a."""
    for y in range(a.size):
        a[y] += factor * b[y]


@kernel()
def flow_by_size(z: Floats) -> Floats:
    """Sum the flows from 2 ** (k - 1024) up to twice that, for k = 0 ... 1023."""
    found = np.zeros(1024)
    for y in range(z.size):
        exponent = int(np.floor(np.log2(z[y])))
        found[max(0, min(1023, 1024 + exponent))] += z[y]
    return found


@kernel()
def correct(z: Floats, e: Floats) -> None:
    """Add e to the positive flows z, each of which keeps a tenth at least."""
    for y in range(z.size):
        z[y] = max(z[y] + e[y], 0.1 * z[y])


@kernel()
def grouped(
    indptr: Pointers,
    middle: Pointers,
    origins: Ints,
    shares: Floats,
    flow: Floats,
    group: Ints,
    first: Ints,
    following: Ints,
) -> tuple[Pointers, Pointers, Ints, Floats, Floats]:
    """Balance of the flows between groups: indptr, origins and shares, and the flow out of each.

    Parameters
    ----------
    flow : (n,) array
        Flows of the states, which weight them within their group.
    group : (n,) array
        Group of each state.
    first : (m,) array
        First member of each group.
    following : (n,) array
        Next member of the same group, -1 at the last.
    """
    m = first.size
    pointers = np.zeros(m + 1, np.int32)
    targets = np.empty(origins.size, np.int32)
    flows = np.empty(origins.size)
    place = np.full(m, -1, np.int64)
    out = np.zeros(m)
    end = 0
    for g in range(m):
        begin = end
        y = first[g]
        while y >= 0:
            for j in range(indptr[y], indptr[y + 1]):
                h = group[origins[j]]
                if h != g:
                    value = shares[j] * flow[origins[j]]
                    if place[h] < begin:
                        place[h] = end
                        targets[end] = h
                        flows[end] = value
                        end += 1
                    else:
                        flows[place[h]] += value
            y = following[y]
        pointers[g + 1] = end
    for k in range(end):
        out[targets[k]] += flows[k]
    for h in range(m):
        out[h] = max(out[h], FLOOR)
    for k in range(end):
        flows[k] /= out[targets[k]]
    targets, flows = targets[:end].copy(), flows[:end].copy()
    return pointers, split_rows(pointers, targets, flows), targets, flows, out
