"""Scenario files, the parameters of systems, and what users add without touching the package."""

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, Len, Lt, MaxLen, MinLen, Predicate, Unit
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.plugins import load, mistake_in_plugin
from mdpcloud.scenario import Discount, Scenario, SolveSettings, new_scenario, read_scenario
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration
from mdpcloud.systems import registry
from mdpcloud.systems.parameters import describe, unit_of, validate

SYSTEM = '''
"""A system of the user's own."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.systems.parameters import validate


@dataclass(frozen=True)
class Node:
    """A node.

    Parameters
    ----------
    servers : int
        Number of servers. More need more power.
    service_rate, loss_rate : float
        Rate of one server
        or job.
    """

    servers: Annotated[int, Ge(1)]
    service_rate: Annotated[float, Gt(0), Unit("1/time")]
    loss_rate: Annotated[float, Ge(0), Unit("1/time")] = 0.0
    room: Annotated[int, Ge(0)] | None = None

    def __post_init__(self):
        validate(self)


@dataclass(frozen=True)
class OwnSystem:
    """Nodes in a row."""

    nodes: Annotated[tuple[Node, ...], MinLen(1)]
    arrival_rate: Annotated[float, Gt(0)]
    deadline: Literal["begin_service", "end_service"] = "begin_service"
    spare: Node | None = None
    policy_names: ClassVar[tuple[str, ...]] = ("split", "greedy")

    def __post_init__(self):
        validate(self)
        if self.arrival_rate > 1000:
            raise InputError(f"arrival_rate {self.arrival_rate:g} is more than the nodes can take")

    def model(self, caps=None):
        return caps


def rule(x):
    return 0


def broken(x):
    return x.nothing


number = 3
both = {"arrival": rule, "departure": rule}
'''

