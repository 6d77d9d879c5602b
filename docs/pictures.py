"""Draws the pictures of the documentation: ``python docs/pictures.py``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import mdpcloud as mc
from benchmarks.instances import read
from mdpcloud.plots.active_sets import plot_index
from mdpcloud.plots.brackets import History, draw_brackets
from mdpcloud.plots.convergence import plot_convergence
from mdpcloud.plots.paths import plot_path
from mdpcloud.plots.style import add_legend, heading, panels, save

FOLDER = Path(__file__).parent
TOLERANCE = 1e-9
METHODS = {
    "value iteration": "value_iteration",
    "policy iteration, inexact": "policy_iteration",
    "default: nested boxes first": None,
}


def history(name: str, model: Any, solver: str | None) -> History:
    """Solve once to load the kernels, then again with the clock running."""
    mc.solve(model, solver=solver, tolerance=1e-2)
    work: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    started = time.process_time()

    def report(_: int, low: float, high: float) -> None:
        work.append(time.process_time() - started)
        lower.append(low)
        upper.append(high)

    solution = mc.solve(model, solver=solver, tolerance=TOLERANCE, progress=report)
    report(0, *solution.bounds)
    return History(name, work, lower, upper, solution.bounds)


def brackets() -> Path:
    """The bracket of the gain of instance m over CPU time, one line per method."""
    system, caps = read("m")
    model = system.model(caps)
    histories = [history(name, model, solver) for name, solver in METHODS.items()]
    figure, (axes,) = panels(1, columns=1, height=3.6)
    draw_brackets(axes, histories, tolerance=TOLERANCE)
    heading(figure, "Routing to three nodes, 68 921 states: how the bounds of the gain close")
    add_legend(figure, *axes.get_legend_handles_labels())
    return save(figure, FOLDER / "brackets.png")


def queue(room: int) -> Any:
    """M/M/1 at load 0.8, cost 1 per job."""
    arrival = mc.Event("arrival", lambda x: 0.8 * (x.jobs < room), mc.step(jobs=+1))
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    return mc.Model(mc.Lattice({"jobs": room}), [arrival, service], cost_rate=lambda x: x.jobs)


def simulation() -> list[Path]:
    """A path of a queue beside its law, and how its estimate settles."""
    found = mc.simulate(queue(10**6), rng=1, events=200_000, paths=["jobs"])
    path = plot_path(found, "jobs", law=0.2 * 0.8 ** np.arange(100))
    convergence = plot_convergence(found, reference=4.0)
    return [
        save(path, FOLDER / "simulation_path.png"),
        save(convergence, FOLDER / "simulation_convergence.png"),
    ]


def no_index() -> Path:
    """An arm that is not indexable, of the documentation of markovianbandit-pkg."""
    P0 = [
        [0.2168, 0.7246, 0.005, 0.0536],
        [0.463, 0.2776, 0.0475, 0.2119],
        [0.0906, 0.1627, 0.0822, 0.6645],
        [0.4645, 0.1505, 0.1958, 0.1892],
    ]
    P1 = [
        [0.1013, 0.509, 0.2344, 0.1553],
        [0.1655, 0.0166, 0.1173, 0.7006],
        [0.3943, 0.564, 0.0156, 0.0261],
        [0.0543, 0.1092, 0.0992, 0.7373],
    ]
    rewards = [0.7235, 0.8718, 0.6831, 0.5825], [0.5426, 0.1168, 0.7152, 0.8725]
    arm = mc.indices.arm(P0, P1, rewards0=rewards[0], rewards1=rewards[1])
    found = mc.indices.whittle(arm, mc.Discounted(factor=0.99))
    return save(plot_index(found), FOLDER / "index_not_indexable.png")


if __name__ == "__main__":
    print(brackets(), *simulation(), no_index())
