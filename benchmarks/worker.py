"""One measurement in a process of its own: ``python -m benchmarks.worker NAME SIZE``."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.instances import TOLERANCE, read

__all__ = ["METHODS", "main"]

Result = dict[str, Any]
Method = Callable[[Any, tuple[int, ...], float], Result]

ROUGH = 1e-3


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
}


def measure(method: Method, size: str) -> Result:
    """CPU and wall seconds and memory of a method, after a rough solve that compiles kernels."""
    system, caps = read(size)
    method(system, caps, ROUGH)
    gc.collect()
    before, _ = memory()
    wall, cpu = time.perf_counter(), time.process_time()
    result = method(system, caps, TOLERANCE)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    _, peak = memory()
    return {**result, "cpu": cpu, "wall": wall, "before": before, "peak": peak}


def main() -> None:
    """Measure the method and size named on the command line."""
    name, size = sys.argv[1:]
    if name == "kernels":
        from benchmarks.kernels import measure_kernels

        result = measure_kernels()
    else:
        result = measure(METHODS[name], size)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
