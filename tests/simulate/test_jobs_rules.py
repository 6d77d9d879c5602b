from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.laws import Deterministic, Lognormal
from mdpcloud.policies.index_rule import IndexRule
from mdpcloud.simulate import jobs_rules
from mdpcloud.simulate.jobs import JobSimulation
from mdpcloud.systems import CloudRouting, Node
from tests.simulate.job_cases import jobs_of, queue

SEED = np.random.SeedSequence(5)
SYSTEM = CloudRouting((Node(1, 2.0, 0.5, room=3), Node(2, 1.0, 0.5, room=4)), 3.0, 0.4)
LAW = Lognormal(1.0)


def averages(rule: Any, system: CloudRouting = SYSTEM) -> np.ndarray:
    return jobs_of(system, rule, LAW).path(SEED).advance(4, 100.0)


def shortest(x: Any) -> Any:
    """Join the node of fewer jobs, go outside where both are full."""
    full = [x.node[0] >= 3, x.node[1] >= 4]
    fewer = np.where(x.node[1] < x.node[0], 2, 1)
    return np.where(full[0] & full[1], 0, np.where(full[0], 2, np.where(full[1], 1, fewer)))


@pytest.mark.parametrize("system", [SYSTEM, CloudRouting.example()], ids=["rooms", "example"])
def test_prices_and_a_function_of_the_same_answers_give_the_same_path(system: CloudRouting) -> None:
    rule = system.heuristic("policy_improvement").rule
    assert rule is not None
    assert (averages(rule, system) == averages(lambda x: rule(x), system)).all()


def test_a_policy_and_its_names_and_numbers_give_the_same_path() -> None:
    wanted = averages(shortest)
    names = np.array(["outside", "node 0", "node 1"])
    model = SYSTEM.model((3, 4))
    policy = mc.policy(model, shortest)
    for same in (
        policy,
        SimpleNamespace(policy=policy),
        {"arrival": shortest},
        lambda x: str(names[shortest(x)]),
        lambda x: float(shortest(x)),
    ):
        assert (averages(same) == wanted).all()


@pytest.mark.parametrize("action", [1, "node 0", np.int32(1), {"node 0": 1}])
def test_one_action_for_all_jobs_may_be_a_name_or_a_number(action: Any) -> None:
    found = jobs_of(CloudRouting((Node(1, 2.0, 0.5),), 3.0, 0.4), action).path(SEED)
    rates = found.advance(1, 50.0)[0]
    assert rates[2] == 0.0
    assert rates[5] > 0.0


def test_probabilities_that_depend_on_the_state_are_those_of_the_state() -> None:
    parts = {
        a: (lambda x, a=a: 1.0 * (shortest(x) == a)) for a in range(3)
    }  # all of them 0 or 1: the same choices as the rule, whatever is drawn
    assert (averages(parts) == averages(shortest)).all()


def test_jobs_drawn_for_a_full_room_go_outside() -> None:
    simulation = queue(1, 5.0, Deterministic(), room=1)
    found = dict(zip(simulation.names, simulation.path(SEED).advance(1, 4e3)[0], strict=True))
    assert found["routing_rate[0]"] + found["outsourcing_rate"] == pytest.approx(5.0, rel=0.05)
    assert found["utilisation[0]"] == pytest.approx(5.0 / 6.0, rel=0.02)


