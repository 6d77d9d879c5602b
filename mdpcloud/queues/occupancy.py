"""The law of the occupied capacity of a loss system, and what it says of each class of jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.queues.border import checked_count, checked_number

__all__ = [
    "LossLaw",
    "checked_loads",
    "checked_row",
    "largest_jobs",
    "law_of_sums",
    "occupancy_law",
]

ROUNDING = 2.0**-53
LEAST_EXPONENT = -2000  # below that of every float

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LossLaw:
    """Stationary law of a loss system, whose jobs are lost where they do not fit.

    Attributes
    ----------
    blocking : tuple of float
        Per class the probability that a job is lost; 0 below 1e-308.
    acceptance : tuple of float
        Per class the probability that it is not.
    log_blocking : tuple of float
        Natural logarithms of ``blocking``, also where it underflows; -inf for a true 0.
    mean_jobs : tuple of float
        Per class the mean number of jobs present.
    error : float
        Bound of the relative error of all of them above 1e-300, for the loads as given; of the
        absolute error of the logarithms, but for their own rounding.
    occupancy : array of shape (C_1 + 1, ...) or None
        Law of the occupied capacity of every resource, where it was computed.
    """

    blocking: tuple[float, ...]
    acceptance: tuple[float, ...]
    log_blocking: tuple[float, ...]
    mean_jobs: tuple[float, ...]
    error: float
    occupancy: Floats | None = None


def checked_loads(loads: Sequence[float]) -> Floats:
    """Offered loads as an array; InputError unless there is one, and all are finite and >= 0."""
    if not len(loads):
        raise InputError("loads is empty; there must be at least one class")
    return np.array([checked_number(f"loads[{j}]", a, zero=True) for j, a in enumerate(loads)])


def checked_row(name: str, row: Sequence[int], classes: int) -> list[int]:
    """Requirements of all classes on one resource; InputError unless they are counts, one each."""
    if len(row) != classes:
        raise InputError(f"{name} has {len(row)} numbers for {classes} classes; one each is needed")
    return [checked_count(f"{name}[{j}]", a, least=0) for j, a in enumerate(row)]


def largest_jobs(capacities: Integers, requirements: Integers) -> Integers:
    """Largest number of jobs of each class; every class needs something of some resource."""
    needed = requirements > 0
    room = capacities[:, None] // np.maximum(requirements, 1)
    most: Integers = np.where(needed, room, np.iinfo(np.int64).max).min(axis=0)
    return most


def occupancy_law(capacities: Integers, loads: Floats, requirements: Integers) -> LossLaw:
    """The law by the recursion over all occupancies; the numbers are taken as checked.

    Parameters
    ----------
    capacities : (k,) array of int
    loads : (c,) array
    requirements : (k, c) array of int

    Notes
    -----
    A weight is made by at most L levels of the recursion, L the largest number of jobs, of c + 2
    roundings each. Capacities and requirements are divided by their common divisors first.
    """
    from mdpcloud.queues.knapsack_kernels import BITS, occupancy_weights, sums_by_class

    parts = np.maximum(np.gcd.reduce(requirements, axis=1), 1)
    room, needs = capacities // parts, requirements // parts[:, None]
    fraction, exponent = np.frexp(loads)
    unit, rest = np.divmod(exponent.astype(np.int64) + BITS // 2, BITS)
    value = np.zeros(math.prod((room + 1).tolist()))
    power = np.zeros(value.size, dtype=np.int64)
    scaled = np.ldexp(fraction, (rest - BITS // 2).astype(np.int32))
    occupancy_weights(room, needs, scaled, unit, value, power)
    total, top = np.zeros((2, loads.size)), np.zeros((2, loads.size), dtype=np.int64)
    sums_by_class(room, needs, value, power, total, top)
    levels = int(room.sum() // needs.sum(axis=0).min())
    law = np.zeros(capacities + 1)
    inside = np.ix_(*(part * np.arange(size + 1) for part, size in zip(parts, room, strict=True)))
    whole, whole_power = _sum(total[:, 0], top[:, 0] * BITS)
    law[inside] = _scaled(value / whole, power * BITS - whole_power).reshape(room + 1)
    return law_of_sums(loads, total, top * BITS, levels * (loads.size + 2.0), law)


def law_of_sums(
    loads: Floats, total: Floats, exponent: Integers, roundings: float, law: Floats | None = None
) -> LossLaw:
    """The law from the sums of weights where a job of each class fits, and where it does not.

    Parameters
    ----------
    loads : (c,) array
    total, exponent : (2, c) arrays
        The sums are total 2^exponent.
    roundings : float
        Bound of the relative error of a weight, in roundings.
    law : array, optional
        Of the occupancy.
    """
    pairs = [_sum(total[:, j], exponent[:, j]) for j in range(loads.size)]
    whole = np.array([value for value, _ in pairs])
    shift = exponent - np.array([power for _, power in pairs])
    acceptance, blocking = _scaled(total / whole, shift)
    with np.errstate(divide="ignore"):
        logs = np.log(total[1] / whole) + shift[1] * math.log(2.0)
    return LossLaw(
        tuple(blocking.tolist()),
        tuple(acceptance.tolist()),
        tuple(np.where(total[1] > 0.0, logs, -np.inf).tolist()),
        tuple((loads * acceptance).tolist()),
        1.01 * (2.0 * roundings + 8.0) * ROUNDING,
        law,
    )


def _sum(total: Floats, exponent: Integers) -> tuple[float, int]:
    """Sum of pairs, as a pair."""
    top = int(exponent[total > 0.0].max())
    return float(_scaled(total, exponent - top).sum()), top


def _scaled(value: Floats, exponent: Integers) -> Floats:
    """Value 2^exponent; 0 below the range of floats."""
    found: Floats = np.ldexp(value, np.maximum(exponent, LEAST_EXPONENT).astype(np.int32))
    return found
