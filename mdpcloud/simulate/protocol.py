"""What the statistics of a simulation know of the thing that is simulated.

A *simulation* is a system under a policy; a *path* is one replication of it. Three kinds implement
them: `mdpcloud.simulate.events` (models), `mdpcloud.simulate.chains` (arrays of probabilities or
rates) and `mdpcloud.simulate.jobs` (jobs with service times and deadlines of any law).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["COST", "Absorption", "Floats", "Path", "RearrangedError", "Record", "Simulation"]

Floats = NDArray[np.float64]
COST = "cost"


@dataclass(frozen=True)
class Absorption:
    """Where a path ended: nothing happens any more.

    Attributes
    ----------
    time : float
        When, from the start of the path.
    state : str
        For messages, such as ``(jobs=0)``.
    """

    time: float
    state: str


@dataclass(frozen=True, eq=False)
class Record:
    """What was recorded of a state variable on one path.

    Attributes
    ----------
    times, values : (M,) arrays
        The first changes: the variable is ``values[m]`` from ``times[m]`` on; ``times[0]`` is 0.
    occupation : (S, W) array
        Per segment, the share of time at each of the values 0..W-1.
    """

    times: Floats
    values: NDArray[np.int64]
    occupation: Floats


class RearrangedError(Exception):
    """Paths must be started anew: their simulation has learnt what it did not know.

    Its method ``rearrange`` has to be called first. A new path from the same seed is the same path.
    """


class Path(Protocol):
    """One replication; it has its own random numbers and can be advanced from any thread."""

    @property
    def events(self) -> int:
        """Events so far."""
        ...

    @property
    def absorbed(self) -> Absorption | None:
        """Where the path ended, if it did; it goes on being advanced, and stays there."""
        ...

    def advance(self, segments: int, length: float) -> Floats:
        """Go on for some segments of equal length (time).

        Returns
        -------
        (segments, C) array
            Averages per unit of time of the cost and the measures, in the order of the
            simulation's ``names``.
        """
        ...

    def record(self, name: str) -> Record:
        """What was recorded of a state variable since the start."""
        ...

    def join(self, count: int) -> None:
        """Record shares of time over ``count`` segments each, also those of before.

        The segments so far, and those of each later `advance`, are a multiple of that.
        """
        ...


class Simulation(Protocol):
    """A system under a policy, ready to run."""

    @property
    def names(self) -> tuple[str, ...]:
        """``"cost"`` and then the measures."""
        ...

    @property
    def variables(self) -> tuple[str, ...]:
        """State variables that can be recorded, such as ``"jobs"`` or ``"node[0]"``."""
        ...

    @property
    def time_scale(self) -> float:
        """A rough time between events (of the order, no more); 1 where it is not known."""
        ...

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> Path:
        """A new replication from the start state.

        Equal seeds give the same random numbers under any policy, event by event, so that
        differences between policies are estimated with common random numbers.
        """
        ...
