"""Loss systems with several resources: jobs n are present where A n <= C.

The law is pi(n) = G^{-1} prod_j rho_j^{n_j} / n_j!; a job of class j is lost where A (n + e_j) <= C
does not hold. Either the recursion over the occupancies A n, of which there are few where there are
few resources, or the sum over all n, where there are few classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.queues.border import checked_count
from mdpcloud.queues.occupancy import (
    Floats,
    Integers,
    LossLaw,
    checked_loads,
    checked_row,
    largest_jobs,
    law_of_sums,
    occupancy_law,
)

__all__ = ["LARGEST_LATTICE", "points", "product_form_law", "sum_over_jobs"]

LARGEST_LATTICE = 20_000_000
"""Points of the largest lattice over which is summed."""

_Sum: TypeAlias = Callable[[Integers, Floats, Integers], LossLaw]


def product_form_law(
    capacities: Sequence[int], loads: Sequence[float], requirements: Sequence[Sequence[int]]
) -> LossLaw:
    """Stationary law of a loss network.

    Parameters
    ----------
    capacities : sequence of int
        Capacity C_i of each resource.
    loads : sequence of float
        Offered load rho_j of each class, arrival rate over service rate, >= 0.
    requirements : sequence of sequences of int
        One row per resource: what a job of each class needs of it, A_ij >= 0; every class needs
        something.

    Raises
    ------
    InputError
        If a number is out of range, the lists do not match, or neither the occupancies nor the jobs
        are few enough to be summed over.

    Examples
    --------
    >>> law = product_form_law([12, 15], [3.0, 2.5], [[2, 1], [1, 3]])
    >>> [round(b, 12) for b in law.blocking]
    [0.156404099935, 0.194502498927]
    """
    rho = checked_loads(loads)
    if len(requirements) != len(capacities):
        raise InputError(
            f"requirements has {len(requirements)} rows for {len(capacities)} capacities; one row "
            "per resource is needed"
        )
    rows = [checked_row(f"requirements[{i}]", row, rho.size) for i, row in enumerate(requirements)]
    rooms = [checked_count(f"capacities[{i}]", c, least=0) for i, c in enumerate(capacities)]
    room, needs = np.array(rooms), np.array(rows).reshape(len(rows), rho.size)
    idle = np.flatnonzero(needs.sum(axis=0) == 0)
    if idle.size:
        raise InputError(
            f"class {idle[0]} needs nothing of any resource, so that it is never lost; every class "
            "must have a requirement >= 1"
        )
    return _smaller_sum(room, needs)(room, rho, needs)


def points(capacities: Integers, requirements: Integers) -> tuple[int, int]:
    """Numbers of occupancies and of jobs over which the law can be summed."""
    parts = np.maximum(np.gcd.reduce(requirements, axis=1), 1)
    occupancies = math.prod((capacities // parts + 1).tolist())
    return occupancies, math.prod((largest_jobs(capacities, requirements) + 1).tolist())


def _smaller_sum(room: Integers, needs: Integers) -> _Sum:
    """The sum over fewer points."""
    occupancies, jobs = points(room, needs)
    if min(occupancies, jobs) > LARGEST_LATTICE:
        raise InputError(
            f"there are {occupancies:.3g} occupancies and {jobs:.3g} numbers of jobs; the law is "
            f"summed over at most {LARGEST_LATTICE:g} of either: use the fixed point, the limit or "
            "simulation"
        )
    return occupancy_law if occupancies <= jobs else sum_over_jobs


def sum_over_jobs(capacities: Integers, loads: Floats, requirements: Integers) -> LossLaw:
    """The law by the sum over all n, by logarithms; parameters as those of `occupancy_law`.

    The absolute error of the logarithm of a weight is a few roundings of its largest term.
    """
    most = largest_jobs(capacities, requirements)
    jobs = np.ogrid[tuple(slice(0, int(n) + 1) for n in most)]
    free = [room - _weighted(jobs, row) for room, row in zip(capacities, requirements, strict=True)]
    inside = _all([spare >= 0 for spare in free])
    logs = [_log_weight(n, a) for n, a in zip(jobs, loads.tolist(), strict=True)]
    weight = np.where(inside, sum(logs), -np.inf)
    total, exponent = np.zeros((2, loads.size)), np.zeros((2, loads.size), dtype=np.int64)
    for j in range(loads.size):
        needs = requirements[:, j].tolist()
        fits = _all([spare >= a for spare, a in zip(free, needs, strict=True)])
        for side, where in enumerate((fits, ~fits)):
            total[side, j], exponent[side, j] = _sum_of_exponentials(weight[where])
    return law_of_sums(loads, total, exponent, _roundings(loads, most) + math.log2(weight.size))


def _weighted(jobs: Sequence[Integers], row: Integers) -> Integers:
    return sum((n * a for n, a in zip(jobs, row.tolist(), strict=True)), np.zeros((), np.int64))


def _all(conditions: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.logical_and.reduce(np.broadcast_arrays(*conditions))
    return found


def _log_weight(jobs: Integers, load: float) -> Floats:
    """Logarithm of rho^n / n!."""
    from scipy.special import gammaln

    if load == 0.0:
        return np.asarray(np.where(jobs == 0, 0.0, -np.inf))
    found: Floats = np.asarray(jobs * math.log(load) - gammaln(jobs + 1.0))
    return found


def _sum_of_exponentials(logs: Floats) -> tuple[float, int]:
    """Sum of exp(logs) as value 2^exponent."""
    top = float(logs.max(initial=-np.inf))
    if top == -math.inf:
        return 0.0, 0
    exponent = math.floor(top / math.log(2.0))
    return float(np.exp(logs - exponent * math.log(2.0)).sum()), exponent


def _roundings(loads: Floats, most: Integers) -> float:
    """Bound of the error of the logarithm of a weight, in roundings."""
    from scipy.special import gammaln

    n, load = most[loads > 0.0], loads[loads > 0.0]
    terms = n * np.abs(np.log(load)) + gammaln(n + 2.0)
    return float(6.0 * loads.size * terms.sum() + 8.0)
