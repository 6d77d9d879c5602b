"""mdplib: discounted value iteration from a text file of transitions."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mdp import MDP

from benchmarks.peers.instance import Decisions

__all__ = ["average", "build"]

FACTOR = 1 - 1e-9
SWEEPS = 3000  # about as many as relative value iteration needs; its own rule never stops it here


def build(instance: Decisions) -> dict[str, Any]:
    pair = np.repeat(np.arange(instance.state.size), np.diff(instance.indptr))
    table = np.column_stack(
        [
            instance.state[pair],
            instance.action[pair],
            instance.indices,
            instance.data,
            -instance.cost[pair],
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transitions.csv"
        np.savetxt(
            path,
            table,
            fmt=["%d", "%d", "%d", "%.17g", "%.17g"],
            delimiter=",",
            header="sn,a,sn1,prob,reward",
            comments="",
        )
        model = MDP(
            list(range(instance.states)),
            list(range(instance.actions)),
            None,
            None,
            build_transition_file=False,
            transition_file=str(path),
        )
    return {"model": model}


def average(instance: Decisions) -> dict[str, Any]:
    model = build(instance)["model"]
    model.VI(gamma=FACTOR, tol=1e-12, max_iter=SWEEPS, verbose=False)
    return {"values": -np.array(model.value), "iterations": model.n_iterations}
