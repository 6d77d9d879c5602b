"""How long it takes to import the package and to print the help of its command."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["measure_loading"]

REPEATS = 9


def program() -> list[str]:
    """The installed command, or the module where it is not installed."""
    command = Path(sys.executable).parent / "mdpcloud"
    return [str(command)] if command.exists() else [sys.executable, "-m", "mdpcloud"]


COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import mdpcloud": [sys.executable, "-c", "import mdpcloud"],
    "mdpcloud --help": [*program(), "--help"],
}


def measure_loading(repeats: int = REPEATS) -> dict[str, dict[str, float]]:
    """Median CPU and wall seconds of each command, run in turn (the first round is dropped)."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for repeat in range(repeats + 1):
        for name, command in COMMANDS.items():
            measured = run_once(command)
            if repeat:
                times[name].append(measured)
    return {
        name: {
            "cpu": statistics.median(cpu for cpu, _ in several),
            "wall": statistics.median(wall for _, wall in several),
        }
        for name, several in times.items()
    }


def run_once(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {message.decode()}")
    return usage.ru_utime + usage.ru_stime, wall
