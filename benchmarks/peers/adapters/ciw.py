"""Ciw: one object per job, in Python."""

from __future__ import annotations

import math
from typing import Any

import ciw

from benchmarks.peers.stations import RUNS, WARM_UP, Stations, interval

__all__ = ["simulate"]


def simulate(instance: Stations) -> dict[str, Any]:
    answer = {"abandonment": abandonment, "jobs": jobs}[instance.asked]
    estimates, events = [], 0
    for seed in range(1, RUNS + 1):
        records = records_of(instance, seed)
        events += len(records) + sum(record.exit_date is not None for record in records)
        estimates.append(answer(records, WARM_UP * instance.run_time, instance.run_time))
    return {**interval(estimates), "events": events}


def records_of(instance: Stations, seed: int) -> list[Any]:
    """What happened to each job that came to a node in one run."""
    ciw.seed(seed)
    simulation = ciw.Simulation(NETWORKS[instance.rule](instance))
    simulation.simulate_until_max_time(instance.run_time)
    records = simulation.get_all_records(include_incomplete=True)
    first = 1 if instance.rule == "split" else 2
    return [record for record in records if record.node >= first]


def split(instance: Stations) -> Any:
    """A Poisson stream to each node: the stream split at random."""
    nodes = instance.nodes
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(instance.arrival / nodes)] * nodes,
        routing=ciw.routing.NetworkRouting([ciw.routing.Leave()] * nodes),
        **at_nodes(instance, before=0),
    )


def shortest(instance: Stations) -> Any:
    """Through a node that takes no time: jobs are routed when they leave one.

    `LoadBalancing` compares jobs present; Ciw's `JoinShortestQueue` leaves out those in service.
    """
    nodes = instance.nodes
    routers = [ciw.routing.LoadBalancing(destinations=list(range(2, nodes + 2)))]
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(instance.arrival), *[None] * nodes],
        routing=ciw.routing.NetworkRouting([*routers, *[ciw.routing.Leave()] * nodes]),
        **at_nodes(instance, before=1),
    )


NETWORKS = {"split": split, "shortest": shortest}


def at_nodes(instance: Stations, before: int) -> dict[str, Any]:
    """Service and patience, after ``before`` nodes with as many servers as jobs and no delay."""
    services = [ciw.dists.Exponential(float(rate)) for rate in instance.service]
    patience = [ciw.dists.Exponential(float(rate)) if rate else None for rate in instance.patience]
    found = {
        "service_distributions": [ciw.dists.Deterministic(0.0)] * before + services,
        "number_of_servers": [math.inf] * before + instance.servers.tolist(),
    }
    if any(patience):
        found["reneging_time_distributions"] = [None] * before + patience
    return found


def abandonment(records: list[Any], start: float, end: float) -> float:
    """Jobs that left before service, per time."""
    left = (r.exit_date for r in records if r.record_type == "renege")
    return sum(date >= start for date in left) / (end - start)


def jobs(records: list[Any], start: float, end: float) -> float:
    """Mean number of jobs present."""
    stays = ((r.arrival_date, end if r.exit_date is None else r.exit_date) for r in records)
    return sum(max(out - max(into, start), 0.0) for into, out in stays) / (end - start)
