"""Indices of large arms: ``python -m benchmarks.indices`` prints the tables.

``python -m benchmarks.indices KIND STATES`` measures one case in this process.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.making_arms import DEAR, dense_moves, node
from benchmarks.process import in_own_process
from benchmarks.report import Table, show
from benchmarks.worker import memory

__all__ = ["CASES", "Case", "main", "measure", "tables"]

SEED, FACTOR, SMALL = 20262, 0.99, 20
NEAR, CHANGED = 0.9, 0.5  # factor and part of the moves of a sparse arm
SUCCESSORS, BAND = 5, 2  # of a sparse arm: per state, and to each side
NUMBERS = ("cpu", "wall", "peak", "more")
MEMORY, BIRTH_DEATH = 250.0, 0.5  # MB with 2000 dense states; s with 10^6 in a row

Build = Callable[[int], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """An arm, its sizes, and what builds its arrays and returns the call that is measured."""

    name: str
    states: tuple[int, ...]
    build: Build


def dense(states: int) -> Callable[[], Any]:
    """A dense random arm, average reward."""
    import mdpcloud as mc

    return dense_by(mc.AverageCost(), states)


def dense_discounted(states: int) -> Callable[[], Any]:
    """The same arm, discounted."""
    import mdpcloud as mc

    return dense_by(mc.Discounted(factor=FACTOR), states)


def dense_by(criterion: Any, states: int) -> Callable[[], Any]:
    from mdpcloud import indices

    moves, (passive, active) = dense_moves(states)
    return lambda: indices.whittle(
        indices.arm(*moves, rewards0=passive, rewards1=active), criterion
    )


def gittins(states: int) -> Callable[[], Any]:
    """A dense arm that rests while it is passive, discounted."""
    import mdpcloud as mc

    (_, moves), (_, rewards) = dense_moves(states)
    criterion = mc.Discounted(factor=FACTOR)
    return lambda: mc.indices.gittins(moves, rewards, criterion=criterion)


def sparse(states: int) -> Callable[[], Any]:
    """Uniform successors."""
    rng = np.random.default_rng([SEED, states])
    targets = rng.integers(states, size=(2, states, SUCCESSORS))
    return sparse_arm(rng, targets)


def banded(states: int) -> Callable[[], Any]:
    """Successors nearby, the same number to each side."""
    rng = np.random.default_rng([SEED, states])
    steps = np.arange(-BAND, BAND + 1)
    targets = np.clip(np.arange(states)[:, None] + steps, 0, states - 1)
    return sparse_arm(rng, np.stack([targets, targets]))


def sparse_arm(rng: np.random.Generator, targets: Any) -> Callable[[], Any]:
    """Discounted; activity changes a part of the moves, so that there is an index."""
    from scipy.sparse import csr_array

    import mdpcloud as mc

    _, states, count = targets.shape
    weights = rng.exponential(size=targets.shape)
    weights /= weights.sum(axis=2, keepdims=True)
    origins = np.repeat(np.arange(states), count)
    moves = [
        csr_array((w.ravel(), (origins, t.ravel())), shape=(states, states))
        for w, t in zip(weights, targets, strict=True)
    ]
    moves[1] = csr_array((1.0 - CHANGED) * moves[0] + CHANGED * moves[1])
    passive, active = rng.random((2, states))
    criterion = mc.Discounted(factor=NEAR)
    return lambda: mc.indices.whittle(
        mc.indices.arm(*moves, rewards0=passive, rewards1=active), criterion
    )


def birth_death(states: int) -> Callable[[], Any]:
    """The node of the peers' benchmark; activity refuses jobs, which is charged per job."""
    from mdpcloud import indices

    arrivals, down, costs = node(states)
    births, accepting = np.full(states, arrivals), costs.copy()
    births[-1] = 0.0
    accepting[-1] += arrivals * DEAR
    rates = births, np.zeros(states), down, down
    return lambda: indices.whittle(
        indices.birth_death_arm(*rates, accepting, costs, work1=arrivals)
    )


CASES = {
    case.build.__name__: case
    for case in (
        Case("dense, average", (200, 500, 1000, 2000), dense),
        Case("dense, discounted", (2000,), dense_discounted),
        Case("Gittins, dense", (200, 500, 1000, 2000), gittins),
        Case(f"sparse, {SUCCESSORS} successors", (1000, 2000), sparse),
        Case(f"sparse, {BAND} to each side", (1000, 10_000), banded),
        Case("birth and death", (10_000, 100_000, 1_000_000), birth_death),
    )
}


def measure(kind: str, states: int) -> dict[str, Any]:
    """Time and memory of one index; a small arm of the kind comes first."""
    build = CASES[kind].build
    build(SMALL)()
    start = time.process_time()
    call = build(states)
    gc.collect()
    before, _ = memory()
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    _, peak = memory()
    numbers = {"start": start, "cpu": cpu, "wall": wall, "peak": peak, "more": peak - before}
    return {**numbers, "verdict": str(found.verdict), **accuracy(found)}


def accuracy(found: Any) -> dict[str, float]:
    """Largest reported error, over the largest index."""
    if not found.is_indexable:
        return {}
    finite = np.isfinite(found.index)
    missing = int(np.isnan(found.index).sum())
    largest = float(np.abs(found.index[finite]).max())
    return {"missing": missing, "error": float(found.error[finite].max()) / largest}


def tables(repeats: int) -> list[Table]:
    """All cases, one after the other."""
    rows = [
        row(
            case.name,
            states,
            [in_own_process("benchmarks.indices", kind, states) for _ in range(repeats)],
        )
        for kind, case in CASES.items()
        for states in case.states
    ]
    return [
        Table(
            "Indices of arms",
            ["arm", "verdict", "states", "CPU s", "wall s", "peak MB", "MB more", "error"],
            rows,
            f"One thread, a fresh process per run, medians of {repeats} runs; a small arm comes "
            "first, checking the arrays is counted. Error: the largest that is reported, over the "
            f"largest index. Goals: at most {MEMORY:g} MB with 2000 dense states; at most "
            f"{BIRTH_DEATH:g} s for a birth-death arm with 10^6. markovianbandit-pkg is measured "
            "beside it by `make bench-peers`.",
        )
    ]


def row(name: str, states: int, runs: list[dict[str, Any]]) -> list[str]:
    cpu, wall, peak, more = (statistics.median(run[key] for run in runs) for key in NUMBERS)
    first = runs[0]
    verdict = first["verdict"] + (f", {first['missing']} nan" if first.get("missing") else "")
    error = f"{first['error']:.0e}" if "error" in first else ""
    times = [f"{cpu:.3f}", f"{wall:.3f}", f"{peak:.0f}", f"{more:.0f}"]
    return [name, verdict, f"{states}", *times, error]


def main(arguments: list[str]) -> None:
    """Print one measurement, or the tables."""
    if arguments:
        kind, states = arguments
        print(json.dumps(measure(kind, int(states))))
    else:
        for table in tables(1):
            show(table)


if __name__ == "__main__":
    main(sys.argv[1:])
