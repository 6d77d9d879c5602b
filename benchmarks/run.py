"""Runs everything side by side and writes RESULTS.md."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.instances import GAINS, LARGE, SIZES, TOLERANCES
from benchmarks.loading import measure_loading
from benchmarks.machine import describe_machine
from benchmarks.peers.section import replace_section, section
from benchmarks.process import in_own_process
from benchmarks.report import Table, as_markdown, show
from benchmarks.worker import METHODS

__all__ = ["main"]

PEERS = "Peers"  # the section of `make bench-peers`
ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "RESULTS.md"
YARDSTICK = next(iter(METHODS))
NUMBERS = ("cpu", "wall", "peak")
OWN = "mdpcloud"
WORKER = "benchmarks.worker"
TIMES = {"s": 3.0, "m": 3.0, "l": 8.0}  # less CPU than plain sweeps, to 1e-8
COPIES = 3.5  # a sweep of 61^3 takes at most so many copies of its values
SMALL = 2.0  # and one of 11^3 at most so many times that per state
IMPORT, HELP = 0.25, 0.6  # seconds
MEMORY = 250.0  # MB, on l
LARGE_MEMORY, LARGE_WALL, LARGE_PART = 600.0, 120.0, 2.0  # MB, s, CPU per state over that of l
THREADS = 1.6  # how much faster two threads sweep
OTHERS = (
    "stationary",
    "transient",
    "simulation",
    "indices",
    "runtime_decisions",
    "downgrading",
    "comparisons",
)  # modules here with tables of their own
OTHERS_REPEATS = 1  # their methods by hand take minutes


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case (default 3)")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md as it is")
    options = parser.parse_args()
    tables = []
    for table in all_tables(options.repeats, options.sizes):
        show(table)
        tables.append(table)
    if not options.no_write:
        kept = section(RESULTS.read_text(), PEERS) if RESULTS.exists() else None
        text = page(tables)
        RESULTS.write_text(text if kept is None else replace_section(text, PEERS, kept))
        print(f"written to {RESULTS.relative_to(ROOT)}")


def all_tables(repeats: int, sizes: list[str]) -> Iterator[Table]:
    """The tables, each as soon as it is measured."""
    runs = {size: solve_in_turn(repeats, size) for size in sizes}
    for place, tolerance in enumerate(TOLERANCES):
        yield solving(tolerance, {size: pick(found, place) for size, found in runs.items()})
    if "l" in runs:
        yield large(pick(runs["l"], 0)[OWN])
    yield sweeping(in_own_process(WORKER, "kernels", "l"))
    yield threading([in_own_process(WORKER, "threads", "l", threads=2) for _ in range(repeats)])
    yield loading(measure_loading())
    for name in OTHERS:
        if find_spec(f"benchmarks.{name}") is not None:
            tables = getattr(import_module(f"benchmarks.{name}"), "tables", None)
            yield from [] if tables is None else tables(min(repeats, OTHERS_REPEATS))


Runs = dict[str, list[Any]]  # by method


def solve_in_turn(repeats: int, size: str) -> Runs:
    """What each method measures for each tolerance, again and again, taking turns."""
    runs: Runs = {name: [] for name in METHODS}
    for _ in range(repeats):
        for name in METHODS:
            runs[name].append(in_own_process(WORKER, name, size, *TOLERANCES))
    return runs


def pick(runs: Runs, place: int) -> Runs:
    """The results of one tolerance; every run must enclose the known gain."""
    return {name: [results[place] for results in several] for name, several in runs.items()}


def check(size: str, tolerance: float, run: dict[str, float]) -> None:
    """The bounds must enclose the known gain."""
    slack = (tolerance + 1e-9) * GAINS[size]
    assert run["lower"] - slack <= GAINS[size] <= run["upper"] + slack, (size, run)


def solving(tolerance: float, runs: dict[str, Runs]) -> Table:
    """CPU time of the methods on the routing instances."""
    rows = []
    for size, methods in runs.items():
        base = statistics.median(run["cpu"] for run in methods[YARDSTICK])
        for name, several in methods.items():
            for run in several:
                check(size, tolerance, run)
            rows.append([size, name, *solving_numbers(several, base)])
    goals = ", ".join(f"{times:g} on {size}" for size, times in TIMES.items())
    return Table(
        f"Routing to three nodes, certified to {tolerance:g} of the gain",
        ["instance", "method", "CPU s", "faster", "wall s", "peak MB", "iterations", "gain"],
        rows,
        "One thread (also in BLAS), a fresh process per run, medians of runs that take turns. "
        "Plain sweeps are relative value iteration in one hand-written numba kernel; their bounds "
        "are not certified. The time includes compiling the model into arrays, but not compiling "
        "kernels. Goal of mdpcloud: "
        f"faster at least {goals} times; at most {MEMORY:g} MB on l.",
    )


def solving_numbers(runs: list[dict[str, float]], base: float) -> list[str]:
    """Medians of a method."""
    cpu, wall, peak = (statistics.median(run[key] for run in runs) for key in NUMBERS)
    return [
        f"{cpu:.3f}",
        f"{base / cpu:.1f}",
        f"{wall:.3f}",
        f"{peak:.0f}",
        f"{runs[0]['iterations']}",
        f"{0.5 * (runs[0]['lower'] + runs[0]['upper']):.8f}",
    ]


def large(on_l: list[dict[str, float]]) -> Table:
    """One solve of the largest instance, against the same tolerance on l."""
    tolerance = TOLERANCES[0]
    (run,) = in_own_process(WORKER, OWN, LARGE, tolerance)
    check(LARGE, tolerance, run)
    rows = []
    for size, states, several in (("l", 61**3, on_l), ("four nodes", 57**2 * 56**2, [run])):
        cpu, wall, peak = (statistics.median(r[key] for r in several) for key in NUMBERS)
        per_state = 1e6 * cpu / states
        numbers = [f"{cpu:.2f}", f"{per_state:.2f}", f"{wall:.1f}", f"{peak:.0f}"]
        rows.append([size, f"{states}", *numbers, f"{several[0]['iterations']}"])
    return Table(
        f"Routing to four nodes, certified to {tolerance:g} of the gain",
        ["instance", "states", "CPU s", "us per state", "wall s", "peak MB", "iterations"],
        rows,
        f"One thread, one run. Goal: at most {LARGE_MEMORY:g} MB, {LARGE_WALL:g} s, and "
        f"{LARGE_PART:g} times the CPU time per state of l.",
    )


def threading(runs: list[dict[str, float]]) -> Table:
    """Wall time per sweep by threads."""
    rows = []
    for threads in runs[0]:
        wall = statistics.median(run[threads] for run in runs)
        faster = statistics.median(run["1"] / run[threads] for run in runs)
        rows.append([threads, "lattice form", f"{wall:.1f}", f"{faster:.2f}"])
    return Table(
        "One sweep of 61^3 by threads",
        ["threads", "kind", "wall us", "times faster"],
        rows,
        "Wall time, medians of processes with batches that take turns. Goal: two threads "
        f"{THREADS:g} times as fast as one, on an idle machine.",
    )


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
