"""LINE (line-solver) by its stochastic simulation, "nrm": the next reaction method, in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import line_solver as line
import numpy as np

from benchmarks.peers.stations import RUNS, WARM_UP, Stations, interval

__all__ = ["network", "runs", "simulate"]


def simulate(instance: Stations) -> dict[str, Any]:
    return runs(instance, solver)


def solver(model: Any, instance: Stations, seed: int) -> Any:
    return line.SolverSSA(
        model,
        "nrm",
        samples=instance.run_events,
        warmupfrac=WARM_UP,
        seed=seed,
        verbose=False,
    )


def runs(instance: Stations, make: Callable[[Any, Stations, int], Any]) -> dict[str, Any]:
    """Simulate `RUNS` times."""
    answer = {"abandonment": abandonment, "jobs": jobs}[instance.asked]
    estimates = [
        answer(instance, make(network(instance), instance, seed)) for seed in range(1, RUNS + 1)
    ]
    return {**interval(estimates), "events": RUNS * instance.run_events}


def network(instance: Stations) -> Any:
    """The nodes between a source and a sink."""
    model = line.Network("nodes")
    source = line.Source(model, "source")
    queues = [
        line.Queue(model, f"node {k}", line.SchedStrategy.FCFS) for k in range(instance.nodes)
    ]
    sink = line.Sink(model, "sink")
    job = line.OpenClass(model, "job")
    source.set_arrival(job, line.Exp(instance.arrival))
    for k, queue in enumerate(queues):
        queue.set_service(job, line.Exp(float(instance.service[k])))
        queue.set_number_of_servers(int(instance.servers[k]))
        if instance.patience[k]:
            queue.set_patience(job, line.Exp(float(instance.patience[k])))
        model.add_link(source, queue)
        model.add_link(queue, sink)
        queue.set_routing(job, line.RoutingStrategy.PROB, sink, 1.0)
        if instance.rule == "split":
            source.set_routing(job, line.RoutingStrategy.PROB, queue, 1.0 / instance.nodes)
    if instance.rule == "shortest":
        source.set_routing(job, line.RoutingStrategy.JSQ)
    return model


def abandonment(instance: Stations, found: Any) -> float:
    """Patience times jobs that wait: those present less those in service."""
    present, busy = (np.asarray(array)[1:, 0] for array in found.getAvg()[:2])
    return float(instance.patience @ (present - instance.servers * busy))


def jobs(instance: Stations, found: Any) -> float:
    """Mean number of jobs present."""
    return float(np.asarray(found.getAvgQLen())[1:, 0].sum())
