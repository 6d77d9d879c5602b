"""Study files: what they expand to, and what is wrong with them."""

import itertools
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.scenario import read_scenario
from mdpcloud.study.file import checking
from mdpcloud.study.file.reading import read_study
from mdpcloud.study.records.identity import content_of, key_of
from mdpcloud.study.study import Study
from mdpcloud.study.tasks import TASKS
from mdpcloud.systems import CloudRouting, Node

BASE = """
format = 1
system = "cloud_routing"
name = "two nodes"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 2
service_rate = 2.0
abandonment_rate = 0.5
[[parameters.nodes]]
servers = 3
service_rate = 1
abandonment_rate = 0.5
[solve]
tolerance = 1e-7
[compare]
policies = ["policy_improvement", "rules.py:rule"]
"""

OWN = """
import dataclasses

import numpy as np

import mdpcloud as mc
from mdpcloud.errors import InputError


def rule(x):
    return 0


def at_cost(system, value):
    if value == 7:
        raise ZeroDivisionError("no seven")
    if value == 8:
        raise InputError("no eight")
    if value == 9:
        return None
    return dataclasses.replace(system, outside_cost=value * system.arrival_rate)


def task(scenario):
    return {"rows": []}


@dataclasses.dataclass(frozen=True)
class Own:
    rate: float
    parts: tuple[float, ...] = ()
    more: dict | None = None

    def __post_init__(self):
        1 / self.rate

    def model(self, caps=None):
        return caps


@dataclasses.dataclass(frozen=True)
class Arrays:
    rates: tuple[float, ...] = (1.0, 2.0)
    twice: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "rates", np.array(self.rates))
        object.__setattr__(self, "twice", 2 * self.twice)

    def model(self, caps=None):
        return caps


number = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "two.toml").write_text(BASE, encoding="utf-8")
    (tmp_path / "bases" / "rules.py").write_text("def rule(x): return 1", encoding="utf-8")
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    return tmp_path


def study(folder: Path, text: str, base: str = 'base = "bases/two.toml"') -> Study:
    path = folder / "loads.toml"
    path.write_text(f"format = 1\n{base}\n{textwrap.dedent(text)}", encoding="utf-8")
    return read_study(path)


def labels(found: Study) -> list[dict[str, Any]]:
    return [dict(one.labels) for one in found.instances]


def by_hand(folder: Path, change: Callable[[str], str], name: str = "by_hand.toml") -> str:
    """Key of a scenario file that is the base with its text changed."""
    path = folder / "bases" / name
    path.write_text(change(BASE), encoding="utf-8")
    return key_of(content_of(read_scenario(path), "compare"))


# --- what a study expands to ----------------------------------------------------------------------


def test_a_study_without_axes_is_its_base(folder: Path) -> None:
    found = study(folder, "")
    (one,) = found.instances
    assert (found.name, found.path, found.task.name) == ("loads", folder / "loads.toml", "compare")
    assert (str(one), one.labels, one.number) == ("the base", {}, 0)
    assert one.scenario == read_scenario(folder / "bases" / "two.toml")
    assert one.key == by_hand(folder, lambda text: text)


def test_the_product_has_the_first_axis_outermost(folder: Path) -> None:
    found = study(
        folder,
        """
        [[axes]]
        path = "parameters.nodes[0].servers"
        values = [4, 1, 2]
        [[axes]]
        path = "load"
        first = 0.5
        last = 1.5
        step = 0.25
        [[axes]]
        path = "parameters.deadline"
        values = ["begin_service", "end_service"]
        labels = ["DBS", "DES"]
        label = "kind"
        """,
    )
    loads, kinds = [0.5, 0.75, 1.0, 1.25, 1.5], {"DBS": "begin_service", "DES": "end_service"}
    expected = [*itertools.product([4, 1, 2], loads, kinds)]
    assert found.labels == ("nodes[0].servers", "load", "kind")
    assert [tuple(one.values()) for one in labels(found)] == expected
    assert [one.number for one in found.instances] == [*range(30)]
    for one, (servers, load, kind) in zip(found.instances, expected, strict=True):
        system = one.scenario.system
        assert [node.servers for node in system.nodes] == [servers, 3]
        assert system.arrival_rate == load * (servers * 2.0 + 3.0)
        assert system.deadline == kinds[kind]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_the_size_is_the_product_of_the_sizes(sizes: list[int]) -> None:
    paths = ["arrival_rate", "outside_cost", "nodes[0].service_rate", "nodes[1].abandonment_rate"]
    axes = "".join(
        f'[[axes]]\npath = "parameters.{path}"\nfirst = 0.1\nlast = 0.{size}\nstep = 0.1\n'
        for path, size in zip(paths, sizes, strict=False)
    )
    found = read_inline(axes)
    assert len(found.instances) == len(found.unique) == math.prod(sizes)


def read_inline(text: str) -> Study:
    """A study of a base that it holds itself."""
    import tempfile

    base = BASE.replace('"rules.py:rule"', '"restless_bandit"').replace("format = 1", "")
    base = base.replace("[parameters]", "[base.parameters]").replace("[solve]", "[base.solve]")
    base = base.replace("[[parameters.nodes]]", "[[base.parameters.nodes]]")
    base = base.replace("[compare]", "[base.compare]")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inline.toml"
        path.write_text(f"format = 1\n{text}\n[base]\n{base}", encoding="utf-8")
        return read_study(path)


def test_instances_are_those_of_scenario_files_written_by_hand(folder: Path) -> None:
    found = study(
        folder,
        """
        set = { "solve.tolerance" = 1e-6, "simulate.seed" = 4 }
        [[axes]]
        path = "parameters.nodes[*].abandonment_rate"
        values = [1, 0.25]
        [[axes]]
        paths = ["parameters.arrival_rate", "parameters.nodes[1].room"]
        values = [[3.5, 9], [4, 12]]
        [[axes]]
        path = "parameters.nodes[0].holding_cost"
        first = 0.1
        last = 0.3
        step = 0.1
        """,
    )
    expected = []
    for patience in ("1.0", "0.25"):
        for rate, room in (("3.5", 9), ("4.0", 12)):
            for cost in ("0.1", "0.2", "0.3"):
                changes = {
                    "abandonment_rate = 0.5": f"abandonment_rate = {patience}",
                    "arrival_rate = 3.0": f"arrival_rate = {rate}",
                    "servers = 2": f"servers = 2\nholding_cost = {cost}",
                    "servers = 3": f"servers = 3\nroom = {room}",
                    "tolerance = 1e-7": "tolerance = 0.000001\n[simulate]\nseed = 4",
                }
                expected.append(by_hand(folder, lambda text, c=changes: _replaced(text, c)))
    assert [one.key for one in found.instances] == expected
    assert len({*expected}) == 12


def _replaced(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.floats(0.1, 9) | st.integers(1, 9)),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
def test_quick_checks_find_what_whole_checks_find(rows: list[tuple[int, float]]) -> None:
    values = [[servers, rate] for servers, rate in rows]
    paths = '["parameters.nodes[1].servers", "parameters.arrival_rate"]'
    found = read_inline(f"[[axes]]\npaths = {paths}\nvalues = {values}\n")
    first = found.instances[0].scenario.system
    for one, (servers, rate) in zip(found.instances, rows, strict=True):
        nodes = (first.nodes[0], Node(servers, 1.0, 0.5))
        assert one.scenario.system == CloudRouting(nodes, float(rate), 0.4)
        assert type(one.scenario.system.arrival_rate) is float


def test_blocks_stand_one_after_the_other_inside_the_common_axes(folder: Path) -> None:
    found = study(
        folder,
        """
        set = { "parameters.outside_cost" = 0.3 }
        [[axes]]
        path = "load"
        values = [0.5, 1.0]
        [[blocks]]
        name = "one node"
        set = { "parameters.nodes" = [{ servers = 4, service_rate = 1.0, abandonment_rate = 2.0 }] }
        [[blocks]]
        name = "two nodes"
        set = { "parameters.outside_cost" = 0.2 }
        [[blocks.axes]]
        path = "parameters.nodes[1].servers"
        values = [5, 6]
        """,
    )
    assert labels(found) == [
        {"block": "one node", "load": 0.5},
        {"block": "one node", "load": 1.0},
        {"block": "two nodes", "load": 0.5, "nodes[1].servers": 5},
        {"block": "two nodes", "load": 0.5, "nodes[1].servers": 6},
        {"block": "two nodes", "load": 1.0, "nodes[1].servers": 5},
        {"block": "two nodes", "load": 1.0, "nodes[1].servers": 6},
    ]
    systems = [one.scenario.system for one in found.instances]
    assert [system.outside_cost for system in systems] == [0.3, 0.3, 0.2, 0.2, 0.2, 0.2]
    assert [len(system.nodes) for system in systems] == [1, 1, 2, 2, 2, 2]
    assert [system.arrival_rate for system in systems] == [2.0, 4.0, 4.5, 5.0, 9.0, 10.0]


def test_a_random_design_is_a_study_with_the_same_points_every_time(folder: Path) -> None:
    text = """
        [[axes]]
        path = "parameters.deadline"
        values = ["begin_service", "end_service"]
        [[axes]]
        design = "latin_hypercube"
        size = 10
        seed = 1
        [axes.ranges]
        "parameters.nodes[0].servers" = { first = 1, last = 10, whole = true }
        load = { first = 0.5, last = 1.5 }
        "parameters.nodes[*].abandonment_rate" = { first = 0.1, last = 10, spacing = "logarithmic" }
        "parameters.outside_cost" = { among = [0.25, 0.5] }
        """
    found, again = study(folder, text), study(folder, text)
    keys = [one.key for one in found.instances]
    assert keys == [one.key for one in again.instances]
    assert keys != [
        one.key for one in study(folder, text.replace("seed = 1", "seed = 2")).instances
    ]
    assert len(found.unique) == 20
    for deadline in (found.instances[:10], found.instances[10:]):
        systems = [one.scenario.system for one in deadline]
        assert sorted(system.nodes[0].servers for system in systems) == [*range(1, 11)]
        capacities = [sum(node.servers * node.service_rate for node in s.nodes) for s in systems]
        loads = [s.arrival_rate / c for s, c in zip(systems, capacities, strict=True)]
        assert sorted(int((load - 0.5) * 10 + 1e-9) for load in loads) == [*range(10)]
        assert sorted(system.outside_cost for system in systems) == [0.25] * 5 + [0.5] * 5


def test_rules_of_the_study_and_of_the_base_are_relative_to_their_own_folders(
    folder: Path,
) -> None:
    def rule_of(found: Study) -> Any:
        rule: Any = (found.instances[0].scenario.compare.policies or {})["rule"]
        return rule(None)

    assert rule_of(study(folder, "")) == 1
    assert rule_of(study(folder, 'policies = ["own.py:rule"]')) == 0
    assert rule_of(study(folder, 'set = { "compare.policies" = ["own.py:rule"] }')) == 0
    found = study(
        folder,
        """
        [[axes]]
        path = "compare.policies"
        values = [["own.py:rule"], ["restless_bandit", "own.py:rule"]]
        labels = ["own", "both"]
        """,
    )
    assert rule_of(found) == 0
    assert [len(one.scenario.compare.policies or {}) for one in found.instances] == [1, 2]
    assert labels(found) == [{"policies": "own"}, {"policies": "both"}]


def test_functions_of_the_users_change_the_system_after_the_document(folder: Path) -> None:
    found = study(
        folder,
        """
        task = "own.py:task"
        [[axes]]
        path = "own.py:at_cost"
        values = [0.1, 0.2]
        [[axes]]
        path = "parameters.arrival_rate"
        values = [2.0, 4.0]
        """,
    )
    assert found.labels == ("at_cost", "arrival_rate")
    assert [one.scenario.system.outside_cost for one in found.instances] == [0.2, 0.4, 0.4, 0.8]
    assert found.task.name == "own.py:task"
    assert found.task.run(found.instances[0].scenario) == {"rows": []}


def test_a_system_of_the_users_own_is_read_whole_where_it_must_be(folder: Path) -> None:
    base = """
        [base]
        system = "own.py:Own"
        parameters = { rate = 1, parts = [1, 2] }
        [[axes]]
        path = "parameters.rate"
        values = [1, 2, 3]
        [[axes]]
        path = "parameters.more"
        values = [{ a = 1 }, { b = [2] }]
        labels = ["a", "b"]
        """
    found = study(folder, base, base="")
    systems = [one.scenario.system for one in found.instances]
    assert [system.rate for system in systems] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert [system.more for system in systems] == [{"a": 1}, {"b": [2]}] * 3
    assert len({id(system.more) for system in systems}) == 6  # what may change is shared by none
    assert {system.parts for system in systems} == {(1.0, 2.0)}
    assert found.instances[0].scenario.system_name == "own.py:Own"


def test_a_system_that_changes_its_parameters_is_read_as_a_file_is(folder: Path) -> None:
    found = study(
        folder,
        """
        [base]
        system = "own.py:Arrays"
        parameters = { rates = [1.0, 2.0] }
        [[axes]]
        path = "parameters.twice"
        values = [1, 2, 3]
        """,
        base="",
    )
    systems = [one.scenario.system for one in found.instances]
    assert [system.twice for system in systems] == [2.0, 4.0, 6.0]
    assert [system.rates.tolist() for system in systems] == [[1.0, 2.0]] * 3
    (one,) = study(folder, "[base]\nsystem = 'own.py:Arrays'\n", base="").instances
    assert one.scenario.system.twice == 0.0


def test_outputs_are_those_of_the_file(folder: Path) -> None:
    found = study(
        folder,
        """
        name = "the loads"
        task = "evaluate"
        measures = ["mean_jobs[0]"]
        [[axes]]
        path = "load"
        values = [0.5, 1.0]
        [[tables]]
        name = "costs"
        value = "cost"
        by = ["load"]
        [[figures]]
        name = "costs"
        x = "load"
        y = "mean_jobs[0]_upper"
        where = { policy = ["policy_improvement"] }
        """,
    )
    assert (found.name, found.task.name) == ("the loads", "evaluate")
    outputs = found.outputs
    assert outputs.measures == ("mean_jobs[0]",)
    assert [(one.name, one.value, one.by) for one in outputs.tables] == [
        ("costs", "cost", ("load",))
    ]
    assert outputs.figures[0].where == {"policy": ["policy_improvement"]}
    assert study(folder, "").outputs.tables == (mc.study.Table(),)


# --- mistakes -------------------------------------------------------------------------------------


def test_what_is_wrong_with_one_key_hides_nothing_of_the_others(folder: Path) -> None:
    assert mistakes(
        folder,
        """
        task = "comparre"
        policies = ["restless_bandit", "policy_improvment"]
        set = { "parameters.outside_costs" = 0.3, "solve.tolerence" = 1e-6 }
        figures = [{ name = "f", kind = "pie" }]
        [[axes]]
        path = "parameters.arrival_rat"
        values = [1.0]
        [tables]
        name = "t"
        """,
    ) == [
        "tables must be a list of tables: [[tables]], not [tables]",
        "figures[0].kind must be 'lines' or 'distribution' or 'bars', not 'pie'",
        "task: there is no task 'comparre'; did you mean 'compare'?",
        "set: parameters.outside_costs is not known; did you mean 'outside_cost'?",
        "axes[0]: parameters.arrival_rat is not known; did you mean 'arrival_rate'?",
        "set: solve.tolerence is not known; did you mean 'tolerance'?",
        "policies[1]: the system has no policy 'policy_improvment'; did you mean "
        "'policy_improvement'?",
    ]


def test_mistakes_of_outputs_are_told_beside_all_others(folder: Path) -> None:
    assert mistakes(
        folder,
        """
        task = "evaluate"
        [[axes]]
        path = "laod"
        label = "load"
        values = [0.5, 1.0]
        [[blocks]]
        name = "one"
        [[blocks.axes]]
        path = "parameters.arrival_rate"
        label = "rate"
        values = [-1.0]
        [[tables]]
        name = "costs"
        value = "gap"
        by = ["block", "rate"]
        where = { load = 1.5, block = ["one", "two"] }
        """,
    ) == [
        "tables[0].value: there is no column 'gap'; there are instance, block, load, rate, policy, "
        "cost, lower, upper, states, notes, status, error, key; what `measures` names has columns "
        "too",
        "tables[0].where: no row has load = 1.5; there are 0.5, 1.0",
        "axes[0]: 'laod' is neither a path nor is there a method with_laod; did you mean 'load'?",
    ]


def mistakes(folder: Path, text: str, base: str = 'base = "bases/two.toml"') -> list[str]:
    with pytest.raises(mc.InputError) as caught:
        study(folder, text, base)
    first, *lines = str(caught.value).splitlines()
    assert first.startswith(f"study {folder / 'loads.toml'} has ")
    return [line.strip() for line in lines]


AXIS = "[[axes]]\npath = "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polices = []", "polices is not known; did you mean 'policies'?"),
        (
            "policies = []",
            "policies must be a list of at least 1, each a text, or left out, not []",
        ),
        ('task = "compar"', "task: there is no task 'compar'; did you mean 'compare'?"),
        ('task = "own.py:number"', "task: task 'own.py:number' must be a function of a scenario"),
        ("task = 3", "task must be a text, not 3"),
        (
            'policies = ["restles_bandit"]',
            "policies[0]: the system has no policy 'restles_bandit'; ",
        ),
        ('policies = ["own.py:rul"]', "policies[0]: own.py has no 'rul'; did you mean 'rule'?"),
        ("axes = 3", "axes must be a list, each an Axis"),
        ('axes = [{ pth = "load" }]', "axes[0].pth is not known; did you mean 'path'?"),
        (f"{AXIS}'load'\nvalues = []", "axes[0].values must be a list of at least 1"),
        (f"{AXIS}'load'\nfirst = true\nlast = 2", "axes[0].first must be a finite number, or left"),
        (
            f"{AXIS}'load'\nfirst = 1\nlast = 2",
            "axes[0]: with first and last, either points or step",
        ),
        (
            f"{AXIS}'load'\nfirst = 1\nlast = 2\npoints = 1",
            "axes[0].points must be an integer >= 2",
        ),
        (f"{AXIS}'load'\nvalues = [1, 1]", "axes[0]: values[1]: 1 is given twice"),
        (
            f"{AXIS}'parameters.arival_rate'\nvalues = [1, 2]",
            "axes[0]: parameters.arival_rate is not known; did you mean 'arrival_rate'?",
        ),
        (
            f"{AXIS}'parameters.nodes[*].srvers'\nvalues = [1, 2]",
            "axes[0]: parameters.nodes[0].srvers is not known; did you mean 'servers'?",
        ),
        (
            f"{AXIS}'parameters.node[1].servers'\nvalues = [1, 2]",
            "axes[0]: there is no list parameters.node; did you mean 'nodes'?",
        ),
        (
            f"{AXIS}'parameters.nodes[2].servers'\nvalues = [1, 2]",
            "axes[0]: parameters.nodes is a list of 2, so it has no [2]",
        ),
        (
            f"{AXIS}'paramters.arrival_rate'\nvalues = [1, 2]",
            "axes[0]: 'paramters.arrival_rate': there is no 'paramters'; did you mean",
        ),
        (
            f"{AXIS}'arrival_rate'\nvalues = [1, 2]",
            "axes[0]: 'arrival_rate' must begin with parameters: 'parameters.arrival_rate'",
        ),
        (
            f"{AXIS}'lod'\nvalues = [1, 2]",
            "axes[0]: 'lod' is neither a path nor is there a method with_lod; did you mean 'load'?",
        ),
        (
            f"{AXIS}'patience'\nvalues = [1, 2]",
            "axes[0]: 'patience' is neither a path nor is there a method with_patience; "
            "CloudRouting has load",
        ),
        (f"{AXIS}'own.py:at'\nvalues = [1]", "axes[0]: own.py has no 'at'"),
        (f"{AXIS}'own.py:number'\nvalues = [1]", "axes[0]: 'own.py:number' must be a function of"),
        (
            f"{AXIS}'load'\nvalues = [1]\n{AXIS}'load'\nvalues = [2]\nlabel = 'again'",
            "axes[1]: 'load' is changed by axes[0] too",
        ),
        (
            f"set = {{load = 2}}\n{AXIS}'load'\nvalues = [1]",
            "axes[0]: 'load' is changed by set too",
        ),
        (
            f"{AXIS}'parameters.nodes[1].room'\nvalues = [1]\n{AXIS}'parameters.nodes'\n"
            "values = [[]]",
            "axes[1]: 'parameters.nodes' would undo what axes[0] changes, "
            "'parameters.nodes[1].room'; give it before",
        ),
        (
            f"{AXIS}'parameters.outside_cost'\nvalues = [1]\nlabel = 'load'\n{AXIS}'load'\n"
            "values = [2]",
            "axes[1]: a column 'load' is there already, of axes[0]; give this one another label",
        ),
        (
            f"{AXIS}'load'\nvalues = [1]\nlabel = 'policy'",
            "axes[0]: a column 'policy' is there already, of the results",
        ),
        (
            f"{AXIS}'load'\nvalues = [1]\nlabel = 'block'\n[[blocks]]\nname = 'a'",
            "axes[0]: a column 'block' is there already, of blocks",
        ),
        ("[[blocks]]\nname = 'a'\n[[blocks]]\nname = 'a'", "blocks[1].name: 'a' is the name of"),
        ("[[tables]]\n[[tables]]", "tables[1].name: 'gaps' is the name of tables[0] too"),
        ("[[blocks]]\naxes = []", "blocks[0].name is missing; it must be a text"),
        (
            "[[blocks]]\nname = 'a'\n[[blocks.axes]]\npath = 'lod'\nvalues = [1]",
            "blocks[0].axes[0]: 'lod' is neither a path nor is there a method with_lod",
        ),
        ("set = { 'parameters.x' = 3 }", "set: parameters.x is not known; known are nodes, "),
        (
            "set = { 'parameters.outside_cost' = -3 }",
            "set: parameters.outside_cost must be a finite",
        ),
        ("set = { 'parameters.nodes[5].room' = 3 }", "set: parameters.nodes is a list of 2, so"),
        (
            "[[axes]]\ndesign = 'sobol'\nsize = 100\nseed = 1\nranges = {load = {first=1, last=2}}",
            "axes[0]: size must be a power of two for a Sobol design, such as 64 or 128, not 100",
        ),
        (
            "[[axes]]\ndesign = 'latin'\nsize = 4\nseed = 1\nranges = {load = {lst = 2}}",
            "axes[0].ranges.load.lst is not known; did you mean 'last'?",
        ),
        (
            f"{AXIS}'load'\nfirst = 0.001\nlast = 1.0\nstep = 0.001\n"
            f"{AXIS}'parameters.outside_cost'\nfirst = 1\nlast = 1001\nstep = 1",
            "a study has at most 1000000 instances; the product of the axes is 1001000",
        ),
        (
            f"{AXIS}'load'\nvalues = [0.5, -1]",
            "load -1: load = -1: load must be a finite number > 0, not -1",
        ),
        (
            f"{AXIS}'parameters.nodes[0].servers'\nvalues = [1, 2.5, 3]",
            "nodes[0].servers 2.5: parameters.nodes[0].servers must be an integer >= 1, not 2.5",
        ),
        (
            f"{AXIS}'parameters.arrival_rate'\nvalues = [1, nan]",
            "arrival_rate nan: parameters.arrival_rate must be a finite number > 0, not nan",
        ),
        (
            f"{AXIS}'own.py:at_cost'\nvalues = [7]",
            "at_cost 7: own.py:at_cost = 7 failed: at_cost of ",
        ),
        (f"{AXIS}'own.py:at_cost'\nvalues = [8]", "at_cost 8: own.py:at_cost = 8: no eight"),
        (
            f"{AXIS}'own.py:at_cost'\nvalues = [9]",
            "own.py:at_cost = 9 must return a system, not None",
        ),
    ],
)
def test_a_mistake_is_named(folder: Path, text: str, message: str) -> None:
    found = mistakes(folder, text)
    assert any(message in line for line in found), found
    assert len(found) == 1 or "'latin'" in text or "[*]" in text


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("", "base is missing; it must be a path of a scenario file, or a scenario"),
        ("base = 3", "base is 3, but must be a path of a scenario file, or a scenario"),
        ('base = "none.toml"', "none.toml cannot be read: No such file or directory"),
        ('base = "own.py"', "own.py is not TOML"),
        (
            "base = { format = 2 }",
            "loads.toml has format 2; this version of mdpcloud reads format 1",
        ),
        ('base = { system = "cloud_ruoting" }', "did you mean 'cloud_routing'?"),
        ('base = { system = "cloud_routing" }', "base: parameters.nodes is missing"),
    ],
)
def test_a_mistake_of_the_base_is_named(folder: Path, base: str, message: str) -> None:
    found = mistakes(folder, f"{AXIS}'load'\nvalues = [1, 2]", base)
    assert any(message in line for line in found), found


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    found = mistakes(
        folder,
        """
        task = "no"
        nme = "x"
        [[axes]]
        path = "load"
        values = [1, 1]
        [[axes]]
        first = "1"
        """,
        'base = "none.toml"',
    )
    assert found == [
        "axes[0]: values[1]: 1 is given twice",
        "axes[1].first must be a finite number, or left out, not '1'",
        "nme is not known; did you mean 'name'?",
        "task: there is no task 'no'; there are " + ", ".join(TASKS),
        f"base {folder / 'none.toml'} cannot be read: No such file or directory",
    ]


def test_mistakes_of_the_base_are_told_with_those_of_the_study(folder: Path) -> None:
    text = BASE.replace("outside_cost = 0.4", "outside_cots = 0.4").replace("servers = 3", "")
    (folder / "bases" / "wrong.toml").write_text(text, encoding="utf-8")
    wrong = "base: parameters.outside_cots is not known; did you mean 'outside_cost'?"
    study_wrong = f"{AXIS}'lod'\nvalues = [1]"
    found = mistakes(folder, study_wrong, 'base = "bases/wrong.toml"')
    assert found[1:] == [wrong]
    found = mistakes(folder, f"polices = []\n{study_wrong}", 'base = "bases/wrong.toml"')
    assert found[2:] == [wrong]


def test_a_range_that_is_not_whole_is_hinted_at(folder: Path) -> None:
    axis = f"{AXIS}'parameters.nodes[0].servers'\nfirst = 1\nlast = 4\npoints = 3"
    found = mistakes(folder, axis)
    assert all(one.endswith("a range with whole = true holds integers") for one in found)
    assert len(study(folder, f"{axis}\nwhole = true").instances) == 3


def test_the_same_mistake_of_several_instances_is_told_once(folder: Path) -> None:
    found = mistakes(
        folder,
        """
        [[axes]]
        path = "parameters.nodes[0].servers"
        values = [1, 0]
        [[axes]]
        path = "load"
        first = 1
        last = 5
        step = 1
        """,
    )
    assert found == [
        "nodes[0].servers 0, load 1 and 4 more: parameters.nodes[0].servers must be an integer "
        ">= 1, not 0"
    ]


def test_at_most_twenty_mistakes_of_instances_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[[axes]]\npath = 'parameters.arrival_rate'\nfirst = -30\nlast = 30\nstep = 1\n"
    found = mistakes(folder, text)
    assert len(found) == 21
    assert found[-1] == "and 11 more"
    monkeypatch.setattr(checking, "LOOKED_AT", 25)
    found = mistakes(folder, text)
    assert found[-2:] == ["and 5 more", "no more were looked for after 25 instances with mistakes"]


def test_a_place_that_some_instances_lack_is_named_by_them(folder: Path) -> None:
    node = "{ servers = 1, service_rate = 1.0, abandonment_rate = 0.5 }"
    found = mistakes(
        folder,
        f"""
        [[axes]]
        path = "parameters.nodes"
        values = [[{node}, {node}], [{node}], 3]
        labels = ["two", "one", "none"]
        [[axes]]
        path = "parameters.nodes[1].servers"
        values = [4, 5]
        """,
    )
    assert found == [
        "nodes one, nodes[1].servers 4 and 1 more: parameters.nodes is a list of 1, so it has no "
        "[1]",
        "nodes none, nodes[1].servers 4 and 1 more: parameters.nodes is 3, no list with [1]",
    ]
    (line,) = mistakes(
        folder,
        f"[[axes]]\npath = 'parameters.nodes'\nvalues = [[{node}], 3]\nlabels = ['one', 'none']",
    )
    assert line.startswith("nodes none: parameters.nodes must be a list of at least 1")


def test_an_error_of_the_package_itself_is_no_mistake_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(checking.Scenarios, "of", fail)
    with pytest.raises(ZeroDivisionError):
        study(folder, "")


def test_an_error_in_a_system_of_the_users_own_names_the_instance(folder: Path) -> None:
    text = "[base]\nsystem = 'own.py:Own'\nparameters.rate = 1\n"
    (line,) = mistakes(folder, f"{text}{AXIS}'parameters.rate'\nvalues = [1, 0]", base="")
    assert line.startswith("rate 0: parameters: __post_init__ of ")
    assert "ZeroDivisionError" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("format = 2", "has format 2; this version of mdpcloud reads format 1"),
        ("format = ", "is not TOML: Invalid value"),
    ],
)
def test_what_is_no_study_is_refused(folder: Path, content: str, message: str) -> None:
    (folder / "bad.toml").write_text(content, encoding="utf-8")
    with pytest.raises(mc.InputError, match=r"study .*bad.toml") as caught:
        read_study(folder / "bad.toml")
    assert message in str(caught.value)


def test_a_scenario_is_no_study(folder: Path) -> None:
    with pytest.raises(mc.InputError, match=r"two.toml is a scenario, not a study; a study is a"):
        read_study(folder / "bases" / "two.toml")


def test_a_missing_study_is_refused(folder: Path) -> None:
    with pytest.raises(mc.InputError, match=r"study .*none.toml cannot be read: No such file"):
        read_study(folder / "none.toml")


# --- the load -------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e3), st.lists(st.tuples(st.integers(1, 9), st.floats(0.1, 10)), min_size=1))
def test_with_load_changes_the_arrival_rate_alone(
    load: float, pools: list[tuple[int, float]]
) -> None:
    nodes = tuple(Node(servers, rate, 0.5) for servers, rate in pools)
    before = CloudRouting(nodes, 1.0, 0.4, "end_service")
    found = before.with_load(load)
    capacity = math.fsum(servers * rate for servers, rate in pools)
    assert found.arrival_rate == pytest.approx(load * capacity, rel=1e-14)
    assert found == CloudRouting(nodes, found.arrival_rate, 0.4, "end_service")


@pytest.mark.parametrize("load", [0, -0.5, math.nan, math.inf, True, "1"])
def test_a_load_that_is_none_is_refused(load: Any) -> None:
    with pytest.raises(mc.InputError, match="load must be a finite number > 0, not"):
        CloudRouting.example().with_load(load)
