"""Simulations of a thousand nodes, and of services of any law, for `benchmarks.simulation`."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.instances import read
from benchmarks.worker import memory

__all__ = ["RULE", "SEED", "many_at_once", "many_nodes", "services", "with_service"]

RULE = "restless_bandit"
SEED = 2026
LOAD, OUTSIDE = 1.05, 0.5
REPLICATIONS = 8
FEW = 100_000  # events to begin with, which compile the kernels


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
    """CPU seconds of a start and of a run, and what was found."""
    import mdpcloud as mc

    warnings.simplefilter("ignore", mc.SimulationWarning)
    mc.simulate(many_nodes(5), RULE, rng=SEED, events=FEW)
    system = many_nodes(nodes)
    run_time = arrivals / (REPLICATIONS * system.arrival_rate)
    begin = time.process_time()
    mc.simulate(system, RULE, rng=SEED, time=1e-3 * run_time, replications=REPLICATIONS)
    started = time.process_time()
    found = mc.simulate(system, RULE, rng=SEED, time=run_time, replications=REPLICATIONS)
    done = time.process_time()
    least = OUTSIDE * (1.0 - 1.0 / LOAD) * system.arrival_rate  # what cannot be served costs that
    assert found.gain.upper >= least, (found.gain, least)
    return {
        "start": started - begin,
        "run": done - started - (started - begin),
        "events": found.events,
        "gain": found.gain.value,
        "half_width": found.gain.half_width,
        "least": least,
        "peak": memory()[1],
    }


def with_service(system: Any, law: Any) -> Any:
    """The system with services of another law and the same means."""
    nodes = tuple(replace(node, service=law) for node in system.nodes)
    return replace(system, nodes=nodes)


def services(nodes: int, events: int, repeats: int) -> dict[str, dict[str, float]]:
    """By law, the median of CPU seconds per event of runs that take turns, and what they found."""
    import mdpcloud as mc

    warnings.simplefilter("ignore", mc.SimulationWarning)
    system = read("m")[0] if nodes == 3 else many_nodes(nodes)
    laws = {
        "exponential": None,
        "deterministic": mc.laws.Deterministic(),
        "lognormal": mc.laws.Lognormal(4.0),
    }
    systems = {name: with_service(system, law) for name, law in laws.items()}
    costs: dict[str, list[float]] = {name: [] for name in systems}
    gains = {}
    for repeat in range(repeats + 1):
        for name, subject in systems.items():
            gc.collect()
            begin = time.process_time()
            found = mc.simulate(subject, RULE, rng=SEED, events=events if repeat else FEW)
            if repeat:
                costs[name].append((time.process_time() - begin) / found.events)
            gains[name] = found.gain
    return {
        name: {"cost": statistics.median(costs[name]), "gain": g.value, "half_width": g.half_width}
        for name, g in gains.items()
    }
