"""Large-scale limit of a loss network, as a convex problem.

With loads rho_j and capacities c_i that grow together, the blocking probabilities tend to 1 -
exp(-(A^T y)_j), where y solves

    minimise  D(y) = sum_j rho_j exp(-(A^T y)_j) + c y   over y >= 0,

the dual of: maximise sum_j x_j - x_j log(x_j / rho_j) over x >= 0 with A x <= c (F. P. Kelly,
"Loss networks", Ann. Appl. Prob. 1 (1991) 319-378). The jobs x_j = rho_j exp(-(A^T y)_j) are
unique, y need not be. On one resource, b = e^{-y} is the root of sum_j A_j rho_j b^{A_j} = c in
(0, 1); it is 1 where the load does not exceed the capacity.

cvxpy gives y to a few digits. Newton's method on the resources with y_i > 0 goes on until the
residual r_i = c_i - (A x)_i there, or its negative part where y_i = 0, no longer falls.

The error is certified, see `mdpcloud.limits.kelly_certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.kelly_certificate import Network, certificate
from mdpcloud.queues.border import checked_count, checked_number

__all__ = ["KellyLimit", "convex_dual", "kelly_limit", "link_root"]

STEPS = 60  # of Newton's method
HALVINGS = 30
FREE = 1e-4  # prices below it are first taken for 0 where there is spare capacity

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KellyLimit:
    """Limit of a loss network.

    Attributes
    ----------
    blocking : tuple of float
        Per class the limit of the probability that a job is lost.
    jobs : tuple of float
        x_j per class, in the unit of the loads and capacities.
    prices : tuple of float
        y_i per resource.
    spare : tuple of float
        c_i - (A x)_i per resource.
    gap : float
        Duality gap, relative to D(y); a bound, with rounding.
    error : float
        Certified absolute error of every blocking probability.
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
    kept = _distinct_rows(network)
    part = Network(network.loads, network.needs[kept], network.room[kept])
    prices = np.zeros(len(kept))
    if (part.spare(prices) < 0.0).any():
        prices = _polished(part, _start(part))
    gap, shift = certificate(part, prices)
    every = np.zeros(network.room.size)
    every[kept] = prices
    return _limit(network, every, gap, shift)


def link_root(loads: Sequence[float], sizes: Sequence[int], capacity: float) -> float:
    """The root b in (0, 1] of sum_j A_j rho_j b^{A_j} = c; 1 where the load is at most c.

    Parameters are those of `kelly_limit` for one resource.

    Examples
    --------
    >>> link_root([0.5, 0.5], [1, 2], 1.0), (17**0.5 - 1) / 4
    (0.7807764064044151, 0.7807764064044151)
    """
    from scipy.optimize import brentq

    network = _checked(loads, [sizes], [capacity])

    def excess(y: float) -> float:
        return -float(network.spare(np.array([y]))[0])

    if excess(0.0) <= 0.0:
        return 1.0
    used = network.needs[0] > 0.0
    largest = np.log(network.loads @ network.needs[0] / capacity) / network.needs[0, used].min()
    root = float(brentq(excess, 0.0, 1.01 * largest + 1e-300, xtol=1e-300, rtol=1e-15))
    return float(np.exp(-root))


def convex_dual(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[float]
) -> tuple[float, ...]:
    """The prices y by cvxpy, to a few digits; parameters are those of `kelly_limit`."""
    return tuple(_by_cvxpy(_checked(loads, requirements, capacities)).tolist())


# --- solution -------------------------------------------------------------------------------------


def _start(network: Network) -> Floats:
    if network.room.size == 1:
        sizes = network.needs[0].astype(int).tolist()
        root = link_root(network.loads.tolist(), sizes, float(network.room[0]))
        return np.array([-math.log(root)])
    return _by_cvxpy(network)


def _by_cvxpy(network: Network) -> Floats:
    import cvxpy

    cp: Any = cvxpy

    unit = float(network.room.max())
    prices = cp.Variable(network.room.size, nonneg=True)
    jobs = (network.loads / unit) @ cp.exp(-network.needs.T @ prices)
    problem = cp.Problem(cp.Minimize(jobs + (network.room / unit) @ prices))
    problem.solve(solver=cp.CLARABEL)
    if prices.value is None:
        raise SolveError(f"cvxpy did not solve the dual problem: {problem.status}")
    found: Floats = np.maximum(np.asarray(prices.value, dtype=float), 0.0)
    return found


def _distinct_rows(network: Network) -> list[int]:
    """Resources but for those whose row is another's with no less capacity, or empty."""
    best: dict[bytes, int] = {}
    for i, row in enumerate(network.needs):
        size = row.sum()
        if size == 0.0:
            continue
        key = (row / size).tobytes()
        other = best.setdefault(key, i)
        if network.room[i] / size < network.room[other] / network.needs[other].sum():
            best[key] = i
    return sorted(best.values()) or [0]


def _polished(network: Network, prices: Floats) -> Floats:
    """Newton's method on the resources in use, as long as the residual falls."""
    prices = np.where((prices < FREE) & (network.spare(prices) > 0.0), 0.0, prices)
    residual = _residual(network, prices)
    for _ in range(STEPS):
        step = _newton_step(network, prices)
        for halving in range(HALVINGS):
            other = np.maximum(prices + 0.5**halving * step, 0.0)
            after = _residual(network, other)
            if after < residual:
                break
        else:
            return prices
        prices, residual = other, after
    return prices


def _newton_step(network: Network, prices: Floats) -> Floats:
    spare = network.spare(prices)
    free = (prices > 0.0) | (spare < 0.0)
    rows = network.needs[free]
    slope = (rows * network.jobs(prices)) @ rows.T
    step = np.zeros(prices.size)
    step[free] = -np.linalg.lstsq(slope, spare[free], rcond=None)[0]
    return step


def _residual(network: Network, prices: Floats) -> float:
    """Largest relative violation of the conditions of optimality."""
    spare = network.spare(prices) / network.room
    return float(np.where(prices > 0.0, np.abs(spare), np.maximum(-spare, 0.0)).max())


def _limit(network: Network, prices: Floats, gap: float, shift: Floats) -> KellyLimit:
    change = np.where(shift < 1.0, np.expm1(np.minimum(shift, 1.0)), np.inf)
    jobs, logs = network.jobs(prices), prices @ network.needs
    error = float(np.minimum(np.exp(-logs) * change, 1.0).max())
    if not error <= 1e-6:
        raise SolveError(f"the limit of the blocking probabilities has an error of {error:.1e}")
    return KellyLimit(
        tuple((0.0 - np.expm1(-logs)).tolist()),
        tuple(jobs.tolist()),
        tuple(prices.tolist()),
        tuple(network.spare(prices).tolist()),
        gap,
        error,
        float((jobs * change).max()),
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
    return Network(np.array(rho), np.array(needs, dtype=float), np.array(room))
