"""How often two loss centres that help each other are full, by a boundary value problem.

The free servers of two saturated centres make a random walk (m, n) on N^2,

    m + 1 at a1,  m - 1 at l1 + p2 l2 1{n = 0} if m > 0,  and the same with 1 and 2 exchanged,

which is positive recurrent if and only if

    l1 + p2 l2 > a1 + p2 a2   and   l2 + p1 l1 > a2 + p1 a1.

With K = a1 (x - 1) + a2 (y - 1) + l1 u + l2 v, its generating function satisfies

    K(x, y) P(x, y) = l2 (v - p2 u) P(x, 0) + l1 (u - p1 v) P(0, y) + (p2 l2 u + p1 l1 v) P(0, 0),

where u = 1/x - 1 and v = 1/y - 1. On the circle |y| = r = sqrt(l2/a2) the smaller root x of K is
real, so that F(y) = P(0, y) + const solves the Riemann-Hilbert problem Im[(p1 - w)/(1 - p2 w) F] =
0 with w = u/v, and F(1)/F(0) is phi, or phi times a factor known in closed form where l2 < a2, with

    log phi = (1/pi) int_0^pi theta(t) d log|1 - r e^it|^2,
    theta = atan2(q Im w, p1 - (1 + p1 p2) Re w + p2 |w|^2),  q = 1 - p1 p2,

and p00 = (l1 - a1 + p2 (l2 - a2)) / ((l1 + p2 l2) phi) if l2 >= a2,
(l2 - a2 + p1 (l1 - a1)) / (p1 (l1 + p2 l2) phi) else. This is the solution of chapter 4 of G.
Thompson, "Stochastic models for resource allocation in large distributed systems" (thesis, UPMC
2017; arXiv 1507.05746), whose integral runs along the cut [x1, x2] with R_Y of (4.17), along the
circle instead and free of cancellation: K = 0 gives

    (1 - x)(l1 - a1 x) = a2 x |1 - y|^2,   so that   w = (a2 y - l2) / (l1 - a1 x).

With l1 > a1, which relabelling provides, Re w < p1, and the second argument of atan2 is at least
(p1 - Re w)(1 - p2 Re w) > 0 where Re w > 0: theta never leaves (0, pi/2), so that the principal
arctan that is printed is right. The integrand is positive and theta/q is regular at q = 0, so that
p1 = p2 = 1 needs no other formula; l2 = a2 needs none either. Only theta may change rapidly near
t = 0: panels that halve in length towards it, with Gauss-Legendre nodes in each, resolve every
scale of the parameters. The error is estimated by doubling the nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import NoLimitError, SolveError

__all__ = ["FullCentres", "check_recurrent", "drifts", "full_centres"]

Array: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[float, float]

NODES = 16  # in each panel; twice as many give the result
MOST_PANELS = 500  # the last one ends at 1e-150
WORST = 1e-9  # error of log phi beyond which there is no result
FARTHEST = 1e30  # largest ratio of two rates
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class FullCentres:
    """How often two centres have no free server.

    Attributes
    ----------
    each : pair of float
        Probability that the first is full, and that the second is.
    both : float
        Probability that both are.
    error : float
        Estimated absolute error of each of them.
    """

    each: Pair
    both: float
    error: float


def drifts(arrivals: Pair, capacities: Pair, probabilities: Pair) -> Pair:
    """What centre 1 gets beyond what it serves where centre 2 is full, and the other way round.

    They are (l1 - a1) + p2 (l2 - a2) and (l2 - a2) + p1 (l1 - a1), jobs per unit of time; both are
    positive if and only if the walk of the free servers is positive recurrent.
    """
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    return (l1 - a1) + p2 * (l2 - a2), (l2 - a2) + p1 * (l1 - a1)


def check_recurrent(arrivals: Pair, capacities: Pair, probabilities: Pair) -> None:
    """Raise `NoLimitError` unless both centres are full a positive part of the time."""
    for k, drift in enumerate(drifts(arrivals, capacities, probabilities)):
        if drift <= 0.0:
            j = 1 - k
            raise NoLimitError(
                f"l[{k}] + p[{j}] l[{j}] > a[{k}] + p[{j}] a[{j}] does not hold: "
                f"{arrivals[k] + probabilities[j] * arrivals[j]:g} is {-drift:g} less than "
                f"{capacities[k] + probabilities[j] * capacities[j]:g}, so centre {k} is not "
                "saturated, and its free servers have no stationary law"
            )


def full_centres(arrivals: Pair, capacities: Pair, probabilities: Pair) -> FullCentres:
    """How often each of two saturated centres is full, and both.

    Parameters
    ----------
    arrivals : pair of float
        Arrival rates l1, l2 > 0, per unit of the scale.
    capacities : pair of float
        Rates a1, a2 > 0 of all servers of a centre, service rate times servers.
    probabilities : pair of float
        p1, p2 in [0, 1]: of a job that finds its centre full to be sent to the other.

    Raises
    ------
    NoLimitError
        When the walk is not positive recurrent.
    SolveError
        When the estimated error of log phi exceeds `WORST`, or two rates differ by more than a
        factor of `FARTHEST`.

    Examples
    --------
    >>> round(full_centres((1.5, 12.0), (1.0, 10.0), (1.0, 0.0)).both, 15)
    0.076456894213937
    >>> full_centres((2.0, 3.0), (1.0, 2.0), (1.0, 1.0)).both
    0.4
    """
    check_recurrent(arrivals, capacities, probabilities)
    if not any(probabilities):
        first, second = (1.0 - a / l for l, a in zip(arrivals, capacities, strict=True))
        return FullCentres((first, second), first * second, 4.0 * EPS)
    rates = (*arrivals, *capacities)
    if max(rates) > FARTHEST * min(rates):
        raise SolveError(
            f"the rates {', '.join(f'{rate:g}' for rate in rates)} differ by a factor beyond "
            f"{FARTHEST:g}, too much for floating point"
        )
    if arrivals[0] > capacities[0]:
        return _solved(arrivals, capacities, probabilities)
    mirrored = _solved(arrivals[::-1], capacities[::-1], probabilities[::-1])
    return FullCentres(mirrored.each[::-1], mirrored.both, mirrored.error)


def _solved(arrivals: Pair, capacities: Pair, probabilities: Pair) -> FullCentres:
    """As `full_centres`, with l1 > a1."""
    unit = 2.0 ** math.frexp(sum(arrivals) + sum(capacities))[1]  # divides without rounding
    l1, l2, a1, a2 = (rate / unit for rate in (*arrivals, *capacities))
    p1, p2 = probabilities
    exponent, error = _exponent((l1, l2), (a1, a2), probabilities)
    q = _nonzero(p1, p2)
    left = math.exp(-q * exponent)  # 1/phi
    lost = -math.expm1(-q * exponent) / q if q > 0.0 else exponent  # (1 - 1/phi)/q
    first, second = drifts((l1, l2), (a1, a2), probabilities)
    if l2 >= a2:
        both = first * left / (l1 + p2 * l2)
        full = both + first * lost / l1, ((l2 - a2) * left + second * lost) / l2
    else:
        both = second * left / (p1 * (l1 + p2 * l2))
        full = both + (second * lost + a2 - l2) / (p1 * l1), second * lost / l2
    both = min(max(both, 0.0), 1.0)  # rounding may exceed what is possible, not the error
    each = min(max(full[0], both), 1.0), min(max(full[1], both), 1.0)
    return FullCentres(each, both, _error(error, l1, l2, p1 if l2 < a2 else 1.0))


def _nonzero(p1: float, p2: float) -> float:
    """The number 1 - p1 p2 without cancellation."""
    return (1.0 - p1) + p1 * (1.0 - p2)


def _error(relative: float, l1: float, l2: float, divisor: float) -> float:
    """Error of probabilities, at most 1, and of rounded differences of rates, at most 1 in sum."""
    return min(relative + 8.0 * EPS / (divisor * min(l1, l2)), 1.0)


# --- the integral ---------------------------------------------------------------------------------


def _exponent(arrivals: Pair, capacities: Pair, probabilities: Pair) -> tuple[float, float]:
    """(log phi)/q, and the estimated error of log phi."""
    panels = _panels(arrivals, capacities, probabilities)
    coarse, fine = (
        _integral(arrivals, capacities, probabilities, panels, nodes)
        for nodes in (NODES, 2 * NODES)
    )
    q = _nonzero(*probabilities)
    error = abs(fine - coarse) + 8.0 * EPS * (1.0 + fine)
    if not q * error <= WORST:
        raise SolveError(
            f"the boundary-value integral of l = {arrivals}, a = {capacities}, p = {probabilities} "
            f"(rates in parts of their sum) is {fine:g} with an estimated error of {error:.2g}"
        )
    return fine, error


def _panels(arrivals: Pair, capacities: Pair, probabilities: Pair) -> int:
    """Panels down to the smallest angle at which something changes."""
    (l1, l2), (a1, a2), p1 = arrivals, capacities, probabilities[0]
    scales = (abs(l2 - a2) / a2, (l1 - a1) / math.sqrt(a2 * l1), p1 * (l1 - a1) / a2)
    smallest = min((scale for scale in scales if scale > 0.0), default=1.0)
    return min(10 + max(0, math.ceil(-math.log2(smallest))), MOST_PANELS)


def _integral(
    arrivals: Pair, capacities: Pair, probabilities: Pair, panels: int, nodes: int
) -> float:
    """(1/pi) int theta/q d log|1 - y|^2 along the upper half of the circle."""
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    angle, weight = _rule(panels, nodes)
    radius = math.sqrt(l2 / a2)
    beyond = (l2 - a2) / (a2 * (1.0 + radius))  # radius - 1
    half = 2.0 * np.sin(0.5 * angle) ** 2  # 1 - cos
    distance = beyond**2 + 2.0 * radius * half  # |1 - y|^2
    rest = _rest(l1, a1, a2 * distance)
    real = -a2 * radius * (beyond + half) / rest
    imaginary = a2 * radius * np.sin(angle) / rest
    below = p1 - (1.0 + p1 * p2) * real + p2 * (real**2 + imaginary**2)
    q = _nonzero(p1, p2)
    theta = np.arctan2(q * imaginary, below) / q if q > 0.0 else imaginary / below
    return float(np.sum(weight * theta * 2.0 * radius * np.sin(angle) / distance)) / math.pi


def _rule(panels: int, nodes: int) -> tuple[Array, Array]:
    """Angles and weights of the Gauss-Legendre rule on panels [pi/2, pi], [pi/4, pi/2], ..."""
    node, weight = _legendre(nodes)
    right = math.pi * 0.5 ** np.arange(panels)[:, None]
    left = 0.5 * right
    left[-1] = 0.0
    width = 0.5 * (right - left)
    return left + width * (1.0 + node), width * weight


@cache
def _legendre(nodes: int) -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(nodes)


def _rest(l1: float, a1: float, d: Array) -> Array:
    """l1 - a1 x for the smaller root x of (1 - x)(l1 - a1 x) = d x, without cancellation."""
    excess = l1 - a1
    root = np.sqrt(excess**2 + 2.0 * (l1 + a1) * d + d**2)
    small = d <= excess
    return np.where(
        small, 0.5 * (excess - d + root), 2.0 * l1 * d / np.where(small, 1.0, root + d - excess)
    )
