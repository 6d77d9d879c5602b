"""The free capacity of a full link, a random walk on 0, 1, 2, ... beside slowly varying jobs.

With x_j class-j jobs per unit of the scale, the free capacity n goes up by A_j at rate mu_j x_j (a
job leaves) and down by A_j at rate lambda_j where n >= A_j (a job is accepted). It is ergodic iff
its drift is downward, sum_j A_j (lambda_j - mu_j x_j) > 0; else it drifts to infinity and every job
fits. Across the cut between n - 1 and n, with pi the stationary law and n >= a = max A_j,

    sum_j mu_j x_j (pi(n-A_j) + ... + pi(n-1)) = sum_j lambda_j (pi(n) + ... + pi(n+A_j-1)),

whose characteristic polynomial of degree 2a - 1 has a roots within the unit disc; the root 1 of the
balance equations is not among them, so that they are told apart up to the edge of stability. The
law obeys the recurrence whose characteristic polynomial D has these roots, from 0 on; its first a
values solve the cuts below a and the normalisation. Neither repeated roots nor roots at 0 (classes
without jobs) matter to that. The law is geometric only at the fixed point of the link.

Source: P. J. Hunt and T. G. Kurtz, "Large loss networks", Stochastic Processes and their
Applications 53 (1994) 363-378; G. Thompson (PhD thesis, 2017), equation (1.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.queues.border import checked_count, checked_number

__all__ = ["FreeCapacity", "free_capacity"]

LARGEST_RESIDUAL = 1e-9  # of the balance equations, relative to the total rate
WIDEST = 100  # units of the widest job

NEGLIGIBLE = 1e-18  # of the total rate: coefficients whose roots are beyond reach

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Complex: TypeAlias = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class FreeCapacity:
    """Stationary law of the free capacity.

    Attributes
    ----------
    acceptance : tuple of float
        Per class the probability that its jobs fit, P(n >= A_j); 1 where the walk has no law.
    ergodic : bool
    drift : float
        Downward drift sum_j A_j (lambda_j - mu_j x_j), capacity/time.
    law : array
        The law in 0, 1, ..., some multiple of the largest size; empty where there is none.
    decay : float
        What the law is multiplied with per unit in the long run, < 1; 1 where there is none.
    residual : float
        Largest absolute error of the flows across cuts, per unit of the total rate.
    """

    acceptance: tuple[float, ...]
    ergodic: bool
    drift: float
    law: Floats
    decay: float
    residual: float


def free_capacity(up: Sequence[float], down: Sequence[float], sizes: Sequence[int]) -> FreeCapacity:
    """Stationary law of the free capacity of a full link.

    Parameters
    ----------
    up : sequence of float
        Rates mu_j x_j >= 0 at which jobs of each class leave, 1/time.
    down : sequence of float
        Arrival rates lambda_j >= 0 of each class, 1/time.
    sizes : sequence of int
        Units A_j >= 1 of each class.

    Raises
    ------
    InputError
        When a number is out of range, or no rate upwards is positive.
    SolveError
        When the equations were not solved to `LARGEST_RESIDUAL`.

    Examples
    --------
    >>> walk = free_capacity([0.7, 0.15], [0.8, 0.4], [1, 2])
    >>> [round(p, 10) for p in walk.acceptance]
    [0.7308981043, 0.5191018957]
    """
    needs = [checked_count(f"sizes[{j}]", a) for j, a in enumerate(sizes)]
    births = [checked_number(f"up[{j}]", rate, zero=True) for j, rate in enumerate(up)]
    deaths = [checked_number(f"down[{j}]", rate, zero=True) for j, rate in enumerate(down)]
    if not len(needs) == len(births) == len(deaths):
        raise InputError("up, down and sizes must have one number for each class")
    drift = sum(a * (d - u) for a, d, u in zip(needs, deaths, births, strict=True))
    if not drift > 0.0:
        return FreeCapacity((1.0,) * len(needs), False, drift, np.zeros(0), 1.0, 0.0)
    if not any(births):
        raise InputError("up is 0 for every class: a link without jobs is not full")
    total = sum(births) + sum(deaths)
    return _ergodic(np.array(births) / total, np.array(deaths) / total, np.array(needs), drift)


def _ergodic(up: Floats, down: Floats, sizes: Integers, drift: float) -> FreeCapacity:
    """The law on multiples of the common divisor of the sizes in use; the rates sum to 1."""
    active = (up > 0.0) | (down > 0.0)
    part = int(np.gcd.reduce(sizes[active]))
    walk = _Walk(up[active], down[active], sizes[active] // part)
    if walk.width > WIDEST:
        raise InputError(f"the widest class has size {walk.width}; at most {WIDEST} are supported")
    levels = -(-sizes // part)
    found, decay = _law(walk, max(4 * walk.width, int(levels.max())))
    flows = [walk.cut(n, found) for n in range(1, 3 * walk.width + 1)]
    residual = float(np.abs([*flows, min(found.min(), 0.0)]).max())
    if not residual <= LARGEST_RESIDUAL:
        raise SolveError(
            f"the law of the free capacity has an error of {residual:.1e} in its balance "
            f"equations, more than {LARGEST_RESIDUAL:g}"
        )
    acceptance = (float(np.clip(1.0 - found[:level].sum(), 0.0, 1.0)) for level in levels)
    law = np.zeros(part * found.size)
    law[::part] = found
    return FreeCapacity(tuple(acceptance), True, drift, law, decay ** (1.0 / part), residual)


@dataclass(frozen=True, eq=False)
class _Walk:
    """The walk with steps of the given sizes, which have no common divisor."""

    up: Floats
    down: Floats
    sizes: Integers

    @property
    def width(self) -> int:
        return int(self.sizes.max())

    def cut(self, n: int, values: Floats) -> Floats:
        """Flow upwards less flow downwards between n - 1 and n, in a law or in rows of laws."""
        flow = np.zeros(values.shape[1:])
        for u, d, a in zip(self.up, self.down, self.sizes.tolist(), strict=True):
            flow += u * values[max(n - a, 0) : n].sum(axis=0)
            flow -= d * values[max(n, a) : n + a].sum(axis=0)
        return flow

    def polynomial(self) -> Floats:
        """Coefficients of the cuts' characteristic polynomial, the lowest power first."""
        width = self.width
        found = np.zeros(2 * width)
        for u, d, a in zip(self.up, self.down, self.sizes.tolist(), strict=True):
            found[width - a : width] -= u
            found[width : width + a] += d
        return found


