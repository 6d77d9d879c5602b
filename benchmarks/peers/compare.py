"""Runs every program on the same files, checks the answers, and writes the tables."""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.peers.instance import read
from benchmarks.peers.making import GAIN, make
from benchmarks.peers.programs import PROGRAMS, TASKS, Program, Task, verdict
from benchmarks.peers.running import FOLDER, ROOT, Run, run, versions
from benchmarks.peers.section import replace_section
from benchmarks.report import Table, as_markdown

__all__ = ["main", "row"]

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
INSTANCES = FOLDER / "instances"
TITLE = "Peers"
LONG = 20.0  # seconds after which a program is not run again on an instance
COLUMNS = ("program", "answer", "CPU s", "ratio", "wall s", "peak MB", "MB more", "error", "width")
SIMULATION = (*COLUMNS[:6], "events", "events per s", *COLUMNS[7:])
INDEX = (*COLUMNS[:3], "start s", *COLUMNS[3:8])


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case (default 3)")
    names = [task.instance for task in TASKS]
    parser.add_argument("--instances", nargs="+", choices=names, default=names)
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md as it is")
    options = parser.parse_args()
    tables = []
    for task in TASKS:
        if task.instance in options.instances:
            tables.append(compared(task, options.repeats))
            print("#" + as_markdown(tables[-1]), end="\n\n", flush=True)
    if not options.no_write:
        before = RESULTS.read_text() if RESULTS.exists() else "# Benchmarks\n"
        RESULTS.write_text(replace_section(before, TITLE, page(tables)))
        print(f"written to {RESULTS.relative_to(ROOT)}")


def compared(task: Task, repeats: int) -> Table:
    """One row per program; the programs take turns."""
    path, small = make(task.instance, INSTANCES), make(task.small, INSTANCES)
    runs: dict[str, list[Run]] = {name: [] for name in task.programs}
    for _ in range(repeats):
        for name, done in runs.items():
            if goes_on(done):
                done.append(run(PROGRAMS[name], task, *files(PROGRAMS[name], path, small)))
    base, known = price(runs[task.programs[0]]), answer_known(path)
    rows = [row(PROGRAMS[name], task.name, done, known, base) for name, done in runs.items()]
    return Table(task.title, columns(task.name), rows, task.note)


def columns(task: str) -> tuple[str, ...]:
    return {"simulate": SIMULATION, "whittle": INDEX}.get(task, COLUMNS)


def files(program: Program, path: Path, small: Path) -> tuple[Path | str, Path | str]:
    """What the program gets: the files, or the sizes of the routing model it describes itself."""
    if program.adapter != "mdpcloud_model":
        return path, small
    return path.stem.removeprefix("routing_"), "s"


def goes_on(done: list[Run]) -> bool:
    """Whether another run is worth its time: none has failed, and they were short."""
    return not any(each.failure for each in done) and total(done) < LONG


def total(done: list[Run]) -> float:
    return sum(each.numbers["wall"] for each in done)


def answer_known(path: Path) -> float:
    instance = read(path)
    return float(getattr(instance, "gain", getattr(instance, "probability", math.nan)))


def median(done: list[Run], key: str) -> float:
    """Median of what succeeded; nan if nothing did."""
    values = [each.numbers[key] for each in done if not each.failure]
    return float(statistics.median(values)) if values else math.nan


def price(done: list[Run]) -> float:
    """Median CPU seconds; per event where events are simulated."""
    events = [each.numbers.get("events", 1) for each in done if not each.failure]
    return median(done, "cpu") / events[0] if events else math.nan


def row(program: Program, task: str, done: list[Run], known: float, base: float) -> list[str]:
    """A row of the table; a failure takes the place of the answer."""
    failures = [each.failure for each in done if each.failure]
    if failures:
        return [program.name, failures[0], *[""] * (len(columns(task)) - 2)]
    found = done[0].numbers
    cpu = median(done, "cpu")
    ratio = price(done) / base
    return [
        program.name,
        verdict(program, task, known, found),
        f"{cpu:.3f}",
        *([f"{median(done, 'start'):.2f}"] if task == "whittle" else []),
        f"**{ratio:.2f}**" if ratio < 1.0 else f"{ratio:.2f}",
        f"{median(done, 'wall'):.3f}",
        f"{median(done, 'peak'):.0f}",
        *amount(task, done),
        *accuracy(found, task, known),
    ]


def amount(task: str, done: list[Run]) -> list[str]:
    """Memory that the process grew by, or the events that it simulated, and per second."""
    if task != "simulate":
        return [f"{median(done, 'more'):.0f}"]
    return [f"{done[0].numbers['events']}", f"{1.0 / price(done):.3g}"]


def accuracy(found: dict[str, Any], task: str, known: float) -> list[str]:
    """Distance from the known answer, and the width of bounds or half that of an interval.

    Gains relative; of an index the distance alone, relative to its largest entry.
    """
    if task == "build":
        return ["", ""]
    if task == "whittle":
        return [f"{found['off']:.1e}"]
    if task == "transient":
        return [f"{abs(found['probability'] - known):.1e}", ""]
    width = found.get("width", found.get("half_width"))
    width = "none" if width is None else f"{width / abs(known):.1e}"
    return [f"{abs(found['gain'] - known) / abs(known):.1e}", width]


def page(tables: list[Table]) -> str:
    """The section of RESULTS.md."""
    found = versions(list(PROGRAMS.values()))
    machine = describe_machine()
    machine["Versions"] += "; " + ", ".join(
        f"{name} {number}" for name, number in found.items() if name not in ("mdpcloud", "scipy")
    )
    lines = [f"- {name}: {value}" for name, value in machine.items()]
    remarks = [f"- {each.remark}" for each in PROGRAMS.values() if each.remark]
    head = [
        "Written by `make bench-peers`: the same files, a fresh process per run, one thread, "
        "medians of runs that take turns. Compiling is not counted, turning the arrays into a "
        "program's own form is. The ratio is CPU time over that of the table's first row: **below "
        "1** where a peer is faster. MB more is what the process grew by. Errors and widths of "
        "gains are relative; widths of peers are of the bounds that one sweep over their values "
        "proves; of simulations half that of a 95 % interval; errors of an index are relative to "
        f"its largest entry. The true gain of routing is {GAIN}.",
        "\n".join(lines),
        "\n".join(remarks),
    ]
    return "\n\n".join([*head, *("#" + as_markdown(each) for each in tables)])
