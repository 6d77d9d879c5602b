"""Large-scale limit of two loss centres that offload to each other.

Centre k has c_k N servers of rate mu_k and arrivals at rate l_k N; a job that finds it full is sent
to the other centre with probability p_k, and is lost there if that is full too. With a_k = mu_k c_k
the blocking probabilities converge, as N grows, to

    A    l1 < a1, l2 < a2                           0, 0
    B1   l2 > a2, l1 + p2 l2 < a1 + p2 a2           0, (1 - p2)(1 - a2/l2)
    B2   l1 > a1, l2 + p1 l1 < a2 + p1 a1           (1 - p1)(1 - a1/l1), 0
    E    l1 + p2 l2 > a1 + p2 a2, l2 + p1 l1 > a2 + p1 a1:
         (1 - p_k) P(k full) + p_k P(both full), by `mdpcloud.limits.boundary_value`

(G. Thompson, "Stochastic models for resource allocation in large distributed systems", thesis, UPMC
2017, chapter 4; arXiv 1507.05746). On the boundary of two regimes the formulas agree. Nothing is
iterated; the integral's error is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from mdpcloud.limits.boundary_value import EPS, FullCentres, drifts, full_centres

__all__ = ["PairLimit", "margins", "pair_limit"]

Pair: TypeAlias = tuple[float, float]

NEAR = 8.0 * EPS  # of the sum of the rates: a smaller margin is one of rounding


@dataclass(frozen=True)
class PairLimit:
    """What becomes of the jobs of two centres in the large-scale limit.

    Attributes
    ----------
    regime : str
        A, B1, B2 or E; two or more of them with a stroke on their boundary.
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
    (l1, l2), (a1, a2) = arrivals, capacities
    first, second = drifts(arrivals, capacities, probabilities)
    helped_1 = "l[0] + p[1] l[1] {} a[0] + p[1] a[1]"
    helped_2 = "l[1] + p[0] l[0] {} a[1] + p[0] a[0]"
    return {
        "A": (("l[0] < a[0]", a1 - l1), ("l[1] < a[1]", a2 - l2)),
        "B1": (("l[1] > a[1]", l2 - a2), (helped_1.format("<"), -first)),
        "B2": (("l[0] > a[0]", l1 - a1), (helped_2.format("<"), -second)),
        "E": ((helped_1.format(">"), first), (helped_2.format(">"), second)),
    }


def _regimes(arrivals: Pair, capacities: Pair, probabilities: Pair) -> tuple[str, ...]:
    """Regimes whose inequalities hold, if only as equalities up to rounding."""
    near = NEAR * (sum(arrivals) + sum(capacities))
    known = margins(arrivals, capacities, probabilities)
    within = [name for name, parts in known.items() if all(margin >= -near for _, margin in parts)]
    strict = [name for name in within if all(margin > near for _, margin in known[name])]
    return tuple(strict or within)


def _full(
    regimes: tuple[str, ...], arrivals: Pair, capacities: Pair, probabilities: Pair
) -> FullCentres:
    """How often the centres are full; the closed forms come first, as they hold on boundaries."""
    alone = [max(1.0 - a / l, 0.0) for l, a in zip(arrivals, capacities, strict=True)]
    if "A" in regimes:
        return FullCentres((0.0, 0.0), 0.0, 0.0)
    if "B1" in regimes:
        return FullCentres((0.0, alone[1]), 0.0, 2.0 * EPS)
    if "B2" in regimes:
        return FullCentres((alone[0], 0.0), 0.0, 2.0 * EPS)
    return full_centres(arrivals, capacities, probabilities)


def _served(arrivals: Pair, capacities: Pair, probabilities: Pair) -> Pair:
    (l1, l2), (a1, a2), (p1, p2) = arrivals, capacities, probabilities
    return min(l1 + p2 * max(l2 - a2, 0.0), a1), min(l2 + p1 * max(l1 - a1, 0.0), a2)


def _notes(
    regimes: tuple[str, ...], arrivals: Pair, capacities: Pair, probabilities: Pair
) -> Iterator[str]:
    if len(regimes) > 1:
        near = NEAR * (sum(arrivals) + sum(capacities))
        known = margins(arrivals, capacities, probabilities)
        equal = {
            text.replace("<", "=").replace(">", "="): None
            for name in regimes
            for text, margin in known[name]
            if margin <= near
        }
        yield (
            f"on the boundary of regimes {' and '.join(regimes)}, where {', '.join(equal)}, for "
            "rates l of arrivals and a of all servers; the limit is continuous there"
        )
