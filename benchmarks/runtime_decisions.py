"""How long a decision takes by an index table: `mdpcloud.runtime`, the library's own rule, C.

``python -m benchmarks.runtime_decisions`` prints the table.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import subprocess
import tempfile
import timeit
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.report import Table, show

__all__ = ["main", "tables"]

NODES = (3, 10, 100)
GOAL, GOAL_NODES = 2.0, 10  # microseconds per decision, at so many nodes
STATES = 2_000  # drawn once, decided again and again
SECONDS = 0.2  # of each measurement
BATCHES = 7  # the least of so many measurements counts
RULE = "policy_improvement"

IN_C = """
#include "table.h"
#include <stdio.h>
#include <time.h>

#define CASES %d

static long jobs[CASES][MDPCLOUD_NODES];

int main(void)
{
    long total = 0;
    clock_t begin;
    int i, k, round;
    for (i = 0; i < CASES; i++)
        for (k = 0; k < MDPCLOUD_NODES; k++)
            if (scanf("%%ld", &jobs[i][k]) != 1)
                return 1;
    begin = clock();
    for (round = 0; round < 200; round++)
        for (i = 0; i < CASES; i++)
            total += mdpcloud_decide(MDPCLOUD_POLICY_IMPROVEMENT, jobs[i]);
    printf("%%g %%ld\\n", (double)(clock() - begin) / CLOCKS_PER_SEC / 200 / CASES, total / 200);
    return 0;
}
"""


def system(n: int) -> Any:
    """Nodes of equal capacity, few fast servers to many slow ones, under load 1."""
    import mdpcloud as mc

    sizes = [1 + k % 10 for k in range(n)]
    nodes = tuple(mc.systems.Node(m, 20.0 / m, 0.3) for m in sizes)
    return mc.systems.CloudRouting(nodes, arrival_rate=20.0 * n, outside_cost=0.25)


def drawn_states(table: Any) -> list[tuple[int, ...]]:
    """States from empty nodes to a little beyond the last one that takes a job."""
    drawn = random.Random(1)
    lengths = [len(node.index) for node in table.policies[RULE]]
    return [tuple(drawn.randint(0, n + 1) for n in lengths) for _ in range(STATES)]


def per_decision(decide: Any, states: Sequence[Any]) -> float:
    """Microseconds of CPU per decision, the loop over the states included."""
    given = {"states": states, "decide": decide}
    timer = timeit.Timer("for x in states: decide(x)", globals=given, timer=process_time)
    rounds = max(1, round(SECONDS / min(timer.repeat(2, 1))))
    return min(timer.repeat(BATCHES, rounds)) / rounds / len(states) * 1e6


def in_c(table: Any, states: Sequence[tuple[int, ...]]) -> tuple[float, int] | None:
    """Microseconds per decision, and the sum of the decisions; None without a compiler."""
    from mdpcloud.indices.table_c import to_c

    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "table.h").write_text(to_c(table), encoding="utf-8")
        (folder / "main.c").write_text(IN_C % len(states), encoding="utf-8")
        subprocess.run([compiler, "-O2", "main.c", "-o", "main"], cwd=folder, check=True)
        asked = "\n".join(" ".join(map(str, state)) for state in states)
        done = subprocess.run(
            [folder / "main"], input=asked, capture_output=True, text=True, check=True
        )
    seconds, total = done.stdout.split()
    return float(seconds) * 1e6, int(total)


def measure(n: int) -> dict[str, float]:
    """Microseconds per decision of each program; all decide alike."""
    from mdpcloud import runtime

    found = system(n)
    table = found.index_table()
    states = drawn_states(table)
    choose = runtime.loads(table.to_json()).policy(RULE)
    rule = found.heuristic(RULE).rule
    spaces = [SimpleNamespace(node=state) for state in states[:20]]
    assert [choose(state) for state in states[:20]] == [int(rule(x)) for x in spaces]
    times = {"runtime": per_decision(choose, states), "library": per_decision(rule, spaces)}
    compiled = in_c(table, states)
    if compiled is not None:
        times["C"], total = compiled
        assert total == sum(map(choose, states))
    return times


def tables(repeats: int, nodes: Sequence[int] = NODES) -> list[Table]:
    """Medians of so many measurements, which take turns."""
    runs: dict[int, list[dict[str, float]]] = {n: [] for n in nodes}
    for _ in range(repeats):
        for n, several in runs.items():
            several.append(measure(n))
    rows = []
    for n, several in runs.items():
        for name in several[0]:
            time = statistics.median(run[name] for run in several)
            mark = " (goal missed)" if (name, n) == ("runtime", GOAL_NODES) and time >= GOAL else ""
            rows.append([f"{n} nodes", name, f"{time:.3g}{mark}", f"{1e6 / time:,.0f}"])
    note = (
        f"{RULE}, {STATES} random states up to one beyond the last that takes a job; medians of "
        f"{repeats}, one thread. runtime: mdpcloud.runtime by a JSON table; library: its own rule, "
        "given each state alone; C: mdpcloud_decide of the "
        f"header, cc -O2. Goal: runtime below {GOAL:g} µs at {GOAL_NODES} nodes."
    )
    return [Table("Decisions", ["system", "program", "µs", "decisions per s"], rows, note)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime_decisions")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    options = parser.parse_args()
    for table in tables(options.repeats, options.nodes):
        show(table)


if __name__ == "__main__":
    main()
