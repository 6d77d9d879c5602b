"""What a simulation found: estimates with confidence intervals, and what they were made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.protocol import COST, Floats, Record

__all__ = ["Estimate", "SimulationResult", "SimulationWarning"]


class SimulationWarning(UserWarning):
    """A simulation is too short for its intervals to be trusted."""


@dataclass(frozen=True)
class Estimate:
    """A mean estimated by simulation.

    Attributes
    ----------
    value : float
    lower, upper : float
        95 % confidence interval.
    standard_error : float
    effective_samples : float
        How many independent observations of a segment's mean would give the same standard error.
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    effective_samples: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return 0.5 * (self.upper - self.lower)


@dataclass(frozen=True, eq=False, repr=False)
class SimulationResult:
    """Estimates of the gain and of the measures of a policy.

    Attributes
    ----------
    gain : Estimate
        Long-run average cost per unit of time (reward, for a model given by rewards).
    measures : mapping of name to Estimate
    status : {"done", "absorbed", "half_width", "time_limit", "interrupted"}
        "half_width": the work allowed was done before the interval was as narrow as asked.
        "absorbed": some replications ended in states that nothing leaves; see ``notes``.
    notes : tuple of str
        What a reader of the estimates has to know; a run too short says so here.
    replications : int
    time : float
        Simulated time of each replication, the warm-up included.
    warm_up : float
        Time that is left out at the beginning of each replication.
    events : int
        In all replications together.
    elapsed : float
        Seconds.
    sense : int
        1 where the gain is a cost, -1 where it is a reward.
    absorption : mapping of name to Estimate
        Where every replication was absorbed: ``"time"`` until then and ``"cost"`` up to then.
    segment : float
        Length of a segment (time).
    series : (replications, segments, 1 + measures) array
        Averages of the cost and the measures in each segment, warm-up included.
    seed : tuple
        What the random numbers were made of; results of equal seed, segments and replications are
        compared pair by pair.
    records : mapping of variable to tuple of Record
        Of the recorded state variables, one per replication.
    """

    gain: Estimate
    measures: Mapping[str, Estimate]
    status: str
    notes: tuple[str, ...]
    replications: int
    time: float
    warm_up: float
    events: int
    elapsed: float
    segment: float
    series: Floats
    seed: tuple[Any, ...]
    sense: int = 1
    absorption: Mapping[str, Estimate] = field(default_factory=dict)
    records: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """What was found, without its arrays."""
        return (
            f"SimulationResult(gain {self.gain.value:.6g} in [{self.gain.lower:.6g}, "
            f"{self.gain.upper:.6g}] at 95 %, {self.status}, {self.replications} replications of "
            f"time {self.time:.6g}, {self.events} events)"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names along the last axis of ``series``."""
        return (COST, *self.measures)

    @property
    def events_per_second(self) -> float:
        """Events simulated per second of wall time."""
        return self.events / self.elapsed

    def series_of(self, name: str) -> Floats:
        """Averages of the cost or of a measure, (replications, segments).

        Raises
        ------
        InputError
            When the name is unknown.
        """
        if name not in self.names:
            hint = did_you_mean(name, self.names) or f"; there are {list(self.names)}"
            raise InputError(f"the simulation has no measure {name!r}{hint}")
        return np.asarray(self.series[:, :, self.names.index(name)])

    def kept(self, name: str, warm_up: float | None = None) -> Floats:
        """Averages per segment after the warm-up, (replications, kept segments)."""
        left_out = self.warm_up if warm_up is None else warm_up
        return self.series_of(name)[:, round(left_out / self.segment) :]

    def is_coupled_with(self, other: SimulationResult) -> bool:
        """Whether both have the same random numbers, replications and segments."""
        mine = (self.seed, self.replications, self.segment, self.series.shape[1])
        return mine == (other.seed, other.replications, other.segment, other.series.shape[1])

    def difference(self, other: SimulationResult, name: str = COST) -> Estimate:
        """Estimate of this average less that of another policy.

        Parameters
        ----------
        other : SimulationResult
            Of the same model or system. Where it has equal seed, time and replications, pairs of
            replications are compared, which share their random numbers; otherwise both are taken as
            independent, with Welch's interval.
        name : str
            The cost, or a measure.
        """
        from mdpcloud.simulate.estimates import difference

        if not isinstance(other, SimulationResult):
            raise InputError(f"{other!r} is no result of a simulation")
        paired = self.is_coupled_with(other)
        if not paired:
            return difference(self.kept(name), other.kept(name), paired=False)
        warm_up = max(self.warm_up, other.warm_up)
        return difference(self.kept(name, warm_up), other.kept(name, warm_up), paired=True)
