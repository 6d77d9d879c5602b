"""Simulation of a routing system job by job: services and deadlines of any law, first come first.

Jobs arrive in a Poisson stream and are routed by a rule, which sees the numbers of jobs present,
waiting and in service, at each node. At node k a job takes a free server or waits in line; its
patience is drawn when it comes. With deadlines to the beginning of service it is lost when its wait
would exceed its patience, with deadlines to the end when its wait and service would.

Every purpose has its own stream of random numbers: times between arrivals, draws of a random
split, and services and patience of each node. Under any rule the n-th job comes at the same time,
and the n-th service and the n-th patience of a node are the same.

Averages over a segment are exact: integrals of the jobs present and of the busy servers, and counts
of jobs routed, lost and sent outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.laws import Law
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.jobs_path import JobPath
from mdpcloud.simulate.jobs_rules import Chooser, chooser_of
from mdpcloud.simulate.protocol import COST, Floats

__all__ = ["Duration", "JobSimulation", "Pool"]

SHORTEST = 1e-10  # mean duration, in times between arrivals, that a clock tells apart
ENOUGH = 100  # draws of a law, in squared coefficients of variation
SHOWN = 3  # nodes that a message names


@dataclass(frozen=True)
class Duration:
    """A law and its mean (time)."""

    law: Law
    mean: float

    def sample(self, generator: np.random.Generator, n: int) -> Floats:
        """Independent durations (n,)."""
        return self.mean * self.law.sample(generator, n)


@dataclass(frozen=True)
class Pool:
    """A node: servers and a queue.

    Attributes
    ----------
    servers : int
    service : Duration
    patience : Duration or None
        None for jobs that wait for ever.
    room : int or None
        Most jobs present.
    fee : float
        Cost of a lost job.
    charge : float
        Cost of a job routed here.
    holding_cost : float
        Cost of a job present, per unit of time.
    """

    servers: int
    service: Duration
    patience: Duration | None = None
    room: int | None = None
    fee: float = 1.0
    charge: float = 0.0
    holding_cost: float = 0.0


def _durations(pool: Pool) -> tuple[tuple[str, Duration | None], ...]:
    return ("service", pool.service), ("patience", pool.patience)


@dataclass(frozen=True, eq=False)
class JobSimulation:
    """A `Simulation` of jobs that are routed to pools of servers or sent outside.

    Attributes
    ----------
    pools : tuple of Pool
    arrival_rate : float
        1/time.
    outside_cost : float
        Cost of a job sent outside.
    to_end : bool
        Whether a deadline also ends a service.
    rule : SeparableRule, Policy, mapping, function of x, or action
        See `mdpcloud.simulate.jobs_rules.chooser_of`.

    Examples
    --------
    >>> from mdpcloud.laws import Deterministic
    >>> pool = Pool(1, Duration(Deterministic(), 0.5), room=1)
    >>> simulation = JobSimulation((pool,), 2.0, 1.0, False, {"node 0": 1.0})
    >>> path = simulation.path(np.random.SeedSequence(1))
    >>> averages = dict(zip(simulation.names, path.advance(1, 5e4)[0].tolist(), strict=True))
    >>> round(averages["utilisation[0]"], 2)  # by Erlang's formula, whatever the law
    0.5
    """

    pools: tuple[Pool, ...]
    arrival_rate: float
    outside_cost: float
    to_end: bool
    rule: Any

    def __post_init__(self) -> None:
        for k, pool in enumerate(self.pools):
            for name, duration in _durations(pool):
                if duration is not None and duration.mean * self.arrival_rate < SHORTEST:
                    raise InputError(
                        f"the mean {name} of node {k} is {duration.mean:.3g}, and the mean time "
                        f"between arrivals {1.0 / self.arrival_rate:.3g}; job by job they may "
                        f"differ by a factor of {1.0 / SHORTEST:.0e} at most"
                    )
        _ = self.chooser  # refuse a wrong rule now

    @cached_property
    def chooser(self) -> Chooser:
        """The rule as the kernels read it."""
        return chooser_of(self.rule, [pool.room for pool in self.pools])

    @property
    def names(self) -> tuple[str, ...]:
        """``"cost"``, totals, and the measures of each node."""
        totals = ("abandonment_rate", "outsourcing_rate", "mean_jobs", "mean_queue")
        own = (
            f"{measure}[{k}]"
            for k in range(len(self.pools))
            for measure in (
                "routing_rate",
                "abandonment_rate",
                "mean_jobs",
                "mean_queue",
                "utilisation",
            )
        )
        return (COST, *totals, *own)

    @property
    def variables(self) -> tuple[str, ...]:
        """Jobs present at each node."""
        return tuple(f"node[{k}]" for k in range(len(self.pools)))

    @property
    def time_scale(self) -> float:
        """Half the mean time between arrivals: most jobs also leave."""
        return 0.5 / self.arrival_rate

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> JobPath:
        """A new replication from the empty system.

        Raises
        ------
        InputError
            When a variable that is to be recorded does not exist.
        """
        return JobPath(self, seed, {name: self.number(name) for name in recorded})

    def number(self, variable: str) -> int:
        """Number of the node that a variable belongs to."""
        if variable not in self.variables:
            hint = did_you_mean(variable, self.variables) or f"; the last is {self.variables[-1]!r}"
            raise InputError(f"there is no state variable {variable!r}{hint}")
        return self.variables.index(variable)

    def doubts(self, paths: Sequence[JobPath]) -> tuple[str, ...]:
        """Nodes whose services or patience vary too much for as many as were drawn."""
        drawn = sum((path.drawn() for path in paths), np.zeros((2, len(self.pools)), np.int64))
        few = [
            f"{name} of node {k} ({count:.3g} times, scv {duration.law.scv:.3g})"
            for k, pool in enumerate(self.pools)
            for (name, duration), count in zip(_durations(pool), drawn[:, k], strict=True)
            if duration is not None and 0 < count < ENOUGH * (duration.law.scv or 0.0) > ENOUGH
        ]
        if not few:
            return ()
        more = f" and {len(few) - SHOWN} more" if len(few) > SHOWN else ""
        return (
            f"drawn too seldom for how much they vary: {', '.join(few[:SHOWN])}{more}; what is "
            "rare and long may not have been seen, and is not in the intervals",
        )

    def averages(self, totals: NDArray[np.float64], length: float) -> Floats:
        """Averages (S, C) per unit of time, from what happened at the nodes in each segment.

        Parameters
        ----------
        totals : (S, 5, n) array
            Jobs routed and lost, integrals of jobs and busy servers, and in [:, 4, 0] jobs sent
            outside.
        length : float
            Of a segment (time).
        """
        rates = totals / length
        routed, lost, jobs, busy = (rates[:, i] for i in range(4))
        outside = rates[:, 4, 0]
        servers = np.array([pool.servers for pool in self.pools])
        queue = np.maximum(jobs - busy, 0.0)
        cost = self.outside_cost * outside
        for paid, amounts in (("fee", lost), ("charge", routed), ("holding_cost", jobs)):
            cost = cost + amounts @ np.array([getattr(pool, paid) for pool in self.pools])
        sums = [lost.sum(axis=1), outside, jobs.sum(axis=1), queue.sum(axis=1)]
        own = np.stack([routed, lost, jobs, queue, busy / servers], axis=2)
        return np.column_stack([cost, *sums, own.reshape(len(totals), 5 * servers.size)])