GOOD = """
format = 1
system = "own.py:OwnSystem"
name = "two nodes"
time_unit = "minute"
cost_unit = "fee"
[parameters]
arrival_rate = 60
[[parameters.nodes]]
servers = 2
service_rate = 10.0
[[parameters.nodes]]
servers = 5
service_rate = 4
room = 7
[solve]
tolerance = 1e-6
threads = 2
caps = [20, 30]
criterion = { discount_rate = 0.5 }
[compare]
policies = ["split", "own.py:rule"]
ties = "first"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def read(folder: Path, text: str) -> Scenario:
    path = folder / "my_case.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_scenario(path)


def mistakes(folder: Path, text: str) -> list[str]:
    """Mistakes that reading reports, one line each."""
    with pytest.raises(mc.InputError) as caught:
        read(folder, text)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


# --- what a file holds ----------------------------------------------------------------------------


def test_a_scenario_has_the_system_settings_and_origin_of_its_file(folder: Path) -> None:
    scenario = read(folder, GOOD)
    assert (scenario.format, scenario.name) == (1, "two nodes")
    assert (scenario.time_unit, scenario.cost_unit) == ("minute", "fee")
    assert scenario.system_name == "own.py:OwnSystem"
    assert [node.servers for node in scenario.system.nodes] == [2, 5]
    assert scenario.system.arrival_rate == 60.0
    assert scenario.parameters["nodes"][1]["room"] == 7
    assert scenario.parameters["deadline"] == "begin_service"
    assert scenario.solve == SolveSettings(1e-6, Discount(0.5), None, 2, (20, 30), None)
    assert scenario.compare.ties == "first"
    assert len(scenario.sha256) == 64


def test_rules_of_the_users_own_are_named_by_their_function(folder: Path) -> None:
    policies = read(folder, GOOD).compare.policies
    assert policies is not None
    assert policies["split"] == "split"
    rule: Any = policies["rule"]
    assert rule(None) == 0


def test_a_mapping_from_decisions_to_rules_may_be_a_policy(folder: Path) -> None:
    policies = read(folder, GOOD.replace("own.py:rule", "own.py:both")).compare.policies
    assert policies is not None
    both = policies["both"]
    assert isinstance(both, Mapping)
    assert set(both) == {"arrival", "departure"}


def test_a_scenario_knows_its_policies_as_the_file_spells_them(folder: Path) -> None:
    spellings = read(folder, GOOD).compare.spellings
    assert spellings == {"split": "split", "own.py:rule": "rule"}


def test_a_misspelt_key_is_one_mistake(folder: Path) -> None:
    text = GOOD.replace("arrival_rate = 60", "arival_rate = 60").replace("format = 1", "fromat = 1")
    assert mistakes(folder, text) == [
        "parameters.arival_rate is not known; did you mean 'arrival_rate'?",
        "fromat is not known; did you mean 'format'?",
    ]
    text = GOOD.replace("parameters]\n", "paramters]\n").replace("parameters.n", "paramters.n")
    assert mistakes(folder, text) == [
        "paramters is not known; did you mean 'parameters'?",
    ]
    text = GOOD.replace("servers = 2", "srevers = 2")
    assert mistakes(folder, text) == [
        "parameters.nodes[0].srevers is not known; did you mean 'servers'?",
    ]


def test_rules_of_the_same_name_keep_their_whole_reference(folder: Path) -> None:
    (folder / "more.py").write_text("def rule(x): return 1", encoding="utf-8")
    text = GOOD.replace('"split", "own.py:rule"', '"own.py:rule", "more.py:rule"')
    assert set(read(folder, text).compare.policies or {}) == {"own.py:rule", "more.py:rule"}


def test_everything_but_format_system_and_parameters_may_be_left_out(folder: Path) -> None:
    scenario = read(
        folder,
        """
        format = 1
        system = "own.py:OwnSystem"
        parameters = { arrival_rate = 1.0, nodes = [{ servers = 1, service_rate = 2.0 }] }
        """,
    )
    assert (scenario.name, scenario.time_unit) == ("my_case", "time unit")
    assert scenario.solve == SolveSettings()
    assert scenario.compare.policies is None


def test_the_same_file_of_the_users_gives_the_same_class_and_pickles(folder: Path) -> None:
    first, second = read(folder, GOOD), read(folder, GOOD)
    assert first == second
    assert pickle.loads(pickle.dumps(first.system)) == second.system


def test_another_process_unpickles_a_system_of_the_users_own(folder: Path) -> None:
    (folder / "system.pickle").write_bytes(pickle.dumps(read(folder, GOOD).system))
    code = "import pickle; print(pickle.load(open('system.pickle', 'rb')).arrival_rate)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert run.stdout == "60.0\n", run.stderr
    (folder / "own.py").write_text("number = 4", encoding="utf-8")
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert "has changed since it was first loaded" in run.stderr


def test_an_edited_file_of_the_users_is_loaded_again(folder: Path) -> None:
    first = load("own.py:number", folder)
    (folder / "own.py").write_text("number = 4", encoding="utf-8")
    assert (first, load("own.py:number", folder)) == (3, 4)


def test_a_file_of_the_users_may_import_its_neighbours(folder: Path) -> None:
    (folder / "neighbour_of_own.py").write_text("number = 5", encoding="utf-8")
    (folder / "more.py").write_text("from neighbour_of_own import number", encoding="utf-8")
    assert load("more.py:number", folder) == 5


def test_an_installed_module_serves_as_well_as_a_file(folder: Path) -> None:
    text = GOOD.replace('"own.py:rule"', '"operator:itemgetter"')
    assert set(read(folder, text).compare.policies or {}) == {"split", "itemgetter"}


def test_settings_become_the_arguments_of_the_functions_they_are_for() -> None:
    settings = SolveSettings(1e-5, Discount(0.5), "policy_iteration", 2, (3,), 60)
    assert settings.for_solve() == {
        "criterion": mc.Discounted(rate=0.5),
        "solver": PolicyIteration(),
        "tolerance": 1e-5,
        "time_limit": 60.0,
        "threads": 2,
    }
    by_factor = SolveSettings(criterion=Discount(discount_factor=0.9))
    assert by_factor.for_solve()["criterion"] == mc.Discounted(factor=0.9)
    by_sweeps = SolveSettings(caps=(3,), solver="value_iteration").for_compare()
    assert by_sweeps == {"tolerance": 1e-8, "threads": 1, "caps": (3,), "solver": ValueIteration()}
    assert SolveSettings().for_solve()["criterion"] == mc.AverageCost()
    with pytest.raises(mc.InputError, match="compared by their 'average_cost' only"):
        settings.for_compare()


# --- mistakes -------------------------------------------------------------------------------------


def test_every_mistake_is_reported_at_once_with_its_place_and_what_is_allowed(folder: Path) -> None:
    found = mistakes(
        folder,
        """
        format = 1
        system = "own.py:OwnSystem"
        nam = "x"
        time_unit = 3
        [parameters]
        arrival_rate = inf
        deadline = "begin_servic"
        [[parameters.nodes]]
        servers = 0
        service_rate = "2"
        loss_rate = true
        rom = 3
        [[parameters.nodes]]
        servers = 2.0
        room = -1
        [solve]
        tolerance = 0
        criterion = { discount_rte = 3 }
        solver = "policy_iter"
        caps = []
        [compare]
        policies = [1, "spilt", "greedy", "greedy", "no.py:f", "own.py:rul", "own.py:number"]
        ties = "frst"
        """,
    )
    assert found == [
        "time_unit must be a text, not 3",
        "parameters.nodes[0].servers must be an integer >= 1, not 0",
        "parameters.nodes[0].service_rate must be a finite number > 0, not '2'",
        "parameters.nodes[0].loss_rate must be a finite number >= 0, not True",
        "parameters.nodes[0].rom is not known; did you mean 'room'?",
        "parameters.nodes[1].servers must be an integer >= 1, not 2.0",
        "parameters.nodes[1].service_rate is missing; it must be a finite number > 0",
        "parameters.nodes[1].room must be an integer >= 0, or left out, not -1",
        "parameters.arrival_rate must be a finite number > 0, not inf",
        "parameters.deadline must be 'begin_service' or 'end_service', not 'begin_servic'; "
        "did you mean 'begin_service'?",
        "solve.tolerance must be a finite number > 0 and < 1, not 0",
        "solve.criterion.discount_rte is not known; did you mean 'discount_rate'?",
        "solve.solver must be 'value_iteration' or 'policy_iteration' or 'linear_programming', or "
        "left out, not 'policy_iter'; did you mean 'policy_iteration'?",
        "solve.caps must be a list of at least 1, each an integer >= 0, or left out, not []",
        "compare.policies[0] must be a text, not 1",
        "compare.ties must be 'first' or 'last' or 'fastest' or 'slowest', not 'frst'; "
        "did you mean 'first'?",
        "nam is not known; did you mean 'name'?",
        "compare.policies[1]: the system has no policy 'spilt'; did you mean 'split'?",
        "compare.policies[3]: 'greedy' is given twice",
        f"compare.policies[4]: file {folder / 'no.py'} cannot be read: No such file or directory",
        "compare.policies[5]: own.py has no 'rul'; did you mean 'rule'?",
        "compare.policies[6]: 'own.py:number' must be a function of the state, or a mapping from "
        "decisions to such functions; it is 3",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arrival_rate = 60", "", "parameters.arrival_rate is missing"),
        ("arrival_rate = 60", "arrival_rate = nan", "arrival_rate must be a finite number > 0"),
        ("arrival_rate = 60", "arrival_rate = -60", "arrival_rate must be a finite number > 0"),
        ("arrival_rate = 60", "arrival_rate = 1979-05-27", "not '1979-05-27'"),
        ("arrival_rate = 60", "arrival_rate = 2000", "parameters: arrival_rate 2000 is more than"),
        ("arrival_rate = 60", "arrival_rate = 1\nx = 1", "x is not known; known are nodes, "),
        ("servers = 2", "servers = 2.5", "nodes[0].servers must be an integer >= 1, not 2.5"),
        ("servers = 5", "servers = '5'", "nodes[1].servers must be an integer >= 1, not '5'"),
        ("discount_rate = 0.5", "", "criterion: exactly one of discount_rate and"),
        ("{ discount_rate = 0.5 }", "'discounted'", "must be 'average_cost' or a Discount"),
        ('"first"', "1", "compare.ties must be 'first' or 'last'"),
        ('["split", "own.py:rule"]', "[]", "compare.policies must be a list of at least 1"),
        ('["split", "own.py:rule"]', '"split"', "compare.policies must be a list"),
        ("own.py:rule", "own:rule", "module 'own' is not installed"),
        ("own.py:rule", "own.py:", "must be of the form 'file.py:name'"),
        ("own.py:OwnSystem", "own.py:OwnSystm", "system: own.py has no 'OwnSystm'; did you mean"),
        ("own.py:OwnSystem", "own.py:rule", "system: 'own.py:rule' must be a dataclass with a"),
        ('"own.py:OwnSystem"', '""', "system must be a text"),
        ("format = 1", "", "format is missing"),
    ],
)
def test_a_mistake_is_named(folder: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    found = mistakes(folder, GOOD.replace(old, new, 1))
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = 2\nnonsense = 1", "has format 2; this version of mdpcloud reads format 1"),
        (b'format = "1"', "has format '1'"),
        (b"format = true", "has format True"),
        (b"format = ", "is not TOML: Invalid value"),
        (b"a = 1\na = 2", "is not TOML: Cannot overwrite"),
        (b"name = '\xff'", "is not a text in UTF-8: byte 8"),
        (b"", "system is missing"),
        (b"format = 1\nparameters = 1\nsolve = 2", "solve must be a table of tolerance, "),
    ],
)
def test_what_is_no_scenario_is_refused(folder: Path, content: bytes, message: str) -> None:
    (folder / "bad.toml").write_bytes(content)
    with pytest.raises(mc.InputError, match=r"scenario .*bad.toml") as caught:
        read_scenario(folder / "bad.toml")
    assert message in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(folder: Path) -> None:
    with pytest.raises(mc.InputError, match="cannot be read: No such file"):
        read_scenario(folder / "none.toml")
    with pytest.raises(mc.InputError, match="is a folder"):
        read_scenario(folder)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:", "SyntaxError: invalid syntax (line 1)"),
        ("\nimport no_such_module", "No module named 'no_such_module' (line 2 of "),
        ("1 / 0", "ZeroDivisionError: division by zero (line 1 of"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_file_of_the_users_that_fails_is_named(folder: Path, source: str, message: str) -> None:
    (folder / "bad.py").write_text(source, encoding="utf-8")
    with pytest.raises(mc.InputError, match=r"bad\.py could not be loaded") as caught:
        load("bad.py:rule", folder)
    assert message in str(caught.value)


def test_an_error_in_a_rule_is_traced_to_its_file(folder: Path) -> None:
    rule: Any = load("own.py:broken", folder)
    with pytest.raises(AttributeError) as caught:
        rule(3)
    described = mistake_in_plugin(caught.value)
    assert described is not None
    assert described.startswith(f"broken of {folder / 'own.py'}: AttributeError: ")
    assert mistake_in_plugin(ValueError("ours")) is None


def test_a_field_that_no_file_can_hold_is_named(folder: Path) -> None:
    source = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Odd:
        law: "no_such_type"

        def model(self, caps=None): ...
    """
    (folder / "odd.py").write_text(textwrap.dedent(source), encoding="utf-8")
    found = mistakes(folder, 'format = 1\nsystem = "odd.py:Odd"\nparameters = { law = 1 }')
    assert found[0].startswith("system: its fields cannot be read from a file")


