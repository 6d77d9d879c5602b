"""Index tables as a C header: it compiles without warnings and decides as the runtime does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdpcloud import runtime
from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_c import to_c
from mdpcloud.systems import CloudRouting, Node
from tests.indices.test_table import RECORD

COMPILER = shutil.which("cc")
WARNINGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]

MAIN = """
#include "table.h"
#include <stdio.h>

int main(void)
{
    long jobs[MDPCLOUD_NODES];
    int policy, k;
    while (scanf("%d", &policy) == 1) {
        for (k = 0; k < MDPCLOUD_NODES; k++)
            if (scanf("%ld", &jobs[k]) != 1)
                return 1;
        printf("%d\\n", mdpcloud_decide((enum mdpcloud_policy)policy, jobs));
    }
    return 0;
}
"""


def system(outside_cost: float) -> CloudRouting:
    twins = Node(2, 1.0, 0.5, routing_charge=0.05)
    nodes = (twins, Node(1, 3.0, 0.5, fee=0.3, holding_cost=0.02, room=4), twins)
    return CloudRouting(nodes, 5.0, outside_cost)


def odd() -> IndexTable:
    """Names that are no identifiers and hold comments, prices that nearly overflow, many ties."""
    policies = {
        name: [
            {"index": [0.0, 0.0, -9e306, 1.7e308], "beyond": "last"},
            {"index": [0.0, 2e-17, 0.1], "beyond": "refuse"},
        ]
        for name in ("nodes", "a b", "A-b", "int", "ünï", "*/ int x; /*")
    }
    nodes = [{"name": "*/", "servers": 2, "charge": -1.7e308}, RECORD["nodes"][0]]
    ties = {"rule": "last", "order": [1, 0], "margin": 1e-17}
    changes = {"name": "a */ b /* c ??/\n\\", "nodes": nodes, "ties": ties, "policies": policies}
    return IndexTable.from_json(json.dumps({**RECORD, **changes}))


TABLES = {
    "refusing": lambda: system(0.4).index_table("last"),
    "endless": lambda: system(2.0).index_table("fastest", states=8),
    "record": lambda: IndexTable.from_json(json.dumps(RECORD)),
    "odd": odd,
}


def decisions(folder: Path, table: IndexTable, cases: list[tuple[int, ...]]) -> list[int]:
    """What the compiled header decides in each case, a policy and a state."""
    assert COMPILER is not None
    (folder / "table.h").write_text(to_c(table), encoding="utf-8")
    (folder / "main.c").write_text(MAIN, encoding="utf-8")
    subprocess.run([COMPILER, *WARNINGS, "main.c", "-o", "main"], cwd=folder, check=True)
    asked = "\n".join(" ".join(map(str, case)) for case in cases)
    done = subprocess.run(
        [folder / "main"], input=asked, capture_output=True, text=True, check=True
    )
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc)")
@pytest.mark.parametrize("name", TABLES)
def test_the_header_decides_as_the_runtime_in_every_state(name: str, tmp_path: Path) -> None:
    table: IndexTable = TABLES[name]()
    shape = [
        max(len(nodes[k].index) for nodes in table.policies.values()) + 2
        for k in range(len(table.nodes))
    ]
    box: list[tuple[int, ...]] = [*np.ndindex(*shape)]
    loaded = runtime.loads(table.to_json())
    wanted: list[int] = []
    for policy in loaded.names:
        choose: Any = loaded.policy(policy)
        wanted += [choose(x) for x in box]
    cases = [(p, *x) for p in range(len(loaded.names)) for x in box]
    assert decisions(tmp_path, table, cases) == wanted


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc)")
def test_a_negative_number_of_jobs_has_no_decision(tmp_path: Path) -> None:
    table = IndexTable.from_json(json.dumps(RECORD))
    assert decisions(tmp_path, table, [(0, -1, 0), (1, 0, -5), (0, 2_000_000_000, 0)]) == [
        -1,
        -1,
        2,
    ]


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc)")
@pytest.mark.parametrize("name", TABLES)
def test_an_unknown_policy_has_no_decision(name: str, tmp_path: Path) -> None:
    table: IndexTable = TABLES[name]()
    jobs = (0,) * len(table.nodes)
    wrong = [len(table.policies), 99, -1, -(2**31), 2**31 - 1]
    assert decisions(tmp_path, table, [(policy, *jobs) for policy in wrong]) == [-1] * len(wrong)


def test_the_header_says_what_the_table_says() -> None:
    text = to_c(IndexTable.from_json(json.dumps(RECORD)))
    for part in (
        'format: "mdpcloud index table"',
        "version: 1",
        f'scenario_sha256: "{RECORD["scenario_sha256"]}"',
        'state: "jobs at the node, in service and waiting"',
        "outside_cost: 0.25",
        'ties: {"rule": "fastest", "order": [1, 0], "margin": 2.5e-14}',
        '"index": "euro per job"',
        "const long jobs[MDPCLOUD_NODES] = {0};",
        "mdpcloud_decide(MDPCLOUD_POLICY_IMPROVEMENT, jobs);",
    ):
        assert part in text
