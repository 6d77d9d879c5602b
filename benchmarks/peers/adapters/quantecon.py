"""QuantEcon.py: no average cost, so modified policy iteration at a discount factor near 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from quantecon.markov import DiscreteDP

from benchmarks.peers.instance import Decisions

__all__ = ["average", "build"]

FACTOR = 1 - 1e-9
EPSILON = 1e-6  # relative, of the gain: span of an improvement at which it stops
PARTIAL = 20  # sweeps under one policy
LIMIT = 10_000


def build(instance: Decisions) -> dict[str, Any]:
    from scipy import sparse

    matrix = sparse.csr_matrix(instance.matrix())
    model = DiscreteDP(-instance.cost, matrix, FACTOR, instance.state, instance.action)
    return {"model": model}


def average(instance: Decisions) -> dict[str, Any]:
    model = build(instance)["model"]
    span = EPSILON * abs(instance.gain) / instance.rate
    found = model.solve(
        method="mpi",
        v_init=np.zeros(
            instance.states
        ),  # its own start, 1 / (1 - factor) in size, costs all digits
        k=PARTIAL,
        epsilon=span * FACTOR / (1 - FACTOR),
        max_iter=LIMIT,
    )
    return {"values": -found.v, "iterations": found.num_iter}
