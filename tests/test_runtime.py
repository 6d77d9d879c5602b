"""The runtime: decisions of the library's index rules, verdicts on files, one file to be copied."""

from __future__ import annotations

import ast
import copy
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdpcloud import runtime
from mdpcloud.errors import InputError
from mdpcloud.indices import rho_is_monotone
from mdpcloud.indices.bounds import upper_bound
from mdpcloud.indices.table import IndexTable
from mdpcloud.systems import CloudRouting, Node
from tests.indices.test_table import RECORD
from tests.systems.cases import general_nodes, numbers

INDEX_POLICIES = CloudRouting.policy_names[1:]
TIES = ("first", "last", "fastest", "slowest")

patient_nodes = st.builds(
    Node,
    servers=st.integers(1, 3),
    service_rate=numbers(0.3, 4.0),
    abandonment_rate=st.just(0.0),
    holding_cost=numbers(0.01, 0.5),
    room=st.integers(1, 6),
)
some_nodes = st.lists(general_nodes | patient_nodes, min_size=1, max_size=3)
with_twins = some_nodes.map(lambda nodes: tuple((nodes + nodes[:1])[:3]))
some_systems = st.builds(
    CloudRouting,
    some_nodes.map(tuple) | with_twins,
    numbers(0.2, 9.0),
    numbers(0.05, 4.0),
    st.sampled_from(["begin_service", "end_service"]),
)
# --- decisions ------------------------------------------------------------------------------------


def decider(system: CloudRouting, name: str, ties: str, states: int | None = None) -> Any:
    text = system.index_table(ties, [name], states).to_json()
    return runtime.loads(text).policy(name), json.loads(text)["policies"][name]


def library(system: CloudRouting, name: str, ties: str, shape: tuple[int, ...]) -> Any:
    """Decisions of the library's own rule in every state of a box."""
    rule: Any = system.heuristic(name, ties).rule
    return np.broadcast_to(rule(SimpleNamespace(node=tuple(np.indices(shape)))), shape)


@settings(max_examples=20, deadline=None)
@given(some_systems, st.sampled_from(INDEX_POLICIES), st.sampled_from(TIES), st.integers(1, 9))
def test_every_decision_is_that_of_the_librarys_index_rule(
    system: CloudRouting, name: str, ties: str, states: int
) -> None:
    choose, columns = decider(system, name, ties, states)
    lengths = [len(column["index"]) for column in columns]
    assume(np.prod([n + 2 for n in lengths]) <= 1500)
    shape = tuple(
        n + 2 if column["beyond"] == "refuse" else n
        for n, column in zip(lengths, columns, strict=True)
    )
    wanted = library(system, name, ties, shape)
    assert all(choose(x) == wanted[x] for x in np.ndindex(shape))


@settings(max_examples=20, deadline=None)
@given(some_systems, st.sampled_from(INDEX_POLICIES), st.data())
def test_beyond_a_table_the_decision_is_that_at_its_last_entry(
    system: CloudRouting, name: str, data: st.DataObject
) -> None:
    choose, columns = decider(system, name, "fastest", 3)
    state = [data.draw(st.integers(0, 2 * len(column["index"]) + 300)) for column in columns]
    ends = [
        max(len(column["index"]) - 1, 0) if column["beyond"] == "last" else len(column["index"])
        for column in columns
    ]
    assert choose(state) == choose([min(x, end) for x, end in zip(state, ends, strict=True)])


@settings(max_examples=20, deadline=None)
@given(some_systems, st.sampled_from(INDEX_POLICIES), st.data())
def test_beyond_a_table_the_price_paid_is_within_what_the_index_can_still_rise(
    system: CloudRouting, name: str, data: st.DataObject
) -> None:
    assume(all(map(rho_is_monotone, system._theory)))
    choose, columns = decider(system, name, "fastest", 3)
    state = [data.draw(st.integers(0, len(column["index"]) + 40)) for column in columns]
    rule: Any = system.heuristic(name).rule
    prices = [rule.prices(k, x)[x] for k, x in enumerate(state)]
    choice = choose(state)
    assert (choice == 0) == np.isinf(min(prices))
    if choice:
        k = choice - 1
        rise = max(upper_bound(system._theory[k]) - columns[k]["index"][-1], 0.0)
        beyond = columns[k]["beyond"] == "last" and state[k] >= len(columns[k]["index"])
        assert prices[k] <= min(prices) + (rise if beyond else 0.0) + 1e-12


def test_equal_nodes_go_by_the_order_of_ties() -> None:
    nodes = (Node(1, 1.0, 0.5), Node(1, 2.0, 0.5), Node(1, 2.0, 0.5))
    system = CloudRouting(nodes, 3.0, 0.4)
    chosen = {ties: decider(system, "individually_optimal", ties)[0]((0, 0, 0)) for ties in TIES}
    assert chosen == {"first": 1, "last": 3, "fastest": 2, "slowest": 1}


