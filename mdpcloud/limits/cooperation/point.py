"""Fixed point of two cooperating centres with two resources.

Jobs of type 0 need R units of memory (resource 0) and one processor (resource 1), jobs of type 1
one unit of memory and C processors, R C > 1. Centre p keeps jobs of type p while less than s_p of
its resource p is in use, and sends them to the other centre else. Per unit of the scale, x_jk jobs
of type j are in centre k, and with g_p the part of type p that centre p keeps (G. Thompson, PhD
thesis, UPMC 2017, section 3.3, where numbers start at 1)

    x_00' = l_00 g_0 - m_0 x_00                     x_01' = l_01 + l_00 (1 - g_0) - m_0 x_01
    x_11' = l_11 g_1 - m_1 x_11                     x_10' = l_10 + l_11 (1 - g_1) - m_1 x_10

where g_p = 1 below the threshold, 0 above it, and on it such that the use y_p of the guarded
resource stays there: y_0 = R x_00 + x_10 and y_1 = x_01 + C x_11. Both the fixed point and the
balances of Proposition 3.3 are

    R w_0 - w_1 = b_0,   C w_1 - w_0 = b_1,   0 <= w_p <= most_p,

(w_p = l_pp g_p / m_p or l_pp g_p), where the left side may be larger for a w_p at 0, and smaller
for one at its most. The matrix is a P-matrix as R C > 1, so there is one solution (R. W. Cottle,
J.-S. Pang and R. E. Stone, "The linear complementarity problem", 1992); `kept` finds it among the
nine candidates.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mdpcloud.errors import NoLimitError

__all__ = [
    "Equilibrium",
    "Pair",
    "TwoCentres",
    "balance",
    "fixed_point",
    "inner",
    "is_at",
    "kept",
    "mean_kept",
    "regime_of",
    "used",
]

Pair: TypeAlias = tuple[float, float]

ROUNDING = 1e-12  # of a probability: what counts as 0 or 1
ROUNDED = 8.0 * float(np.finfo(float).eps)  # what the sums of a fixed point lose, relative


@dataclass(frozen=True)
class TwoCentres:
    """Parameters, per unit of the scale.

    Attributes
    ----------
    arrival_rates : ((l_00, l_01), (l_10, l_11))
        Row = type, column = centre, 1/time.
    service_rates : (m_0, m_1)
        Per type, 1/time.
    needs : (R, C)
        Of a job of type p, of resource p.
    capacities : pair of pairs
        Row = centre; memory, processors.
    levels : (s_0, s_1)
        Of resource p in centre p.
    """

    arrival_rates: tuple[Pair, Pair]
    service_rates: Pair
    needs: Pair
    capacities: tuple[Pair, Pair]
    levels: Pair

    def requirement(self, j: int, m: int) -> float:
        """What a job of type j needs of resource m."""
        return self.needs[j] if j == m else 1.0

    def load(self, j: int, k: int) -> float:
        """Mean number of jobs of type j that would be in centre k if each were kept there."""
        return self.arrival_rates[j][k] / self.service_rates[j]


@dataclass(frozen=True)
class Equilibrium:
    """The fixed point.

    Attributes
    ----------
    kept : (g_0, g_1)
        Probability that a job of type p is kept at centre p; 1 where there are no such jobs.
    jobs : ((x_00, x_01), (x_10, x_11))
        Per unit of the scale; row = type, column = centre.
    regime : str
        Where the use of the guarded resource of centres 0 and 1 is, beside its threshold: two of
        "below", "at" and "above", such as "at_at".
    error : float
        Bound of what rounding does to the jobs, absolute.
    notes : tuple of str
    """

    kept: Pair
    jobs: tuple[Pair, Pair]
    regime: str
    error: float
    notes: tuple[str, ...] = ()

    @property
    def offloading(self) -> Pair:
        """Probability that a job of type p at centre p is sent to the other one."""
        return 1.0 - self.kept[0], 1.0 - self.kept[1]


def kept(needs: Pair, right: Pair, most: Pair) -> Pair:
    """Solution (w_0, w_1) of the equations above in the box.

    Parameters
    ----------
    needs : (R, C)
        R C > 1.
    right : (b_0, b_1)
    most : (float, float)
        The box is [0, most_0] x [0, most_1].

    Examples
    --------
    >>> kept((2.0, 2.0), (0.25, 0.25), (0.5, 0.5)), kept((2.0, 2.0), (2.0, 0.5), (0.5, 0.75))
    ((0.25, 0.25), (0.5, 0.5))
    """
    (r, c), (b0, b1) = needs, right

    def first(w1: float) -> float:
        return min(max((b0 + w1) / r, 0.0), most[0])

    def second(w0: float) -> float:
        return min(max((b1 + w0) / c, 0.0), most[1])

    def mistake(w: Pair) -> float:
        return max(abs(w[0] - first(w[1])), abs(w[1] - second(w[0])))

    candidates = [inner(needs, right)]
    candidates += [(w0, second(w0)) for w0 in (0.0, most[0])]
    candidates += [(first(w1), w1) for w1 in (0.0, most[1])]
    candidates += itertools.product((0.0, most[0]), (0.0, most[1]))
    w0, w1 = min(candidates, key=mistake)
    return min(max(w0, 0.0), most[0]), min(max(w1, 0.0), most[1])


def balance(centres: TwoCentres, jobs: tuple[Pair, Pair]) -> Pair:
    """Right sides (b_0, b_1) of the balances of Proposition 3.3, for w_p = l_pp g_p."""
    (l00, l01), (l10, l11) = centres.arrival_rates
    (x00, x01), (x10, x11) = jobs
    (m0, m1), (r, c) = centres.service_rates, centres.needs
    return r * m0 * x00 + m1 * x10 - l10 - l11, c * m1 * x11 + m0 * x01 - l01 - l00


def inner(needs: Pair, right: Pair) -> Pair:
    """Solution (w_0, w_1) of the equations above, in the box or not."""
    (r, c), (b0, b1) = needs, right
    return (c * b0 + b1) / (r * c - 1.0), (b0 + r * b1) / (r * c - 1.0)


def mean_kept(centres: TwoCentres, jobs: tuple[Pair, Pair]) -> Pair:
    """(g_0, g_1) by Proposition 3.3 where so many jobs are present; nan without such arrivals.

    Outside of (0, 1) the walk of the thresholds is not ergodic, and they are no probabilities.
    """
    w0, w1 = inner(centres.needs, balance(centres, jobs))
    l00, l11 = centres.arrival_rates[0][0], centres.arrival_rates[1][1]
    return w0 / l00 if l00 else math.nan, w1 / l11 if l11 else math.nan


def fixed_point(centres: TwoCentres) -> Equilibrium:
    """The fixed point, whether or not it is within the capacities.

    Raises
    ------
    NoLimitError
        When R C = 1.
    """
    needs = centres.needs
    if needs[0] * needs[1] <= 1.0:
        raise NoLimitError(
            f"R C = {needs[0]:g} x {needs[1]:g} must be > 1: with equal jobs, what is sent is not "
            "determined by the thresholds"
        )
    most = centres.load(0, 0), centres.load(1, 1)
    total = most[0] + centres.load(0, 1), most[1] + centres.load(1, 0)
    right = centres.levels[0] - total[1], centres.levels[1] - total[0]
    w = kept(needs, right, most)
    shares = w[0] / most[0] if most[0] else 1.0, w[1] / most[1] if most[1] else 1.0
    jobs = (w[0], total[0] - w[0]), (total[1] - w[1], w[1])
    sides = [side_of(shares[p], centres.levels[p] - used(centres, jobs, p, p)) for p in (0, 1)]
    terms = max(*map(abs, centres.levels), *total, *most)
    condition = (max(needs) + 1.0) / (needs[0] * needs[1] - 1.0)
    return Equilibrium(shares, jobs, regime_of(*sides), ROUNDED * (1.0 + condition) * terms)


def used(centres: TwoCentres, jobs: tuple[Pair, Pair], k: int, m: int) -> float:
    """Use of resource m in centre k."""
    return sum(centres.requirement(j, m) * jobs[j][k] for j in (0, 1))


def side_of(share: float, room: float) -> str:
    """Where the use of a guarded resource is, by the part of the jobs that is kept."""
    if is_at(share):
        return "at"
    return "below" if share > 0.5 and room >= -ROUNDING else "above"


def regime_of(first: str, second: str) -> str:
    """Name of the regime, by the sides of centres 0 and 1: for example "at_below"."""
    return f"{first}_{second}"


def is_at(share: float) -> bool:
    """Whether a centre that keeps this part of its type is at its threshold."""
    return ROUNDING < share < 1.0 - ROUNDING
