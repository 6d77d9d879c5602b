"""Fluid limit of a link that jobs of several sizes share, below its capacity and at it.

With x_j the class-j jobs per unit of the scale and capacity c, below the capacity every job is
accepted; on the boundary A x = c a job is accepted where the free capacity, a fast walk whose law
pi_x is that of `mdpcloud.limits.loss.free_capacity`, has room for it:

    A x < c:  dx_j/dt = lambda_j - mu_j x_j,
    A x = c:  dx_j/dt = lambda_j pi_x(n >= A_j) - mu_j x_j.

The boundary is left where the walk loses its law, sum_j A_j (lambda_j - mu_j x_j) <= 0; on it
A dx/dt = 0. Source: G. Thompson (PhD thesis, 2017), equation (1.4), after Hunt and Kurtz (1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.limits.loss.free_capacity import free_capacity
from mdpcloud.limits.trajectory import Mode, Trajectory, integrate
from mdpcloud.queues.border import checked_count, checked_number

__all__ = ["link_fluid"]

ON_BOUNDARY = 1e-9  # of the capacity: nearer to it a state is on it
STANDING = 1e-10  # of what arrives: less pressure is rounding where the boundary is left

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Link:
    """A link per unit of the scale."""

    arrivals: Floats
    services: Floats
    sizes: Floats
    capacity: float

    @property
    def units(self) -> list[int]:
        return [int(size) for size in self.sizes]

    def used(self, x: Floats) -> float:
        return float(self.sizes @ x)

    def pressure(self, x: Floats) -> float:
        """Rate at which what is used would grow if everything were accepted."""
        return float(self.sizes @ self.below(x))

    def below(self, x: Floats) -> Floats:
        return self.arrivals - self.services * x

    def full(self, x: Floats) -> Floats:
        departures = self.services * np.maximum(x, 0.0)
        walk = free_capacity(departures.tolist(), self.arrivals.tolist(), self.units)
        drift: Floats = self.arrivals * np.array(walk.acceptance) - departures
        return drift

    def project(self, x: Floats) -> Floats:
        """The point of the boundary that is nearest to one beside it."""
        return x + (self.capacity - self.used(x)) / (self.sizes @ self.sizes) * self.sizes

    def mode_at(self, x: Floats) -> str:
        near = self.used(x) >= self.capacity * (1.0 - ON_BOUNDARY)
        held = self.pressure(x) > STANDING * float(self.sizes @ self.arrivals)
        return "full" if near and held else "below"


def link_fluid(
    arrival_rates: Sequence[float],
    service_rates: Sequence[float],
    sizes: Sequence[int],
    capacity: float,
    horizon: float,
    start: Sequence[float] | None = None,
    times: Sequence[float] | None = None,
) -> Trajectory:
    """Follow the fluid limit of a link.

    Parameters
    ----------
    arrival_rates, service_rates : sequence of float
        lambda_j >= 0 per unit of the scale, and mu_j > 0, 1/time.
    sizes : sequence of int
        A_j >= 1.
    capacity : float
        c > 0, per unit of the scale.
    horizon : float
        Last time.
    start : sequence of float, optional
        x_j >= 0 with A x <= c; an empty link by default.
    times : sequence of float, optional
        See `mdpcloud.limits.trajectory.integrate`.

    Raises
    ------
    InputError
        When a number is out of range, or the start does not fit.
    SolveError
        See `mdpcloud.limits.loss.free_capacity` and `mdpcloud.limits.trajectory`.

    Examples
    --------
    >>> path = link_fluid([0.8, 0.4], [1.0, 1.0], [1, 2], 1.0, 2.0, times=[1.0, 2.0])
    >>> path.states.round(6).tolist(), [(round(t, 6), what) for t, what in path.changes]
    ([[0.501449, 0.249275], [0.549692, 0.225154]], [(0.980829, 'the link fills')])
    """
    fluid = _checked_link(arrival_rates, service_rates, sizes, capacity)
    first = _checked_start(fluid, start)
    modes = {
        "below": Mode(fluid.below, {"the link fills": lambda x: fluid.capacity - fluid.used(x)}),
        "full": Mode(fluid.full, {"the link drains": fluid.pressure}, fluid.project),
    }
    labels = [f"mean_jobs[{j}]" for j in range(first.size)]
    return integrate(modes, fluid.mode_at, first.tolist(), horizon, labels=labels, times=times)


def _checked_link(
    arrivals: Sequence[float], services: Sequence[float], sizes: Sequence[int], capacity: float
) -> _Link:
    if not len(arrivals) == len(services) == len(sizes):
        raise InputError(
            f"there are {len(arrivals)} arrival_rates, {len(services)} service_rates and "
            f"{len(sizes)} sizes; one each per class is needed"
        )
    births = [checked_number(f"arrival_rates[{j}]", r, zero=True) for j, r in enumerate(arrivals)]
    deaths = [checked_number(f"service_rates[{j}]", r) for j, r in enumerate(services)]
    needs = [float(checked_count(f"sizes[{j}]", a)) for j, a in enumerate(sizes)]
    room = checked_number("capacity", capacity)
    return _Link(np.array(births), np.array(deaths), np.array(needs), room)


def _checked_start(link: _Link, start: Sequence[float] | None) -> Floats:
    """The start, on the boundary where it is there up to rounding."""
    if start is None:
        return np.zeros(link.sizes.size)
    if len(start) != link.sizes.size:
        raise InputError(f"start has {len(start)} numbers for {link.sizes.size} classes")
    x = np.array([checked_number(f"start[{j}]", n, zero=True) for j, n in enumerate(start)])
    if link.used(x) > link.capacity * (1.0 + ON_BOUNDARY):
        raise InputError(f"start uses {link.used(x):g}, more than the capacity {link.capacity:g}")
    return x * min(1.0, link.capacity / link.used(x)) if link.used(x) > 0.0 else x
