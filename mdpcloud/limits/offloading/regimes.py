"""Large-scale limit of two loss centres that offload to each other.

Centre k has c_k N servers of rate mu_k and arrivals at rate l_k N; a job that finds it full is sent
to the other centre with probability p_k, and is lost there if that is full too. With a_k = mu_k c_k
the blocking probabilities converge, as N grows, to

    A    l1 < a1, l2 < a2                           0, 0
    B1   l2 > a2, l1 + p2 l2 < a1 + p2 a2           0, (1 - p2)(1 - a2/l2)
    B2   l1 > a1, l2 + p1 l1 < a2 + p1 a1           (1 - p1)(1 - a1/l1), 0
    E    l1 + p2 l2 > a1 + p2 a2, l2 + p1 l1 > a2 + p1 a1:
         (1 - p_k) P(k full) + p_k P(both full), by `mdpcloud.limits.offloading.boundary_value`

(G. Thompson, "Stochastic models for resource allocation in large distributed systems", thesis, UPMC
2017, chapter 4; arXiv 1507.05746). On the boundary of two regimes the formulas agree. Nothing is
iterated; the integral's error is estimated. Rounding hides on which side of a boundary the rates
are where the sides of an inequality differ by less than `NEAR` of their terms. The closed form of
slightly fewer arrivals is returned then: more arrivals leave no more servers free, by coupling, so
that the limit of slightly more of them bounds what is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from mdpcloud.errors import SolveError
from mdpcloud.limits.offloading.boundary_value import EPS, FullCentres, drifts, full_centres

__all__ = ["PairLimit", "margins", "pair_limit"]

Pair: TypeAlias = tuple[float, float]

NEAR = 8.0 * EPS  # of the terms of an inequality: a smaller margin is one of rounding
STEP = 4.0 * NEAR  # of the arrivals: moves every margin that may be one of rounding to one side


@dataclass(frozen=True)
class _Inequality:
    """A strict inequality, by how much it holds, and the margin up to which that is rounding."""

    text: str
    margin: float
    near: float


@dataclass(frozen=True)
class PairLimit:
    """What becomes of the jobs of two centres in the large-scale limit.

    Attributes
    ----------
    regime : str
        A, B1, B2 or E; two or more of them with a stroke on their boundary, such as B2/E.
    full : FullCentres
    blocking : pair of float
        Probability that a job is lost.
    forwarded : pair of float
        Probability that a job is served at the other centre.
    served : pair of float
        Jobs served by each centre per unit of time and scale.
    notes : tuple of str
    """

    regime: str
    full: FullCentres
    blocking: Pair
    forwarded: Pair
    served: Pair
    notes: tuple[str, ...]


def pair_limit(arrivals: Pair, capacities: Pair, probabilities: Pair) -> PairLimit:
    """The large-scale limit.

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
    SolveError
        When the integral cannot be computed.

    Examples
    --------
    >>> found = pair_limit((2.0, 8.0), (1.0, 10.0), (0.5, 0.0))
    >>> found.regime, found.blocking, found.served
    ('B2', (0.25, 0.0), (1.0, 8.5))
    """
    regimes = _regimes(arrivals, capacities, probabilities)
    full = _full(regimes, arrivals, capacities, probabilities)
    forwarded = tuple(
        p * max(each - full.both, 0.0) for p, each in zip(probabilities, full.each, strict=True)
    )
    blocking = tuple(
        (1.0 - p) * each + p * full.both for p, each in zip(probabilities, full.each, strict=True)
    )
    return PairLimit(
        regime="/".join(regimes),
        full=full,
        blocking=(blocking[0], blocking[1]),
        forwarded=(forwarded[0], forwarded[1]),
        served=_served(arrivals, capacities, probabilities),
        notes=tuple(_notes(regimes, arrivals, capacities, probabilities)),
    )


def margins(
    arrivals: Pair, capacities: Pair, probabilities: Pair
) -> dict[str, tuple[tuple[str, float], ...]]:
    """The strict inequalities of each regime, and by how much they hold.

    Examples
    --------
    >>> margins((2.0, 8.0), (1.0, 10.0), (0.5, 0.0))["A"]
    (('l[0] < a[0]', -1.0), ('l[1] < a[1]', 2.0))
    """
    known = _inequalities(arrivals, capacities, probabilities)
    return {name: tuple((one.text, one.margin) for one in parts) for name, parts in known.items()}


def _inequalities(
    arrivals: Pair, capacities: Pair, probabilities: Pair
) -> dict[str, tuple[_Inequality, ...]]:
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    first, second = drifts(arrivals, capacities, probabilities)
    alone = NEAR * (l1 + a1), NEAR * (l2 + a2)
    helped = alone[0] + p2 * alone[1], alone[1] + p1 * alone[0]
    text_1 = "l[0] + p[1] l[1] {} a[0] + p[1] a[1]"
    text_2 = "l[1] + p[0] l[0] {} a[1] + p[0] a[0]"
    return {
        "A": (
            _Inequality("l[0] < a[0]", a1 - l1, alone[0]),
            _Inequality("l[1] < a[1]", a2 - l2, alone[1]),
        ),
        "B1": (
            _Inequality("l[1] > a[1]", l2 - a2, alone[1]),
            _Inequality(text_1.format("<"), -first, helped[0]),
        ),
        "B2": (
            _Inequality("l[0] > a[0]", l1 - a1, alone[0]),
            _Inequality(text_2.format("<"), -second, helped[1]),
        ),
        "E": (
            _Inequality(text_1.format(">"), first, helped[0]),
            _Inequality(text_2.format(">"), second, helped[1]),
        ),
    }


def _regimes(arrivals: Pair, capacities: Pair, probabilities: Pair) -> tuple[str, ...]:
    """Regimes whose inequalities hold, if only as equalities up to rounding."""
    known = _inequalities(arrivals, capacities, probabilities)
    within = [name for name, parts in known.items() if all(x.margin >= -x.near for x in parts)]
    strict = [name for name in within if all(x.margin > x.near for x in known[name])]
    return tuple(strict or within)


def _full(
    regimes: tuple[str, ...], arrivals: Pair, capacities: Pair, probabilities: Pair
) -> FullCentres:
    """How often the centres are full, and on a boundary what rounding hides as well."""
    if len(regimes) == 1:
        return _full_in(regimes[0], arrivals, capacities, probabilities)
    fewer, more = (
        (factor * arrivals[0], factor * arrivals[1]) for factor in (1.0 - STEP, 1.0 + STEP)
    )
    below = _by_sign(fewer, capacities, probabilities)
    found = _full_in(below, arrivals, capacities, probabilities)
    try:
        above = _by_sign(more, capacities, probabilities)
        most = _full_in(above, more, capacities, probabilities)
    except SolveError:
        return replace(found, error=1.0)
    hidden = max(
        *(high - low for low, high in zip(found.each, most.each, strict=True)),
        most.both - found.both,
        0.0,
    )
    return replace(found, error=min(found.error + hidden + most.error, 1.0))


def _by_sign(arrivals: Pair, capacities: Pair, probabilities: Pair) -> str:
    """The regime by the signs of the margins, as they are computed; closed forms come first."""
    known = margins(arrivals, capacities, probabilities)
    return next(name for name in known if min(margin for _, margin in known[name]) >= 0.0)


def _full_in(regime: str, arrivals: Pair, capacities: Pair, probabilities: Pair) -> FullCentres:
    """How often the centres are full by the formula of a regime."""
    alone = [max(1.0 - a / l, 0.0) for l, a in zip(arrivals, capacities, strict=True)]
    if regime == "A":
        return FullCentres((0.0, 0.0), 0.0, 0.0)
    if regime == "B1":
        return FullCentres((0.0, alone[1]), 0.0, 2.0 * EPS)
    if regime == "B2":
        return FullCentres((alone[0], 0.0), 0.0, 2.0 * EPS)
    return full_centres(arrivals, capacities, probabilities)


def _served(arrivals: Pair, capacities: Pair, probabilities: Pair) -> Pair:
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    return min(l1 + p2 * max(l2 - a2, 0.0), a1), min(l2 + p1 * max(l1 - a1, 0.0), a2)


def _notes(
    regimes: tuple[str, ...], arrivals: Pair, capacities: Pair, probabilities: Pair
) -> Iterator[str]:
    if len(regimes) > 1:
        known = _inequalities(arrivals, capacities, probabilities)
        equal = {
            one.text.replace("<", "=").replace(">", "="): None
            for name in regimes
            for one in known[name]
            if one.margin <= one.near
        }
        yield (
            f"on the boundary of regimes {' and '.join(regimes)}, where {', '.join(equal)}, for "
            "rates l of arrivals and a of all servers; the limit is continuous there"
        )
