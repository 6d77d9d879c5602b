"""Simulations of jobs, random ones too, and means of their measures over replications."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from mdpcloud.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Hyperexponential,
    Law,
    Lognormal,
    PhaseType,
    Uniform,
)
from mdpcloud.simulate.jobs import Duration, JobSimulation, Pool
from mdpcloud.systems import CloudRouting, Node

EXPONENTIAL = Exponential()
LAWS: list[Law] = [
    Deterministic(),
    Erlang(3),
    Exponential(),
    Hyperexponential(scv=4.0),
    Uniform(0.9),
    Lognormal(1.5),
    PhaseType((0.5, 0.5), ((-3.0, 2.0), (1.0, -1.5))),
]

laws = st.sampled_from(LAWS)
pools = st.builds(
    Pool,
    st.integers(1, 3),
    st.builds(Duration, laws, st.floats(0.1, 2.0)),
    st.none() | st.builds(Duration, laws, st.floats(0.1, 4.0)),
    st.none() | st.integers(1, 5),
)


def pool_of(node: Node, service: Law = EXPONENTIAL, patience: Law = EXPONENTIAL) -> Pool:
    """A node with services and patience of given laws."""
    theta = node.abandonment_rate
    return Pool(
        node.servers,
        Duration(service, 1.0 / node.service_rate),
        Duration(patience, 1.0 / theta) if theta > 0.0 else None,
        node.room,
        node.fee,
        node.routing_charge,
        node.holding_cost,
    )


def jobs_of(system: CloudRouting, rule: Any, law: Law = EXPONENTIAL) -> JobSimulation:
    """The system job by job, its services of a given law and its patience exponential."""
    return JobSimulation(
        tuple(pool_of(node, law) for node in system.nodes),
        system.arrival_rate,
        system.outside_cost,
        system.deadline == "end_service",
        rule,
    )


def queue(
    servers: int, load: float, service: Law, patience: Duration | None = None, **options: Any
) -> JobSimulation:
    """One node of mean service time 1 that all jobs go to; ``load`` is the arrival rate."""
    to_end = options.pop("to_end", False)
    pool = Pool(servers, Duration(service, 1.0), patience, **options)
    return JobSimulation((pool,), load, 1.0, to_end, {"node 0": 1.0})


def means(
    simulation: JobSimulation, *, seed: int = 1, replications: int = 24, time: float
) -> dict[str, tuple[float, float]]:
    """Mean and standard error of each measure; a tenth of each replication is left out.

    ``time`` is that of all replications together.
    """
    found = []
    time /= replications
    for child in np.random.SeedSequence(seed).spawn(replications):
        path = simulation.path(child)
        path.advance(1, time / 9.0)
        found.append(path.advance(1, time)[0])
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(replications)
    pairs = zip(np.mean(found, axis=0).tolist(), errors.tolist(), strict=True)
    return dict(zip(simulation.names, pairs, strict=True))


def assert_near(
    found: dict[str, tuple[float, float]], wanted: dict[str, float], *, errors: float = 4.0
) -> None:
    """Each mean must lie within so many standard errors of its true value."""
    far = {
        name: (value, *found[name])
        for name, value in wanted.items()
        if abs(found[name][0] - value) > errors * found[name][1] + 1e-9
    }
    assert not far