# --- parameters constructed directly --------------------------------------------------------------


@dataclass(frozen=True)
class Toy:
    """A toy."""

    count: Annotated[int, Ge(1)] = 1
    rate: Annotated[float, Gt(0), Unit("1/time")] = 1.0
    share: Annotated[float, Interval(ge=0, lt=1)] = 0.5
    kind: Literal["a", "b", 3] = "a"
    rates: Annotated[tuple[Annotated[float, Ge(0)], ...], MinLen(1), MaxLen(3)] = (1.0,)
    pair: tuple[int, str] = (1, "x")
    room: Annotated[int, Ge(0)] | None = None
    either: Annotated[int, Lt(0)] | str | None = None
    even: Annotated[int, Predicate(lambda n: n % 2 == 0)] = 2
    names: Annotated[tuple[str, ...], Len(0, 2)] = ()
    flag: bool = False
    inner: "Toy | None" = None
    anything: Any = None
    known: ClassVar[int] = 1

    def __post_init__(self) -> None:
        validate(self)


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0},
        {"count": 1.0},
        {"count": True},
        {"count": "1"},
        {"count": None},
        {"rate": 0},
        {"rate": float("nan")},
        {"rate": float("inf")},
        {"rate": 10**400},
        {"rate": True},
        {"rate": np.True_},
        {"rate": "1"},
        {"rate": 1j},
        {"rate": np.array([1.0, 2.0])},
        {"share": 1},
        {"share": -1e-9},
        {"kind": "c"},
        {"kind": 3.0},
        {"rates": ()},
        {"rates": (1.0,) * 4},
        {"rates": (1.0, -1.0)},
        {"rates": 1.0},
        {"pair": (1,)},
        {"pair": ("x", 1)},
        {"room": -1},
        {"either": 0},
        {"even": 3},
        {"names": ("a", "b", "c")},
        {"flag": 1},
        {"inner": 3},
    ],
)
def test_a_wrong_parameter_is_refused_and_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(mc.InputError, match=rf"^Toy: {name}(\[\d\])? must be "):
        Toy(**wrong)


