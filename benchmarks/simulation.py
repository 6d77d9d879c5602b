"""Simulation by hand and by mdpcloud: ``python -m benchmarks.simulation``.

Every method simulates the routing model under one rule or table of actions; events are arrivals
and departures. What compiles kernels is done before, with fewer events. The answers must agree with
the gain that `mdpcloud.evaluate` certifies.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.instances import SIZES, read
from benchmarks.many_nodes import FEW, RULE, SEED, many_at_once, services
from benchmarks.process import in_own_process
from benchmarks.report import Table, show

__all__ = ["ThreeNodes", "check", "tables"]

EVENTS = 4_000_000
MODULE = "benchmarks.simulation"
REPEATS = 5  # least
HAND, OWN = "by hand", "mdpcloud"
GOAL = 5.0  # million events per second
MANY, ARRIVALS, SECONDS = 1000, 10_000_000, 60.0  # nodes, and the goal of all together
ROUGH = 0.03  # relative error allowed where there is no interval
WIDTHS = 2.0  # half-widths of an interval that a gain may be off

Method = Callable[[int], tuple[int, float, float]]
"""From about how many events to events, gain and half-width of the gain."""


@dataclass(frozen=True)
class ThreeNodes:
    """An instance of the routing model under its index rule and under its optimal policy."""

    system: Any
    caps: tuple[int, ...]

    @cached_property
    def model(self) -> Any:
        """The model on the instance's box."""
        return self.system.model(self.caps)

    @cached_property
    def policies(self) -> dict[str, Any]:
        """The rule, and the table of the optimum."""
        import mdpcloud as mc

        return {
            "index rule": self.system.heuristic(RULE).rule,
            "optimal table": mc.solve(self.model, tolerance=1e-8).policy,
        }

    def certified(self, policy: str) -> float:
        """The gain of a policy."""
        import mdpcloud as mc

        return float(mc.evaluate(self.model, self.policies[policy]).gain)

    def prices(self) -> Any:
        """Of one more job at each node, (3, jobs); infinite where it is refused."""
        indices = self.system.heuristic(RULE).indices
        found = np.full((3, max(map(len, indices)) + 1), np.inf)
        for k, index in enumerate(indices):
            found[k, : len(index)] = index
        return found

    def methods(self) -> dict[tuple[str, str], Method]:
        """By policy and program."""
        from benchmarks import plain_simulation as plain

        rule, optimum = self.policies.values()
        return {
            ("index rule", HAND): self.by_hand(plain.follow_indices, self.prices()),
            ("index rule", OWN): self.simulated(rule),
            ("optimal table", HAND): self.by_hand(plain.follow_table, optimum.table()),
            ("optimal table", OWN): self.simulated(optimum),
        }

    def by_hand(self, follow: Any, policy: Any) -> Method:
        """By `benchmarks.plain_simulation`."""

        def run(events: int) -> tuple[int, float, float]:
            system = self.system
            given = system.nodes, system.arrival_rate, system.outside_cost
            return events, follow(*given, policy, events, SEED).gain, np.nan

        return run

    def simulated(self, policy: Any) -> Method:
        """By `mdpcloud.simulate`, one job."""
        import mdpcloud as mc

        def run(events: int) -> tuple[int, float, float]:
            found = mc.simulate(self.model, policy, rng=SEED, events=events)
            return found.events, found.gain.value, found.gain.half_width

        return run


def timed(method: Method, events: int) -> tuple[float, float, float]:
    """CPU seconds per event, gain and half-width."""
    gc.collect()
    begin = time.process_time()
    done, gain, width = method(events)
    return (time.process_time() - begin) / done, gain, width


def draw(_: int = 0) -> tuple[int, float, float]:
    """Exponentials of numpy's generator, as many as events."""
    from benchmarks.plain_simulation import exponentials

    return EVENTS, exponentials(EVENTS, SEED), np.nan


