"""Random walk of the two thresholds of cooperating centres, on a growing box.

At the time scale of single jobs, U_p is the use of the guarded resource of centre p less its
threshold (Thompson 2017, section 3.2, where numbers start at 1). With x_jk jobs of type j in centre
k per unit of the scale, the walk moves on Z^2 by

    (+R, 0) at l_00 if U_0 < 0, else (0, +1)        (0, +C) at l_11 if U_1 < 0, else (+1, 0)
    (+1, 0) at l_10                                 (0, +1) at l_01
    (-R, 0) at m_0 x_00                             (-1, 0) at m_1 x_10
    (0, -1) at m_0 x_01                             (0, -C) at m_1 x_11

and g_p = P(U_p < 0) is what `mdpcloud.limits.cooperation.fluid` takes from the balance of its
means (Proposition 3.3). Here the stationary law is computed as the check of that, on boxes that
grow, by half, towards the sides where the law is not yet small; moves that leave a box are left
out. It stops when g moves from one box to the next by no more than the tolerance, and by no more
than half as much as before: this last change is about the error of the last box but one, and is
given as that of the last.

That the walk is ergodic where these means give g in (0, 1) is derived, not proved: with one
coordinate far below or above 0, and the other one in balance, the first drifts back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.limits.cooperation.point import Pair, TwoCentres, mean_kept
from mdpcloud.model.chain import markov_chain
from mdpcloud.solve.stationary.stationary import stationary

__all__ = ["WalkLaw", "walk_law"]

Array: TypeAlias = NDArray[np.float64]
Jobs: TypeAlias = tuple[Pair, Pair]
Moves: TypeAlias = list[tuple[tuple[int, int], NDArray[Any]]]

FIRST = 24  # steps from the origin to the sides of the first box
GROWTH = 1.5
SMALL = 1e-3  # of the tolerance: law of an edge towards which the box need not grow
MOST = 200_000  # states
ROUNDING = 1e-12  # of g


@dataclass(frozen=True, eq=False)
class WalkLaw:
    """Stationary law of the walk on a box.

    Attributes
    ----------
    law : (rows, columns) array
        Of U_0 (row) and U_1 (column).
    low : (int, int)
        U in the first row and column.
    kept : (g_0, g_1)
        P(U_p < 0).
    error : float
        Estimated absolute error of both.
    """

    law: Array
    low: tuple[int, int]
    kept: Pair
    error: float


def walk_law(
    centres: TwoCentres, jobs: Jobs, tolerance: float = 1e-8, *, most_states: int = MOST
) -> WalkLaw:
    """Stationary law of the walk where so many jobs are present.

    Parameters
    ----------
    centres : TwoCentres
        R and C are whole numbers.
    jobs : ((x_00, x_01), (x_10, x_11))
        Per unit of the scale; those of the fixed point give its g.
    tolerance : float
        Largest estimated error of g.
    most_states : int
        Of the largest box.

    Raises
    ------
    InputError
        When R or C is not whole, or the tolerance is not in [1e-10, 0.1].
    NoLimitError
        When the walk is not ergodic; the message says by how much g is out of (0, 1).
    SolveError
        When the tolerance needs more states (it carries the law on the largest box), or the law of
        a box is not found.

    Examples
    --------
    >>> rates, room = ((0.5, 0.1), (0.1, 0.5)), ((1.0, 2.0), (2.0, 1.0))
    >>> centres = TwoCentres(rates, (1.0, 1.0), (2.0, 2.0), room, (0.8, 0.8))
    >>> found = walk_law(centres, ((0.2, 0.4), (0.4, 0.2)))
    >>> [round(g, 7) for g in found.kept]
    [0.4, 0.4]
    """
    if not 1e-10 <= tolerance <= 0.1:
        raise InputError(f"tolerance must be in [1e-10, 0.1], not {tolerance!r}")
    if any(need != int(need) for need in centres.needs):
        raise InputError(f"needs must be whole numbers for a walk, not {centres.needs}")
    _check_ergodic(centres, jobs)
    sides = [-FIRST, FIRST, -FIRST, FIRST]
    found, change = _on_box(centres, jobs, sides, 1.0), 1.0
    while True:
        sides = _grown(sides, found.law, SMALL * tolerance)
        if (sides[1] - sides[0] + 1) * (sides[3] - sides[2] + 1) > most_states:
            raise SolveError(
                f"g is {found.kept}, with an estimated error of {change:.2g}, on the largest box "
                f"allowed, of {most_states} states; the tolerance is {tolerance:g}",
                found,
            )
        before, found = (found, change), _on_box(centres, jobs, sides, change)
        change = max(abs(a - b) for a, b in zip(found.kept, before[0].kept, strict=True))
        found = WalkLaw(found.law, found.low, found.kept, max(change, ROUNDING))
        if change <= tolerance and change <= 0.5 * before[1] + ROUNDING:
            return found


def _check_ergodic(centres: TwoCentres, jobs: Jobs) -> None:
    for p, g in enumerate(mean_kept(centres, jobs)):
        if not 0.0 < g < 1.0:
            raise NoLimitError(
                f"the walk of the thresholds is not ergodic: g_{p} = {g:.6g} must be in (0, 1)"
            )


def _grown(sides: list[int], law: Array, small: float) -> list[int]:
    """Sides of the next box: further out where the law is not small at the edge."""
    edges = [law[0].sum(), law[-1].sum(), law[:, 0].sum(), law[:, -1].sum()]
    grow = [edge > small for edge in edges]
    return [
        int(GROWTH * side) if further or not any(grow) else side
        for side, further in zip(sides, grow, strict=True)
    ]


def _on_box(centres: TwoCentres, jobs: Jobs, sides: list[int], error: float) -> WalkLaw:
    low0, high0, low1, high1 = sides
    u0, u1 = np.meshgrid(np.arange(low0, high0 + 1), np.arange(low1, high1 + 1), indexing="ij")
    place = np.arange(u0.size).reshape(u0.shape)
    parts = []
    for (a, b), rate in _moves(centres, jobs, u0, u1):
        inside = (low0 <= u0 + a) & (u0 + a <= high0) & (low1 <= u1 + b) & (u1 + b <= high1)
        inside &= rate > 0.0
        origin = place[inside]
        parts.append((origin, origin + a * u0.shape[1] + b, rate[inside]))
    origins, ends, rates = (np.concatenate(part) for part in zip(*parts, strict=True))
    law = stationary(markov_chain(rates=(origins, ends, rates))).reshape(u0.shape)
    kept = float(law[u0 < 0].sum()), float(law[u1 < 0].sum())
    return WalkLaw(law, (low0, low1), kept, error)


def _moves(centres: TwoCentres, jobs: Jobs, u0: NDArray[np.int64], u1: NDArray[np.int64]) -> Moves:
    """Displacements and their rates in every point."""
    (l00, l01), (l10, l11) = centres.arrival_rates
    (x00, x01), (x10, x11) = jobs
    m0, m1 = centres.service_rates
    r, c = map(int, centres.needs)
    below0, below1, always = 1.0 * (u0 < 0), 1.0 * (u1 < 0), np.ones(u0.shape)
    return [
        ((r, 0), l00 * below0),
        ((0, c), l11 * below1),
        ((0, 1), l01 + l00 * (1.0 - below0)),
        ((1, 0), l10 + l11 * (1.0 - below1)),
        ((-r, 0), m0 * x00 * always),
        ((-1, 0), m1 * x10 * always),
        ((0, -1), m0 * x01 * always),
        ((0, -c), m1 * x11 * always),
    ]
