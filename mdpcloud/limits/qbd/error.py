"""How far the computed law of a quasi-birth-death process can be from the exact one.

Let pi >= 0 be any law, r = pi Q, and N the mean times spent in the states other than a
reference state, from each of them, before that state is entered. On those states the balance
equations give pi = pi(ref)/exact(ref) exact - r N, and after summation

    sum |pi - exact| <= 2 sum_x |r(x)| tau(x) + |sum pi - 1|,     tau = N 1,

the mean times to the reference.

r is found from the numbers of the law as they are, with bounds of the rounding errors of that; tau
by recursions without subtraction, towards the reference level from both sides. Far levels, b + j,
have |r| <= first R^(j-1) |A0 + R A1 + R^2 A2| and tau <= max tau_b + j max t, with t the mean time
to the next level, and their sums over j are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.limits.qbd.algebra import Factored, dot
from mdpcloud.limits.qbd.levels import Level
from mdpcloud.limits.qbd.passage import Passage, passage
from mdpcloud.limits.qbd.rounding import UNIT, Sum, exactly, full_product, sparse_product

__all__ = ["Residual", "mean_times", "residual_of"]

Array: TypeAlias = NDArray[np.float64]

MARGIN = 1.01
"""Covers the rounding errors of the bound itself."""


@dataclass(frozen=True, eq=False)
class Residual:
    """Bounds of |pi Q|.

    Attributes
    ----------
    near : tuple of (m_k,) arrays
        Of levels 0 ... b.
    far : float
        Sum over levels b + 1, b + 2, ...
    far_levels : float
        Sum of j times that of level b + j.
    mass : float
        Of the distance of the sum of all probabilities from 1.
    relative : float
        Sum of all, over that of all outflows.
    """

    near: tuple[Array, ...]
    far: float
    far_levels: float
    mass: float
    relative: float

    def error(self, times: Sequence[Array], longest: float) -> float:
        """Bound of sum |pi - exact|.

        Parameters
        ----------
        times : sequence of (m_k,) arrays
            Mean times from levels 0 ... b to the reference state.
        longest : float
            Largest mean time from a repeating level to the one below.
        """
        near = sum(float(r @ tau) for r, tau in zip(self.near, times, strict=True))
        far = self.far * float(times[-1].max()) + self.far_levels * longest
        return MARGIN * (2.0 * (near + far) + self.mass)


def residual_of(
    levels: Sequence[Level], laws: Sequence[Array], ratio: Array, sums: Array
) -> Residual:
    """Bounds of what the balance equations leave, from the laws of levels 0 ... b.

    Parameters
    ----------
    levels : sequence of Level
        0 ... b.
    laws : sequence of (m_k,) arrays
    ratio, sums : (m, m) array
        R and (I - R)^-1.
    """
    near = tuple(
        inflow.distance(law * level.out, _terms(level))
        for inflow, law, level in zip(_inflows(levels, laws, ratio), laws, levels, strict=True)
    )
    last = levels[-1]
    beyond = _far_residual(last, ratio).sum(axis=1)
    above = dot(laws[-1], sums)
    far, far_levels = float(above @ beyond), float(dot(above, sums) @ beyond)
    flow = float(above @ last.out)
    flow += sum(float(law @ level.out) for law, level in zip(laws[:-1], levels[:-1], strict=True))
    total = sum(float(r.sum()) for r in near) + far
    return Residual(near, far, far_levels, _mass(laws, ratio, sums), total / flow)


def _mass(laws: Sequence[Array], ratio: Array, sums: Array) -> float:
    """Bound of |sum of all probabilities - 1|; the far ones solve y = first + y R."""
    above = dot(laws[-1], sums)
    beyond = full_product(above[None, :], ratio).plus(exactly(laws[-1][None, :]))
    off = beyond.distance(above[None, :], 0)[0]
    parts = [*(float(law.sum()) for law in laws[:-1]), float(above.sum())]
    terms = max(law.size for law in laws) + len(laws)
    return abs(sum(parts) - 1.0) + float(dot(off, sums).sum()) + terms * UNIT


def _inflows(levels: Sequence[Level], laws: Sequence[Array], ratio: Array) -> list[Sum]:
    """What flows into the phases of levels 0 ... b."""
    following = full_product(laws[-1][None, :], ratio).times(levels[-1].down)
    above = Sum(following.value[0], following.error[0])
    inflows: list[Sum] = []
    for k in range(len(levels) - 1, -1, -1):
        inflow = sparse_product(laws[k], levels[k].local).plus(above)
        if k:
            inflow = inflow.plus(sparse_product(laws[k - 1], levels[k - 1].up))
            above = sparse_product(laws[k], levels[k].down)
        inflows.insert(0, inflow)
    return inflows


def _far_residual(level: Level, ratio: Array) -> Array:
    """|A0 + R A1 + R^2 A2|, entry by entry."""
    within = sparse_product(ratio, level.down).plus(exactly(level.local))
    inflow = full_product(ratio, within.value)
    inflow = Sum(inflow.value, inflow.error + dot(ratio, within.error)).plus(exactly(level.up))
    return inflow.distance(ratio * level.out, _terms(level))


def _terms(level: Level) -> int:
    """Most rates out of a phase."""
    rates = np.hstack([level.local, level.up, level.down])
    return int(np.count_nonzero(rates, axis=1).max())


def mean_times(
    levels: Sequence[Level], down: Sequence[Passage], reference: int, phase: int
) -> list[Array]:
    """Mean times from levels 0 ... b to a phase of the reference level.

    Parameters
    ----------
    levels : sequence of Level
        0 ... b.
    down : sequence of Passage
        From levels 1, ..., b and b + 1 to the level below.
    reference, phase : int
    """
    up: list[Passage] = []
    for k, level in enumerate(levels[:reference]):
        before = up[-1] if k else None
        up.append(passage(level.local, level.up, level.down if k else None, before))
    times: list[Array] = [np.zeros(level.phases) for level in levels]
    times[reference] = _reference_times(
        levels[reference], up[-1] if reference else None, down[reference], phase
    )
    for k in range(reference - 1, -1, -1):
        times[k] = up[k].time + dot(up[k].entries, times[k + 1])
    for k in range(reference + 1, len(levels)):
        times[k] = down[k - 1].time + dot(down[k - 1].entries, times[k - 1])
    return times


def _reference_times(level: Level, below: Passage | None, above: Passage, phase: int) -> Array:
    rates = level.local + dot(level.up, above.entries)
    right = 1.0 + dot(level.up, above.time)
    if below is not None:
        rates = rates + dot(level.down, below.entries)
        right = right + dot(level.down, below.time)
    others = np.flatnonzero(np.arange(level.phases) != phase)
    times = np.zeros(level.phases)
    if others.size:
        factored = Factored.of(rates[np.ix_(others, others)], rates[others, phase])
        times[others] = factored.solve(right[others])
    return times
