"""Runs everything side by side and writes RESULTS.md."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.instances import GAIN, SIZES, TOLERANCE
from benchmarks.loading import measure_loading
from benchmarks.machine import describe_machine
from benchmarks.report import Table, as_markdown, show
from benchmarks.worker import METHODS

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "RESULTS.md"
YARDSTICK = next(iter(METHODS))
NUMBERS = ("cpu", "wall", "peak")
COPIES = 6.0  # a sweep of 61^3 takes at most so many copies of its values
SMALL = 2.0  # and one of 11^3 at most so many times that per state
IMPORT, HELP = 0.25, 0.6  # seconds
MEMORY = 250.0  # MB, on l


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case (default 5)")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md as it is")
    options = parser.parse_args()
    tables = []
    for table in all_tables(options.repeats, options.sizes):
        show(table)
        tables.append(table)
    if not options.no_write:
        RESULTS.write_text(page(tables))
        print(f"written to {RESULTS.relative_to(ROOT)}")


def all_tables(repeats: int, sizes: list[str]) -> Iterator[Table]:
    """The tables, each as soon as it is measured."""
    yield solving(repeats, sizes)
    yield sweeping(in_own_process("kernels", "l"))
    yield loading(measure_loading())


def in_own_process(name: str, size: str) -> Any:
    """What `benchmarks.worker` measures, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.worker", name, size]
    alone = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | alone, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def solving(repeats: int, sizes: list[str]) -> Table:
    """CPU time of the methods on the routing instances, taking turns."""
    rows = []
    for size in sizes:
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
        for _ in range(repeats):
            for name in METHODS:
                runs[name].append(in_own_process(name, size))
        rows += [
            solving_row(size, name, several, runs[YARDSTICK]) for name, several in runs.items()
        ]
    return Table(
        f"Routing to three nodes, certified to {TOLERANCE:g} of the gain",
        ["instance", "method", "CPU s", "ratio", "wall s", "peak MB", "iterations", "gain"],
        rows,
        f"One thread (also in BLAS), a fresh process per run, medians of {repeats} runs that take "
        "turns. Plain sweeps are relative value iteration in one hand-written numba kernel; their "
        "bounds are not certified. The time includes compiling the model into arrays, but not "
        f"compiling kernels. Goal on l: ratio below 1, at most {MEMORY:g} MB.",
    )


def solving_row(
    size: str, name: str, runs: list[dict[str, float]], yardstick: list[dict[str, float]]
) -> list[str]:
    """Medians of a method; every run must enclose the known gain."""
    for run in runs:
        slack = TOLERANCE * GAIN
        assert run["lower"] - slack <= GAIN <= run["upper"] + slack, (size, name, run)
    cpu, wall, peak = (statistics.median(run[key] for run in runs) for key in NUMBERS)
    base = statistics.median(run["cpu"] for run in yardstick)
    gain = 0.5 * (runs[0]["lower"] + runs[0]["upper"])
    return [
        size,
        name,
        f"{cpu:.3f}",
        f"{cpu / base:.2f}",
        f"{wall:.3f}",
        f"{peak:.0f}",
        f"{runs[0]['iterations']}",
        f"{gain:.7f}",
    ]


def sweeping(measured: dict[str, dict[str, float]]) -> Table:
    """Time per sweep and state, in copies of the value array."""
    states = {"61^3": 61**3, "11^3": 11**3}
    large = measured["61^3"]
    rows = []
    for box, kinds in measured.items():
        for kind, microseconds in kinds.items():
            per_state = 1e3 * microseconds / states[box]
            same_on_large = 1e3 * large[kind] / states["61^3"]
            rows.append(
                [
                    box,
                    kind,
                    f"{microseconds:.1f}",
                    f"{per_state:.2f}",
                    f"{microseconds / kinds['plain copy']:.1f}",
                    f"{per_state / same_on_large:.2f}",
                ]
            )
    return Table(
        "One sweep of the routing lattice (4 actions)",
        ["box", "kind", "us", "ns per state", "copies", "per state, over 61^3"],
        rows,
        f"CPU time, one thread. Goal of the lattice form: at most {COPIES:g} copies on 61^3, and "
        f"at most {SMALL:g} times as long per state on 11^3 as on 61^3.",
    )


def loading(measured: dict[str, dict[str, float]]) -> Table:
    """Time to import and to print the help."""
    numpy = measured["import numpy"]
    rows = [
        [
            name,
            limit,
            f"{times['cpu']:.3f}",
            f"{times['wall']:.3f}",
            f"{times['wall'] - numpy['wall']:+.3f}",
        ]
        for (name, times), limit in zip(
            measured.items(), ["", "", f"numpy + {IMPORT:g} s", f"{HELP:g} s"], strict=True
        )
    ]
    return Table(
        "Loading",
        ["command", "goal", "CPU s", "wall s", "wall, beyond numpy"],
        rows,
        "Medians of fresh processes that take turns.",
    )


def page(tables: list[Table]) -> str:
    """RESULTS.md."""
    lines = [f"- {name}: {value}" for name, value in describe_machine().items()]
    head = "\n".join(["# Benchmarks", "", "Written by `make bench`.", "", *lines])
    return "\n\n".join([head, *map(as_markdown, tables)]) + "\n"
