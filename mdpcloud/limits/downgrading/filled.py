"""A large link that downgrades jobs only where they do not fit: the threshold is the capacity.

With downgrading the fractions of jobs that fit are those of the walk of the free units, see
`mdpcloud.limits.downgrading.filled_walk`. Where jobs that do not fit are rejected, this is the pure
loss system, and a job of A_j units fits with probability b^A_j with Kelly's root b of
sum_j A_j rho_j b^A_j = c (`mdpcloud.limits.loss.kelly`). Close to the critical load <A, rho> = c,
where the walk hardly returns, the limit is that at the critical load, with a bound of the error.
The limit is not that of thresholds that tend to the capacity, as single units matter. It is derived
here; the source (see `mdpcloud.limits.downgrading.equilibrium`) has c0 < c.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.downgrading.equilibrium import Equilibrium, Link, excess_load
from mdpcloud.limits.downgrading.filled_walk import with_downgrading
from mdpcloud.limits.loss.kelly import link_root

__all__ = ["close_to_critical", "is_filled", "limit_when_filled", "pure_loss"]

ROUNDING = 4e-15  # of Kelly's root
NEGLIGIBLE = 1e-10  # error of the limit at the critical load that needs no better one
LARGEST_BRACKET = 1e-3  # error of the limit at the critical load, where there is no better one


def is_filled(link: Link) -> bool:
    """Whether the threshold of a link is its capacity, and its load is beyond it."""
    at_capacity = len(link.requirements) > 1 and link.threshold >= link.capacity
    return at_capacity and excess_load(link) > 0


def limit_when_filled(link: Link, unfit: Literal["downgrade", "reject"]) -> Equilibrium:
    """Where a filled link settles; jobs that do not fit are downgraded if a unit is free, or lost.

    Raises
    ------
    SolveError, NoLimitError
        See `mdpcloud.limits.downgrading.filled_walk.with_downgrading`.
    """
    if unfit == "reject":
        return pure_loss(link)
    units = _only_units(link)
    if units > 1:
        return _without_class_0(link, units)
    near = close_to_critical(link)
    if near is not None and near.error <= NEGLIGIBLE:
        return near
    try:
        found = with_downgrading(link)
    except SolveError:
        if near is None:
            raise
        return near
    return found if near is None or found.error < near.error else near


def _only_units(link: Link) -> int:
    """The units that every job which arrives needs; 0 where these differ."""
    each = zip(link.requirements, link.arrival_rates, strict=True)
    asked = {units for units, rate in each if rate > 0.0}
    return asked.pop() if len(asked) == 1 else 0


def _without_class_0(link: Link, units: int) -> Equilibrium:
    """The limit where all jobs need the same units, more than 1, so that none is downgraded.

    The free units are a multiple of these nearly all the time: from others jobs are downgraded
    until they are, at rates that grow with the scale, and the few jobs of class 0 leave at rates
    that do not. A job that does not fit then finds no unit.
    """
    b, needs = _kelly_root(link), np.asarray(link.requirements)
    fits: NDArray[np.float64] = b ** (units * np.ceil(needs / units))
    return Equilibrium(
        "filled",
        tuple(fits.tolist()),
        (float(1.0 - b**units),) * needs.size,
        tuple((link.rho * fits).tolist()),
        error=ROUNDING * (units + max(link.requirements)),
    )


def close_to_critical(link: Link) -> Equilibrium | None:
    """The limit at the critical load for one that is a little more, and a bound of the error.

    The balances of class 0 and of the units give, with b = P(n = 0) and q_j = P(n < A_j),

        sum_{j >= 1} w_j q_j + b Lambda/mu_0 = <A, rho> - c,   w_j = lambda_j (A_j/mu_j - 1/mu_0),

    and as q_j grows with A_j, q_j is at most <A, rho> - c over the sum of w_i, A_i >= A_j. None
    where a w_j is negative, only classes without arrivals need so much, or the bound is above
    `LARGEST_BRACKET`.
    """
    rates, services = ([Fraction(float(r)) for r in each] for each in
                       (link.arrival_rates, link.service_rates))  # fmt: skip
    each = list(zip(link.requirements, rates, services, strict=True))[1:]
    relief = {units: Fraction() for units in link.requirements[1:]}
    for units, rate, service in each:
        weight = rate * (Fraction(int(units)) / service - 1 / services[0])
        if weight < 0:
            return None
        for other in relief:
            relief[other] += weight if other <= units else 0
    least, excess = min(relief.values()), excess_load(link)
    if excess > Fraction(LARGEST_BRACKET) * least:
        return None
    return Equilibrium(
        "filled",
        (1.0,) * (1 + len(each)),
        (0.0,) * (1 + len(each)),
        tuple(link.rho.tolist()),
        float(excess / least) + ROUNDING,
        (f"the load exceeds the capacity by only {float(excess):.3g}: the limit is "
         "that at the capacity, and its error is bounded by the excess",),
    )  # fmt: skip


def pure_loss(link: Link) -> Equilibrium:
    """The limit of a filled link on which jobs that do not fit are lost, by Kelly's root.

    Examples
    --------
    >>> found = pure_loss(Link((0.3, 0.4), (1.0, 1.0), (1, 2), 1.0, 1.0))
    >>> [round(p, 12) for p in found.blocking]
    [0.053852678299, 0.104805245638]
    """
    fits = _kelly_root(link) ** np.asarray(link.requirements, float)
    return Equilibrium(
        "filled",
        tuple(fits.tolist()),
        tuple((1.0 - fits).tolist()),
        tuple((link.rho * fits).tolist()),
        error=ROUNDING * max(link.requirements),
    )


def _kelly_root(link: Link) -> float:
    return link_root(link.rho.tolist(), link.requirements, link.capacity)
