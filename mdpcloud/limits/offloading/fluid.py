"""Fluid limit of loss centres that offload to their neighbours.

With x_j the busy servers of centre j per unit of the scale and F the centres that stay full,

    dx_j/dt = l_j + what the full neighbours of j send there - mu_j x_j   outside F,    0 inside,

where a full centre i serves mu_i x_i = a_i, and sends what `mdpcloud.limits.offloading.ring` says,
which does not depend on the rest of the state. F changes where another centre fills up: it is the
set that stays full among those that are full at that moment. Derived here, by averaging over the
free servers of full centres; the source (G. Thompson, thesis, UPMC 2017, chapter 4) has the
equilibrium only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.limits.offloading.ring import overflow, saturated
from mdpcloud.limits.trajectory import Mode, Trajectory, integrate

__all__ = ["fluid_path"]

Array: TypeAlias = NDArray[np.float64]
Rates: TypeAlias = Sequence[float]

AT = 1e-12  # of its servers: a centre nearer to them is full


def fluid_path(
    arrivals: Rates,
    service_rates: Rates,
    servers: Rates,
    probabilities: Rates,
    horizon: float,
    *,
    start: Sequence[float] | None = None,
    times: Sequence[float] | None = None,
) -> Trajectory:
    """Follow the busy servers of every centre.

    Parameters
    ----------
    arrivals, service_rates, servers : sequence of float
        Per centre, arrivals and servers per unit of the scale.
    probabilities : sequence of float
        To each of the neighbours, as in `mdpcloud.limits.offloading.ring.ring_limit`.
    horizon : float
    start : sequence of float, optional
        Busy servers at time 0; none by default.
    times : sequence of float, optional

    Raises
    ------
    InputError
        When the start is not within the servers.
    NoLimitError
        Where three neighbours stay full.

    Examples
    --------
    >>> path = fluid_path((2.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.5, 0.0), 50.0)
    >>> path.states[-1].round(9).tolist(), [(round(t, 9), what) for t, what in path.changes]
    ([1.0, 2.0], [(0.693147181, 'centre 0 fills up')])
    """
    first = _start(start, servers)
    rates, most = np.asarray(service_rates, float), np.asarray(servers, float)
    capacities = (rates * most).tolist()
    modes: dict[str, Mode] = {}

    def mode_at(x: Array) -> str:
        among = np.flatnonzero(x >= (1.0 - AT) * most).tolist()
        full = saturated(arrivals, capacities, probabilities, among)
        name = f"full: {full}"
        if name not in modes:
            loads = np.array(overflow(full, arrivals, capacities, probabilities).loads)
            modes[name] = _mode(list(full), loads, rates, most)
        return name

    return integrate(
        modes,
        mode_at,
        first,
        horizon,
        labels=[f"mean_jobs[{j}]" for j in range(len(servers))],
        times=times,
    )


def _start(start: Sequence[float] | None, servers: Rates) -> list[float]:
    if start is None:
        return [0.0] * len(servers)
    if isinstance(start, str) or not isinstance(start, Iterable):
        raise InputError(f"start must be a list of {len(servers)} numbers, not {start!r}")
    first = [_number(f"start[{j}]", x) for j, x in enumerate(start)]
    if len(first) != len(servers):
        raise InputError(f"start has {len(first)} numbers for {len(servers)} centres")
    for j, (x, most) in enumerate(zip(first, servers, strict=True)):
        if not 0.0 <= x <= most:
            raise InputError(
                f"start[{j}] must be in 0..{most:g}, the servers of centre {j}, not {x}"
            )
    return first


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _mode(full: list[int], loads: Array, rates: Array, most: Array) -> Mode:
    def drift(x: Array) -> Array:
        found: Array = loads - rates * x
        found[full] = 0.0
        return found

    def project(x: Array) -> Array:
        x = x.copy()
        x[full] = most[full]
        return x

    filling = np.flatnonzero(loads > rates * most).tolist()  # the others never get there
    gaps = {f"centre {j} fills up": _gap(j, most[j]) for j in filling if j not in full}
    return Mode(drift, gaps, project)


def _gap(j: int, most: float) -> Callable[[Array], float]:
    return lambda x: float(most - x[j])
