from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Lognormal,
)
from mdpcloud.simulate.jobs import Duration, JobSimulation
from mdpcloud.systems import CloudRouting, Node
from tests.simulate.job_cases import LAWS, assert_near, jobs_of, means, pools, queue
from tests.systems import cases

BOTH = pytest.mark.parametrize("deadline", ["begin_service", "end_service"])
SEED = np.random.SeedSequence(7)

PLAIN = (Node(1, 2.0, 0.5), Node(2, 1.0, 0.5))
GENERAL = (
    Node(2, 1.0, 0.7, fee=1.5, routing_charge=0.1, holding_cost=0.05, room=3),
    Node(1, 1.5, 0.4, holding_cost=0.02),
)


def exact(system: CloudRouting, rule: Any, caps: Any = None) -> dict[str, float]:
    """Cost and measures of the Markov model under a rule."""
    model = system.model(caps)
    found = mc.evaluate(model, mc.policy(model, rule))
    measures = {name: float(np.mean(pair)) for name, pair in found.measures.items()}
    return {"cost": found.gain, **measures}


# --- against the Markov model ---------------------------------------------------------------------


def test_the_measures_are_those_of_the_model() -> None:
    system = CloudRouting.example()
    assert jobs_of(system, "outside").names == ("cost", *system.model().measures)


@BOTH
@pytest.mark.parametrize("nodes", [PLAIN, GENERAL], ids=["plain", "general"])
@pytest.mark.parametrize("policy", ["individually_optimal", "policy_improvement"])
def test_exponential_jobs_agree_with_the_markov_model(
    nodes: tuple[Node, ...], deadline: Any, policy: str
) -> None:
    system = CloudRouting(nodes, 3.0, 0.4, deadline)
    rule = system.heuristic(policy).rule
    assert_near(means(jobs_of(system, rule), time=64e3), exact(system, rule))


@BOTH
def test_three_pools_agree_with_the_markov_model(deadline: Any) -> None:
    wanted = cases.system_of(cases.case("B6-DBS" if deadline == "begin_service" else "B6-DES"))
    rule = wanted.heuristic("restless_bandit").rule
    assert_near(means(jobs_of(wanted, rule), time=24e3), exact(wanted, rule))


@BOTH
def test_a_random_split_agrees_with_its_closed_form(deadline: Any) -> None:
    system = CloudRouting(GENERAL, 3.0, 0.6, deadline)
    split = system.heuristic("bernoulli_split")
    weights = system.split.rates / system.arrival_rate
    rule = {"outside": 1.0 - weights.sum(), "node 0": weights[0], 2: weights[1]}
    found = means(jobs_of(system, rule), time=64e3)
    assert_near(found, {"cost": split.cost, **split.measures})


