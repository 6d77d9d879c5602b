"""mdpcloud's simulator on the nodes that the peers simulate."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import mdpcloud as mc
from benchmarks.peers.stations import RUNS, Stations
from mdpcloud.policies.index_rule import IndexRule

__all__ = ["described", "simulate"]

CAP = 1000  # jobs; never met
OUTSIDE = 1e-6  # cost of a job that finds every node at its cap


def simulate(instance: Stations) -> dict[str, Any]:
    model, rule = described(instance, CAP)
    found = mc.simulate(model, rule, rng=1, events=instance.events, replications=RUNS)
    return {
        "gain": found.gain.value,
        "half_width": found.gain.half_width,
        "events": found.events,
    }


def described(instance: Stations, cap: int) -> tuple[mc.Model, Any]:
    """The nodes, each cut at ``cap``, and the rule; the cost rate is what is asked for."""
    asked = {"fee": 1.0} if instance.asked == "abandonment" else {"fee": 0.0, "holding_cost": 1.0}
    rates = zip(instance.servers, instance.service, instance.patience, strict=True)
    nodes = tuple(mc.systems.Node(int(m), float(mu), float(t), **asked) for m, mu, t in rates)
    system = mc.systems.CloudRouting(nodes, instance.arrival, OUTSIDE)
    rule = RULES[instance.rule](instance.nodes, cap)
    return system.model((cap,) * instance.nodes), rule


def split(nodes: int, cap: int) -> dict[str, Any]:
    """Probabilities of the actions."""
    free = {f"node {k}": partial(_share, k=k, of=nodes, cap=cap) for k in range(nodes)}
    return {**free, "outside": lambda x: 1.0 - sum(share(x) for share in free.values())}


def _share(x: Any, k: int, of: int, cap: int) -> Any:
    return (x.node[k] < cap) / of


def shortest(nodes: int, cap: int) -> IndexRule:
    """The number of jobs is the price."""
    return IndexRule((partial(_price, cap=cap),) * nodes, range(nodes))


def _price(last: int, cap: int) -> Any:
    jobs = np.arange(last + 1.0)
    return np.where(jobs < cap, jobs, np.inf)


RULES = {"split": split, "shortest": shortest}
