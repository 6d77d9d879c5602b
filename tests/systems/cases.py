"""Routing systems: those of the reference numbers, and small random ones."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from mdpcloud.systems import CloudRouting, Node

REFERENCE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "reference" / "routing.json").read_text(encoding="utf-8")
)
DEADLINE = {"DBS": "begin_service", "DES": "end_service"}
SHORT = {
    "BS": "bernoulli_split",
    "IO": "individually_optimal",
    "PI": "policy_improvement",
    "RB": "restless_bandit",
}


def name(case: dict[str, Any]) -> str:
    """Name of a reference case or sweep, for test ids."""
    if "name" in case:
        return f"{case['name']}-{case['kind']}"
    return f"{case['tag']}-{case['param']}-{case['value']}-{case['kind']}"


def system_of(case: dict[str, Any]) -> CloudRouting:
    """System of a reference case or sweep."""
    nodes = [n.values() if isinstance(n, dict) else n for n in case["nodes"]]
    return CloudRouting(
        tuple(Node(*node) for node in nodes), case["lam"], case["C"], DEADLINE[case["kind"]]
    )


def case(wanted: str) -> dict[str, Any]:
    """The reference case of a name such as ``B6-DBS``."""
    found: dict[str, Any] = next(c for c in REFERENCE["mdp"] if name(c) == wanted)
    return found


def costs_of(case: dict[str, Any]) -> dict[str, float]:
    """Policy costs of a reference case, ties to the lowest label."""
    costs = {key: case["cost"][key] for key in ("IO", "PI", "RB")}
    return {"BS": case["BS"]["cost"] if "BS" in case else case["cost"]["BS"], **costs}


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Round numbers, so that failures are readable."""
    return st.floats(low, high).map(lambda x: float(f"{x:.3g}"))


nodes = st.builds(Node, st.integers(1, 3), numbers(0.3, 4.0), numbers(0.1, 6.0))

general_nodes = st.builds(
    Node,
    servers=st.integers(1, 3),
    service_rate=numbers(0.3, 4.0),
    abandonment_rate=numbers(0.1, 6.0),
    fee=numbers(0.4, 3.0),
    routing_charge=st.just(0.0) | numbers(0.01, 0.3),
    holding_cost=st.just(0.0) | numbers(0.01, 0.5),
    room=st.none() | st.integers(1, 6),
)


def systems(
    node: st.SearchStrategy[Node] = nodes, *, most: int = 2, states: int = 400, dearest: float = 0.9
) -> st.SearchStrategy[CloudRouting]:
    """Systems of one to `most` nodes with an exact box of at most so many states."""
    drawn = st.builds(
        CloudRouting,
        st.lists(node, min_size=1, max_size=most).map(tuple),
        numbers(0.2, 9.0),
        numbers(0.05, dearest),
        st.sampled_from(["begin_service", "end_service"]),
    )
    return drawn.filter(lambda system: 0 < box_states(system) <= states)


def box_states(system: CloudRouting) -> int:
    """States of the exact box; 0 where there is none."""
    found = 1
    for cap in system.exact_caps():
        found *= 0 if cap is None else cap + 1
    return found
