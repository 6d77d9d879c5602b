from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.simulate.jobs import JobSimulation
from tests.simulate.job_cases import pools
from tests.simulate.plain_jobs import plain_totals


def emptiest(rooms: Sequence[int | None], jobs: Sequence[int]) -> int | None:
    """The node of fewest jobs that is not full, below 12 jobs."""
    most = [12 if room is None else room for room in rooms]
    open_nodes = [k for k, room in enumerate(most) if jobs[k] < room]
    return min(open_nodes, key=lambda k: jobs[k], default=None)


@settings(max_examples=30)
@given(
    st.lists(pools, min_size=1, max_size=3),
    st.floats(0.5, 8.0),
    st.booleans(),
    st.integers(0, 999),
)
def test_paths_are_those_of_a_plain_simulation_with_the_same_random_numbers(
    nodes: list, rate: float, to_end: bool, seed: int
) -> None:
    rooms = [pool.room for pool in nodes]

    def rule(x) -> int:
        k = emptiest(rooms, x.node)
        return 0 if k is None else k + 1

    simulation = JobSimulation(tuple(nodes), rate, 1.0, to_end, rule)
    horizon, entropy = 40.0 / rate, np.random.SeedSequence(seed)
    wanted = plain_totals(simulation, entropy, lambda jobs: emptiest(rooms, jobs), horizon)
    averages = simulation.path(entropy).advance(1, horizon)[0] * horizon
    found = dict(zip(simulation.names, averages.tolist(), strict=True))
    assert found["outsourcing_rate"] == pytest.approx(wanted["outside"])
    for k, pool in enumerate(nodes):
        assert found[f"routing_rate[{k}]"] == pytest.approx(wanted["routed"][k])
        assert found[f"abandonment_rate[{k}]"] == pytest.approx(wanted["lost"][k])
        assert found[f"mean_jobs[{k}]"] == pytest.approx(wanted["jobs_time"][k], abs=1e-9)
        busy = found[f"utilisation[{k}]"] * pool.servers
        assert busy == pytest.approx(wanted["busy_time"][k], abs=1e-9)
