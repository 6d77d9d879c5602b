"""Indices, thresholds and boxes against the reference numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdpcloud.indices import (
    Node,
    accepts,
    critical_cost,
    exact_cap,
    individually_optimal,
    policy_improvement,
    restless_bandit,
)

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "routing.json").read_text(encoding="utf-8")
)
DEADLINE = {"DBS": "begin_service", "DES": "end_service"}


def name(case: dict[str, Any]) -> str:
    return f"{case['name']}-{case['kind']}"


def one_node(case: dict[str, Any]) -> Node:
    return Node(case["m"], float(case["mu"]), float(case["theta"]), deadline=DEADLINE[case["kind"]])


def nodes_of(case: dict[str, Any]) -> list[Node]:
    return [one_node({**node, "kind": case["kind"]}) for node in case["nodes"]]


def indices_of(case: dict[str, Any], last: int) -> Iterator[tuple[str, int, np.ndarray]]:
    for k, node in enumerate(nodes_of(case)):
        own_rate = float(case["BS_mp"]["lam_k"][k])
        yield "IO", k, individually_optimal(node, last)
        yield "RB", k, restless_bandit(node, case["lam"], last)
        yield "PI", k, policy_improvement(node, own_rate, last)


@pytest.mark.parametrize("case", REFERENCE["single_node"], ids=name)
def test_every_index_of_a_reference_node_is_met(case: dict[str, Any]) -> None:
    node, lam = one_node(case), float(case["lam"])
    last = max(map(int, case["IO"]))
    for key, index in {
        "IO": individually_optimal(node, last),
        "RB": restless_bandit(node, lam, last),
        "PI_at_lam": policy_improvement(node, lam, last),
    }.items():
        states = list(map(int, case[key]))
        wanted = np.array(list(case[key].values()), dtype=float)
        assert index[states] == pytest.approx(wanted, rel=1e-13, abs=0)


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_every_index_of_a_reference_system_is_met(case: dict[str, Any]) -> None:
    for key, k, index in indices_of(case, 50):
        wanted = case["index"][key][k]
        assert index[list(map(int, wanted))] == pytest.approx(list(wanted.values()), abs=1e-13)


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_every_threshold_of_a_reference_system_is_met(case: dict[str, Any]) -> None:
    for key, k, index in indices_of(case, 300):
        assert accepts(index, case["C"]).sum() == case["thresholds"][key][k]


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_the_exact_box_of_every_reference_system_is_met(case: dict[str, Any]) -> None:
    nodes = nodes_of(case)
    critical = critical_cost(nodes, case["C"])
    assert [exact_cap(node, critical) for node in nodes] == case["box_K"]