def test_all_wrong_parameters_are_named_at_once() -> None:
    with pytest.raises(mc.InputError) as caught:
        Toy(count=0, rate=-1, rates=(1, -2))
    assert str(caught.value) == (
        "Toy: count must be an integer >= 1, not 0; rate must be a finite number > 0, not -1; "
        "rates[1] must be a finite number >= 0, not -2"
    )


def test_parameters_are_stored_as_plain_values() -> None:
    toy = Toy(count=np.int64(3), rate=np.float32(0.5), rates=[1, np.float64(2)], kind=3)  # type: ignore[arg-type]
    assert (toy.count, toy.rate, toy.rates, toy.kind) == (3, 0.5, (1.0, 2.0), 3)
    assert [type(v) for v in (toy.count, toy.rate, *toy.rates)] == [int, float, float, float]


@given(st.floats(), st.integers())
def test_a_number_is_kept_exactly_or_refused(rate: float, count: int) -> None:
    if 0 < rate < float("inf") and count >= 1:
        toy = Toy(rate=rate, count=count)
        assert (toy.rate, toy.count) == (rate, count)
    else:
        with pytest.raises(mc.InputError):
            Toy(rate=rate, count=count)


def test_limits_and_units_are_told_in_words() -> None:
    assert unit_of(Annotated[float, Unit("1/time")]) == "1/time"
    assert unit_of(float) is None
    assert describe(tuple[int, str]) == "a list of 2: an integer, a text"
    assert describe(Annotated[float, Interval(gt=0, le=1)]) == "a finite number > 0 and <= 1"


