"""What is refused, and with which words; systems, nodes, caps; pickling."""

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.model.space import Lattice
from mdpcloud.systems import CloudRouting, Node
from mdpcloud.systems.base import Truncated

GOOD = Node(2, 1.0, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers": 0}, "servers must be an integer >= 1, not 0"),
        ({"servers": -3}, "servers must be an integer >= 1, not -3"),
        ({"servers": 2.5}, "servers must be an integer >= 1, not 2.5"),
        ({"servers": True}, "servers must be an integer"),
        ({"service_rate": 0.0}, "service_rate must be a finite number > 0"),
        ({"service_rate": -1.0}, "service_rate must be a finite number > 0"),
        ({"service_rate": float("nan")}, "service_rate must be a finite number > 0"),
        ({"abandonment_rate": float("inf")}, "abandonment_rate must be a finite number >= 0"),
        ({"abandonment_rate": -0.5}, "abandonment_rate must be a finite number >= 0"),
        ({"fee": -1.0}, "fee must be a finite number >= 0"),
        ({"routing_charge": -1.0}, "routing_charge must be a finite number >= 0"),
        ({"holding_cost": "much"}, "holding_cost must be a finite number >= 0, not 'much'"),
        ({"room": 0}, "room must be an integer >= 1, not 0"),
    ],
)
def test_a_bad_node_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError) as caught:
        dataclasses.replace(GOOD, **change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": ()}, "nodes must be a list of at least 1"),
        ({"nodes": (1,)}, "nodes[0] must be a Node"),
        ({"nodes": 5}, "nodes must be a list"),
        ({"arrival_rate": 0.0}, "arrival_rate must be a finite number > 0"),
        ({"arrival_rate": -2.0}, "arrival_rate must be a finite number > 0"),
        ({"arrival_rate": float("inf")}, "arrival_rate must be a finite number > 0"),
        ({"outside_cost": 0.0}, "outside_cost must be a finite number > 0"),
        ({"outside_cost": -0.1}, "outside_cost must be a finite number > 0"),
        ({"deadline": "end"}, "deadline must be 'begin_service' or 'end_service', not 'end'"),
    ],
)
def test_a_bad_system_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError) as caught:
        dataclasses.replace(CloudRouting((GOOD,), 1.0, 0.3), **change)
    assert message in str(caught.value)


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(mc.InputError) as caught:
        CloudRouting((), -1.0, 0.0)
    assert all(word in str(caught.value) for word in ("nodes", "arrival_rate", "outside_cost"))


def test_patient_jobs_in_overload_have_no_stationary_regime() -> None:
    with pytest.raises(mc.InputError, match=r"nodes\[1\], nodes\[2\]: no abandonment_rate"):
        CloudRouting((GOOD, Node(2, 1.0, 0.0), Node(1, 1.0, 0.0)), 5.5, 0.3)


@pytest.mark.parametrize("bound", [{"room": 5}, {"holding_cost": 0.1}])
def test_a_room_or_a_holding_cost_bounds_patient_jobs_in_overload(bound: dict[str, Any]) -> None:
    node = dataclasses.replace(GOOD, abandonment_rate=0.0, **bound)
    found = mc.compare(CloudRouting((node,), 4.5, 0.3))
    assert found.optimum.kind == "exact"
    assert all(row.lower <= row.cost <= row.upper for row in found.rows)


def test_a_node_that_never_refuses_is_named_in_the_notes() -> None:
    (note,) = CloudRouting((GOOD,), 1.0, 1.2).notes
    assert "nodes[0]" in note
    assert "its room is unlimited" in note
    assert "no finite box is exact" in note
    assert CloudRouting((GOOD,), 1.0, 0.3).notes == ()


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        ((3,), r"caps has 1 numbers for 2 nodes"),
        ((3, 2, 1), r"caps has 3 numbers for 2 nodes"),
        ((3, -1), r"caps\[1\] must be a whole number"),
        ((3.5, 2), r"caps\[0\] must be a whole number"),
        (("3", 2), r"caps\[0\] must be a whole number"),
        ((True, 2), r"caps\[0\] must be a whole number"),
    ],
)
def test_bad_caps_are_refused(caps: Any, message: str) -> None:
    system = CloudRouting((GOOD, GOOD), 1.0, 0.3)
    with pytest.raises(mc.InputError, match=message):
        system.model(caps)
    with pytest.raises(mc.InputError, match=message):
        mc.compare(system, [], caps=caps)


