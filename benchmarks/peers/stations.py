"""Nodes that are simulated, and the interval that every program's runs are turned into.

Jobs of one Poisson stream go to nodes with several servers, a queue and exponential patience while
they wait. An event is an arrival to a node or a departure from one, with or without service.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["RUNS", "WARM_UP", "Stations", "interval"]

RUNS = 8
QUANTILE = 2.3646242515927844  # of Student's law with RUNS - 1 degrees of freedom, at 0.975
WARM_UP = 0.1  # of each run, left out
SPLIT, SHORTEST = "split", "shortest"


@dataclass(frozen=True, eq=False)
class Stations:
    """A stream of jobs and the nodes that they go to.

    ``servers``, ``service`` and ``patience`` (rates; 0 for patient jobs) have one entry per node.
    With the rule "split" every node is as likely as the others; with "shortest" a job goes where
    fewest are present, waiting or in service, and the nodes are alike, so that ties do not matter.
    Asked for is the rate of abandonment ("abandonment") or the mean number of jobs present
    ("jobs"); ``gain`` is its true value. ``events`` are those of all `RUNS` runs together, about.
    """

    servers: NDArray[Any]
    service: NDArray[Any]
    patience: NDArray[Any]
    arrival: float
    rule: str
    asked: str
    events: int
    gain: float

    @property
    def nodes(self) -> int:
        return self.servers.size

    @property
    def run_events(self) -> int:
        """Events of one run."""
        return self.events // RUNS

    @property
    def run_time(self) -> float:
        """Length of a run: every job arrives and departs."""
        return self.run_events / (2.0 * self.arrival)


def interval(estimates: Sequence[float]) -> dict[str, float]:
    """Mean of independent runs and half the width of its 95 % interval."""
    assert len(estimates) == RUNS
    error = statistics.stdev(estimates) / math.sqrt(RUNS)
    return {"gain": statistics.fmean(estimates), "half_width": QUANTILE * error}