# --- systems by name, new scenarios ---------------------------------------------------------------


def test_an_unknown_system_gets_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_built_in", lambda: {"toy": Toy, "other": Toy})
    assert registry.find_system("toy") is Toy
    with pytest.raises(mc.InputError, match="there is no system 'toi'; did you mean 'toy'"):
        registry.find_system("toi")
    with pytest.raises(mc.InputError, match="there is no system 'xyz'; there are other, toy"):
        registry.find_system("xyz")


def test_systems_of_other_packages_are_entry_points(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "elsewhere-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    points = "[mdpcloud.systems]\nrow = own:OwnSystem\ngone = no_such_module:Thing\n"
    (package / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(folder))
    assert {"row", "gone"} <= {*registry.system_names()}
    assert registry.find_system("row").__name__ == "OwnSystem"
    with pytest.raises(mc.InputError, match="module 'no_such_module' is not installed"):
        registry.find_system("gone")


def test_a_new_scenario_explains_every_parameter_and_can_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = new_scenario("own.py:OwnSystem")
    assert "# Number of servers; an integer >= 1\nservers = 1" in text
    assert "# Rate of one server or job; a finite number > 0 (1/minute)\nservice_rate" in text
    assert "# room = 100\n" in text
    assert 'cost_unit = "euro"            # costs below are in euros' in text
    assert "# caps = [40]                 # given to the system's model(caps); by" in text
    scenario = read(folder, text)
    assert scenario.name == "my OwnSystem"
    assert set(scenario.compare.policies or {}) == {"split", "greedy"}


def test_the_new_scenario_of_cloud_routing_has_a_cap_for_each_of_its_nodes() -> None:
    text = new_scenario("cloud_routing")
    assert "# caps = [40, 40, 40]         # largest number of jobs at each node; by def" in text
    assert 'cost_unit = "service fee"     # costs below are in service fees' in text


@pytest.mark.parametrize("name", registry.system_names())
def test_the_new_scenario_of_every_system_can_be_read(name: str, tmp_path: Path) -> None:
    scenario = read(tmp_path, new_scenario(name))
    assert type(scenario.system) is registry.find_system(name)
    assert registry.summary_of(type(scenario.system))
