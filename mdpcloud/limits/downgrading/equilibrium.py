"""Where a large link with downgrading settles: how often jobs are downgraded and lost.

Class j needs A_j units at full rate, and A_0 = 1. With u units in use, below the threshold c0 a job
is taken at full rate; from c0 on it is taken as a job of class 0; at the capacity c it is lost.
Rates and sizes grow together. The point that is offered when every job is taken in full is rho, of
load ``<A, rho>`` = sum_j A_j lambda_j / mu_j, and when every job is downgraded it is
(Lambda/mu_0, 0, ...), Lambda = sum_j lambda_j. Between them the load stays at c0, and the fraction

    pi^- = (c0 - Lambda/mu_0) / (<A, rho> - Lambda/mu_0)

of the jobs is taken in full, l_j = rho_j pi^- for j >= 1, and
l_0 = rho_0 pi^- + (1 - pi^-) Lambda/mu_0. The regimes follow from the drift of the load below, at
and above c0 and c:

======================  =========================================  ============================
no_downgrading          <A, rho> <= c0, Lambda/mu_0 < c0           l = rho
partial_downgrading     Lambda/mu_0 < c0 < <A, rho>, c0 < c        as above
all_downgraded          c0 < <A, rho>, c0 <= Lambda/mu_0 <= c      l = (Lambda/mu_0, 0, ...)
overloaded              c0 < <A, rho>, c0 < c < Lambda/mu_0        l = (c, 0, ...), and a fraction
                                                                   1 - mu_0 c/Lambda is lost
======================  =========================================  ============================

Source: Fricker, Guillemin, Robert and Thompson, "Allocation schemes of resources with downgrading",
Adv. Appl. Prob. 49 (2017), arXiv 1604.00894, for pi^- under the condition (R) that
Lambda/mu_0 < c < <A, rho>. The other regimes and l are derived here from the same fluid limit, and
c0 < <A, rho> is enough for pi^-. Where downgrading makes the load larger, and
<A, rho> <= c0 <= Lambda/mu_0, both ends hold themselves and there is no limit; this needs some
mu_j >= A_j mu_0.

Loads are compared, and fractions found, in exact rationals: the numbers are those of the parameters
as they are given, however far apart, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import truediv
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError

__all__ = ["Equilibrium", "Link", "equilibrium", "excess_load"]

BOUNDARY = Fraction(1, 10**12)  # relative distance from the boundary of a regime that is noted
EPS = float(np.finfo(float).eps)
STABLE = 1e-12  # of the largest service rate: how fast deviations must die out


@dataclass(frozen=True)
class Link:
    """A link with downgrading, per unit of the scale.

    Parameters
    ----------
    arrival_rates, service_rates : sequence of float
        lambda_j >= 0 and mu_j > 0, 1/time.
    requirements : sequence of int
        A_j, with A_0 = 1.
    capacity, threshold : float
        c > 0 and c0 in [0, c].
    """

    arrival_rates: Sequence[float]
    service_rates: Sequence[float]
    requirements: Sequence[int]
    capacity: float
    threshold: float

    def __post_init__(self) -> None:
        counts = {len(self.arrival_rates), len(self.service_rates), len(self.requirements)}
        if len(counts) > 1 or not all(map(math.isfinite, (self.full_load, self.low_load))):
            raise InputError(
                f"{self}: there must be one rate and requirement for each class, and their loads "
                "must be finite"
            )

    @property
    def rho(self) -> NDArray[np.float64]:
        """Offered jobs of each class."""
        offered: NDArray[np.float64] = np.divide(self.arrival_rates, self.service_rates)
        return offered

    @property
    def full_load(self) -> float:
        """<A, rho>, the load when every job is taken in full."""
        each = zip(self.requirements, self.arrival_rates, self.service_rates, strict=True)
        return float(sum(units * rate / service for units, rate, service in each))

    @property
    def low_load(self) -> float:
        """Lambda/mu_0, the load when every job is downgraded."""
        return float(sum(self.arrival_rates) / self.service_rates[0])


@dataclass(frozen=True)
class Equilibrium:
    """Where a link settles.

    Attributes
    ----------
    regime : str
        See the module.
    in_full, blocking, downgraded : tuple of float
        Per class the probability that a job is taken in full, lost, or downgraded. A job of class 0
        is never downgraded.
    jobs : tuple of float
        Jobs of each class per unit of the scale.
    error : float
        Error of the probabilities and, relative to the largest load, of the jobs: a bound of the
        rounding where it is certified.
    notes : tuple of str
    certified : bool
    """

    regime: str
    in_full: tuple[float, ...]
    blocking: tuple[float, ...]
    jobs: tuple[float, ...]
    error: float
    notes: tuple[str, ...] = ()
    certified: bool = True

    @property
    def downgraded(self) -> tuple[float, ...]:  # noqa: D102
        both = zip(self.in_full, self.blocking, strict=True)
        return tuple(max(1.0 - full - lost, 0.0) for full, lost in both)


def equilibrium(link: Link) -> Equilibrium:
    """The regime and the limit of a link.

    Raises
    ------
    NoLimitError
        When the threshold is the capacity and the load is beyond it, when both ends hold
        themselves, or when the point between them is not stable.

    Examples
    --------
    >>> found = equilibrium(Link((0.3, 0.4), (1.0, 1.0), (1, 2), capacity=1.0, threshold=0.9))
    >>> found.regime, round(found.in_full[1], 12), [round(jobs, 12) for jobs in found.jobs]
    ('partial_downgrading', 0.5, [0.5, 0.2])
    """
    loads = _Loads.of(link)
    regime = _regime(loads, len(link.requirements))
    below, lost = _shares(loads, len(link.requirements))
    if len(link.requirements) > 1 and loads.low < loads.c0 < loads.full:
        _check_stable(link)
    taken = 1 - below - lost
    jobs = [below * offered for offered in loads.offered]
    jobs[0] += taken * loads.low
    others = len(link.requirements) - 1
    return Equilibrium(
        regime,
        (float(1 - lost), *(float(below),) * others),
        (float(lost),) * (1 + others),
        tuple(map(float, jobs)),
        4.0 * (others + 5) * EPS,
        (*_boundary_notes(loads, regime, others), *_slow_notes(link)),
    )


@dataclass(frozen=True)
class _Loads:
    """The loads of a link, and where its regimes change: the exact rationals of its numbers."""

    offered: tuple[Fraction, ...]
    full: Fraction
    low: Fraction
    c0: Fraction
    c: Fraction

    @classmethod
    def of(cls, link: Link) -> Self:
        rates = [Fraction(float(rate)) for rate in link.arrival_rates]
        services = [Fraction(float(rate)) for rate in link.service_rates]
        offered = tuple(map(truediv, rates, services))
        full = sum(
            (int(a) * x for a, x in zip(link.requirements, offered, strict=True)), Fraction()
        )
        levels = Fraction(float(link.threshold)), Fraction(float(link.capacity))
        return cls(offered, full, sum(rates, Fraction()) / services[0], *levels)

    @property
    def nothing_to_lower(self) -> bool:
        """Whether all jobs that arrive are of class 0."""
        return not any(self.offered[1:])


def excess_load(link: Link) -> Fraction:
    """The load without downgrading less the capacity, exactly."""
    loads = _Loads.of(link)
    return loads.full - loads.c


def _at(load: Fraction, level: Fraction) -> bool:
    """Whether a load is called equal to a level; its value is never changed for that."""
    return abs(load - level) <= BOUNDARY * level


def _regime(loads: _Loads, classes: int) -> str:
    """The name of the regime; of two on a boundary, the one of less load."""
    full, low, c0, c = loads.full, loads.low, loads.c0, loads.c
    if classes == 1:
        return "no_downgrading" if full <= c or _at(full, c) else "overloaded"
    if full <= c0 or (_at(full, c0) and low < c0):
        return "no_downgrading"
    if low < c0 and not _at(low, c0):
        return "partial_downgrading"
    return "all_downgraded" if low <= c or _at(low, c) else "overloaded"


def _shares(loads: _Loads, classes: int) -> tuple[Fraction, Fraction]:
    """The fractions of the jobs j >= 1 taken in full, and of all jobs that are lost."""
    full, low, c0, c = loads.full, loads.low, loads.c0, loads.c
    lost = 1 - c / low if low > c else Fraction()
    if classes == 1:
        return 1 - lost, lost
    if full < c0 or (full == c0 and low < c0):
        _check_one_end(loads)
        return Fraction(1), Fraction()
    if c0 >= c and full > c:
        raise NoLimitError(
            f"the threshold must be below the capacity {float(c):.10g}, and it is "
            f"{float(c0):.10g}, as the load would be {float(full):.10g} if no job were "
            "downgraded: at the capacity jobs are taken in full, downgraded or lost by single "
            "units, see mdpcloud.limits.downgrading.filled"
        )
    if full == c0:
        return _share_at_threshold(loads), Fraction()
    if low < c0:
        return (c0 - low) / (full - low), Fraction()
    return Fraction(), lost


def _share_at_threshold(loads: _Loads) -> Fraction:
    """The fraction taken in full where <A, rho> = c0 <= Lambda/mu_0.

    Where all jobs are of class 0, the units in use are those of an infinite-server queue to the
    order of their standard deviation, and as often below their mean as above.
    """
    if not loads.nothing_to_lower:
        _check_one_end(loads)
    return Fraction(1, 2) if loads.c0 < loads.c else Fraction(1)


def _check_one_end(loads: _Loads) -> None:
    """Refuse a link that holds itself both below its threshold and above."""
    if loads.low < loads.c0:
        return
    full, low = float(loads.full), float(loads.low)
    raise NoLimitError(
        f"the load would be {full:.10g} if no job were downgraded, and {low:.10g} if every job "
        f"were, and the threshold {float(loads.c0):.10g} is between them: a large link stays long "
        "below it and long above it, and there is no one limit; the threshold must be more than "
        f"{float(loads.low - loads.c0):.3g} higher, or more than "
        f"{float(loads.c0 - loads.full):.3g} lower"
    )


def _check_stable(link: Link) -> None:
    """Refuse a point of equilibrium that the fluid limit leaves.

    At the threshold the jobs j >= 1 move by x_j' = lambda_j p(x) - mu_j x_j, where p(x) is that of
    `mdpcloud.limits.downgrading.wiener_hopf` with x_0 = c0 - sum A_j x_j. Where class 0 is the
    slowest, this is stable because <A, rho> > Lambda/mu_0 (Perron and Frobenius).
    """
    rates = np.asarray(link.arrival_rates[1:], float)
    services = np.asarray(link.service_rates[1:], float)
    units = np.asarray(link.requirements[1:], float)
    if (services >= link.service_rates[0]).all():
        return
    shift = units * (services - link.service_rates[0]) / np.dot(rates, units - 1.0)
    growth = float(np.linalg.eigvals(np.outer(rates, shift) - np.diag(services)).real.max())
    if growth >= -STABLE * float(services.max()):
        raise NoLimitError(
            "the point at which a part of the jobs is downgraded is not stable: a deviation from "
            f"it grows at rate {growth:.3g}; the service rates are not all at least that of class 0"
        )


def _boundary_notes(loads: _Loads, regime: str, others: int) -> tuple[str, ...]:
    if others and _at(loads.full, loads.c0) and _at(loads.low, loads.c0) and loads.c0 < loads.c:
        return (
            "the load is the threshold, whether jobs are downgraded or not: how many are hangs on "
            "the last digits of the rates, and jumps there",
        )
    without, always = "the load without downgrading", "the load with every job downgraded"
    equalities: dict[str, list[tuple[Fraction, Fraction, str]]] = {
        "no_downgrading": [(loads.full, loads.c0, f"{without} is the threshold")],
        "all_downgraded": [
            (loads.low, loads.c0, f"{always} is the threshold"),
            (loads.low, loads.c, f"{always} is the capacity"),
        ],
    }
    if not others:
        equalities = {"no_downgrading": [(loads.full, loads.c, "the load is the capacity")]}
    return tuple(
        f"{words}: the boundary of two regimes, whose limits agree there"
        for load, level, words in equalities.get(regime, [])
        if level and _at(load, level)
    )


def _slow_notes(link: Link) -> tuple[str, ...]:
    slowest = min(link.service_rates)
    if link.service_rates[0] <= slowest:
        return ()
    return (
        f"the source assumes that no service rate is below that of class 0, "
        f"{link.service_rates[0]:g}, and the least is {slowest:g}: only local stability of the "
        "limit is checked",
    )
