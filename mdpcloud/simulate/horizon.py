"""How long to simulate, checked; and what random numbers are made of."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.simulate.protocol import RearrangedError, Simulation

__all__ = ["Horizon", "Seed", "events_per_time", "seed_of", "spawned"]

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator

EVENTS = 1_000_000
MOST_EVENTS = 100_000_000
PILOT_EVENTS = 100_000
PILOT_ROUNDS = 100  # doublings of the time of a pilot run
PILOT_KEY = 2**32 - 1  # spawn key of its random numbers


@dataclass(frozen=True)
class Horizon:
    """The arguments of `mdpcloud.simulate` that say how much to simulate.

    Raises
    ------
    InputError
        When one is out of range, or two exclude each other.
    """

    events: int | None = None
    time: float | None = None
    half_width: float | None = None
    warm_up: str | float = "mser"
    replications: int = 8
    n_jobs: int = 1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        _check_count("events", self.events)
        _check_count("replications", self.replications)
        _check_count("n_jobs", self.n_jobs)
        for name in ("time", "half_width", "time_limit"):
            _check_positive(name, getattr(self, name))
        if self.events is not None and self.time is not None:
            raise InputError("events and time are both given; give one of them")
        warm_up = self.warm_up
        if isinstance(warm_up, str):
            if warm_up != "mser":
                raise InputError(f"warm_up is {warm_up!r}; it must be 'mser' or a time >= 0")
        elif not (isinstance(warm_up, Real) and 0 <= warm_up < np.inf):
            raise InputError(f"warm_up is {warm_up!r}; it must be 'mser' or a time >= 0")
        elif self.time is not None and warm_up >= self.time:
            raise InputError(
                f"warm_up is {warm_up:g}; nothing is left of the time {self.time:g} of a "
                "replication"
            )

    @property
    def most_events(self) -> int:
        """Events at most, in all replications."""
        if self.events is not None:
            return int(self.events)
        return EVENTS if self.half_width is None else MOST_EVENTS


def _check_count(name: str, value: Any) -> None:
    optional = name == "events"
    if value is None and optional:
        return
    if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= 1):
        raise InputError(f"{name} is {value!r}; it must be a whole number >= 1")


def _check_positive(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise InputError(f"{name} is {value!r}; it must be a finite number > 0")


def seed_of(rng: Seed) -> np.random.SeedSequence:
    """What the streams of random numbers are spawned from.

    A Generator gives four of its numbers, so that it leads to other results when used again.
    """
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**32, size=4).tolist())
    if isinstance(rng, Integral) and not isinstance(rng, bool) and rng >= 0:
        return np.random.SeedSequence(int(rng))
    raise InputError(
        f"rng is {rng!r}; it must be a whole number >= 0, a numpy SeedSequence or a Generator"
    )


def spawned(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """A child of a seed, the same whenever it is asked for; the seed itself stays as it is."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def events_per_time(
    simulation: Simulation, seed: np.random.SeedSequence, most_events: int
) -> float:
    """Events per unit of time in the second half of a pilot run."""
    try:
        return _pilot(simulation, seed, most_events)
    except RearrangedError:
        simulation.rearrange()  # type: ignore[attr-defined]  # only such a one raises this
        return events_per_time(simulation, seed, most_events)


def _pilot(simulation: Simulation, seed: np.random.SeedSequence, most_events: int) -> float:
    path = simulation.path(spawned(seed, PILOT_KEY))
    enough = min(PILOT_EVENTS, max(1, most_events // 10))
    length, time = simulation.time_scale, 0.0
    for _ in range(PILOT_ROUNDS):
        before = path.events
        path.advance(1, length)
        time += length
        if path.absorbed is not None and path.absorbed.time > 0:
            return path.events / path.absorbed.time
        if path.events >= enough:
            return (path.events - before) / length
        length = time
        if path.absorbed is not None:
            raise InputError(
                f"nothing ever happens: nothing leaves the start state {path.absorbed.state}"
            )
    raise InputError("too few events happened in a pilot run; give a time")
