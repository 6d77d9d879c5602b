"""The free capacity of a full link, a random walk on 0, 1, 2, ... beside slowly varying jobs.

With x_j class-j jobs per unit of the scale, the free capacity n goes up by A_j at rate mu_j x_j (a
job leaves) and down by A_j at rate lambda_j where n >= A_j (a job is accepted). It is ergodic iff
its drift is downward, sum_j A_j (lambda_j - mu_j x_j) > 0; else it drifts to infinity and every job
fits. Across the cut between n - 1 and n, with pi the stationary law and n >= a = max A_j,

    sum_j mu_j x_j (pi(n-A_j) + ... + pi(n-1)) = sum_j lambda_j (pi(n) + ... + pi(n+A_j-1)),

whose characteristic polynomial of degree 2a - 1 has a roots within the unit disc; the largest is
the decay of the law. In blocks of a states the walk is a quasi-birth-death process: cyclic
reduction cuts the visits to higher blocks out, until the rate to them is below 1e-100 of the total,
and leaves a chain on 0, ..., a - 1, whose law is that of the walk up to a factor. That follows from
the drift,

    sum_j A_j lambda_j pi(n < A_j) = sum_j A_j (lambda_j - mu_j x_j).

Nothing is subtracted on the way, see `mdpcloud.limits.loss.free_capacity_kernels`: rates between
groups of states may be as small as they like, where the balance equations, met to rounding, say
nothing of the error. The law is geometric only at the fixed point of the link.

Source: P. J. Hunt and T. G. Kurtz, "Large loss networks", Stochastic Processes and their
Applications 53 (1994) 363-378; G. Thompson (PhD thesis, 2017), equation (1.4); G. Latouche and V.
Ramaswami, "A logarithmic reduction algorithm for quasi-birth-death processes", J. Appl. Prob. 30
(1993) 650-674.
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
ROUNDING = 2.0**-53
NEGLIGIBLE = 1e-18  # of the total rate: coefficients whose roots are beyond reach

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


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
        Largest absolute error of the flows across cuts, per unit of the total rate. It bounds no
        error of the law.
    error : float
        Absolute error of the acceptance; an estimate, of the roundings on the way.
    """

    acceptance: tuple[float, ...]
    ergodic: bool
    drift: float
    law: Floats
    decay: float
    residual: float
    error: float


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
        When the equations are not met to `LARGEST_RESIDUAL`.

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
        return FreeCapacity((1.0,) * len(needs), False, drift, np.zeros(0), 1.0, 0.0, 0.0)
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
    found = _law(walk, max(4 * walk.width, int(levels.max())))
    flows = [walk.cut(n, found) for n in range(1, 3 * walk.width + 1)]
    residual = float(np.abs(flows).max())
    if not residual <= LARGEST_RESIDUAL:
        raise SolveError(
            f"the law of the free capacity has an error of {residual:.1e} in its balance "
            f"equations, more than {LARGEST_RESIDUAL:g}"
        )
    acceptance = (float(np.clip(1.0 - found[:level].sum(), 0.0, 1.0)) for level in levels)
    law = np.zeros(part * found.size)
    law[::part] = found
    decay, error = _decay(walk) ** (1.0 / part), ROUNDING * (16.0 + 8.0 * walk.width)
    return FreeCapacity(tuple(acceptance), True, drift, law, decay, residual, error)


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


def _law(walk: _Walk, states: int) -> Floats:
    """The first values of the law, block by block."""
    from mdpcloud.limits.loss import free_capacity_kernels as kernels

    up, within, down = _blocks(walk)
    first, left = kernels.censored_on_first(up, within, down)
    if not left <= kernels.NOTHING:
        raise SolveError(f"cyclic reduction left a rate of {left:.1e} to higher blocks")
    block = kernels.law_of_rates(first)
    refused = [walk.down @ (walk.sizes * (walk.sizes > n)) for n in range(walk.width)]
    block *= float(walk.sizes @ (walk.down - walk.up)) / float(block @ np.array(refused))
    blocks = [block]
    further = up @ kernels.inverse_of_leaving(first, down.sum(axis=1))
    for _ in range(-(-states // walk.width) - 1):
        blocks.append(blocks[-1] @ further)
    return np.concatenate(blocks)[:states]


def _blocks(walk: _Walk) -> tuple[Floats, Floats, Floats]:
    """Rates from a block of states to the next, within it, and to the one before."""
    width = walk.width
    rates, n = np.zeros((width, 3 * width)), np.arange(width)
    for u, d, a in zip(walk.up, walk.down, walk.sizes.tolist(), strict=True):
        rates[n, n + width + a] += u
        rates[n, n + width - a] += d
    down, within, up = (
        np.ascontiguousarray(rates[:, k * width : (k + 1) * width]) for k in range(3)
    )
    return up, within, down


def _decay(walk: _Walk) -> float:
    """The largest root of the cuts within the unit disc."""
    coefficients = walk.polynomial()
    present = np.flatnonzero(np.abs(coefficients) > NEGLIGIBLE)
    roots = np.abs(np.roots(coefficients[present[-1] :: -1]))
    return float(np.sort(roots)[: walk.width].max(initial=0.0))
