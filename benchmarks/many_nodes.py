"""Simulations of a thousand nodes, and of jobs one by one, for `benchmarks.simulation`."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.instances import read
from benchmarks.worker import memory

__all__ = ["LAWS", "RULE", "SEED", "JobByJob", "job_by_job", "many_at_once", "many_nodes"]

RULE = "restless_bandit"
SEED = 2026
LOAD, OUTSIDE = 1.05, 0.5
REPLICATIONS = 8
FEW = 100_000  # events to begin with, which compile the kernels
LAWS = ("Exponential", "Deterministic")


def many_nodes(nodes: int) -> Any:
    """Nodes of 1 to 40 servers that differ in their rates, and 5 % more jobs than they serve."""
    from mdpcloud.systems import CloudRouting, Node

    rng = np.random.default_rng(SEED)
    servers = rng.integers(1, 41, nodes)
    service, patience = rng.uniform(0.5, 4.0, nodes), rng.uniform(0.1, 1.0, nodes)
    capacity = float(servers @ service)
    each = zip(servers.tolist(), service.tolist(), patience.tolist(), strict=True)
    return CloudRouting(tuple(Node(*numbers) for numbers in each), LOAD * capacity, OUTSIDE)


def many_at_once(nodes: int, arrivals: int) -> dict[str, float]:
    """CPU seconds of the rule and the model, of a start, and of all; and what was found."""
    import mdpcloud as mc

    warnings.simplefilter("ignore", mc.SimulationWarning)
    small = many_nodes(5)
    mc.simulate(small.model((60,) * 5), small.heuristic(RULE).rule, rng=SEED, events=FEW)
    system = many_nodes(nodes)
    run_time = arrivals / (REPLICATIONS * system.arrival_rate)
    begin = time.process_time()
    heuristic = system.heuristic(RULE)
    model = system.model(heuristic.caps)
    described = time.process_time()
    mc.simulate(model, heuristic.rule, rng=SEED, time=1e-3 * run_time, replications=REPLICATIONS)
    started = time.process_time()
    found = mc.simulate(model, heuristic.rule, rng=SEED, time=run_time, replications=REPLICATIONS)
    done = time.process_time()
    least = OUTSIDE * (1.0 - 1.0 / LOAD) * system.arrival_rate  # what cannot be served costs that
    assert found.gain.upper >= least, (found.gain, least)
    return {
        "describing": described - begin,
        "starting": started - described,
        "all": done - started,
        "events": found.events,
        "gain": found.gain.value,
        "half_width": found.gain.half_width,
        "peak": memory()[1],
    }


@dataclass(frozen=True)
class JobByJob:
    """A routing system with services of some law, as `mdpcloud.simulate` takes systems."""

    system: Any
    rule: Any
    law: Any

    def simulation(self, policy: Any = None, ties: str = "fastest", start: Any = None) -> Any:
        """Of every job."""
        from mdpcloud.laws import Exponential
        from mdpcloud.simulate.jobs import Duration, JobSimulation, Pool

        pools = tuple(
            Pool(
                node.servers,
                Duration(self.law, 1.0 / node.service_rate),
                Duration(Exponential(), 1.0 / node.abandonment_rate),
            )
            for node in self.system.nodes
        )
        rates = self.system.arrival_rate, self.system.outside_cost
        return JobSimulation(pools, *rates, False, self.rule)


def job_by_job(nodes: int, events: int, repeats: int) -> dict[str, dict[str, float]]:
    """By law, the median of CPU seconds per event of runs that take turns, and what they found."""
    import mdpcloud as mc

    warnings.simplefilter("ignore", mc.SimulationWarning)
    system = read("m")[0] if nodes == 3 else many_nodes(nodes)
    rule = system.heuristic(RULE).rule
    subjects = {law: JobByJob(system, rule, getattr(mc.laws, law)()) for law in LAWS}
    costs: dict[str, list[float]] = {law: [] for law in LAWS}
    gains = {}
    for repeat in range(repeats + 1):
        for law, subject in subjects.items():
            gc.collect()
            begin = time.process_time()
            found = mc.simulate(subject, rng=SEED, events=events if repeat else FEW)
            if repeat:
                costs[law].append((time.process_time() - begin) / found.events)
            gains[law] = found.gain
    return {
        law: {"cost": statistics.median(costs[law]), "gain": g.value, "half_width": g.half_width}
        for law, g in gains.items()
    }