def three_nodes(size: str, repeats: int) -> list[list[str]]:
    """Rows of an instance: medians of runs that take turns."""
    instance = ThreeNodes(*read(size))
    methods = instance.methods()
    for method in methods.values():
        method(FEW)
    runs: dict[tuple[str, str], list[Any]] = {name: [] for name in methods}
    draws = []
    for _ in range(repeats):
        draws.append(timed(draw, EVENTS)[0])
        for name, method in methods.items():
            runs[name].append(timed(method, EVENTS))
    rows = [[size, "one exponential", f"{1e9 * statistics.median(draws):.1f}", *[""] * 5]]
    cost = {name: statistics.median(run[0] for run in several) for name, several in runs.items()}
    for (policy, program), several in runs.items():
        _, gain, width = several[0]
        known = instance.certified(policy)
        check((size, policy, program), gain, known, width)
        spent, base = cost[policy, program], cost[policy, HAND]
        rows.append(
            [
                size,
                f"{policy}, {program}",
                f"{1e9 * spent:.1f}",
                f"{1e-6 / spent:.1f}",
                f"{spent / base:.2f}",
                f"{gain:.4f}",
                "" if np.isnan(width) else f"{width:.4f}",
                f"{known:.6f}",
            ]
        )
    return rows


def check(name: Any, gain: float, known: float, width: float) -> None:
    """The gain must be near the certified one; by hand there is no interval."""
    allowed = ROUGH * known if np.isnan(width) else WIDTHS * width
    assert abs(gain - known) <= allowed, (name, gain, known, width)


MEASURED: dict[str, Callable[..., Any]] = {
    "three": lambda size, repeats: three_nodes(size, int(repeats)),
    "many": lambda nodes, arrivals: many_at_once(int(nodes), int(arrivals)),
    "services": lambda nodes, repeats: services(int(nodes), EVENTS, int(repeats)),
}


def tables(repeats: int) -> list[Table]:
    """The tables of `make bench`."""
    several = max(repeats, REPEATS)
    return [few_table(several), many_table(), service_table(several)]


def few_table(repeats: int) -> Table:
    """Three nodes."""
    return Table(
        "Simulation of routing to three nodes",
        ["instance", "what", "ns", "10^6 / s", "over hand", "gain", "+-", "certified"],
        [row for size in SIZES for row in in_own_process(MODULE, "--one", "three", size, repeats)],
        f"CPU time per event, one job, medians of {repeats} runs of {EVENTS} events that take "
        "turns; a call's set-up is counted, compiling kernels is not. By hand: a loop of one numba "
        "kernel with numpy's generator that adds up the cost alone; mdpcloud estimates all "
        f"measures. Goal: {GOAL:g} million events per second.",
    )


def many_table() -> Table:
    """Many nodes, one run."""
    found = in_own_process(MODULE, "--one", "many", MANY, ARRIVALS)
    line = [
        f"{MANY}",
        OWN,
        f"{found['start']:.2f}",
        f"{found['run']:.2f}",
        f"{found['events']}",
        f"{1e9 * found['run'] / found['events']:.0f}",
        f"{found['peak']:.0f}",
        f"{found['gain']:.2f}",
        f"{found['half_width']:.2f}",
        f"{found['least']:.2f}",
    ]
    columns = ["nodes", "program", "start s", "run s", "events", "ns", "peak MB", "gain", "+-"]
    return Table(
        f"Simulation of routing to {MANY} nodes, 10^{int(np.log10(ARRIVALS))} arrivals",
        [*columns, "bound"],
        [line],
        "CPU time, one job, one call; nodes of 1 to 40 servers that differ in their rates, 5 % "
        "more jobs than they can serve, the index rule. Start: of a call a thousandth as long, the "
        "rule and the model included; run: the rest, and per event. Bound: what cannot be served "
        f"costs at least that. Goal: {SECONDS:g} s in all.",
    )


def service_table(repeats: int) -> Table:
    """Services of several laws, three nodes and many."""
    rows = []
    for nodes in (3, MANY):
        found = in_own_process(MODULE, "--one", "services", nodes, repeats)
        base = found["exponential"]["cost"]
        for law, run in found.items():
            spent = run["cost"]
            speed = [f"{1e9 * spent:.1f}", f"{1e-6 / spent:.1f}", f"{spent / base:.2f}"]
            gain = [f"{run['gain']:.4f}", f"{run['half_width']:.4f}"] if nodes == 3 else [""] * 2
            rows.append([f"{nodes}", law, *speed, *gain])
    return Table(
        "Simulation of routing by the law of services",
        ["nodes", "service", "ns", "10^6 / s", "over first", "gain", "+-"],
        rows,
        "As above: the index rule, patience exponential, CPU time per event, medians of "
        f"{repeats} runs of {EVENTS} events that take turns, set-up included. Exponential services "
        "are simulated event by event, the others job by job. Of the many nodes the runs are too "
        "short for gains.",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        what, *arguments = options.one
        print(json.dumps(MEASURED[what](*arguments)))
        return
    for table in tables(options.repeats):
        show(table)


if __name__ == "__main__":
    main()
