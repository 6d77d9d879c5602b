"""LINE (line-solver) by LDES, a compiled simulator in a process of its own."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import line_solver as line

from benchmarks.peers.adapters.line_solver import runs
from benchmarks.peers.stations import WARM_UP, Stations

__all__ = ["simulate"]


def simulate(instance: Stations) -> dict[str, Any]:
    with redirect_stdout(StringIO()):  # it prints its command
        return runs(instance, solver)


def solver(model: Any, instance: Stations, seed: int) -> Any:
    """Without intervals of its own, which it would spend time on; its samples are departures."""
    return line.SolverLDES(
        model,
        samples=instance.run_events // 2,
        tranfilter="fixed",
        warmupfrac=WARM_UP,
        cimethod="none",
        seed=seed,
    )
