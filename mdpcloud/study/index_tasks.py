"""Tasks on the indices of a routing system: their properties, and their curves.

Both take the index policies of the scenario's ``policies``, all three by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario
    from mdpcloud.systems.cloud_routing import CloudRouting

__all__ = ["CURVES", "PROPERTIES", "index_curves", "index_properties"]

BEYOND = 20  # states beyond the most servers of a node that the curves show
CURVES: Mapping[str, type] = {"index": str, "node": int, "state": int, "value": float}
PROPERTIES: Mapping[str, type] = {
    "index": str,
    "property": str,
    "violation": float,
    "violated": bool,
    "node": int,
    "state": int,
    "change": str,
}
"""Columns of the rows of each task, and what stands there."""


def index_properties(scenario: Scenario) -> Mapping[str, Any]:
    """The largest violation of each property P1-P6 by each index: a row each.

    See `mdpcloud.systems.routing_properties`.
    """
    from mdpcloud.systems import routing_properties as properties

    system = _routing(scenario)
    found = properties.index_properties(system, _indices(scenario))
    rows = [
        {
            "index": one.index,
            "property": one.name,
            "violation": one.violation,
            "violated": one.violated,
            "node": one.node,
            "state": one.state,
            "change": one.change,
        }
        for one in found
    ]
    return {"rows": rows}


def index_curves(scenario: Scenario) -> Mapping[str, Any]:
    """Each index at each node in each of the first states: a row each."""
    from mdpcloud.systems.routing_properties import index_tables

    system = _routing(scenario)
    last = max(node.servers for node in system.nodes) + BEYOND
    rows = [
        {"index": index, "node": k, "state": state, "value": value}
        for index in _indices(scenario)
        for k, table in enumerate(index_tables(system, index, last))
        for state, value in enumerate(table.tolist())
    ]
    return {"rows": [row for row in rows if row["value"] != float("inf")]}


def _routing(scenario: Scenario) -> CloudRouting:
    from mdpcloud.systems.cloud_routing import CloudRouting

    if not isinstance(scenario.system, CloudRouting):
        raise InputError(
            f"this task is on the indices of cloud_routing; {scenario.system_name} has none"
        )
    return scenario.system


def _indices(scenario: Scenario) -> list[str]:
    from mdpcloud.systems.routing_properties import INDICES

    chosen = scenario.compare.policies
    found = [name for name in INDICES if chosen is None or name in chosen.values()]
    if not found:
        raise InputError(f"policies must name an index policy for this task: {', '.join(INDICES)}")
    return found
