"""A simulated path of a finite system, from a given state to a horizon.

A simulation records a limited number of changes. Where they do not reach the horizon, the path goes
on from the state at the last of them, a stopping time, with new random numbers: by the strong
Markov property it has the law of a path in one piece.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.simulate.events_path import CHANGES
from mdpcloud.simulate.protocol import Record

__all__ = ["POINTS", "path_of", "variables_of"]

Floats: TypeAlias = NDArray[np.float64]

POINTS = 2001  # of a path with more changes than that, which is told at equal distances
ROUNDING = 1e-12  # relative, of a sum of times
SPARE = 1.1  # time of a further piece, over that of the one before


def variables_of(system: Any) -> list[str]:
    """Names of the coordinates of a system's states, such as ``jobs[0]``."""
    axes = system.model().space.axes
    return [name if k is None else f"{name}[{k}]" for name, k in axes.flat]


def path_of(
    system: Any, start: Sequence[int], horizon: float, seed: int
) -> list[tuple[Floats, Floats]]:
    """Times and values of each coordinate, under the system's own policy.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    start : sequence of int
        Coordinates of the state at time 0.
    horizon : float
    seed : int

    Returns
    -------
    list of (times, values)
        Steps: the coordinate is ``values[m]`` from ``times[m]`` on; the last time is the horizon.
    """
    axes = system.model().space.axes
    pieces: list[list[tuple[Floats, Floats]]] = []
    now, state, length = 0.0, [*start], horizon
    while now < horizon * (1.0 - ROUNDING):
        length = min(length, horizon - now)
        place = dict(axes.state(state)._asdict())
        records = _recorded(system, place, length, np.random.SeedSequence((seed, len(pieces))))
        full = [record.times[-1] for record in records if record.times.size >= CHANGES]
        end = float(min([*full, length]))
        pieces.append([_until(record, end, now) for record in records])
        state = [int(values[-1]) for _, values in pieces[-1]]
        now += end
        length = SPARE * end
    return [_joined([piece[k] for piece in pieces], horizon) for k in range(len(state))]


def _recorded(
    system: Any, start: Mapping[str, Any], length: float, seed: np.random.SeedSequence
) -> list[Record]:
    from mdpcloud.simulate import SimulationWarning, simulate

    names = variables_of(system)
    with warnings.catch_warnings():  # a single path is shown, nothing is estimated
        warnings.simplefilter("ignore", SimulationWarning)
        found = simulate(
            system,
            system.heuristic(system.own_policy, "first").rule,
            rng=seed,
            time=length,
            warm_up=0.0,
            replications=2,
            start=start,
            paths=names,
            strict=False,
        )
    return [found.records[name][0] for name in names]


def _until(record: Record, end: float, now: float) -> tuple[Floats, Floats]:
    """The changes of a piece up to its end."""
    inside = record.times <= end
    return now + record.times[inside], record.values[inside].astype(float)


def _joined(pieces: Sequence[tuple[Floats, Floats]], horizon: float) -> tuple[Floats, Floats]:
    times = np.concatenate([times for times, _ in pieces])
    values = np.concatenate([values for _, values in pieces])
    if times.size < POINTS:
        return np.append(times, horizon), np.append(values, values[-1])
    told = np.linspace(0.0, horizon, POINTS)
    return told, values[np.searchsorted(times, told, side="right") - 1]