def test_a_randomised_policy_agrees_with_the_markov_model() -> None:
    system = CloudRouting(PLAIN, 3.0, 0.4)
    caps = (4, 5)

    def share(x: Any) -> Any:
        return np.where(x.node[0] < 4, 0.8 / (1 + x.node[0]), 0.0)

    model = system.model(caps)
    policy = mc.policy(model, {"node 0": share, "outside": lambda x: 1.0 - share(x)})
    found = means(jobs_of(system, policy), time=64e3)
    assert_near(found, exact(system, policy, caps))
    functions = {"node 0": share, "outside": lambda x: 1.0 - share(x)}
    again = means(jobs_of(system, {"arrival": functions}), time=64e3)
    assert again == found


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_one_server_has_the_queue_of_pollaczek_and_khinchine(law: Any) -> None:
    load = 0.6
    queued = load**2 * (1.0 + law.scv) / (2.0 * (1.0 - load))
    found = means(queue(1, load, law), time=48e4)
    assert_near(found, {"mean_queue": queued, "mean_jobs": queued + load, "utilisation[0]": load})


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_loss_system_is_insensitive_to_the_law_of_services(law: Any) -> None:
    servers, load = 3, 2.0
    blocked = mc.queues.erlang_b(servers, load)
    found = means(queue(servers, load, law, room=servers), time=24e4)
    assert_near(found, {"outsourcing_rate": load * blocked, "mean_jobs": load * (1.0 - blocked)})


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_many_servers_serve_at_once_and_deadlines_end_services(law: Any) -> None:
    """Jobs are lost with probability P(T < S) and stay for min(S, T), of mean P(T < S) / theta."""
    load, theta = 2.0, 0.8
    simulation = queue(60, load, law, Duration(Exponential(), 1.0 / theta), to_end=True)
    draws = law.sample(np.random.default_rng(3), 400_000)
    lost = -np.expm1(-theta * draws)
    found = means(simulation, time=16e4)
    value, error = found["abandonment_rate"]
    spread = load * lost.std() / draws.size**0.5
    assert value == pytest.approx(load * lost.mean(), abs=4.0 * math.hypot(error, spread))
    value, error = found["mean_jobs"]
    assert value == pytest.approx(
        load * lost.mean() / theta, abs=4.0 * math.hypot(error, spread / theta)
    )


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (1, 1.5), (3, 3.5)])
def test_fixed_patience_loses_the_jobs_whose_wait_would_be_longer(
    servers: int, load: float
) -> None:
    """M/M/m+D: the density of the offered wait is lam p_{m-1} exp(-(m - lam) x) up to the deadline
    and falls like exp(-m x) beyond it (Baccelli and Hebuterne 1981, On queues with impatient
    customers, Performance '81, 159-179)."""
    deadline = 1.3
    weights = [load**j / math.factorial(j) for j in range(servers)]
    slope = servers - load
    within = load * weights[-1] * -math.expm1(-slope * deadline) / slope
    beyond = load * weights[-1] * math.exp(-slope * deadline) / servers
    lost = beyond / (sum(weights) + within + beyond)
    simulation = queue(servers, load, Exponential(), Duration(Deterministic(), deadline))
    found = means(simulation, time=16e4)
    assert_near(found, {"abandonment_rate": load * lost})


def test_no_work_waits_while_a_server_is_idle() -> None:
    """M/M/4 at arrival rate 1.2: Erlang's delay probability and mean wait."""
    load = 1.2
    simulation = queue(4, load, Exponential())
    shares, waits = [], []
    for child in np.random.SeedSequence(11).spawn(8):
        path = simulation.path(child, ["node[0]"])
        averages = path.advance(2, 3e4)
        shares.append(path.record("node[0]").occupation[1, 4:].sum())
        waits.append(averages[1, simulation.names.index("mean_queue")] / load)
    for found, wanted in ((shares, 0.03704974271012007), (waits, 0.013232050967900025)):
        error = np.std(found, ddof=1) / 8**0.5
        assert np.mean(found) == pytest.approx(wanted, abs=4.0 * error)


# --- invariants -----------------------------------------------------------------------------------

simulations = st.builds(
    lambda pools, rate, to_end, weights: JobSimulation(
        tuple(pools), rate, 1.0, to_end, dict(enumerate(np.array(weights) / sum(weights)))
    ),
    st.lists(pools, min_size=2, max_size=2),
    st.floats(0.5, 4.0),
    st.booleans(),
    st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3),
)


@settings(max_examples=40)
@given(simulations, st.integers(0, 99))
def test_every_job_is_served_lost_sent_outside_or_present(
    simulation: JobSimulation, seed: int
) -> None:
    path = simulation.path(np.random.SeedSequence(seed))
    averages = dict(zip(simulation.names, path.advance(1, 150.0)[0] * 150.0, strict=True))
    routed = averages["routing_rate[0]"] + averages["routing_rate[1]"]
    present, lost = path.jobs.sum(), averages["abandonment_rate"]
    served = routed - lost - present
    arrivals = routed + averages["outsourcing_rate"]
    assert path.events == pytest.approx(arrivals + served + lost, abs=1e-6)
    assert served >= -1e-6
    for k, pool in enumerate(simulation.pools):
        assert path.jobs[k] <= (math.inf if pool.room is None else pool.room)
        assert averages[f"abandonment_rate[{k}]"] == 0.0 or pool.patience is not None
        assert averages[f"mean_queue[{k}]"] <= averages[f"mean_jobs[{k}]"] + 1e-9
        assert averages[f"utilisation[{k}]"] <= 150.0 * (1.0 + 1e-12)


