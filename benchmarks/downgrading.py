"""The optimum of a link with downgrading, a million states: by plain sweeps, by mdpcloud.

``python -m benchmarks.downgrading`` prints the table; with the names of an instance and a method it
measures that one in this process.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.process import in_own_process
from benchmarks.report import Table, show
from benchmarks.worker import memory

__all__ = ["INSTANCES", "METHODS", "main", "tables"]

TOLERANCE = 1e-6
LINK: dict[str, Any] = {
    "service_rates": (1.0, 1.0, 1.0),
    "requirements": (1, 2, 4),
    "rejection_costs": (1.0, 1.0, 1.0),
    "downgrading_costs": (0.0, 0.2, 0.4),
}
CAPACITY = 360  # 1 004 731 states
WARM_UP = 60  # 6 000 states
INSTANCES = {f"load {load}": load / 7 for load in (0.9, 1.2, 2.4)}
"""Arrivals of each class per unit of capacity; the load is that of all jobs in full."""
GOAL = 5.0  # times less CPU
MEMORY = 600.0  # MB
PLAIN, OWN = "plain sweeps, CSR rows", "mdpcloud"


def arrivals(rate: float, capacity: int) -> tuple[float, float, float]:
    """Arrival rates of the three classes."""
    return (rate * capacity,) * 3


def plain(rate: float, capacity: int) -> dict[str, Any]:
    """Relative value iteration by hand; the time to write the rows does not count."""
    from benchmarks.plain_downgrading import iterate, table

    rows = table(arrivals(rate, capacity), capacity=capacity, **LINK)
    begin = time.process_time()
    found = iterate(rows, TOLERANCE)
    cpu = time.process_time() - begin
    return {"lower": found.lower, "upper": found.upper, "iterations": found.sweeps, "cpu": cpu}


def mdpcloud(rate: float, capacity: int) -> dict[str, Any]:
    """Compilation of the model, solution and certificate."""
    import mdpcloud as mc

    begin = time.process_time()
    link = mc.systems.Downgrading(
        arrivals(rate, capacity), capacity=capacity, threshold=capacity, **LINK
    )
    solution = mc.solve(link.model(), tolerance=TOLERANCE)
    cpu = time.process_time() - begin
    lower, upper = solution.bounds
    return {"lower": lower, "upper": upper, "iterations": solution.iterations, "cpu": cpu}


METHODS: dict[str, Callable[[float, int], dict[str, Any]]] = {PLAIN: plain, OWN: mdpcloud}


def measure(name: str, method: str, capacity: int = CAPACITY) -> dict[str, Any]:
    """Bounds, sweeps, CPU seconds and peak memory, after a solve that loads all kernels."""
    rate = INSTANCES[name]
    METHODS[method](rate, WARM_UP)
    gc.collect()
    found = METHODS[method](rate, capacity)
    return {**found, "peak": memory()[1]}


def tables(repeats: int, names: list[str] | None = None) -> list[Table]:
    """Measure instances (all by default); the methods take turns."""
    rows = []
    for name in names or INSTANCES:
        runs: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
        for _ in range(repeats):
            for method, several in runs.items():
                several.append(in_own_process("benchmarks.downgrading", "--one", name, method))
        rows += rows_of(name, runs)
    return [
        Table(
            "Optimum of a link with downgrading, a million states",
            ["instance", "method", "CPU s", "faster", "peak MB", "sweeps", "gain"],
            rows,
            f"Three classes of 1, 2 and 4 units, capacity {CAPACITY}, certified to {TOLERANCE:g} "
            f"of the gain. One thread, a fresh process per run, medians of {repeats} runs that "
            "take turns. Plain sweeps are relative value iteration in one numba kernel (scipy's "
            "products took twice as long); their bounds are not certified, and the time to write "
            "the rows does not count. mdpcloud's time includes compiling the model into arrays. "
            f"Goals: {GOAL:g} times faster, at most {MEMORY:g} MB.",
        )
    ]


def rows_of(name: str, runs: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Medians; the bounds of all runs must have a gain in common."""
    base = statistics.median(run["cpu"] for run in runs[PLAIN])
    found = [run for several in runs.values() for run in several]
    slack = 1e-12 * max(run["upper"] for run in found)
    low, high = max(run["lower"] for run in found), min(run["upper"] for run in found)
    assert low <= high + slack, (name, found)
    rows = []
    for method, several in runs.items():
        cpu, peak = (statistics.median(run[key] for run in several) for key in ("cpu", "peak"))
        first = several[0]
        rows.append(
            [
                name,
                method,
                f"{cpu:.2f}",
                f"{base / cpu:.1f}",
                f"{peak:.0f}",
                f"{first['iterations']}",
                f"{0.5 * (first['lower'] + first['upper']):.6g}",
            ]
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.downgrading", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--instances", nargs="+", choices=list(INSTANCES))
    parser.add_argument("--one", nargs=2, metavar=("INSTANCE", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    for table in tables(options.repeats, options.instances):
        show(table)


if __name__ == "__main__":
    main()
