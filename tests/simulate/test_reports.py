"""Mistakes reported against other simulators, as whole kinds; see tests/reference/cases.jsonl."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from tests.common.batches import excess, four_errors

LINES = (Path(__file__).parents[1] / "reference" / "cases.jsonl").read_text(encoding="utf-8")
CASES = {case["id"]: case for case in map(json.loads, LINES.splitlines())}
REPLICATIONS = 8
NEVER_FULL = 5000  # jobs
SEEDS = 12


def delay_queue(servers: int, load: float, cap: int = NEVER_FULL) -> mc.Model:
    """M/M/m of service rate 1 with measures of waiting; `cap` is hardly ever reached."""
    arrival = mc.Event("arrival", servers * load, mc.step(jobs=+1))
    service = mc.Event("service", lambda x: np.minimum(x.jobs, servers), mc.step(jobs=-1))
    return mc.Model(
        mc.Lattice({"jobs": cap}),
        [arrival, service],
        cost_rate=lambda x: x.jobs,
        measures={
            "all busy": lambda x: 1.0 * (x.jobs >= servers),
            "waiting": lambda x: np.maximum(x.jobs - servers, 0),
        },
    )


def is_right(result: Any, name: str, exact: float) -> bool:
    return excess(result.kept(name), exact, exact) <= 1.0


# --- no server idles while a job waits ------------------------------------------------------------


def test_the_probability_of_waiting_and_the_wait_are_those_of_the_case():
    case = CASES["mmk-wc"]["right_answer"]
    result = mc.simulate(delay_queue(4, 0.3), rng=1, events=1_000_000)
    assert is_right(result, "all busy", float(case["P_wait"]))
    assert is_right(result, "waiting", 1.2 * float(case["Wq"]))


@pytest.mark.parametrize(
    ("servers", "load"),
    [(1, 0.3), (1, 0.9), (2, 0.3), (2, 0.9), (3, 0.7), (8, 0.7), (8, 0.9), (30, 0.9)],
)
def test_no_server_idles_while_a_job_waits(servers, load):
    exact = mc.queues.mmc(servers=servers, service_rate=1.0, arrival_rate=servers * load)
    result = mc.simulate(delay_queue(servers, load), rng=servers, events=1_000_000)
    assert is_right(result, "cost", exact.mean_jobs)
    assert is_right(result, "all busy", exact.waiting_probability)
    assert is_right(result, "waiting", exact.mean_queue)


def test_busy_servers_are_those_that_the_path_allows_at_every_time():
    """The cost is the number in system, of which those not waiting are in service, on each path."""
    model = delay_queue(3, 0.8)
    result = mc.simulate(model, rng=4, events=200_000, paths=["jobs"])
    for r, record in enumerate(result.records["jobs"]):
        jobs = np.arange(record.occupation.shape[1])
        np.testing.assert_allclose(record.occupation @ jobs, result.series_of("cost")[r])
        queue = np.maximum(jobs - 3, 0)
        np.testing.assert_allclose(
            record.occupation @ queue, result.series_of("waiting")[r], atol=1e-12
        )


# --- runs that are too short say so ---------------------------------------------------------------


def simulated_with_warnings(model: Any, *arguments: Any, **options: Any) -> tuple[Any, bool]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = mc.simulate(model, *arguments, **options)
    kinds = {warning.category for warning in caught}
    assert kinds <= {mc.SimulationWarning}
    return result, bool(kinds)


@pytest.mark.parametrize("time", [20.0, 200.0, 2000.0])
@pytest.mark.parametrize("warm_up", ["mser", 0.0])
def test_a_short_run_from_empty_excludes_the_truth_only_with_a_warning(time, warm_up):
    model, exact = delay_queue(1, 0.95), float(CASES["warmup"]["right_answer"]["E[N]"])
    excluded = 0
    for seed in range(SEEDS):
        result, warned = simulated_with_warnings(model, rng=seed, time=time, warm_up=warm_up)
        outside = not result.gain.lower <= exact <= result.gain.upper
        excluded += outside
        assert warned or not outside
        assert not warned or result.notes
    assert time == 2000.0 or excluded  # or else this would show nothing


def test_a_run_too_short_warns_what_is_wrong_and_how_much_is_missing():
    with pytest.warns(mc.SimulationWarning, match="too short"):
        result = mc.simulate(delay_queue(1, 0.95), rng=1, time=200.0)
    assert any("too short" in note for note in result.notes)


def test_a_result_states_its_warm_up_and_its_effective_samples():
    result = mc.simulate(delay_queue(1, 0.5), rng=1, events=400_000, warm_up=50.0)
    assert 50.0 <= result.warm_up <= 50.0 + result.segment
    kept = result.replications * (result.series.shape[1] - result.warm_up / result.segment)
    assert 1.0 < result.gain.effective_samples <= kept


def test_long_enough_a_run_from_empty_gives_the_truth_without_a_warning():
    exact = float(CASES["warmup"]["right_answer"]["E[N]"])
    result = mc.simulate(delay_queue(1, 0.95), rng=3, events=4_000_000)
    assert is_right(result, "cost", exact)
    assert result.status == "done"
    assert not result.notes


# --- join the shortest queue: which count is compared ---------------------------------------------


def two_queues(arrival_rate: float, cap: int, speeds: tuple[float, float] = (1.0, 1.0)) -> mc.Model:
    """Two single servers; a job joins one of them unless both are full."""
    arrival = mc.Event(
        "arrival",
        arrival_rate,
        [
            mc.Action("refuse", allowed=lambda x: (x.node[0] == cap) & (x.node[1] == cap)),
            *(
                mc.Action(
                    f"join {k}", mc.step(node={k: +1}), allowed=lambda x, k=k: x.node[k] < cap
                )
                for k in (0, 1)
            ),
        ],
    )
    services = [
        mc.Event(f"service {k}", lambda x, k=k: speeds[k] * (x.node[k] > 0), mc.step(node={k: -1}))
        for k in (0, 1)
    ]
    return mc.Model(
        mc.Lattice({"node": (cap, cap)}),
        [arrival, *services],
        cost_rate=lambda x: x.node[0] + x.node[1],
    )


def shortest(cap: int, count: Any) -> Any:
    """Join the node of the least count; ties by a fair coin."""

    def share(x: Any, k: int) -> Any:
        here, there = (np.where(x.node[j] < cap, count(x.node[j]), np.inf) for j in (k, 1 - k))
        fair = np.where(np.isinf(here), 0.0, 0.5)
        return np.where(here < there, 1.0, np.where(here == there, fair, 0.0))

    return {
        "refuse": lambda x: 1.0 * (x.node[0] == cap) * (x.node[1] == cap),
        **{f"join {k}": lambda x, k=k: share(x, k) for k in (0, 1)},
    }


COUNTS = {
    "jobs in the system": lambda jobs: jobs,
    "jobs that wait": lambda jobs: np.maximum(jobs - 1, 0),
}


@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize("counted", COUNTS)
def test_a_rule_compares_the_count_that_it_is_written_with(load, counted):
    cap = 40
    policy = {"arrival": shortest(cap, COUNTS[counted])}
    exact = mc.evaluate(two_queues(2.0 * load, cap), policy).gain
    result = mc.simulate(two_queues(2.0 * load, cap), policy, rng=5, events=1_000_000)
    assert is_right(result, "cost", exact)


def test_comparing_jobs_that_wait_is_worse_and_the_simulation_tells_them_apart():
    cap = 40
    model = two_queues(1.2, cap)
    system, waiting = (
        mc.simulate(model, {"arrival": shortest(cap, count)}, rng=6, time=30_000.0)
        for count in COUNTS.values()
    )
    difference = waiting.difference(system)
    exact = [
        mc.evaluate(model, {"arrival": shortest(cap, count)}).gain for count in COUNTS.values()
    ]
    assert difference.lower > 0.0
    error = difference.value - (exact[1] - exact[0])
    assert abs(error) <= four_errors(REPLICATIONS) * difference.standard_error


@settings(max_examples=5, deadline=None)
@given(st.floats(0.2, 0.8), st.floats(0.5, 2.0), st.integers(0, 2**32 - 1))
def test_permuting_the_nodes_changes_no_estimate_of_the_shortest_queue(load, speed, seed):
    cap = 20
    policy = {"arrival": shortest(cap, COUNTS["jobs in the system"])}
    rate = load * (1.0 + speed)
    results = [
        simulated_with_warnings(
            two_queues(rate, cap, speeds), policy, rng=seed, time=10_000.0 / rate
        )[0]
        for speeds in ((1.0, speed), (speed, 1.0))
    ]
    gap = results[0].gain.value - results[1].gain.value
    errors = [result.gain.standard_error for result in results]
    assert abs(gap) <= four_errors(2 * REPLICATIONS - 1) * float(np.hypot(*errors))
