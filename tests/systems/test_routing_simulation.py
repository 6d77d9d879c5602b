from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.laws import Deterministic, Erlang, Exponential, Hyperexponential, Lognormal
from mdpcloud.simulate.events import EventSimulation
from mdpcloud.simulate.jobs import JobSimulation
from mdpcloud.systems import CloudRouting, Node
from tests.simulate.job_cases import assert_near, means

SEED = np.random.SeedSequence(2)
NODES = (Node(1, 2.0, 0.5, room=3), Node(2, 1.0, 0.5))
PLAIN = CloudRouting(NODES, 3.0, 0.4)
ERLANG = replace(PLAIN, nodes=(NODES[0], replace(NODES[1], service=Erlang(3))))
POLICIES = pytest.mark.parametrize("name", CloudRouting.policy_names)


@POLICIES
def test_exponential_systems_are_simulated_by_their_events(name: str) -> None:
    simulation = PLAIN.simulation(name)
    assert isinstance(simulation, EventSimulation)
    heuristic = PLAIN.heuristic(name)
    wanted: dict[str, Any] = {"cost": heuristic.cost, **heuristic.measures}
    if heuristic.cost is None:
        model = PLAIN.model(heuristic.caps)
        exact = mc.evaluate(model, mc.policy(model, heuristic.rule))
        wanted = {key: float(np.mean(pair)) for key, pair in exact.measures.items()}
        wanted["cost"] = exact.gain
    assert_near(means(simulation, time=4e4), wanted)


@POLICIES
def test_other_laws_are_simulated_job_by_job(name: str) -> None:
    simulation = ERLANG.simulation(name)
    assert isinstance(simulation, JobSimulation)
    path = simulation.path(SEED)
    assert path.advance(2, 50.0).shape == (2, len(simulation.names))
    assert simulation.names == PLAIN.simulation(name).names


def test_an_exponential_law_that_is_named_changes_nothing() -> None:
    named = replace(NODES[0], service=Exponential(), patience=Exponential())
    system = CloudRouting((named, NODES[1]), 3.0, 0.4)
    assert system.is_markovian
    assert system.notes == PLAIN.notes
    model = system.model((3, 4))
    assert mc.solve(model).gain == mc.solve(PLAIN.model((3, 4))).gain


def test_indices_and_thresholds_are_those_of_the_rates_and_a_note_says_so() -> None:
    assert not ERLANG.is_markovian
    assert ERLANG.index_table() == PLAIN.index_table()
    assert ERLANG.exact_caps() == PLAIN.exact_caps()
    assert ERLANG.notes[0].startswith("service of nodes[1] is erlang (scv 0.3333): indices,")
    many = replace(
        PLAIN, nodes=(replace(NODES[0], service=Erlang(2), patience=Deterministic()),) * 3
    )
    assert "service of nodes[1] is erlang (scv 0.5) and 3 more: indices" in many.notes[0]


@pytest.mark.parametrize("field", ["service", "patience"])
def test_there_is_no_model_of_other_laws(field: str) -> None:
    node = replace(NODES[1], **{field: Lognormal(2.0)})  # type: ignore[arg-type]
    system = replace(PLAIN, nodes=(NODES[0], node))
    with pytest.raises(
        mc.InputError, match=rf"{field} of nodes\[1\] is lognormal \(scv 2\).*mdpcloud.simulate"
    ):
        system.model()


def test_patience_without_a_rate_has_no_law() -> None:
    with pytest.raises(mc.InputError, match="patience has a law, but abandonment_rate is 0"):
        Node(1, 1.0, 0.0, room=3, patience=Erlang(2))
    with pytest.raises(mc.InputError, match="service must be a law: exponential, deterministic"):
        Node(1, 1.0, 0.5, service="erlang")  # type: ignore[arg-type]


def test_the_closed_form_of_a_split_holds_for_exponential_laws_only() -> None:
    split = ERLANG.heuristic("bernoulli_split")
    assert split.cost is None
    assert split.measures == {}
    assert PLAIN.heuristic("bernoulli_split").cost is not None


