"""Makes the instances: routing as state-action pairs, a random process, a chain, stations, arms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instances import read as read_routing
from benchmarks.peers.instance import Chain, Decisions, write
from benchmarks.peers.making_arms import dense_arm, node_arm
from benchmarks.peers.restless import Restless
from benchmarks.peers.stations import Stations

__all__ = [
    "ARM_STATES",
    "GAIN",
    "MAKERS",
    "NODE_STATES",
    "impatient",
    "make",
    "pairs_of",
    "random_process",
    "shortest_queue",
    "two_queues",
]

SLACK = (
    1.05  # steps per time over the largest total rate: without self-loops chains may be periodic
)
SEED = 20260
GAIN = 2.1091901576  # of routing; the boxes cut off less than 1e-9 of it
LENGTH, TIME = 316, 10.0  # of each queue's axis, and of the transient
FULL = 6  # the set: both queues at most this long
ARM_STATES, NODE_STATES = (200, 500, 1000, 2000), (500, 1000, 2000)
EVENTS = 240_000  # simulated; some take a minute for them


def make(name: str, folder: Path) -> Path:
    """Write the instance unless it is there."""
    path = folder / f"{name}.npz"
    if not path.exists():
        write(MAKERS[name](), path)
    return path


def routing(size: str) -> Decisions:
    """The routing model of this size."""
    system, caps = read_routing(size)
    return pairs_of(system.model(caps), GAIN)


def pairs_of(model: Any, gain: float) -> Decisions:
    """A model with one decision, uniformised: the decision's actions are those of the pairs."""
    from scipy import sparse

    from mdpcloud.engine import compile_model

    problem: Any = compile_model(model)
    rows = problem.rows()
    (deciding,) = (e for e, term in enumerate(problem.terms) if term.decision)
    chosen = rows.term == deciding
    pairs, others = rows.select(np.flatnonzero(chosen)), rows.select(np.flatnonzero(~chosen))
    count = others.state.size
    places = (others.state, np.arange(count))
    here = sparse.csr_array((np.ones(count), places), shape=(rows.n, count))
    along = sparse.csr_array(here @ others.transitions)[pairs.state]
    moves = sparse.csr_array(pairs.transitions + along)
    out = np.asarray(moves.sum(axis=1)).ravel()
    rate = SLACK * float(out.max())
    stay = sparse.csr_array((1.0 - out / rate, (np.arange(out.size), pairs.state)), moves.shape)
    matrix = sparse.csr_array(moves / rate + stay)
    matrix.sort_indices()
    cost = (pairs.cost + (rows.cost_rate + here @ others.cost)[pairs.state]) / rate
    places = matrix.indptr, matrix.indices, matrix.data
    return Decisions(pairs.state, pairs.action, cost, *places, rate, gain)


def random_process(states: int, actions: int = 4, successors: int = 5) -> Decisions:
    """Uniform successors, probabilities and costs; the gain is mdpcloud's, certified to 1e-9."""
    import mdpcloud as mc

    rng = np.random.default_rng(SEED)
    pairs = states * actions
    indices = np.sort(distinct(rng, pairs, successors, states), axis=1).astype(np.int32)
    weights = rng.random((pairs, successors)) + 0.05
    weights /= weights.sum(axis=1, keepdims=True)
    process = Decisions(
        np.repeat(np.arange(states, dtype=np.int32), actions),
        np.tile(np.arange(actions, dtype=np.int32), states),
        rng.random(pairs),
        np.arange(0, pairs * successors + 1, successors, dtype=np.int32),
        indices.ravel(),
        weights.ravel(),
        1.0,
        np.nan,
    )
    model = mc.tabular(
        process.matrix(), s_indices=process.state, a_indices=process.action, costs=process.cost
    )
    gain = mc.solve(model, tolerance=1e-9).gain
    return Decisions(**{**vars(process), "gain": float(gain)})


