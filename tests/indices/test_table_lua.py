"""Index tables as a Lua program: it decides as the runtime, and refuses tables that are broken."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdpcloud import runtime
from mdpcloud.errors import InputError
from mdpcloud.indices.table import IndexTable, TableNode
from mdpcloud.indices.table_lua import server_names, to_lua
from tests.deploy.balancer import HAPROXY, MISSING
from tests.indices.test_table import RECORD

LUA = shutil.which("lua5.4") or shutil.which("lua5.3")
needs_lua = pytest.mark.skipif(
    not LUA and bool(MISSING), reason=f"lua5.3 is not installed, and {MISSING}"
)

WALK = """
local found = dofile("table.lua")
for line in io.lines("cases.txt") do
  local policy, jobs = line:match("^(%S+) (.*)$")
  local x = {}
  for number in jobs:gmatch("%d+") do x[#x + 1] = math.tointeger(number) end
  print("choice " .. found.rules[policy](x))
end
"""


def lua(where: Path, program: str) -> str:
    """Both outputs of a Lua program; without an interpreter, HAProxy runs it when it loads it."""
    (where / "main.lua").write_text(program, encoding="utf-8")
    (where / "haproxy.cfg").write_text("global\n  lua-load main.lua\n", encoding="utf-8")
    command = [LUA, "main.lua"] if LUA else [HAPROXY, "-c", "-f", "haproxy.cfg"]
    run = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return run.stdout


def decisions(where: Path, text: str, cases: Sequence[tuple[str, Sequence[int]]]) -> list[int]:
    lines = [f"{policy} {' '.join(map(str, x))}\n" for policy, x in cases]
    (where / "cases.txt").write_text("".join(lines), encoding="utf-8")
    (where / "table.lua").write_text(text, encoding="utf-8")
    output = lua(where, WALK)
    found = [int(k) for k in re.findall(r"(?m)^choice\s+(\d+)$", output)]
    assert len(found) == len(cases), output
    return found


def changed(**fields: Any) -> IndexTable:
    return IndexTable.from_json(json.dumps({**RECORD, **fields}))


def random_record(seed: int) -> Mapping[str, Any]:
    """A table with many ties, some up to the margin, refusals at once and negative prices."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    margin = 1e-12
    coarse = rng.integers(-2, 4, 4) / 8
    near = np.concatenate([coarse, coarse + margin, coarse + 0.9 * margin, rng.normal(size=2)])

    def node_index() -> dict[str, Any]:
        beyond = str(rng.choice(["refuse", "refuse", "last"]))
        length = int(rng.integers(beyond == "last", 4))
        return {"index": rng.choice(near, length).tolist(), "beyond": beyond}

    nodes = [
        {"name": f"node {k}", "servers": 1 + k, "charge": float(rng.choice([0.0, 0.125, 1e-13]))}
        for k in range(n)
    ]
    ties = {"rule": "fastest", "order": rng.permutation(n).tolist(), "margin": margin}
    policies = {name: [node_index() for _ in range(n)] for name in ("a", "b.c")}
    return {**RECORD, "nodes": nodes, "ties": ties, "policies": policies}


@needs_lua
@pytest.mark.parametrize("seed", range(8))
def test_the_program_decides_as_the_runtime_in_every_state(tmp_path: Path, seed: int) -> None:
    table = IndexTable.from_json(json.dumps(random_record(seed)))
    loaded = runtime.loads(table.to_json())
    states = itertools.product(range(5), repeat=len(table.nodes))
    cases = list(itertools.product(loaded.names, states))
    choose: Mapping[str, Any] = {policy: loaded.policy(policy) for policy in loaded.names}
    wanted = [choose[policy](x) for policy, x in cases]
    assert decisions(tmp_path, to_lua(table), cases) == wanted


@needs_lua
def test_every_number_comes_back_exactly(tmp_path: Path) -> None:
    numbers = [0.1, 1 / 3, 5e-324, -1e-5, 1.7976931348623157e308, 123456789.123456789, -0.0]
    policy = [{"index": numbers, "beyond": "last"}, RECORD["policies"]["policy_improvement"][1]]
    table = changed(policies={"p": policy})
    (tmp_path / "table.lua").write_text(to_lua(table), encoding="utf-8")
    program = """
    for _, number in ipairs(dofile("table.lua").table.policies.p[1].index) do
      print(string.format("number %a", number))
    end
    """
    output = lua(tmp_path, program)
    found = re.findall(r"(?m)^number\s+(\S+)$", output)
    assert [float.fromhex(number).hex() for number in found] == [x.hex() for x in numbers], output


@needs_lua
def test_names_with_quotes_and_line_breaks_are_kept(tmp_path: Path) -> None:
    name = 'a "base"\n]] \\ -- end ü'
    (tmp_path / "table.lua").write_text(to_lua(changed(name=name)), encoding="utf-8")
    output = lua(tmp_path, 'print((dofile("table.lua").table.name:gsub("\\n", "|")))')
    assert name.replace("\n", "|") in output


BROKEN = {
    "syntax": ("local TABLE = {", "local TABLE = ", "near"),
    "version": ("version = 1,", "version = 2,", "version 1, not mdpcloud index table, version 2"),
    "entry": (
        "0.0, 0.1, 0.2",
        "0.0, 0.2",
        "policy_improvement, node 0: no finite index of state 2",
    ),
    "number": ("0.0, 0.1, 0.2", "0.0, 0/0, 0.2", "node 0: no finite index of state 1"),
    "price": ("0.0, 0.1, 0.2", "0.0, 1.7e308, 0.2", "node 0: no finite price of state 1"),
    "surplus": ("0.0, 0.1, 0.2", "0.0, 0.1, 0.2, 0.3", "node 0: 4 indices of 3 states"),
    "order": ("order = { 1, 0 }", "order = { 1, 1 }", "each of 0 ... 1 once"),
    "short order": ("order = { 1, 0 }", "order = { 1 }", "ties.order has 1 nodes; there are 2"),
    "beyond": ('beyond = "last"', 'beyond = "ask"', "beyond must be refuse or last"),
    "charge": ("charge = 0.05", "charge = nil", "node 1: charge must be finite"),
    "servers": ("servers = 2", "servers = 0", "node 0: servers must be >= 1"),
}


@needs_lua
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_table_is_refused_and_the_place_is_named(tmp_path: Path, what: str) -> None:
    before, after, message = BROKEN[what]
    nodes = [{**RECORD["nodes"][0], "charge": 1e307}, RECORD["nodes"][1]]
    text = to_lua(changed(nodes=nodes))
    assert before in text
    (tmp_path / "table.lua").write_text(text.replace(before, after, 1), encoding="utf-8")
    assert message in lua(tmp_path, 'dofile("table.lua")')


def test_the_file_says_what_the_table_says() -> None:
    text = to_lua(changed())
    for part in (
        "mdpcloud index table, version 1",
        RECORD["scenario_sha256"],
        'state = "jobs at the node, in service and waiting"',
        "outside_cost = 0.25",
        'rule = "fastest", margin = 2.5e-14',
        'index = "euro per job"',
        "--   use-server %[var(txn.node)] if { var(txn.node) -m found }",
        "--   server node0 ADDRESS:PORT maxconn 2",
    ):
        assert part in text


def test_servers_are_called_as_nodes_as_far_as_haproxy_allows() -> None:
    def node(name: str) -> TableNode:
        return TableNode(name, servers=1, charge=0.0)

    names = ["node 0", "Zürich/1", "??", "-i", "a-b"]
    assert server_names(list(map(node, names))) == ["node0", "Zrich1", "node2", "i", "a-b"]
    with pytest.raises(
        InputError, match=r"nodes\[1\].name 'a b' gives the server name 'ab', as does"
    ):
        server_names([node("ab"), node("a b")])
    with pytest.raises(InputError, match="as does outside"):
        server_names([node("out side")])


def test_a_policy_whose_name_haproxy_cannot_read_is_refused() -> None:
    with pytest.raises(
        InputError, match="policy 'my policy': its name is part of a name in HAProxy"
    ):
        to_lua(changed(policies={"my policy": RECORD["policies"]["restless_bandit"]}))
