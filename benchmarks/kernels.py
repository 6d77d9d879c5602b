"""One sweep of the routing lattice against a plain copy of its value array."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.instances import SMALL_BOX, read

__all__ = ["measure_kernels", "measure_threads"]

BATCHES = 15
SWEEPS = {"l": 20, "small": 2000}  # per batch
LONG = 200  # sweeps per batch of the comparison of threads


def measure_kernels() -> dict[str, dict[str, float]]:
    """Microseconds per sweep by box and kind: median over batches that take turns."""
    system, large = read("l")
    return {
        "61^3": take_turns(kinds(system, large), SWEEPS["l"]),
        "11^3": take_turns(kinds(system, SMALL_BOX), SWEEPS["small"]),
    }


def kinds(system: Any, caps: tuple[int, ...]) -> dict[str, Callable[[int], None]]:
    """Functions that do a number of sweeps: the engine's two forms, by hand, and copies."""
    from benchmarks import plain

    states = int(np.prod([cap + 1 for cap in caps]))
    source, target = np.zeros(states), np.zeros(states)
    death, loss = plain.tables(system.nodes, caps)
    box = [cap + 1 for cap in caps]
    h, out = np.zeros(box), np.zeros(box)
    rate = system.arrival_rate + float(death.max(axis=1).sum())

    def copies(count: int) -> None:
        a, b = source, target
        for _ in range(count):
            np.copyto(b, a)
            a, b = b, a

    def by_hand(count: int) -> None:
        plain.sweeps(
            h, out, death, loss, system.arrival_rate, system.outside_cost, 1 / rate, -1.0, count
        )

    return {
        "plain copy": copies,
        "by hand": by_hand,
        "lattice form": engine(system, caps, "lattice"),
        "indexed form": engine(system, caps, "indexed"),
    }


def engine(
    system: Any, caps: tuple[int, ...], form: Any, threads: int = 1
) -> Callable[[int], None]:
    """A function that does a number of the engine's sweeps."""
    from mdpcloud.engine import compile_model

    problem: Any = compile_model(system.model(caps), form=form, threads=threads)
    work, other = problem.pack(np.zeros(problem.n)), problem.pack(np.zeros(problem.n))
    step = 1.0 / problem.rate_bound

    def run(count: int) -> None:
        problem.sweeps(work, other, count, step=step, target=-1.0, recentre=True)

    return run


def measure_threads() -> dict[str, float]:
    """Wall microseconds per sweep of 61^3 with one and two threads: medians that take turns."""
    system, large = read("l")
    runs = {f"{k}": engine(system, large, "lattice", k) for k in (1, 2)}
    return take_turns(runs, LONG, time.perf_counter)


def take_turns(
    runs: dict[str, Callable[[int], None]],
    count: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median microseconds per sweep, after one batch each to compile and warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for batch in range(BATCHES + 1):
        for name, run in runs.items():
            start = clock()
            run(count)
            if batch:
                times[name].append(1e6 * (clock() - start) / count)
    return {name: float(np.median(values)) for name, values in times.items()}
