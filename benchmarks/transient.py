"""Laws of chains with 10^5 states at time 10: `python -m benchmarks.transient`.

The chains are a routing model of two nodes whose jobs join the shorter queue, and a random sparse
one. Every program answers with the probability of a set of states; stormpy takes part where it can
be imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers.instance import Chain
from benchmarks.peers.making import distinct
from benchmarks.report import Table, show

__all__ = ["Row", "jsq", "measure", "random_chain", "tables"]

PROGRAMS = ("mdpcloud", "scipy", "stormpy")
LENGTH, STATES, TIME, REPETITIONS, SEED = 316, 100_000, 10.0, 3, 11


@dataclass(frozen=True)
class Row:
    """CPU seconds (median) of a program on a chain, and the probability that it found."""

    chain: str
    program: str
    seconds: float
    probability: float


def jsq(length: int = LENGTH, time: float = TIME) -> Chain:
    """Two nodes of 40 and 30 servers with patience; a job goes where fewer are, then to node 0."""
    import mdpcloud as mc
    from mdpcloud.solve.stationary.stationary import chain_of

    join = [mc.Action(f"node {k}", mc.step(node={k: +1})) for k in range(2)]
    arrival = mc.Event("arrival", 60.0, [*join, mc.Action("lost")])
    departures = [
        mc.Event(
            f"departure {k}",
            lambda x, k=k, c=c: np.minimum(x.node[k], c) + 0.2 * np.maximum(x.node[k] - c, 0),
            mc.step(node={k: -1}),
        )
        for k, c in ((0, 40), (1, 30))
    ]
    model = mc.Model(mc.Lattice({"node": (length - 1, length - 1)}), [arrival, *departures])

    def shorter(x: Any) -> Any:
        full = np.minimum(x.node[0], x.node[1]) == length - 1
        return np.where(full, "lost", np.where(x.node[0] <= x.node[1], "node 0", "node 1"))

    chain = chain_of(model, shorter)
    busy = np.add.outer(np.arange(length), np.arange(length)) >= 62
    return _instance(chain.rates, busy.ravel(), time)


def random_chain(states: int = STATES, successors: int = 5, time: float = TIME) -> Chain:
    """Moves from each state to some others at random rates of up to 20."""
    from scipy import sparse

    rng = np.random.default_rng(SEED)
    targets = distinct(rng, states, successors, states).ravel()
    origins = np.repeat(np.arange(states), successors)
    rates = rng.uniform(0.0, 20.0, targets.size) * (targets != origins)
    moves = sparse.csr_array((rates, (origins, targets)), shape=(states, states))
    moves.eliminate_zeros()
    return _instance(moves, np.arange(states) < states // 3, time)


def _instance(moves: Any, inside: Any, time: float) -> Chain:
    moves.sort_indices()
    return Chain(moves.indptr, moves.indices, moves.data, 0, inside, time, np.nan)


def measure(chains: dict[str, Chain], repetitions: int = REPETITIONS) -> list[Row]:
    """Rows of all programs that can be imported, one after the other on each chain."""
    warm = random_chain(200, time=0.1)
    rows = []
    for program in PROGRAMS:
        if find_spec(program) is None:
            continue
        answer = import_module(f"benchmarks.peers.adapters.{program}").transient
        answer(warm)
        for name, chain in chains.items():
            seconds, found = _timed(answer, chain, repetitions)
            rows.append(Row(name, program, seconds, found))
    return rows


def _timed(
    answer: Callable[[Chain], dict[str, Any]], chain: Chain, repetitions: int
) -> tuple[float, float]:
    seconds = []
    for _ in range(repetitions):
        began = time.process_time()
        found = answer(chain)["probability"]
        seconds.append(time.process_time() - began)
    return median(seconds), found


def tables(repeats: int) -> list[Table]:
    """The rows of `measure`, as a table."""
    rows = measure({"join the shorter": jsq(), "random": random_chain()}, repeats)
    own = {row.chain: row for row in rows if row.program == "mdpcloud"}
    lines = [
        [
            row.chain,
            row.program,
            f"{row.seconds:.3f}",
            f"{row.seconds / own[row.chain].seconds:.1f}",
            f"{row.probability:.12f}",
            f"{abs(row.probability - own[row.chain].probability):.0e}",
        ]
        for row in sorted(rows, key=lambda row: row.chain)
    ]
    return [
        Table(
            f"Laws at time {TIME:g} of chains with 10^5 states",
            ["chain", "program", "CPU s", "over mdpcloud", "probability", "difference"],
            lines,
            "One process; medians. mdpcloud's error is certified to be at most 1e-10. Storm is "
            "measured by `make bench-peers`.",
        )
    ]


if __name__ == "__main__":
    for table in tables(REPETITIONS):
        show(table)
