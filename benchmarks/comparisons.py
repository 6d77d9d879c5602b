"""Small comparisons, as studies run them: ``python -m benchmarks.comparisons`` prints the table.

``python -m benchmarks.comparisons NODES`` measures random systems of so many nodes in this process.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.process import in_own_process
from benchmarks.report import Table, show

__all__ = ["main", "measure", "systems", "tables"]

SEED = 20263
COUNT = 50
SIZES = {2: (150, 600), 3: (1000, 6000)}
"""Least and most states of the exact box, by nodes."""
INSTANCES, CORES, GOAL = 1000, 2, 60.0  # s


def systems(nodes: int) -> Iterator[Any]:
    """Random systems whose optimum is solved on a box of such a size."""
    import mdpcloud as mc

    rng = np.random.default_rng([SEED, nodes])
    least, most = SIZES[nodes]
    while True:
        servers, deadline = rng.integers(1, 9, nodes), rng.integers(2)
        rates, patience = rng.uniform(1.0, 6.0, nodes), rng.uniform(0.1, 1.0, nodes)
        system = mc.systems.CloudRouting(
            tuple(map(mc.systems.Node, servers.tolist(), rates, patience)),
            arrival_rate=rng.uniform(0.5, 1.5) * float(servers @ rates),
            outside_cost=rng.uniform(0.1, 0.5),
            deadline=("begin_service", "end_service")[deadline],
        )
        caps = [math.inf if cap is None else cap + 1 for cap in system.exact_caps()]
        if least <= math.prod(caps) <= most:
            yield system


def measure(nodes: int) -> dict[str, float]:
    """CPU seconds: of the process up to its first comparison, and the median of the later ones."""
    import mdpcloud as mc

    drawn = systems(nodes)
    mc.compare(next(drawn))
    start, times, states = time.process_time(), [], []
    for _ in range(COUNT):
        system = next(drawn)
        before = time.process_time()
        found = mc.compare(system)
        times.append(time.process_time() - before)
        states.append(found.optimum.states)
    return {
        "start": start,
        "states": statistics.median(states),
        "median": statistics.median(times),
        "mean": statistics.fmean(times),
    }


def tables(repeats: int) -> list[Table]:
    """One row per number of nodes."""
    rows = []
    for nodes in SIZES:
        runs = [in_own_process("benchmarks.comparisons", nodes) for _ in range(repeats)]
        states, start, median, mean = (
            statistics.median(run[key] for run in runs)
            for key in ("states", "start", "median", "mean")
        )
        wall = start + INSTANCES * mean / CORES
        times = [f"{1e3 * median:.1f}", f"{1e3 * mean:.1f}", f"{start:.2f}", f"{wall:.1f}"]
        rows.append([f"{nodes} nodes", f"{states:.0f}", *times])
    return [
        Table(
            "Small comparisons",
            ["system", "states", "CPU ms", "mean", "start s", f"{INSTANCES} on {CORES} cores, s"],
            rows,
            f"Four heuristics with their measures, and the optimum, of {COUNT} random systems: the "
            "median number of states, the median and the mean time of a comparison, and that of a "
            "process up to the end of its first one, kernels being cached. The last column is a "
            f"start and {INSTANCES // CORES} mean times. Goal: at most {GOAL:g} s with two nodes.",
        )
    ]


def main(arguments: list[str]) -> None:
    """Print one measurement, or the table."""
    if arguments:
        print(json.dumps(measure(int(arguments[0]))))
    else:
        for table in tables(3):
            show(table)


if __name__ == "__main__":
    main(sys.argv[1:])
