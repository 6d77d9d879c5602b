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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError

__all__ = ["Equilibrium", "Link", "equilibrium"]

ROUNDING = 1e-12  # relative distance from the boundary of a regime that counts as on it
EPS = float(np.finfo(float).eps)


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
    regime = _regime(link)
    notes = (*_boundary_notes(link, regime), *_slow_notes(link))
    below, lost, rounding = 1.0, 0.0, 4.0 * (len(link.requirements) + 4) * EPS
    if regime == "partial_downgrading":
        _check_stable(link)
        span = link.full_load - link.low_load
        below = (link.threshold - link.low_load) / span
        rounding *= max(link.full_load, link.capacity) / span
    elif regime == "all_downgraded":
        below = 0.0
    elif regime == "overloaded":
        below, lost = 0.0, 1.0 - link.capacity / link.low_load
    jobs = below * link.rho
    jobs[0] += (1.0 - below - lost) * link.low_load
    others = len(link.requirements) - 1
    return Equilibrium(
        regime,
        (1.0 - lost, *(below,) * others),
        (lost,) * (1 + others),
        tuple(jobs.tolist()),
        rounding,
        notes,
    )


def _near(link: Link) -> float:
    return ROUNDING * max(link.full_load, link.low_load, link.capacity)


def _regime(link: Link) -> str:
    full, low, c, c0 = link.full_load, link.low_load, link.capacity, link.threshold
    near = _near(link)
    if len(link.requirements) == 1:
        return "no_downgrading" if full <= c + near else "overloaded"
    if full <= c0 + near:
        _check_one_end(link)
        return "no_downgrading"
    if c0 >= c - near:
        raise NoLimitError(
            f"the threshold must be below the capacity {c:.10g}, and it is {c0:.10g}, as the load "
            f"would be {full:.10g} if no job were downgraded: at the capacity jobs are taken in "
            "full, downgraded or lost by single units, see mdpcloud.limits.downgrading_filled"
        )
    if low < c0 - near:
        return "partial_downgrading"
    return "all_downgraded" if low <= c + near else "overloaded"


def _check_one_end(link: Link) -> None:
    """Refuse a link that holds itself both below its threshold and above."""
    full, low, c0 = link.full_load, link.low_load, link.threshold
    if low < c0 - _near(link):
        return
    raise NoLimitError(
        f"the load would be {full:.10g} if no job were downgraded, and {low:.10g} if every job "
        f"were, and the threshold {c0:.10g} is between them: a large link stays long below it and "
        "long above it, and there is no one limit; the threshold must be more than "
        f"{low - c0:.3g} higher"
    )


def _check_stable(link: Link) -> None:
    """Refuse a point of equilibrium that the fluid limit leaves.

    At the threshold the jobs j >= 1 move by x_j' = lambda_j p(x) - mu_j x_j, where p(x) is that of
    `mdpcloud.limits.wiener_hopf` with x_0 = c0 - sum A_j x_j. Where class 0 is the slowest, this is
    stable because <A, rho> > Lambda/mu_0 (Perron and Frobenius).
    """
    rates = np.asarray(link.arrival_rates[1:], float)
    services = np.asarray(link.service_rates[1:], float)
    units = np.asarray(link.requirements[1:], float)
    if (services >= link.service_rates[0]).all():
        return
    shift = units * (services - link.service_rates[0]) / np.dot(rates, units - 1.0)
    growth = float(np.linalg.eigvals(np.outer(rates, shift) - np.diag(services)).real.max())
    if growth >= -ROUNDING * float(services.max()):
        raise NoLimitError(
            "the point at which a part of the jobs is downgraded is not stable: a deviation from "
            f"it grows at rate {growth:.3g}; the service rates are not all at least that of class 0"
        )


def _boundary_notes(link: Link, regime: str) -> tuple[str, ...]:
    full, low, near = link.full_load, link.low_load, _near(link)
    without, always = "the load without downgrading", "the load with every job downgraded"
    equalities: dict[str, list[tuple[float, float, str]]] = {
        "no_downgrading": [(full, link.threshold, f"{without} is the threshold")],
        "all_downgraded": [
            (low, link.threshold, f"{always} is the threshold"),
            (low, link.capacity, f"{always} is the capacity"),
        ],
    }
    if len(link.requirements) == 1:
        equalities = {"no_downgrading": [(full, link.capacity, "the load is the capacity")]}
    return tuple(
        f"{words}: the boundary of two regimes, whose limits agree there"
        for load, level, words in equalities.get(regime, [])
        if abs(load - level) <= near
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
