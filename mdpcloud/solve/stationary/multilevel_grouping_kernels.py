"""Groups of states that exchange much flow, by repeated matching of pairs.

After Notay, "Aggregation-based algebraic multigrid for convection-diffusion equations" (SIAM J.
Sci. Comput. 34, 2012), section 4, with another measure: a group takes the unmatched group from
which it gets most flow, relative to the smaller of their flows out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["match_groups"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Pointers = NDArray[Any]


@kernel()
def match_groups(
    indptr: Pointers,
    middle: Pointers,
    origins: Ints,
    shares: Floats,
    flow: Floats,
    passes: int,
    weakest: float,
    loosest: float,
) -> tuple[Ints, Ints, Ints]:
    """Match pairs of groups in several passes, beginning with single states.

    Parameters
    ----------
    indptr, middle, origins, shares
        Shares of the flow out of each origin, row by row; see `multilevel_kernels`.
    flow : (n,) array
        Flow out of each state.
    passes : int
        A group has at most 2 ** passes states.
    weakest : float
        Least share of the strongest tie of a group that a match must have.
    loosest : float
        Least share of the exchange at which a group was formed that its next match must have, so
        that loosely coupled parts stay apart until a level has one state for each.

    Returns
    -------
    group : (n,) array
        Group of each state.
    first : (m,) array
        First member of each group.
    following : (n,) array
        Next member of the same group, -1 at the last.
    """
    n = flow.size
    group = np.arange(n).astype(np.int32)
    first = group.copy()
    following = np.full(n, -1, np.int32)
    out = flow.copy()
    mass = flow.copy()
    bond = np.zeros(n, np.float32)
    strength = np.zeros(n)
    near = np.empty(n, np.int32)
    count = n
    for _ in range(passes):
        number = np.full(count, -1, np.int32)
        found = 0
        for g in range(count):
            if number[g] >= 0:
                continue
            size = 0
            y = first[g]
            last = y
            while y >= 0:
                for j in range(indptr[y], indptr[y + 1]):
                    h = group[origins[j]]
                    value = shares[j] * flow[origins[j]]
                    if h != g and value > 0.0:
                        if strength[h] == 0.0:
                            near[size] = h
                            size += 1
                        strength[h] += value
                last = y
                y = following[y]
            best = -1
            most = 0.0
            strongest = 0.0
            for k in range(size):
                h = near[k]
                tie = strength[h] / min(out[g], out[h])
                strength[h] = 0.0
                strongest = max(strongest, tie)
                if number[h] < 0 and tie > most:
                    most = tie
                    best = h
            number[g] = found
            first[found] = first[g]
            together = mass[g]
            tied = bond[g]
            if best >= 0 and most >= weakest * strongest:
                exchange = most * min(out[g], out[best]) / min(mass[g], mass[best])
                if exchange >= loosest * max(bond[g], bond[best]):
                    number[best] = found
                    following[last] = first[best]
                    together += mass[best]
                    tied = max(exchange, tied, bond[best])
            mass[found] = together
            bond[found] = tied
            found += 1
        count = found
        for g in range(count):
            y = first[g]
            while y >= 0:
                group[y] = g
                y = following[y]
        out[:count] = 0.0
        for y in range(n):
            for j in range(indptr[y], indptr[y + 1]):
                if group[origins[j]] != group[y]:
                    out[group[origins[j]]] += shares[j] * flow[origins[j]]
    return group, first[:count].copy(), following
