"""Runs a program on a file in a process of its own, within limits of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.programs import Program, Task
from benchmarks.peers.worker import CPU

__all__ = ["FOLDER", "PYTHON", "Run", "python_of", "run", "versions"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".benchmarks"
PYTHON = FOLDER / "peers" / "bin" / "python"
SECONDS = 3.0 * CPU  # by the clock: on a busy machine the limit of CPU time comes later
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")


@dataclass(frozen=True)
class Run:
    """What one run measured, or why there is nothing."""

    numbers: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def python_of(program: Program) -> Path:
    """The interpreter that has the program."""
    return Path(sys.executable) if program.own else PYTHON


def run(
    program: Program, task: Task, instance: Path | str, small: Path | str, seconds: float = SECONDS
) -> Run:
    """Run once."""
    worker = "benchmarks.peers.worker"
    command = [python_of(program), "-m", worker, program.adapter, task.name, instance, small]
    alone = {f"{library}_NUM_THREADS": "1" for library in THREADS}
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=os.environ | alone,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run(failure=f"not done in {seconds:g} s")
    except FileNotFoundError:
        return Run(failure="not installed")
    return outcome(done.returncode, done.stdout, done.stderr)


def outcome(code: int, printed: str, complaints: str) -> Run:
    """Read what a worker printed; its last line is the result, whatever the program said before."""
    if code == -signal.SIGXCPU:
        return Run(failure=f"not done in {CPU} s of CPU time")
    last = printed.strip().splitlines()[-1:]
    if code == 0 and last and last[0].startswith("{"):
        return Run(json.loads(last[0]))
    words = (complaints.strip() or printed.strip()).splitlines()[-1:]
    said = words[0].strip() if words else f"exit code {code}"
    if "ModuleNotFoundError" in said:
        return Run(failure="not installed")
    if "MemoryError" in said or "bad_alloc" in said:
        return Run(failure="out of memory")
    return Run(failure=f"failed: {said[:80]}")


def versions(programs: list[Program]) -> dict[str, str]:
    """Version of each package, asked of the interpreter that has it."""
    return {each.package: version(each) for each in programs}


def version(program: Program) -> str:
    question = f"from importlib.metadata import version as v; print(v({program.package!r}))"
    try:
        done = subprocess.run(
            [str(python_of(program)), "-c", question], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "not installed"
    return done.stdout.strip() if done.returncode == 0 else "not installed"