def test_a_node_that_takes_no_job_is_passed_over() -> None:
    choose = runtime.loads(json.dumps(RECORD)).policy("restless_bandit")
    assert [choose((0, x)) for x in range(4)] == [2, 2, 2, 2]
    refusing = {"mine": [{"index": [], "beyond": "refuse"}] * 2}
    choose = runtime.loads(json.dumps({**RECORD, "policies": refusing})).policy("mine")
    assert choose((0, 0)) == 0


@pytest.mark.parametrize(
    "state",
    [(3.0, 1), (np.int64(3), np.int8(1)), (Fraction(3), True), np.array([3, 1]), [3, 1.0]],
    ids=repr,
)
def test_whole_numbers_of_any_type_are_states(state: Any) -> None:
    choose = runtime.loads(json.dumps(RECORD)).policy("policy_improvement")
    assert choose(state) == choose((3, 1)) == 2


@pytest.mark.parametrize("jobs", [-1, 1.5, float("nan"), float("inf"), None, "1", 2j])
def test_a_number_of_jobs_that_is_none_is_refused(jobs: Any) -> None:
    choose = runtime.loads(json.dumps(RECORD)).policy("policy_improvement")
    with pytest.raises(runtime.TableError, match="jobs at 'node 1' must be a whole number >= 0"):
        choose((0, jobs))


@pytest.mark.parametrize("state", [(), (0,), (0, 0, 0), 3, None, ([], 0)])
def test_a_state_that_does_not_fit_is_refused(state: Any) -> None:
    choose = runtime.loads(json.dumps(RECORD)).policy("policy_improvement")
    with pytest.raises(runtime.TableError, match="a state must be a sequence of 2 whole numbers"):
        choose(state)


def test_a_huge_number_of_jobs_is_a_state() -> None:
    choose = runtime.loads(json.dumps(RECORD)).policy("policy_improvement")
    assert choose((10**400, 10**400)) == 2


def test_an_unknown_policy_is_refused() -> None:
    table = runtime.loads(json.dumps(RECORD))
    assert table.names == ("policy_improvement", "restless_bandit")
    with pytest.raises(runtime.TableError, match="'PI' is unknown; there are policy_improvement, "):
        table.policy("PI")


# --- verdicts on files ----------------------------------------------------------------------------

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.sampled_from([0.0, 1.0, 2.0, "", "last", "refuse", "first", "a" * 64, "\ud800"])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with each key in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    inner = [value[key] for key in keys if isinstance(value[key], (dict, list))]
    return [(value, key) for key in keys] + [place for one in inner for place in places(one)]


@st.composite
def changed_documents(draw: st.DrawFn) -> str:
    """The record with one to three places changed, left out, doubled or added."""
    document = copy.deepcopy(RECORD)
    for _ in range(draw(st.integers(1, 3))):
        found = places(document)
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from(["replace", "drop", "double", "add"]))
        if change == "replace":
            container[key] = draw(values)
        elif change == "drop":
            del container[key]
        elif isinstance(container, dict):
            container[draw(st.text(max_size=2))] = container[key] if change == "double" else 1
        else:
            container.append(copy.deepcopy(container[key]) if change == "double" else draw(values))
    return json.dumps(document)


@st.composite
def changed_texts(draw: st.DrawFn) -> str:
    """The text of the record with a piece cut out, doubled or written over."""
    text = json.dumps(RECORD)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(start + 8, len(text))))
    piece = draw(st.sampled_from(["", text[start:end] * 2, "1", "null", "NaN", "-", ",", "\0"]))
    return text[:start] + piece + text[end:]


def verdicts(text: str) -> tuple[bool, bool]:
    found = []
    for read, error in ((IndexTable.from_json, InputError), (runtime.loads, runtime.TableError)):
        try:
            read(text)
            found.append(True)
        except error:
            found.append(False)
    return found[0], found[1]


@settings(max_examples=100, deadline=None)
@given(changed_documents() | changed_texts())
def test_the_runtime_takes_what_the_library_takes(text: str) -> None:
    library_takes, runtime_takes = verdicts(text)
    assert library_takes == runtime_takes


DEAR = {"policies": {"mine": [{"index": [1.7e308], "beyond": "last"}] * 2}}


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"outside_cost": 1}, True),
        ({"outside_cost": 10**400}, False),
        ({"outside_cost": True}, False),
        ({"version": 1.0}, False),
        ({"version": True}, False),
        ({"scenario_sha256": None}, True),
        ({"scenario_sha256": "a" * 64 + "\n"}, False),
        ({"name": "\ud800"}, False),
        ({"name": "\ud83d\ude00"}, True),
        ({"nodes": RECORD["nodes"][:1] * 2}, False),
        ({"nodes": [{"name": n, "servers": 10**30, "charge": -1} for n in "ab"]}, True),
        ({"nodes": [{"name": n, "servers": 1.0, "charge": 0} for n in "ab"]}, False),
        ({"ties": {"rule": "first", "order": [0, True], "margin": 0}}, False),
        ({"ties": {"rule": "first", "order": [0, 0], "margin": 0}}, False),
        ({"ties": {"rule": "first", "order": [0, 1], "margin": -0.0}}, True),
        ({"policies": {"mine": [{"index": [], "beyond": "last"}] * 2}}, False),
        ({"policies": {"mine": [{"index": [], "beyond": "refuse"}]}}, False),
        (DEAR, True),
        ({"nodes": [{"name": n, "servers": 1, "charge": 1.7e308} for n in "ab"], **DEAR}, False),
        ({"nodes": [{"name": n, "servers": 1, "charge": -1.7e308} for n in "ab"], **DEAR}, True),
        ({"ties": {"rule": "first", "order": [0, 1], "margin": 1.7e308}, **DEAR}, False),
    ],
)
def test_library_and_runtime_agree_on_odd_files(fields: dict[str, Any], taken: bool) -> None:
    assert verdicts(json.dumps({**RECORD, **fields})) == (taken, taken)


