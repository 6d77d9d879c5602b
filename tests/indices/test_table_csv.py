"""Index tables as CSV."""

from __future__ import annotations

import csv
import json

from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_csv import to_csv
from tests.indices.test_table import RECORD


def test_every_state_has_a_line_and_the_last_one_goes_on() -> None:
    text = to_csv(IndexTable.from_json(json.dumps(RECORD)))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == [
        "policy,node,state,index,and_beyond",
        "policy_improvement,0,0,0.0,no",
        "policy_improvement,0,1,0.1,no",
        "policy_improvement,0,2,0.2,no",
        "policy_improvement,0,3,inf,yes",
        "policy_improvement,1,0,0.125,yes",
        "restless_bandit,0,0,inf,yes",
        "restless_bandit,1,0,0.0625,no",
        "restless_bandit,1,1,0.1,yes",
    ]


def test_the_whole_table_can_be_made_again() -> None:
    text = to_csv(IndexTable.from_json(json.dumps({**RECORD, "name": "two\n# lines, and a comma"})))
    facts = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# "))
    found = {name: json.loads(value) for name, value in facts.items()}
    found["nodes"] = [found.pop(f"node {k}") for k in range(2)]
    policies: dict[str, list[dict[str, object]]] = {}
    index: list[float] = []
    rows = (line for line in text.splitlines() if not line.startswith("#"))
    for row in csv.DictReader(rows):
        index.append(float(row["index"]))
        if row["and_beyond"] == "yes":
            refuses = index[-1] == float("inf")
            node = {"index": index[:-1] if refuses else index, "beyond": "last"}
            policies.setdefault(row["policy"], []).append(
                {**node, "beyond": "refuse"} if refuses else node
            )
            index = []
    assert {**found, "policies": policies} == {**RECORD, "name": "two\n# lines, and a comma"}
