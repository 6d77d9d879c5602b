"""Balanced flows of a large irreducible chain: z(y) = sum_o z(o) s(o, y), by multilevel methods.

1. Three positive cycles over all states (`multilevel`) tell where the flow is.
2. Focus: the states that carry all but a negligible part of it keep their places, the others become
   one group; that smaller chain is solved, and its flows are carried back. It is exact for the
   groups' flows, so that the others have to be right only as far as they matter.
3. Corrections by a Krylov method over all levels (`multilevel_krylov`) alternate with cycles.

It stops when sum_y |inflow(y) - z(y)| / sum_y z(y) meets the tolerance and the last cycle has moved
next to no flow between the groups (parts that hardly communicate may hold wrong shares of the flow
at any imbalance), or when the imbalance closes no further.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.stationary.multilevel import Hierarchy, Rows
from mdpcloud.solve.stationary.multilevel_kernels import (
    FLOOR,
    correct,
    flow_by_size,
    grouped,
    imbalance,
    scale_groups,
    settle_backward,
    settle_forward,
)
from mdpcloud.solve.stationary.multilevel_krylov import Correction

__all__ = ["balanced_flows"]

FIRST = True, False, True
"""Cycles at the start; True where the states are grouped anew."""

HEAD = 0.1
"""States with less than this part of the mean flow are forgotten once, and found again by sweeps:
a cycle leaves too much flow where little is."""

SPREAD = 2
"""Sweeps in each direction that carry flow out of the head."""

NEGLIGIBLE = 0.1
"""Part of the tolerance that the flow outside the focus makes up."""

WORTHWHILE = 0.45
"""Largest part of the states that a focus may have: it needs less memory than all of them."""

FOCUSES = 6
"""Most rounds with a focus."""

FINER = 0.25
"""Tolerance inside a focus, as a part of the whole one."""

STILL = 1e-8
"""Flow that the last cycle may move between groups, of all flow."""

STEPS = 10
"""Krylov steps between cycles."""

REDUCTION = 1e-3
"""They end where this part of the imbalance is left."""

CYCLES = 3
"""Cycles of a round without a correction."""

PATIENCE = 6
"""It is given up when the gap has not been halved in so many rounds."""


def balanced_flows(rows: Rows, tolerance: float) -> Floats:
    """Flows (n,) that sum to 1; the caller checks how well they are balanced.

    Parameters
    ----------
    rows : Rows
        Shares of the flow out of each state, which sum to 1 over its targets.
    tolerance : float
        Of sum_y |inflow(y) - z(y)| / sum_y z(y).
    """
    n = rows.middle.size
    z = np.full(n, 1.0 / n)
    _rough(rows, z)
    _forget_tail(rows, z)
    for _ in range(FOCUSES):
        if not _focus(rows, z, tolerance):
            break
        _settle(rows, z)
        moved = Hierarchy(rows, z).cycle(z, regroup=True)
        if imbalance(*rows, z) <= tolerance and moved <= STILL:
            return z
    return _polished(_rough(rows, z), z, tolerance)


def _rough(rows: Rows, z: Floats) -> Hierarchy:
    """Improve the flows z in place; the hierarchy they are grouped by."""
    hierarchy = Hierarchy(rows, z)
    for regroup in FIRST:
        hierarchy.cycle(z, regroup=regroup)
    return hierarchy


def _settle(rows: Rows, z: Floats) -> None:
    for _ in range(SPREAD):
        settle_forward(*rows, z)
        settle_backward(*rows, z)


def _forget_tail(rows: Rows, z: Floats) -> None:
    z[z < HEAD / z.size] = FLOOR
    _settle(rows, z)


def _focus(rows: Rows, z: Floats, tolerance: float) -> bool:
    """Solve where the flow is; False where that is nearly everywhere."""
    inside = z > _threshold(z, NEGLIGIBLE * tolerance)
    size = int(np.count_nonzero(inside))
    if size > WORTHWHILE * z.size:
        return False
    groups = _singled_out(inside, size)
    *part, before = grouped(*rows, z, *groups)
    y = before / before.sum()
    hierarchy = _rough(Rows(*part), y)
    y = _polished(hierarchy, y, FINER * tolerance)
    scale_groups(z, groups[0], y, before)
    return True


def _threshold(z: Floats, part: float) -> float:
    """A power of two: flows below it make up at most this part of all."""
    flow = np.cumsum(flow_by_size(z))
    exponent = int(np.searchsorted(flow, part * flow[-1]))
    return float(np.ldexp(1.0, exponent - flow.size))


def _singled_out(inside: NDArray[np.bool_], size: int) -> tuple[NDArray[np.int32], ...]:
    """Groups of one state each, and one of all other states; see `match_groups`."""
    n = inside.size
    group = np.full(n, size, np.int32)
    group[inside] = np.arange(size, dtype=np.int32)
    others = np.flatnonzero(~inside).astype(np.int32)
    first = np.append(np.flatnonzero(inside), others[0]).astype(np.int32)
    following = np.full(n, -1, np.int32)
    following[others[:-1]] = others[1:]
    return group, first, following


def _polished(hierarchy: Hierarchy, z: Floats, tolerance: float) -> Floats:
    """Rounds of a correction and a cycle, or of cycles alone; the best flows found.

    Corrections are the faster way, but add and subtract, and so do not see parts that hardly
    communicate. Where one way does not halve the gap, the next round goes the other.
    """
    rows = hierarchy.levels[0].rows
    best, least = z, np.inf
    mark, waited, corrected = np.inf, 0, True
    while least > 1.0 and waited < PATIENCE:
        z = best.copy()
        moved = _round(hierarchy, best, z, tolerance, corrected)
        gap = max(float(imbalance(*rows, z)) / tolerance, moved / STILL)
        if not gap < 0.5 * least:
            corrected = not corrected
        if gap < least:
            best, least = z, gap
        waited += 1
        if least < 0.5 * mark:
            mark, waited = least, 0
    return best


def _round(
    hierarchy: Hierarchy, before: Floats, z: Floats, tolerance: float, corrected: bool
) -> float:
    """Improve the flows z, a copy of those before; the flow that its last cycle has moved."""
    if corrected:
        hierarchy.rebuild(before)
        left = imbalance(*hierarchy.levels[0].rows, z)
        reduction = min(max(REDUCTION, 0.2 * tolerance / max(left, FLOOR)), 0.2)
        correct(z, Correction(hierarchy).search(STEPS, reduction))
        return hierarchy.cycle(z, regroup=False)
    for _ in range(CYCLES):
        moved = hierarchy.cycle(z, regroup=False)
    return moved
