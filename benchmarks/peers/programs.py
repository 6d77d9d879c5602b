"""The programs that are compared, the tasks, and how close each is known to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PROGRAMS", "TASKS", "Program", "Task", "verdict"]


@dataclass(frozen=True)
class Program:
    """A program and its adapter.

    ``package`` is what its version is asked of; ``own`` says that it runs where mdpcloud is
    installed. ``error`` is the largest relative error of a gain, or absolute error of a
    probability, that its method is known to make, of an index relative to its largest entry; more
    is a disagreement. What is simulated may be so many half-widths of its 95 % interval off.
    """

    name: str
    adapter: str
    package: str
    error: Mapping[str, float]
    own: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Task:
    """What is done with an instance; ``small`` is one on which everything is compiled first."""

    name: str
    title: str
    note: str
    instance: str
    small: str
    programs: tuple[str, ...]


SIMULATED = {"simulate": 2.0}  # in half-widths: once in some hundred runs by chance

PROGRAMS = {
    program.name: program
    for program in (
        Program("mdpcloud", "mdpcloud_model", "mdpcloud", {"average": 1e-6}, own=True),
        Program(
            "mdpcloud, arrays",
            "mdpcloud",
            "mdpcloud",
            {"average": 1e-6, "build": 0.0, "transient": 1e-10, "whittle": 1e-10},
            own=True,
        ),
        Program(
            "quantecon",
            "quantecon",
            "quantecon",
            {"average": 1e-5, "build": 0.0},
            remark="QuantEcon has no average cost: modified policy iteration at the factor "
            "1 - 1e-9, whose values are 1e9 times the gain and leave six digits of it.",
        ),
        Program(
            "mdpsolver",
            "mdpsolver",
            "mdpsolver",
            {"average": 2e-6, "build": 0.0},
            remark="MDPSolver reads nested lists; modified policy iteration, average reward.",
        ),
        Program(
            "stormpy",
            "stormpy",
            "stormpy",
            {"average": 2e-6, "build": 0.0, "transient": 1e-6},
            remark="Storm gets an explicit sparse model, its builder filled in one call; default "
            "precision 1e-6, no bounds on a long-run average.",
        ),
        Program(
            "mdplib",
            "mdplib",
            "mdplib",
            {"average": 2e-6, "build": 0.0},
            remark="mdplib is discounted and its rule never stops near the factor 1: value "
            "iteration at 1 - 1e-9 for 3000 sweeps. It reads a text file line by line, so it gets "
            "the smallest instance only.",
        ),
        Program("scipy", "scipy", "scipy", {"transient": 1e-8}, own=True),
        Program("mdpcloud, simulated", "mdpcloud_simulation", "mdpcloud", SIMULATED, own=True),
        Program(
            "ciw",
            "ciw",
            "ciw",
            SIMULATED,
            remark="Ciw gets a stream per node where the stream is split, and a node of no delay "
            "before the others where jobs choose, which is not counted as events.",
        ),
        Program(
            "line-solver, SSA",
            "line_solver",
            "line-solver",
            SIMULATED,
            remark="LINE has several simulators. SSA is Python, here by the method `nrm` (`serial` "
            "takes five times as long or more); LDES is a compiled program that comes with it, and "
            "is given no intervals to compute; JMT needs a file of its own that does not come with "
            "it, and is not run.",
        ),
        Program("line-solver, LDES", "line_ldes", "line-solver", SIMULATED),
        Program(
            "markovianbandit-pkg",
            "markovianbandit",
            "markovianbandit-pkg",
            {"whittle": 1e-8},
            remark="markovianbandit-pkg is numpy, scipy and numba; as it comes it checks "
            "indexability, which it need not.",
        ),
        Program(
            "markovianbandit-pkg, unchecked",
            "markovianbandit_unchecked",
            "markovianbandit-pkg",
            {"whittle": 1e-8},
        ),
    )
}

COLD = "Average reward. Start: CPU time of interpreter, imports, compiling and a small arm."
FASTER = "Goal: both ratios above 1."
FASTEST = "Goal: both ratios at least 2, at most 250 MB."
SIMULATORS = ("mdpcloud, simulated", "ciw", "line-solver, SSA", "line-solver, LDES")
BANDITS = ("mdpcloud, arrays", "markovianbandit-pkg", "markovianbandit-pkg, unchecked")
LARGE = ("mdpcloud, arrays", "quantecon", "mdpsolver", "stormpy")

TASKS = (
    Task(
        "average",
        "Long-run average cost, routing to three nodes, 10 416 states",
        "Four actions; from the arrays in the file to the gain within 1e-6. The first row is "
        "mdpcloud on its own description of the model, which needs no such file.",
        "routing_s",
        "small",
        ("mdpcloud", *LARGE, "mdplib"),
    ),
    Task(
        "average",
        "Long-run average cost, routing to three nodes, 68 921 states",
        "As above.",
        "routing_m",
        "small",
        ("mdpcloud", *LARGE),
    ),
    Task(
        "average",
        "Long-run average cost, routing to three nodes, 226 981 states",
        "As above. Goal: stormpy's ratio at least 60.",
        "routing_l",
        "small",
        ("mdpcloud", *LARGE),
    ),
    Task(
        "average",
        "Long-run average cost, random sparse model",
        "100 000 states, 4 actions, 5 successors each. Goal: faster than quantecon and mdpsolver.",
        "sparse",
        "small",
        LARGE,
    ),
    Task(
        "build",
        "Building a model from a CSR matrix",
        "1 000 000 rows of 5 successors. mdpcloud checks every number; MDPSolver and Storm accept "
        "rows that do not sum to 1. Goal: faster than stormpy.",
        "rows",
        "small",
        LARGE,
    ),
    Task(
        "transient",
        "Law at time 10 of a chain with 99 856 states",
        "Two queues side by side from empty; the probability that both are short is known from a "
        "dense exponential of each. Asked of mdpcloud: an error of at most 1e-10; the others run "
        "as they come. Goal: at least as fast as stormpy.",
        "queues",
        "small_queues",
        ("mdpcloud, arrays", "stormpy", "scipy"),
    ),
    Task(
        "simulate",
        "Simulation of three nodes with impatient jobs, 240 000 events",
        "The nodes of the routing model, each with a third of the jobs; the rate of abandonment. "
        "Eight runs from empty nodes, of each of which the peers leave out the first tenth, and "
        "the interval that the eight give. The ratio is CPU time per event over that of the first "
        "row; describing the nodes and starting eight runs is counted.",
        "impatient",
        "small_impatient",
        SIMULATORS,
    ),
    Task(
        "simulate",
        "Simulation of jobs that join the shortest of three queues, 240 000 events",
        "Ten servers each, patient jobs, load 0.8; the mean number of jobs. Shortest is where "
        "fewest are present. As above.",
        "shortest",
        "small_shortest",
        SIMULATORS,
    ),
    Task(
        "simulate",
        "Simulation of jobs that join the shortest of three queues, 24 000 000 events",
        "As above, by the compiled simulators alone, so long that their start does not matter.",
        "long_shortest",
        "small_shortest",
        ("mdpcloud, simulated", "line-solver, LDES"),
    ),
    *(
        Task(
            "whittle",
            f"Whittle index of a dense random arm, {n} states",
            f"{said} {goal}",
            f"arm_{n}",
            "small_arm",
            BANDITS,
        )
        for n, said, goal in (
            (200, COLD, FASTER),
            (500, "As above.", FASTER),
            (1000, "As above.", FASTER),
            (2000, "As above.", FASTEST),
        )
    ),
    *(
        Task(
            "whittle",
            f"Whittle index of a node, birth and death, {n} states",
            f"As above: activity lets jobs in to {n // 4} servers, where the index is the same "
            "while one is idle. From dense arrays like the peers; mdpcloud's own arm of this kind "
            "takes O(n).",
            f"node_{n}",
            "small_arm",
            BANDITS,
        )
        for n in (500, 1000, 2000)
    ),
)


def verdict(program: Program, task: str, known: float, found: Mapping[str, Any]) -> str:
    """Whether an answer agrees with the known one: "agrees", or how far off it is."""
    if task == "build":
        return "built"
    if task == "simulate":
        widths = abs(found["gain"] - known) / found["half_width"]
        off = f"DISAGREES by {widths:.1f} half-widths"
        return "agrees" if widths <= program.error[task] else off
    if task == "whittle":
        return index_verdict(program.error[task], found)
    key = "gain" if task == "average" else "probability"
    off = abs(found[key] - known) / (abs(known) if task == "average" else 1.0)
    return "agrees" if off <= program.error[task] else f"DISAGREES by {off:.1e}"


def index_verdict(error: float, found: Mapping[str, Any]) -> str:
    """Entries that are no numbers, or how far off the others are."""
    if found["missing"]:
        return f"{found['missing']} nan"
    return "agrees" if found["off"] <= error else f"DISAGREES by {found['off']:.1e}"