@settings(max_examples=20)
@given(simulations, st.integers(1, 5))
def test_segments_do_not_change_the_path(simulation: JobSimulation, parts: int) -> None:
    whole, cut = (simulation.path(SEED, ["node[1]"]) for _ in range(2))
    total = whole.advance(1, 60.0)[0]
    averages = np.concatenate([cut.advance(parts, 10.0 / parts) for _ in range(6)])
    assert averages.mean(axis=0) == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert whole.events == cut.events
    records = [path.record("node[1]") for path in (whole, cut)]
    assert (records[0].values == records[1].values).all()
    assert records[0].times == pytest.approx(records[1].times, rel=1e-9, abs=1e-9)
    shares = records[1].occupation.mean(axis=0)
    assert shares == pytest.approx(records[0].occupation[0], abs=1e-9)


def test_equal_seeds_give_equal_paths_and_leave_the_seed_alone() -> None:
    simulation = jobs_of(CloudRouting.example(), "node 0", Lognormal(2.0))
    first = simulation.path(SEED).advance(5, 10.0)
    assert (simulation.path(SEED).advance(5, 10.0) == first).all()
    assert (simulation.path(np.random.SeedSequence(8)).advance(5, 10.0) != first).any()
    assert SEED.n_children_spawned == 0


def test_equal_seeds_give_the_same_arrivals_under_any_rule() -> None:
    system = CloudRouting.example()
    arrivals = []
    for rule in (system.heuristic("restless_bandit").rule, "node 1", {0: 0.5, 3: 0.5}):
        simulation = jobs_of(system, rule)
        averages = simulation.path(SEED).advance(40, 1.0)
        names = ["outsourcing_rate", *(f"routing_rate[{k}]" for k in range(3))]
        arrivals.append(sum(averages[:, simulation.names.index(name)] for name in names))
    assert arrivals[0].sum() > 2000
    assert arrivals[0] == pytest.approx(arrivals[1])
    assert arrivals[0] == pytest.approx(arrivals[2])


def test_common_random_numbers_narrow_the_difference_of_two_rules() -> None:
    system = CloudRouting.example()
    seeds = np.random.SeedSequence(3).spawn(24)
    costs = {
        name: np.array(
            [jobs_of(system, system.heuristic(name).rule).path(s).advance(2, 40.0)[1, 0]
             for s in seeds]
        )
        for name in ("restless_bandit", "policy_improvement")
    }  # fmt: skip
    one, other = costs.values()
    assert np.std(one - other) < 0.7 * math.hypot(np.std(one), np.std(other))


def test_a_path_is_never_absorbed_and_records_what_was_asked_for() -> None:
    simulation = queue(1, 0.5, Erlang(2))
    path = simulation.path(SEED, ["node[0]"])
    path.advance(3, 200.0)
    assert path.absorbed is None
    record = path.record("node[0]")
    assert simulation.variables == ("node[0]",)
    assert record.times[0] == 0.0
    assert record.values[0] == 0
    assert (np.diff(record.times) >= 0.0).all()
    assert (np.abs(np.diff(record.values)) == 1).all()
    assert record.occupation.sum(axis=1) == pytest.approx(np.ones(3))
    assert record.occupation.shape[1] == record.values.max() + 1


def test_what_was_not_recorded_cannot_be_read() -> None:
    path = queue(1, 0.5, Erlang(2)).path(SEED)
    with pytest.raises(mc.InputError, match="was not recorded"):
        path.record("node[0]")
    with pytest.raises(mc.InputError, match="no state variable 'nod'"):
        path.record("nod")


def test_long_queues_get_the_room_they_need() -> None:
    path = queue(1, 4.0, Deterministic()).path(SEED, ["node[0]"])
    path.advance(1, 400.0)
    assert path.jobs[0] > 1000
    record = path.record("node[0]")
    assert record.occupation.shape == (1, record.values[: len(record.values)].max() + 1)
    assert record.occupation.sum() == pytest.approx(1.0)


def test_the_time_scale_is_that_of_arrivals_and_departures() -> None:
    simulation = queue(2, 1.5, Erlang(2))
    path = simulation.path(SEED)
    assert path.advance(0, 10.0).shape == (0, len(simulation.names))
    path.advance(1, 2e3)
    assert simulation.time_scale == pytest.approx(2e3 / path.events, rel=0.1)
