"""How often the intervals of whole simulations hold the true value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mdpcloud as mc

RUNS = 400
LEAST, MOST = 0.93, 0.97  # of intervals that hold the truth, where 0.95 is claimed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mdpcloud.simulate.result.SimulationWarning"),
]


def queue(load: float, room: int) -> mc.Model:
    arrival = mc.Event("arrival", lambda x: load * (x.jobs < room), mc.step(jobs=+1))
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    measures = {"busy": lambda x: 1.0 * (x.jobs > 0)}
    space = mc.Lattice({"jobs": room})
    return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs, measures=measures)


def coverage(subject: Any, policy: Any, truth: dict[str, float], time: float) -> dict[str, float]:
    """Share of runs whose interval holds the true value, per average."""
    held = dict.fromkeys(truth, 0)
    for seed in range(RUNS):
        found = mc.simulate(subject, policy, rng=seed, time=time)
        estimates = {"cost": found.gain, **found.measures}
        for name, value in truth.items():
            held[name] += estimates[name].lower <= value <= estimates[name].upper
    return {name: count / RUNS for name, count in held.items()}


def test_intervals_of_a_queue_at_load_eight_tenths_hold_the_mean() -> None:
    found = coverage(queue(0.8, 10**6), None, {"cost": 4.0, "busy": 0.8}, time=15_000.0)
    assert all(LEAST <= share <= MOST for share in found.values()), found


def test_intervals_of_routing_to_two_nodes_hold_the_cost_and_measures() -> None:
    nodes = (mc.systems.Node(2, 10.0, 0.3), mc.systems.Node(10, 2.0, 0.3))
    system = mc.systems.CloudRouting(nodes, arrival_rate=40.0, outside_cost=0.25)
    heuristic = system.heuristic("policy_improvement")
    exact = mc.evaluate(system.model(heuristic.caps), heuristic.rule)
    names = ["outsourcing_rate", "mean_jobs", "routing_rate[0]"]
    truth = {name: float(np.mean(exact.measures[name])) for name in names}
    truth["cost"] = exact.gain
    found = coverage(system, "policy_improvement", truth, time=300.0)
    assert all(LEAST <= share <= MOST for share in found.values()), found