def _law(walk: _Walk, states: int) -> tuple[Floats, float]:
    """The first values of the law, and its decay."""
    inner, outer, lead = _roots(walk)
    width = walk.width
    recurrence = _from_roots(inner)
    drift = float(walk.sizes @ (walk.down - walk.up))
    mass = drift / (lead * float(np.real(np.prod(1.0 - outer))))  # of D at 1
    rows = _continued(recurrence, np.eye(width), 2 * width - 1)
    sums = np.cumsum(recurrence[:width])[::-1]
    equations = np.array([*(walk.cut(n, rows) for n in range(1, width)), sums])
    right = np.zeros(width)
    right[-1] = mass
    head = np.linalg.solve(equations, right)
    return _continued(recurrence, head, states), float(np.abs(inner).max(initial=0.0))


def _roots(walk: _Walk) -> tuple[Complex, Complex, float]:
    """Roots within the unit disc, those beyond, and the leading coefficient."""
    coefficients = walk.polynomial()
    present = np.flatnonzero(np.abs(coefficients) > NEGLIGIBLE)
    lead = coefficients[: present[-1] + 1]
    roots = np.roots(lead[::-1]).astype(complex)
    roots = roots[np.argsort(np.abs(roots), kind="stable")]
    return roots[: walk.width], roots[walk.width :], float(lead[-1])


def _from_roots(roots: Complex) -> Floats:
    """Coefficients of prod (z - root), highest power first, from its values on the unit circle."""
    circle = np.exp(2j * np.pi * np.arange(roots.size + 1) / (roots.size + 1))
    values = np.prod(circle[:, None] - roots, axis=1)
    powers = np.real(np.fft.fft(values))[::-1]
    found: Floats = powers / powers[0]
    return found


def _continued(recurrence: Floats, start: Floats, count: int) -> Floats:
    """Continue the first values (rows) by the recurrence."""
    width = recurrence.size - 1
    found = np.zeros((max(count, width), *start.shape[1:]))
    found[:width] = start
    for n in range(width, count):
        found[n] = -(recurrence[:0:-1] @ found[n - width : n])
    return found[:count]
