"""mdpcloud on the arrays alone, as the peers get them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mdpcloud as mc
from benchmarks.peers.instance import Chain, Decisions
from benchmarks.peers.restless import Restless

__all__ = ["average", "build", "transient", "whittle"]

TOLERANCE = 1e-6
PROBABILITY = 1e-10


def build(instance: Decisions) -> dict[str, Any]:
    model = mc.tabular(
        instance.matrix(),
        s_indices=instance.state,
        a_indices=instance.action,
        costs=instance.cost,
    )
    return {"model": model}


def average(instance: Decisions) -> dict[str, Any]:
    solution = mc.solve(build(instance)["model"], tolerance=TOLERANCE)
    lower, upper = solution.bounds
    return {
        "gain": instance.rate * solution.gain,
        "bounds": (instance.rate * lower, instance.rate * upper),
        "iterations": solution.iterations,
    }


def transient(instance: Chain) -> dict[str, Any]:
    origin = np.repeat(np.arange(instance.states), np.diff(instance.indptr))
    chain = mc.markov_chain(rates=(origin, instance.indices, instance.data))
    found = mc.transient(chain, instance.start, instance.time, tolerance=PROBABILITY)
    return {"probability": float(found.laws.reshape(-1)[instance.inside].sum())}


def whittle(instance: Restless) -> dict[str, Any]:
    arm = mc.indices.arm(
        instance.passive,
        instance.active,
        rewards0=instance.passive_rewards,
        rewards1=instance.active_rewards,
    )
    return {"index": mc.indices.whittle(arm).index}
