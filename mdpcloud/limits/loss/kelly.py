"""Large-scale limit of a loss network, as a convex problem.

With loads rho_j and capacities c_i that grow together, the blocking probabilities tend to 1 -
exp(-(A^T y)_j), where y solves

    minimise  D(y) = sum_j rho_j exp(-(A^T y)_j) + c y   over y >= 0,

the dual of: maximise sum_j x_j - x_j log(x_j / rho_j) over x >= 0 with A x <= c (F. P. Kelly,
"Loss networks", Ann. Appl. Prob. 1 (1991) 319-378). The jobs x_j = rho_j exp(-(A^T y)_j) are
unique, y need not be. On one resource, b = e^{-y} is the root of sum_j A_j rho_j b^{A_j} = c in
(0, 1); it is 1 where the load does not exceed the capacity.

Classes without load and resources that are large enough for all of it are left out first. How the
prices are found is told in `mdpcloud.limits.loss.kelly_prices`.

The error is certified, see `mdpcloud.limits.loss.kelly_certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.loss.kelly_certificate import Network, certificate
from mdpcloud.limits.loss.kelly_prices import candidates, dual_prices, link_price
from mdpcloud.queues.border import checked_count, checked_number

__all__ = ["KellyLimit", "convex_dual", "kelly_limit", "link_root"]

ROUNDING = 2.0**-53
SMALL = 1e-12  # error with which no others are tried
LARGEST_ERROR = 1e-6

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KellyLimit:
    """Limit of a loss network.

    Attributes
    ----------
    blocking : tuple of float
        Per class the limit of the probability that a job is lost. That of a class without load is
        by the prices given, which are not the only ones where saturated resources are dependent;
        no error is given for it.
    jobs : tuple of float
        x_j per class, in the unit of the loads and capacities.
    prices : tuple of float
        y_i per resource.
    spare : tuple of float
        c_i - (A x)_i per resource.
    gap : float
        Duality gap, relative to D(y); a bound, with rounding.
    error : float
        Certified absolute error of every blocking probability; it covers a rounding of each load.
    jobs_error : float
        Certified absolute error of every x_j.
    """

    blocking: tuple[float, ...]
    jobs: tuple[float, ...]
    prices: tuple[float, ...]
    spare: tuple[float, ...]
    gap: float
    error: float
    jobs_error: float

    @property
    def saturated(self) -> tuple[int, ...]:
        """Resources with a price."""
        return tuple(i for i, y in enumerate(self.prices) if y > 0.0)


def kelly_limit(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[float]
) -> KellyLimit:
    """Limit of the blocking probabilities of a loss network.

    Parameters
    ----------
    loads : sequence of float
        rho_j >= 0 of each class, per unit of the scale.
    requirements : sequence of sequences of int
        One row per resource: A_ij >= 0.
    capacities : sequence of float
        c_i > 0 of each resource, per unit of the scale.

    Raises
    ------
    InputError
        When a number is out of range, or the lists do not match.
    SolveError
        When the certified error is above 1e-6.

    Examples
    --------
    >>> limit = kelly_limit([1.0, 0.8], [[2, 1], [1, 3]], [2.0, 2.5])
    >>> [round(b, 12) for b in limit.blocking]
    [0.3, 0.25]
    """
    network = _checked(loads, requirements, capacities)
    offered = np.flatnonzero(network.loads > 0.0)
    kept = _pressed_rows(network)
    part = Network(network.loads[offered], network.needs[np.ix_(kept, offered)], network.room[kept])
    found = _best(part)
    prices, shift = np.zeros(network.room.size), np.zeros(network.loads.size)
    prices[kept], shift[offered] = found.prices, found.shift
    return _limit(network, prices, found.gap, shift)


def link_root(loads: Sequence[float], sizes: Sequence[int], capacity: float) -> float:
    """The root b in (0, 1] of sum_j A_j rho_j b^{A_j} = c; 1 where the load is at most c.

    Parameters are those of `kelly_limit` for one resource.

    Examples
    --------
    >>> link_root([0.5, 0.5], [1, 2], 1.0), (17**0.5 - 1) / 4
    (0.7807764064044151, 0.7807764064044151)
    """
    network = _checked(loads, [sizes], [capacity])
    return math.exp(-link_price(network))


def convex_dual(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[float]
) -> tuple[float, ...]:
    """The prices y by cvxpy, to a few digits; parameters are those of `kelly_limit`."""
    return tuple(dual_prices(_checked(loads, requirements, capacities)).tolist())


# --- solution -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Certified:
    """Prices with the relative duality gap, and a bound of log(x* / x) per class."""

    prices: Floats
    gap: float
    shift: Floats
    error: float


def _best(network: Network) -> _Certified:
    """The prices with the least certified error; the first whose error is `SMALL`."""
    if not network.room.size:
        shift = np.full(network.loads.size, 2.0 * ROUNDING)  # of loads that are quotients
        return _Certified(np.zeros(0), 0.0, shift, 0.0)
    best: _Certified | None = None
    for prices in candidates(network):
        gap, shift = certificate(network, prices)
        error = float(_errors(prices @ network.needs, shift).max())
        if best is None or error < best.error:
            best = _Certified(prices, gap, shift, error)
        if error <= SMALL:
            break
    assert best is not None
    return best


def _pressed_rows(network: Network) -> NDArray[np.int64]:
    """Resources that all of the load may fill, but for those that another one implies.

    It does if no class needs a larger share of the capacity, up to the rounding of the shares.
    """
    offered = network.needs * (network.loads > 0.0)
    shares = offered / network.room[:, None]
    slack = 1.0 + ROUNDING * (network.loads.size + 6.0)
    kept: list[int] = []
    for i in np.flatnonzero(offered @ network.loads * slack >= network.room).tolist():
        if any((shares[i] <= shares[k] * (1.0 + 4.0 * ROUNDING)).all() for k in kept):
            continue
        kept = [k for k in kept if not (shares[k] <= shares[i]).all()]
        kept.append(i)
    return np.array(kept, dtype=np.int64)


def _errors(logs: Floats, shift: Floats) -> Floats:
    """Bounds of the errors of the blocking probabilities 1 - exp(-logs)."""
    moved = np.where(shift < 1.0, np.exp(-logs) * np.expm1(np.minimum(shift, 1.0)), 1.0)
    found: Floats = np.minimum(moved, 1.0) - 2.0 * ROUNDING * np.expm1(-logs)
    return found


def _limit(network: Network, prices: Floats, gap: float, shift: Floats) -> KellyLimit:
    offered = network.loads > 0.0
    jobs, logs = network.jobs(prices), prices @ network.needs
    error = float(_errors(logs, shift)[offered].max(initial=0.0))
    if not error <= LARGEST_ERROR:
        raise SolveError(f"the limit of the blocking probabilities has an error of {error:.1e}")
    return KellyLimit(
        tuple((0.0 - np.expm1(-logs)).tolist()),
        tuple(jobs.tolist()),
        tuple(prices.tolist()),
        tuple(network.spare(prices).tolist()),
        gap,
        error,
        float((jobs * np.expm1(np.minimum(shift, 1.0))).max()),
    )


def _checked(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[float]
) -> Network:
    rho = [checked_number(f"loads[{j}]", a, zero=True) for j, a in enumerate(loads)]
    if len(requirements) != len(capacities) or not rho:
        raise InputError(
            f"there are {len(rho)} loads, {len(requirements)} rows of requirements and "
            f"{len(capacities)} capacities; one load per class and one row per capacity are needed"
        )
    for i, row in enumerate(requirements):
        if len(row) != len(rho):
            raise InputError(f"requirements[{i}] has {len(row)} numbers for {len(rho)} classes")
    needs = [
        [checked_count(f"requirements[{i}][{j}]", a, least=0) for j, a in enumerate(row)]
        for i, row in enumerate(requirements)
    ]
    room = [checked_number(f"capacities[{i}]", c) for i, c in enumerate(capacities)]
    network = Network(np.array(rho), np.array(needs, dtype=float), np.array(room))
    if not np.isfinite(network.loads.sum() + (network.needs * network.loads).sum()):
        raise InputError("loads times requirements are beyond the range of floats")
    return network
