"""The command that writes index tables."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from mdpcloud import runtime
from mdpcloud.cli import app
from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_c import to_c
from mdpcloud.indices.table_lua import to_lua

SCENARIO = """
format = 1
system = "cloud_routing"
name = "two nodes"
time_unit = "minute"
cost_unit = "euro"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 2
service_rate = 1.0
abandonment_rate = 0.5
[[parameters.nodes]]
servers = 1
service_rate = 3.0
abandonment_rate = 0.5
fee = 0.25
[compare]
ties = "last"
"""

OWN = '''
from dataclasses import dataclass

from mdpcloud.indices.table_building import index_table_of


@dataclass(frozen=True)
class Own:
    """A system of one's own."""

    rate: float = 1.0

    def model(self, caps=None):
        return None

    def index_table(self, ties, policies, states):
        return index_table_of({"mine": [[0.0, 0.5], [0.25]]}, 0.3, ties=ties, service_rates=(1, 2))


@dataclass(frozen=True)
class Bare:
    """Nothing but a model."""

    def model(self, caps=None):
        return None
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["indices", *map(str, arguments)])


def printed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


def test_json_says_all_that_a_dispatcher_has_to_know(file: Path) -> None:
    record = json.loads(printed(file))
    policies = record.pop("policies")
    assert record.pop("generator").startswith("mdpcloud ")
    assert record == {
        "format": "mdpcloud index table",
        "version": 1,
        "system": "cloud_routing",
        "name": "two nodes",
        "scenario_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "units": {"time": "minute", "cost": "euro", "index": "euro per job"},
        "state": "jobs at the node, in service and waiting",
        "outside_cost": 0.4,
        "ties": {"rule": "last", "order": [1, 0], "margin": 1e-13 * 0.4},
        "nodes": [
            {"name": "node 0", "servers": 2, "charge": 0.0},
            {"name": "node 1", "servers": 1, "charge": 0.0},
        ],
    }
    assert list(policies) == ["individually_optimal", "policy_improvement", "restless_bandit"]
    assert [[one["beyond"] for one in nodes] for nodes in policies.values()] == [
        ["refuse", "last"]
    ] * 3


def test_json_is_what_the_schema_and_the_runtime_take(file: Path) -> None:
    text = printed(file)
    schema = json.loads(
        Path(runtime.__file__).with_name("indices").joinpath("index_table.schema.json").read_text()
    )
    Draft202012Validator(schema).validate(json.loads(text))
    (file.parent / "indices.json").write_text(text, encoding="utf-8")
    table = runtime.load(file.parent / "indices.json")
    assert table.names == ("individually_optimal", "policy_improvement", "restless_bandit")
    assert table.nodes == ("node 0", "node 1")
    assert table.policy("restless_bandit")((9, 0)) == 2


def test_the_other_forms_are_those_of_the_same_table(file: Path) -> None:
    table = IndexTable.from_json(printed(file))
    assert printed(file, "--format", "c") == to_c(table)
    assert printed(file, "--format", "lua") == to_lua(table)
    text = printed(file, "--format", "csv").splitlines()
    lines = list(csv.DictReader(line for line in text if not line.startswith("#")))
    found: dict[tuple[str, int], list[float]] = {}
    for line in lines:
        found.setdefault((line["policy"], int(line["node"])), []).append(float(line["index"]))
    for policy, nodes in table.policies.items():
        for k, node in enumerate(nodes):
            refused = [float("inf")] * (node.beyond == "refuse")
            assert found.pop((policy, k)) == [*node.index, *refused]
    assert not found


@pytest.mark.parametrize("form", ["json", "lua"])
def test_nodes_that_never_refuse_are_noted_beside_the_table(file: Path, form: str) -> None:
    result = run(file, "--format", form)
    assert "never refuses" not in result.stdout
    noted = " ".join(result.stderr.split())
    assert "note: nodes[1]: outsourcing costs 0.4, and a job there never more than 0.25" in noted
    assert "nodes[0]" not in noted


def test_where_every_node_refuses_there_is_no_note(file: Path) -> None:
    cheap = SCENARIO.replace("outside_cost = 0.4", "outside_cost = 0.2")
    file.write_text(cheap, encoding="utf-8")
    assert run(file).stderr == ""


def test_policies_and_the_length_of_endless_tables_can_be_chosen(file: Path) -> None:
    table = IndexTable.from_json(printed(file, "--policy", "restless_bandit", "--states", 200))
    (nodes,) = table.policies.values()
    assert list(table.policies) == ["restless_bandit"]
    assert [len(node.index) < 200 for node in nodes] == [True, False]
    assert len(nodes[1].index) == 200


def test_a_system_of_ones_own_has_tables_too(file: Path) -> None:
    (file.parent / "own.py").write_text(OWN, encoding="utf-8")
    file.write_text('format = 1\nsystem = "own.py:Own"\nname = "row"', encoding="utf-8")
    record = json.loads(printed(file))
    assert (record["system"], record["name"]) == ("own.py:Own", "row")
    assert record["ties"]["order"] == [1, 0]
    assert record["policies"] == {
        "mine": [
            {"index": [0.0], "beyond": "refuse"},
            {"index": [0.25], "beyond": "last"},
        ]
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "restles_bandit"], "index policy 'restles_bandit' is unknown; there are"),
        (["--policy", "bernoulli_split"], "index policy 'bernoulli_split' is unknown; there are"),
        (["--states", "0"], "states must be a whole number from 1"),
        (["--format", "xml"], "'xml'"),
    ],
)
def test_a_wrong_option_exits_with_2(file: Path, arguments: list[Any], message: str) -> None:
    assert message in " ".join(failed(file, *arguments).split())


def test_a_system_without_index_tables_says_so(file: Path) -> None:
    (file.parent / "own.py").write_text(OWN, encoding="utf-8")
    file.write_text('format = 1\nsystem = "own.py:Bare"', encoding="utf-8")
    assert "the system 'own.py:Bare' has no index tables" in failed(file)