def distinct(
    rng: np.random.Generator, rows: int, count: int, below: int
) -> NDArray[np.signedinteger[Any]]:
    """Rows of different numbers, uniform: those with equal ones are drawn again."""
    numbers = rng.integers(below, size=(rows, count))
    while True:
        ordered = np.sort(numbers, axis=1)
        again = np.flatnonzero((np.diff(ordered, axis=1) == 0).any(axis=1))
        if again.size == 0:
            return numbers
        numbers[again] = rng.integers(below, size=(again.size, count))


def two_queues(length: int = LENGTH, time: float = TIME) -> Chain:
    """Two queues side by side that do not touch, so each one's law alone gives the answer.

    The probability comes from a dense exponential of each queue's own small generator.
    """
    from scipy import sparse
    from scipy.linalg import expm

    queues = [queue(length, 8.0, 10, 1.0), queue(length, 6.4, 4, 2.0)]
    eye = sparse.eye_array(length, format="csr")
    moves = sparse.csr_array(sparse.kron(queues[0], eye) + sparse.kron(eye, queues[1]))
    moves.sort_indices()
    probability = 1.0
    for each in queues:
        dense = each.toarray()
        np.fill_diagonal(dense, -dense.sum(axis=1))
        probability *= float(expm(time * dense)[0, : FULL + 1].sum())
    short = np.arange(length) <= FULL
    inside = (short[:, None] & short[None, :]).ravel()
    return Chain(moves.indptr, moves.indices, moves.data, 0, inside, time, probability)


def queue(length: int, arrivals: float, servers: int, service: float) -> Any:
    """Moves of a queue with several servers, cut at length - 1."""
    from scipy import sparse

    down = service * np.minimum(np.arange(1, length), servers)
    return sparse.diags_array([np.full(length - 1, arrivals), down], offsets=[1, -1], format="csr")


def impatient(events: int = EVENTS) -> Stations:
    """The nodes of the routing model, each with a third of the stream; a sum of closed forms."""
    from mdpcloud.queues.law import node_law

    system, _ = read_routing("s")
    servers, service, patience = np.array(
        [(node.servers, node.service_rate, node.abandonment_rate) for node in system.nodes]
    ).T
    each = system.arrival_rate / len(system.nodes)
    lost = [
        node.abandonment_rate
        * node_law(node.servers, node.service_rate, node.abandonment_rate, each, None).queue
        for node in system.nodes
    ]
    counts = servers.astype(np.int64)
    stream = (system.arrival_rate, "split", "abandonment", events)
    return Stations(counts, service, patience, *stream, float(sum(lost)))


def shortest_queue(events: int = EVENTS) -> Stations:
    """Three nodes of ten servers at load 0.8; mdpcloud's value, certified to 1e-8."""
    from benchmarks.peers.adapters.mdpcloud_simulation import described
    from mdpcloud import evaluate

    alike = np.full(3, 10), np.full(3, 2.0), np.zeros(3)
    nodes = Stations(*alike, 48.0, "shortest", "jobs", events, np.nan)
    model, rule = described(nodes, 35)  # 25 to 35 jobs make 3e-4 of difference, 30 to 35 2e-5
    return Stations(**{**vars(nodes), "gain": evaluate(model, rule, tolerance=1e-8).gain})


MAKERS: dict[str, Callable[[], Decisions | Chain | Stations | Restless]] = {
    **{f"routing_{size}": partial(routing, size) for size in ("s", "m", "l")},
    "sparse": partial(random_process, 100_000),
    "rows": partial(random_process, 250_000),
    "small": partial(random_process, 2_000),
    "queues": two_queues,
    "small_queues": partial(two_queues, 8, 1.0),
    "impatient": impatient,
    "small_impatient": partial(impatient, 4_000),
    "shortest": shortest_queue,
    "long_shortest": partial(shortest_queue, 100 * EVENTS),
    "small_shortest": partial(shortest_queue, 4_000),
    **{f"arm_{n}": partial(dense_arm, n) for n in ARM_STATES},
    **{f"node_{n}": partial(node_arm, n) for n in NODE_STATES},
    "small_arm": partial(dense_arm, 20),
}