def test_a_box_too_large_for_memory_says_how_large_it_is() -> None:
    system = CloudRouting((GOOD,) * 6, 1.0, 0.3)
    with pytest.raises(
        mc.InputError, match=r"has 1e\+18 states and needs about .* GB.*smaller caps"
    ):
        mc.solve(system.model((999,) * 6))


def test_caps_beyond_a_room_stop_at_the_room() -> None:
    system = CloudRouting((dataclasses.replace(GOOD, room=3), GOOD), 1.0, 0.3)
    assert system.model((9, 5)).space.shape == (4, 6)
    assert mc.compare(system, [], caps=(9, 9)).optimum.caps == (3, 9)


def test_an_unknown_policy_or_tie_rule_is_refused_with_a_suggestion() -> None:
    system = CloudRouting((GOOD,), 1.0, 0.3)
    with pytest.raises(mc.InputError, match="did you mean 'restless_bandit'"):
        system.heuristic("restles_bandit")
    with pytest.raises(mc.InputError, match="did you mean 'fastest'"):
        system.heuristic("restless_bandit", ties="fastes")


# --- what a system is -----------------------------------------------------------------------------


def test_a_system_takes_lists_and_numpy_numbers() -> None:
    nodes: Any = [Node(np.int64(2), np.float32(1.0), 1)]
    system = CloudRouting(nodes, np.float64(1.0), 0.3)
    assert isinstance(system.nodes, tuple)
    assert isinstance(system.nodes[0].servers, int)
    assert isinstance(system.nodes[0].abandonment_rate, float)
    assert system == CloudRouting((Node(2, 1.0, 1.0),), 1.0, 0.3)
    assert hash(system) == hash(CloudRouting((Node(2, 1.0, 1.0),), 1.0, 0.3))


def test_a_system_is_truncated_and_pickles_with_what_it_has_computed() -> None:
    system = CloudRouting((GOOD, Node(1, 3.0, 0.2)), 4.0, 0.3)
    assert issubclass(CloudRouting, Truncated)
    fresh = pickle.loads(pickle.dumps(system))
    rule = system.heuristic("policy_improvement").rule
    again = pickle.loads(pickle.dumps(system))
    assert system == fresh == again
    x = Lattice({"node": (9, 9)}).mesh()
    assert np.array_equal(rule(x), pickle.loads(pickle.dumps(rule))(x))


def test_measures_add_up() -> None:
    system = CloudRouting((GOOD, Node(1, 3.0, 0.2)), 6.0, 0.3)
    for row in mc.compare(system).rows:
        m = {name: sum(pair) / 2 for name, pair in row.measures.items()}
        assert m["abandonment_rate"] + 0.3 * m["outsourcing_rate"] == pytest.approx(row.cost)
        assert m["profit_rate"] == pytest.approx(6.0 - row.cost)
        assert m["outsourcing_probability"] == pytest.approx(m["outsourcing_rate"] / 6.0)
        assert m["abandonment_probability"] == pytest.approx(m["abandonment_rate"] / 6.0)
        for name in ("abandonment_rate", "mean_jobs", "mean_queue"):
            assert m[name] == pytest.approx(m[f"{name}[0]"] + m[f"{name}[1]"])
        for k, node in enumerate(system.nodes):
            busy = node.servers * m[f"utilisation[{k}]"]
            assert m[f"mean_jobs[{k}]"] == pytest.approx(m[f"mean_queue[{k}]"] + busy)
            lost_there, routed = m[f"abandonment_rate[{k}]"], m[f"routing_rate[{k}]"]
            assert routed == pytest.approx(node.service_rate * busy + lost_there)
            assert m[f"abandonment_probability[{k}]"] == pytest.approx(lost_there / routed)
        served = sum(
            n.servers * n.service_rate * m[f"utilisation[{k}]"] for k, n in enumerate(system.nodes)
        )
        lost = m["abandonment_rate"] + m["outsourcing_rate"]
        assert served + lost == pytest.approx(system.arrival_rate)
