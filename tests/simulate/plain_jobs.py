"""The routing system simulated plainly: jobs in lists, the next event found by looking at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.simulate.jobs import JobSimulation, Pool
from mdpcloud.simulate.jobs_path import BUFFER, random_streams


@dataclass
class Job:
    deadline: float
    end: float = math.inf  # of the service, once it has begun

    def leaves(self, to_end: bool) -> float:
        if self.end < math.inf:
            return min(self.end, self.deadline) if to_end else self.end
        return self.deadline


@dataclass
class PlainNode:
    pool: Pool
    services: Any
    patience: Any
    present: list[Job] = field(default_factory=list)
    routed: int = 0
    lost: int = 0
    jobs_time: float = 0.0
    busy_time: float = 0.0

    def serve(self, time: float) -> None:
        """Let jobs begin in the order in which they came, while a server is free."""
        for job in self.present:
            if sum(one.end < math.inf for one in self.present) == self.pool.servers:
                return
            if job.end == math.inf:
                job.end = time + next(self.services)


def plain_totals(
    simulation: JobSimulation, seed: np.random.SeedSequence, choose: Any, horizon: float
) -> dict[str, Any]:
    """What happened until the horizon, with the random numbers of `JobPath`."""
    streams = random_streams(seed)
    arrivals, _ = next(streams), next(streams)
    nodes = [
        PlainNode(pool, _draws(pool.service, next(streams)), _draws(pool.patience, next(streams)))
        for pool in simulation.pools
    ]
    time, outside = 0.0, 0
    arrival = arrivals.standard_exponential() / simulation.arrival_rate
    while True:
        leaving = [
            (job.leaves(simulation.to_end), k, i)
            for k, node in enumerate(nodes)
            for i, job in enumerate(node.present)
        ]
        now = min([arrival, *(when for when, _, _ in leaving), horizon])
        for node in nodes:
            busy = sum(job.end < math.inf for job in node.present)
            node.jobs_time += len(node.present) * (now - time)
            node.busy_time += busy * (now - time)
        time = now
        if time == horizon:
            return {
                "outside": outside,
                **{
                    name: [getattr(node, name) for node in nodes]
                    for name in ("routed", "lost", "jobs_time", "busy_time")
                },
            }
        if time == arrival:
            k = choose([len(node.present) for node in nodes])
            if k is None:
                outside += 1
            else:
                nodes[k].routed += 1
                nodes[k].present.append(Job(time + next(nodes[k].patience)))
                nodes[k].serve(time)
            arrival = time + arrivals.standard_exponential() / simulation.arrival_rate
        else:
            _, k, i = min(leaving)
            job = nodes[k].present.pop(i)
            nodes[k].lost += job.end > time
            nodes[k].serve(time)


def _draws(duration: Any, generator: np.random.Generator) -> Any:
    """One number after the other, drawn as many at a time as `JobPath` draws."""
    while True:
        block = [math.inf] if duration is None else duration.sample(generator, BUFFER).tolist()
        yield from block
