"""One run of one program: ``python -m benchmarks.peers.worker PROGRAM TASK FILE SMALL_FILE``.

The task is done on the small file first, so that nothing is compiled while time is taken; what the
process has used by then is ``start``. Prints one line of JSON, last.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.instance import read

__all__ = ["CPU", "MEMORY", "main"]

CPU = 120  # seconds a process may take
MEMORY = 6  # GB of addresses
ANSWERS = ("gain", "probability", "iterations", "half_width", "events")


def main() -> None:
    """Run, measure and print."""
    program, task, path, small = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY << 30, MEMORY << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 5))
    run = getattr(importlib.import_module(f"benchmarks.peers.adapters.{program}"), task)
    instance = opened(path)
    run(opened(small))
    start = cpu_time()
    gc.collect()
    before = resident("VmRSS")
    wall, cpu = time.perf_counter(), cpu_time()
    found = run(instance)
    cpu, wall = cpu_time() - cpu, time.perf_counter() - wall
    print(
        json.dumps(
            {
                **answer(instance, found),
                "start": start,
                "cpu": cpu,
                "wall": wall,
                "peak": resident("VmHWM"),
                "more": resident("VmHWM") - before,
            }
        )
    )


def cpu_time() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def opened(path: str) -> Any:
    """The instance in a file, or the name itself where there is no file."""
    return read(Path(path)) if path.endswith(".npz") else path


def answer(instance: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Numbers alone; a program that gives values gets the bounds that they prove.

    An index is compared with the known one.
    """
    if "index" in found:
        return dict(instance.compared(found["index"]))
    numbers = {key: found[key] for key in ANSWERS if key in found}
    bounds = found.get("bounds")
    if "values" in found:
        bounds = instance.bracket(found["values"])
    if bounds is not None:
        numbers = {"gain": 0.5 * sum(bounds), "width": bounds[1] - bounds[0]} | numbers
    return numbers


def resident(which: str) -> float:
    """Present (VmRSS) or largest (VmHWM) memory of this process, MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(which + ":"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