def test_every_mistake_is_named_with_its_place() -> None:
    wrong = {
        **RECORD,
        "outside_cost": "much",
        "nodes": [{"name": "", "servers": 0, "charge": float("nan"), "colour": "red"}, 3],
        "policies": {"mine": [{"index": [0.1, True], "beyond": "refse"}]},
        "other": 3,
    }
    del wrong["units"]
    with pytest.raises(runtime.TableError) as caught:
        runtime.loads(json.dumps(wrong))
    for part in (
        "units is missing",
        "other is not known",
        "outside_cost must be a finite number, not 'much'",
        "nodes[0].name must be a text that is not empty, not ''",
        "nodes[0].servers must be a whole number >= 1, not 0",
        "nodes[0].charge must be a finite number, not nan",
        "nodes[0].colour is not known",
        "nodes[1] must be an object with name, servers, charge, not 3",
        "policies.mine[0].index[1] must be a finite number, not True",
        "policies.mine[0].beyond must be refuse or last, not 'refse'",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be a JSON object, not list"),
        (json.dumps(RECORD)[:-1] + ', "version": 1}', "the key 'version' is given twice"),
    ],
)
def test_what_is_no_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(runtime.TableError, match=message):
        runtime.loads(text)


def test_a_file_of_a_later_version_says_so() -> None:
    with pytest.raises(runtime.TableError, match="version 2; this file reads"):
        runtime.loads(json.dumps({**RECORD, "version": 2}))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "indices.json").write_bytes(b"\xff")
    with pytest.raises(runtime.TableError, match=r"indices.json: .* UTF-8"):
        runtime.load(tmp_path / "indices.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy,node,state,index", "is not JSON, the only form read here"),
        (json.dumps({**RECORD, "state": ""}), "state must be a text that is not empty"),
    ],
)
def test_what_is_wrong_with_a_file_begins_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "my.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(runtime.TableError) as caught:
        runtime.load(file)
    assert str(caught.value).startswith(f"{file}: index table")
    assert message in str(caught.value)


def test_a_table_tells_of_which_scenario_it_is() -> None:
    assert runtime.loads(json.dumps(RECORD)).scenario_sha256 == RECORD["scenario_sha256"]
    unknown = {**RECORD, "scenario_sha256": None}
    assert runtime.loads(json.dumps(unknown)).scenario_sha256 is None


# --- one file -------------------------------------------------------------------------------------

SOURCE = Path(runtime.__file__)


def test_the_runtime_imports_the_standard_library_only() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 8))
    names = [
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("arguments", "code", "output", "error"),
    [
        (["policy_improvement", "3", "0"], 0, "2\n", ""),
        (["policy_improvement", "3"], 1, "", "error: a state must be a sequence of 2"),
        (["policy_improvement", "-1", "0"], 1, "", "error: jobs at 'node 0' must be a whole"),
        (["mine", "3", "0"], 1, "", "error: policy 'mine' is unknown"),
        (["policy_improvement", "1" * 5000, "0"], 1, "", "error: Exceeds the limit"),
        ([], 1, "", "error: usage: python runtime.py TABLE POLICY"),
    ],
)
def test_a_copy_of_the_file_decides_from_the_shell(
    tmp_path: Path, arguments: list[str], code: int, output: str, error: str
) -> None:
    shutil.copy(SOURCE, tmp_path / "runtime.py")
    (tmp_path / "indices.json").write_text(json.dumps(RECORD), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "runtime.py", "indices.json", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, output)
    assert done.stderr.startswith(error)


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "indices.json").write_text(json.dumps(RECORD), encoding="utf-8")
    place = str(tmp_path / "indices.json")
    assert runtime._main([place, "restless_bandit", "3", "0"]) == "2"
    for arguments, message in (
        ([place], "usage: "),
        ([str(tmp_path / "none.json"), "mine"], "none.json: No such file"),
        ([place, "restless_bandit", "3", "x"], "jobs at 'node 1' must be a whole number"),
    ):
        with pytest.raises(runtime.TableError, match=message):
            runtime._main(arguments)
