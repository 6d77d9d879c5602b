"""Measurements in a process of their own.

``python -m benchmarks.worker NAME SIZE TOLERANCE...``
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.instances import LARGE, read

__all__ = ["METHODS", "main", "memory"]

Result = dict[str, Any]
Method = Callable[[Any, tuple[int, ...], float], Result]

ROUGH, FINE = 1e-3, 1e-8


def memory() -> tuple[float, float]:
    """Present and largest resident memory of this process, MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024


def plain(system: Any, caps: tuple[int, ...], tolerance: float) -> Result:
    """Hand-written relative value iteration."""
    from benchmarks.plain import iterate

    found = iterate(system.nodes, system.arrival_rate, system.outside_cost, caps, tolerance)
    return {"lower": found.lower, "upper": found.upper, "iterations": found.sweeps}


def solver(name: str | None) -> Method:
    """Solve with mdpcloud: compilation of the model, solution and certificate."""

    def run(system: Any, caps: tuple[int, ...], tolerance: float) -> Result:
        import mdpcloud as mc

        solution = mc.solve(system.model(caps), solver=name, tolerance=tolerance)
        lower, upper = solution.bounds
        return {"lower": lower, "upper": upper, "iterations": solution.iterations}

    return run


METHODS: dict[str, Method] = {
    "plain sweeps": plain,
    "mdpcloud": solver(None),
    "mdpcloud, sweeps": solver("value_iteration"),
    "mdpcloud, policies": solver("policy_iteration"),
}


def measure(method: Method, size: str, tolerances: list[float]) -> list[Result]:
    """CPU and wall seconds and memory of a method, after solves that load all kernels."""
    system, caps = read(size)
    if size == LARGE:
        method(system, tuple(cap // 2 for cap in caps), ROUGH)
    else:
        method(*read("s"), FINE)
        method(system, caps, ROUGH)
    return [timed(method, system, caps, tolerance) for tolerance in tolerances]


def timed(method: Method, system: Any, caps: tuple[int, ...], tolerance: float) -> Result:
    """One solve."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = method(system, caps, tolerance)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    _, peak = memory()
    return {**result, "cpu": cpu, "wall": wall, "peak": peak}


def main() -> None:
    """Measure what is named on the command line."""
    name, size, *tolerances = sys.argv[1:]
    if name == "kernels":
        from benchmarks.kernels import measure_kernels

        print(json.dumps(measure_kernels()))
    elif name == "threads":
        from benchmarks.kernels import measure_threads

        print(json.dumps(measure_threads()))
    else:
        print(json.dumps(measure(METHODS[name], size, [float(t) for t in tolerances])))


if __name__ == "__main__":
    main()
