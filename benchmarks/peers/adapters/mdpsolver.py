"""MDPSolver: average reward by modified policy iteration, from nested lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mdpsolver

from benchmarks.peers.instance import Decisions

__all__ = ["average", "build"]

TOLERANCE = 1e-6  # relative, of the gain


def build(instance: Decisions) -> dict[str, Any]:
    data, columns = instance.data.tolist(), instance.indices.tolist()
    ends, rewards = instance.indptr.tolist(), (-instance.cost).tolist()
    pairs = list(pairwise(instance.first.tolist()))
    model = mdpsolver.model()
    model.mdp(
        discount=0.99,  # not used, but has to be below 1
        rewards=[rewards[begin:end] for begin, end in pairs],
        tranMatProbs=[
            [data[ends[row] : ends[row + 1]] for row in range(begin, end)] for begin, end in pairs
        ],
        tranMatColumns=[
            [columns[ends[row] : ends[row + 1]] for row in range(begin, end)]
            for begin, end in pairs
        ],
    )
    return {"model": model}


def average(instance: Decisions) -> dict[str, Any]:
    import numpy as np

    model = build(instance)["model"]
    model.solve(
        algorithm="mpi",
        criterion="average",
        tolerance=TOLERANCE * abs(instance.gain) / instance.rate,
        parallel=False,
    )
    return {"values": -np.array(model.getValueVector())}
