"""Index tables: what a file must hold, and that every mistake is named."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mdpcloud.errors import InputError
from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_schema import index_table_schema

RECORD: dict[str, Any] = {
    "format": "mdpcloud index table",
    "version": 1,
    "generator": "mdpcloud 0.1.0",
    "system": "cloud_routing",
    "name": "two nodes",
    "scenario_sha256": "0123456789abcdef" * 4,
    "units": {"time": "minute", "cost": "euro", "index": "euro per job"},
    "state": "jobs at the node, in service and waiting",
    "outside_cost": 0.25,
    "ties": {"rule": "fastest", "order": [1, 0], "margin": 2.5e-14},
    "nodes": [
        {"name": "node 0", "servers": 2, "charge": 0.0},
        {"name": "node 1", "servers": 1, "charge": 0.05},
    ],
    "policies": {
        "policy_improvement": [
            {"index": [0.0, 0.1, 0.2], "beyond": "refuse"},
            {"index": [0.125], "beyond": "last"},
        ],
        "restless_bandit": [
            {"index": [], "beyond": "refuse"},
            {"index": [0.0625, 0.1], "beyond": "last"},
        ],
    },
}


def changed(**fields: Any) -> str:
    return json.dumps({**RECORD, **fields})


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        IndexTable.from_json(text)
    return str(caught.value)


def test_a_table_is_read_and_written_as_it_is() -> None:
    table = IndexTable.from_json(json.dumps(RECORD))
    assert json.loads(table.to_json()) == RECORD
    assert IndexTable.from_json(table.to_json()) == table


def test_every_mistake_is_named_with_its_place() -> None:
    message = refused(
        changed(
            outside_cost="much",
            nodes=[{"name": "", "servers": 0, "charge": float("nan"), "colour": "red"}],
            policies={"mine": [{"index": [0.1, True], "beyond": "refse"}]},
            other=3,
        )
    )
    for part in (
        "outside_cost: Input should be a valid number, not 'much'",
        "nodes[0].name: String should have at least 1 character, not ''",
        "nodes[0].servers: Input should be greater than or equal to 1, not 0",
        "nodes[0].charge: Input should be a finite number, not nan",
        "nodes[0].colour is not known",
        "policies.mine[0].index[1]: Input should be a valid number, not True",
        "policies.mine[0].beyond: Input should be 'refuse' or 'last', not 'refse'",
        "other is not known",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 2}, "version 2; this version of mdpcloud reads 'mdpcloud index table', ver"),
        ({"version": 1.0}, "version 1.0"),
        ({"format": "table"}, "format 'table'"),
        ({"scenario_sha256": "abc"}, "scenario_sha256 must be 64 hexadecimal digits, not 'abc'"),
        ({"nodes": []}, "nodes: Tuple should have at least 1 item"),
        ({"policies": {}}, "policies: Dictionary should have at least 1 item"),
        ({"nodes": RECORD["nodes"][:1]}, "ties.order has 2 nodes; there are 1; policies.policy_"),
        ({"nodes": RECORD["nodes"][:1] * 2}, "nodes[1].name is 'node 0', as nodes[0] has it"),
        (
            {"ties": {"rule": "first", "order": [0, 0], "margin": 0.0}},
            "ties: order must have each of 0 ... 1 once, not [0, 0]",
        ),
        (
            {"policies": {"mine": [{"index": [], "beyond": "last"}] * 2}},
            "policies.mine[0]: index must have an entry where beyond is 'last'; policies.mine[1]",
        ),
        (
            {
                "policies": {"mine": [{"index": [-1.7e308, 1.7e308], "beyond": "last"}] * 2},
                "ties": {"rule": "first", "order": [1, 0], "margin": 1e307},
            },
            "policies.mine[1].index must be finite with charge and margin added",
        ),
        ({"policies": {"": RECORD["policies"]["restless_bandit"]}}, "must not be empty"),
    ],
)
def test_what_is_wrong_between_the_fields_is_named(fields: dict[str, Any], message: str) -> None:
    assert message in refused(changed(**fields))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (
            json.dumps({**RECORD, "name": "\ud800"}),
            "index table: Invalid JSON: unexpected end of hex",
        ),
        ("[]", "must be a JSON object, not list"),
        (json.dumps(RECORD)[:-1] + ', "version": 1}', "the key 'version' is given twice"),
    ],
)
def test_what_is_no_table_is_refused(text: str, message: str) -> None:
    assert message in refused(text)


# --- the schema -----------------------------------------------------------------------------------

SCHEMA = json.loads(
    files("mdpcloud.indices").joinpath("index_table.schema.json").read_text(encoding="utf-8")
)


def test_the_schema_in_the_package_is_that_of_the_dataclass() -> None:
    assert index_table_schema() == SCHEMA
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_takes_a_table_and_refuses_what_is_none() -> None:
    validator = Draft202012Validator(SCHEMA)
    assert validator.is_valid(RECORD)
    for wrong in (
        {"other": 1},
        {"version": 2},
        {"scenario_sha256": "abc"},
        {"nodes": []},
        {"policies": {"": RECORD["policies"]["restless_bandit"]}},
        {"policies": {"mine": [{"index": [], "beyond": "last"}] * 2}},
    ):
        assert not validator.is_valid({**RECORD, **wrong})