def test_a_split_turns_jobs_away_from_full_rooms() -> None:
    system = replace(PLAIN, nodes=(NODES[0], replace(NODES[1], room=4)))
    split = system.heuristic("bernoulli_split")
    assert split.rule is not None
    model = system.model((3, 4))
    policy = mc.policy(model, split.rule)
    shares = system.split.rates / system.arrival_rate
    assert policy.table()[1, :3, :4] == pytest.approx(np.full((3, 4), shares[0]))
    assert (policy.table()[1, 3] == 0.0).all()
    assert pickle.loads(pickle.dumps(split.rule)).keys() == {"outside", "node 0", "node 1"}
    found = mc.evaluate(model, policy)
    assert found.gain == pytest.approx(split.cost, rel=1e-9)
    for name, value in split.measures.items():
        assert np.mean(found.measures[name]) == pytest.approx(value, rel=1e-8, abs=1e-9)


def test_policies_of_a_box_and_solutions_are_simulated_on_it() -> None:
    model = PLAIN.model((3, 5))
    solution = mc.solve(model)
    paths = [
        PLAIN.simulation(policy).path(SEED).advance(1, 50.0)
        for policy in (solution, solution.policy)
    ]
    assert (paths[0] == paths[1]).all()
    assert ERLANG.simulation(solution).path(SEED).advance(1, 50.0)[0, 0] > 0.0


@pytest.mark.parametrize("system", [PLAIN, ERLANG], ids=["events", "jobs"])
def test_what_is_no_policy_is_refused(system: CloudRouting) -> None:
    with pytest.raises(mc.InputError, match="give the policy to be simulated; there are bernoulli"):
        system.simulation(None)
    with pytest.raises(mc.InputError, match="policy 'restless' is unknown"):
        system.simulation("restless")


def test_jobs_begin_in_the_empty_system() -> None:
    rule: Any = {"node 1": 1.0}
    ERLANG.simulation(rule, start={"node": (0, 0)})
    with pytest.raises(mc.InputError, match="paths begin in the empty system"):
        ERLANG.simulation(rule, start={"node": (1, 0)})


def test_equal_indices_go_to_the_node_that_wins_ties() -> None:
    twins = CloudRouting((Node(1, 1.0, 0.5, service=Erlang(2)),) * 2, 0.1, 0.4)
    for ties, k in (("first", 0), ("last", 1)):
        simulation = twins.simulation("restless_bandit", ties=ties)
        rates = dict(zip(simulation.names, simulation.path(SEED).advance(1, 3e3)[0], strict=True))
        assert rates[f"routing_rate[{k}]"] > 5 * rates[f"routing_rate[{1 - k}]"]


def test_more_variable_services_cost_more_and_less_variable_ones_less() -> None:
    costs = []
    for law in (Deterministic(), None, Hyperexponential(scv=6.0)):
        nodes = tuple(replace(node, service=law, room=None) for node in NODES)
        system = CloudRouting(nodes, 2.4, 0.6)
        simulation = system.simulation("policy_improvement")
        costs.append(means(simulation, time=3e4)["cost"][0])
    assert costs == sorted(costs)


def test_laws_drawn_too_seldom_for_how_much_they_vary_are_doubted() -> None:
    node = mc.systems.Node(1, 1.0, 0.0, room=1, service=mc.laws.Hyperexponential(scv=1e6))
    system = mc.systems.CloudRouting((node,), arrival_rate=1.0, outside_cost=1.0)
    with pytest.warns(mc.SimulationWarning, match="drawn too seldom.*service of node 0"):
        found = mc.simulate(system, if_free, rng=1, events=100_000)
    assert found.gain.upper < 0.5  # the exact cost: rare long services were not seen
    assert any("drawn too seldom" in note for note in found.notes)


@pytest.mark.parametrize("start", [3, "x", {"nod": (0,)}, {"node": (0, 0)}, {"node": (1,)}])
def test_starts_that_jobs_cannot_have_are_refused(start: object) -> None:
    node = mc.systems.Node(1, 1.0, 0.0, room=1, service=mc.laws.Deterministic())
    system = mc.systems.CloudRouting((node,), arrival_rate=1.0, outside_cost=1.0)
    with pytest.raises(mc.InputError, match="start "):
        mc.simulate(system, if_free, rng=1, events=1000, start=start)


def if_free(x: Any) -> Any:
    return np.where(x.node[0] < 1, "node 0", "outside")


def test_services_too_short_for_the_clock_are_refused() -> None:
    node = mc.systems.Node(1, 1e11, 0.0, room=1, service=mc.laws.Deterministic())
    system = mc.systems.CloudRouting((node,), arrival_rate=1.0, outside_cost=1.0)
    with pytest.raises(mc.InputError, match="mean service of node 0 is 1e-11"):
        mc.simulate(system, if_free, rng=1, events=1000)