@pytest.mark.parametrize(
    "rule",
    [
        lambda x: 1 + np.argmin(x.node),
        {1: lambda x: 1.0 / (1.0 + x.node[0]), 0: lambda x: 1.0 - 1.0 / (1 + x.node[0])},
    ],
    ids=["answers", "probabilities"],
)
def test_a_table_of_answers_grows_and_is_emptied_without_a_change(
    rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = CloudRouting((Node(1, 2.0, 0.5), Node(2, 1.0, 0.5)), 3.0, 0.4)
    wanted = averages(rule, system)
    monkeypatch.setattr(jobs_rules, "FIRST_ANSWERS", 4)
    for most in (1 << 24, 16):
        monkeypatch.setattr(jobs_rules, "MOST_KEYS", most)
        assert (averages(rule, system) == wanted).all()


def test_each_state_is_asked_about_once() -> None:
    asked = []

    def rule(x: Any) -> int:
        asked.append(tuple(int(i) for i in x.node))
        return int(shortest(x))

    averages(rule)
    assert len(asked) == len(set(asked)) <= 20


def test_tables_of_prices_grow_with_the_queue() -> None:
    system = CloudRouting((Node(1, 1.0, 0.01, fee=0.1),), 5.0, 0.9)
    simulation = jobs_of(system, system.heuristic("restless_bandit").rule)
    path = simulation.path(SEED, ["node[0]"])
    path.advance(1, 500.0)
    assert path.record("node[0]").values.max() > 200


def test_many_nodes_are_routed_to_without_a_lattice() -> None:
    nodes = tuple(Node(1 + k % 3, 1.0 + 0.03 * k, 0.3) for k in range(100))
    system = CloudRouting(nodes, 500.0, 0.5)
    rule = system.heuristic("individually_optimal").rule
    assert isinstance(rule, IndexRule)
    tables = np.array([rule.prices(k, 99) for k in range(100)])

    def scanned(x: Any) -> int:
        prices = tables[np.arange(100), x.node]
        near = prices <= prices.min() + rule.margin
        return 0 if np.isinf(prices.min()) else 1 + next(k for k in rule.order if near[k])

    paths = [jobs_of(system, one).path(SEED).advance(1, 2.0) for one in (rule, scanned)]
    assert (paths[0] == paths[1]).all()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("node 7", "gives 'node 7', which is no action; did you mean 'node"),
        (7, "the rule gives 7, which is no action"),
        (True, "the rule gives True"),
        (lambda x: 3, r"the rule in state \(node=\(0, 0\)\) gives 3"),
        (lambda x: [1, 2], "it must return one value"),
        (lambda x: x.nodes[0], "x has no axis 'nodes'; did you mean 'node'"),
        (lambda x: 1, "takes action 'node 0' in state .* where it is not allowed: the room is 3"),
        ({"node 0": 0.5}, r"the probabilities of the actions are \[0.0, 0.5, 0.0\]; they must"),
        ({"node 0": 1.5, "node 1": -0.5}, "must be >= 0 and sum to 1"),
        ({"node 0": "all"}, "the probability of 'node 0' is 'all'; it must be a number"),
        ({"node 0": lambda x: 0.5}, r"in state \(node=\(0, 0\)\); they must be >= 0"),
        ({"node 0": lambda x: 1.0}, "'node 0' with positive probability in state"),
        (
            IndexRule((lambda last: np.zeros(last + 1),) * 2, (0, 0)),
            r"order of ties is \[0, 0\]; it must name each of the 2 nodes once",
        ),
        (
            IndexRule((lambda last: np.full(last + 1, np.nan),) * 2, (0, 1)),
            r"prices of node 0 in states 0..63 are",
        ),
        (
            IndexRule((lambda last: np.zeros(last + 1),) * 2, (0, 1)),
            "takes action 'node 0' in state .* where it is not allowed",
        ),
    ],
)
def test_wrong_rules_are_refused_with_the_place(rule: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        averages(rule)


def test_policies_of_other_models_or_smaller_boxes_are_refused() -> None:
    small = mc.policy(SYSTEM.model((1, 1)), lambda x: np.where(x.node[0] < 1, 1, 0))
    free = JobSimulation(jobs_of(SYSTEM, 0).pools[:1], 3.0, 0.4, False, 0)
    with pytest.raises(mc.InputError, match="made for another model"):
        JobSimulation(free.pools, 3.0, 0.4, False, small)
    averages(small)
    wrong = mc.Policy({"arrival": np.array([1, 1])}, {"arrival": ("outside", "node 0")}, (2,))
    path = JobSimulation(free.pools, 3.0, 0.4, False, wrong).path(SEED)
    with pytest.raises(mc.InputError, match=r"nothing about state \(node=\(2,\)\).*up to \[1\]"):
        path.advance(1, 100.0)


def test_a_policy_that_changes_with_time_is_refused() -> None:
    model = SYSTEM.model((1, 1))
    timed = mc.solve(model, mc.FiniteHorizon(1.0)).policy
    with pytest.raises(mc.InputError, match="changes with time"):
        averages(timed)
