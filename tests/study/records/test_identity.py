"""What decides a number decides the key, or stands in the sources; nothing else does."""

import dataclasses
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud
from mdpcloud.errors import InputError
from mdpcloud.laws import Deterministic, Erlang, Exponential, Lognormal
from mdpcloud.neighbours import imports_of
from mdpcloud.plugins import load
from mdpcloud.scenario import CompareSettings, Discount, Scenario, SolveSettings, read_scenario
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.study import Study
from mdpcloud.study.records.identity import (
    PACKAGE,
    STUDY,
    canonical,
    content_of,
    key_of,
    package_hash,
    sources_of,
)
from mdpcloud.study.records.own import hash_of, identity_of
from mdpcloud.systems import CloudRouting, Node

NODE = Node(2, 1.0, 0.5)
SYSTEM = CloudRouting((NODE, Node(1, 2.0, 0.5)), 3.0, outside_cost=0.4)


def scenario(system: Any = SYSTEM, policies: Any = None, **parts: Any) -> Scenario:
    (one,) = Study.of([({}, system)]).instances
    return replace(one.scenario, compare=CompareSettings(policies), **parts)


def key(one: Scenario, task: str = "compare") -> str:
    return key_of(content_of(one, task))


# --- the key --------------------------------------------------------------------------------------


def test_the_key_of_an_instance_stays_what_it_is() -> None:
    """Records would be lost otherwise; another key needs a good reason and an entry in the log."""
    assert canonical(content_of(scenario(), "compare")) == (
        '{"parameters":{"arrival_rate":3.0,"class":"CloudRouting","deadline":"begin_service",'
        '"nodes":[{"abandonment_rate":0.5,"class":"Node","fee":1.0,"holding_cost":0.0,'
        '"patience":null,"room":null,"routing_charge":0.0,"servers":2,"service":null,'
        '"service_rate":1.0},{"abandonment_rate":0.5,"class":"Node","fee":1.0,'
        '"holding_cost":0.0,"patience":null,"room":null,"routing_charge":0.0,"servers":1,'
        '"service":null,"service_rate":2.0}],"outside_cost":0.4},"policies":null,'
        '"simulate":{"events":null,"half_width":null,"paths":[],"replications":8,"seed":0,'
        '"time":null,"warm_up":"mser"},"solve":{"caps":null,"constraints":{},'
        '"criterion":"average_cost","solver":null,"tolerance":1e-08},"system":"cloud_routing",'
        '"task":"compare","ties":"fastest"}'
    )


CHANGES = {
    "servers": lambda s: with_system(s, nodes=(replace(NODE, servers=3), SYSTEM.nodes[1])),
    "order of nodes": lambda s: with_system(s, nodes=SYSTEM.nodes[::-1]),
    "deadline": lambda s: with_system(s, deadline="end_service"),
    "rate": lambda s: with_system(s, arrival_rate=float(np.nextafter(3.0, 4.0))),
    "law": lambda s: with_system(s, nodes=(replace(NODE, service=Erlang(2)),)),
    "law's parameter": lambda s: with_system(s, nodes=(replace(NODE, service=Erlang(3)),)),
    "fixed law": lambda s: with_system(s, nodes=(replace(NODE, service=Deterministic()),)),
    "random law": lambda s: with_system(s, nodes=(replace(NODE, service=Exponential()),)),
    "one node": lambda s: with_system(s, nodes=(NODE,)),
    "tolerance": lambda s: replace(s, solve=SolveSettings(1e-6)),
    "rate of discount": lambda s: replace(s, solve=SolveSettings(criterion=Discount(0.1))),
    "factor of discount": lambda s: replace(s, solve=SolveSettings(criterion=Discount(None, 0.1))),
    "solver": lambda s: replace(s, solve=SolveSettings(solver="policy_iteration")),
    "caps": lambda s: replace(s, solve=SolveSettings(caps=(9, 9))),
    "limits": lambda s: replace(s, solve=SolveSettings(constraints={"mean_jobs": 2.0})),
    "other limits": lambda s: replace(s, solve=SolveSettings(constraints={"mean_jobs": 2.5})),
    "seed": lambda s: replace(s, simulate=SimulateSettings(seed=1)),
    "replications": lambda s: replace(s, simulate=SimulateSettings(replications=9)),
    "half width": lambda s: replace(s, simulate=SimulateSettings(half_width=0.1)),
    "ties": lambda s: replace(s, compare=CompareSettings(ties="first")),
    "policies": lambda s: replace(s, compare=CompareSettings({"a": "bernoulli_split"})),
    "name of a policy": lambda s: replace(s, compare=CompareSettings({"b": "bernoulli_split"})),
    "another policy": lambda s: replace(s, compare=CompareSettings({"b": "restless_bandit"})),
    "two policies": lambda s: replace(s, compare=CompareSettings({"b": "x", "c": "y"})),
    "their order": lambda s: replace(s, compare=CompareSettings({"c": "y", "b": "x"})),
    "system": lambda s: replace(s, system_name="other"),
}


def with_system(one: Scenario, **parts: Any) -> Scenario:
    return replace(one, system=replace(one.system, **parts))


def test_whatever_changes_a_number_changes_the_key() -> None:
    changed = {name: key(change(scenario())) for name, change in CHANGES.items()}
    changed |= {"nothing": key(scenario()), "task": key(scenario(), "evaluate")}
    assert len({*changed.values()}) == len(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: replace(s, name="x", time_unit="h", cost_unit="EUR", path=Path("x"), sha256="1"),
        lambda s: replace(s, solve=SolveSettings(threads=2, time_limit=3.0)),
        lambda s: replace(s, simulate=SimulateSettings(n_jobs=2, time_limit=3.0)),
        lambda s: with_system(
            s, arrival_rate=3, nodes=[Node(np.int64(2), 1, 0.5, fee=1), *s.system.nodes[1:]]
        ),
        lambda s: with_system(s, nodes=(replace(NODE, room=None, service=None), s.system.nodes[1])),
    ],
    ids=["names", "limits of solvers", "limits of simulations", "integers", "defaults"],
)
def test_what_changes_no_number_changes_no_key(change: Callable[[Scenario], Scenario]) -> None:
    assert key(change(scenario())) == key(scenario())


def test_limits_may_be_integers_or_spelt_out() -> None:
    keys = {
        key(scenario(solve=SolveSettings(constraints={"mean_jobs": limit})))
        for limit in (2, 2.0, mdpcloud.Limit(at_most=2), mdpcloud.Limit(at_most=2.0))
    }
    assert len(keys) == 1


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False), min_size=2))
def test_the_order_of_keys_does_not_matter(content: dict[str, Any]) -> None:
    content = {name: value for name, value in content.items() if abs(value) < 1e308}
    turned = dict(reversed(content.items()))
    assert key_of(content) == key_of(turned)


FILE = """
format = 1
system = "cloud_routing"
name = "{name}"
[parameters]
arrival_rate = {rate}
outside_cost = 0.4
nodes = [{{ servers = 2, service_rate = 1.0, abandonment_rate = 0.5 }}]
[compare]
policies = ["{rule}"]
"""
RULE = "def wait(x):\n    return 1\n"


def written(folder: Path, *, rule: str = "rules.py:wait", rate: str = "3.0") -> Scenario:
    """A scenario in a folder, with its rule."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.py").write_text(RULE)
    (folder / "base.toml").write_text(FILE.format(name=folder.name, rule=rule, rate=rate))
    return read_scenario(folder / "base.toml")


def test_a_file_may_lie_anywhere_and_be_spelt_in_any_way(tmp_path: Path) -> None:
    one = written(tmp_path / "a")
    other = written(tmp_path / "b" / "c")
    (tmp_path / "d" / "x").mkdir(parents=True)
    spelt = written(tmp_path / "d", rule="./x/../rules.py:wait", rate="3")
    assert key(one) == key(other) == key(spelt)
    assert sources_of(one) == sources_of(other) == sources_of(spelt)
    assert key(one, "tasks.py:run") == key(one, "./tasks.py:run") != key(one, "tasks.py:walk")
    relative = read_scenario(os.path.relpath(tmp_path / "a" / "base.toml"))
    assert key(relative) == key(one)


def test_rules_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rules.py").write_text(RULE)
    one, other = (written(tmp_path, rule=f"{folder}/rules.py:wait") for folder in "ab")
    assert one.compare.policies.keys() == other.compare.policies.keys()
    assert key(one) != key(other)


def test_a_file_read_is_the_same_as_a_system_made(tmp_path: Path) -> None:
    made = scenario(CloudRouting((NODE,), 3, 0.4), {"wait": "rules.py:wait"})
    assert key(written(tmp_path)) == key(made)


@dataclass(frozen=True)
class Strange:
    """A system of the user's own that holds what JSON cannot."""

    rate: Any

    def model(self, caps: Any = None) -> Any:
        """None."""


@pytest.mark.parametrize("value", [object(), len, {1, 2}, float("nan"), 1j, {1: 2}])
def test_a_parameter_that_json_cannot_hold_is_named(value: Any) -> None:
    with pytest.raises(InputError, match=r"parameters\.rate"):
        content_of(scenario(Strange(value)), "compare")


def test_classes_of_one_name_in_two_modules_are_told_apart() -> None:
    @dataclass(frozen=True)
    class Erlang:
        phases: int = 2
        law: str = "erlang"

    ours = mdpcloud.laws.Erlang(2)
    assert key(scenario(Strange(Erlang()))) != key(scenario(Strange(ours)))
    assert key(scenario(Strange(Lognormal(2.0)))) != key(scenario(Strange(ours)))


# --- rules made in Python -------------------------------------------------------------------------


def above(limit: Any) -> Callable[[Any], Any]:
    """A rule that knows a limit."""

    def rule(x: Any) -> Any:
        return x > limit

    return rule


@dataclass
class Threshold:
    """A rule with a limit, and something computed of it."""

    limit: float

    @cached_property
    def squared(self) -> float:
        """Computed at first use."""
        return self.limit**2

    def __call__(self, x: Any) -> Any:
        """The action."""
        return x > self.squared

    def rule(self, x: Any) -> Any:
        """The action."""
        return x > self.limit


def clipped(x: Any, limit: float) -> Any:
    """A rule with a second argument."""
    return np.minimum(x, limit)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "closure": above,
    "lambda": lambda limit: lambda x: x > limit,
    "default": lambda limit: lambda x, limit=limit: x > limit,
    "partial": lambda limit: functools.partial(clipped, limit=limit),
    "object": Threshold,
    "method": lambda limit: Threshold(limit).rule,
    "mapping": lambda limit: {"arrival": above(limit)},
    "nested": lambda limit: above(above(limit)),
    "array": lambda limit: above(np.array([limit, 1.0])),
    "system": lambda limit: above(replace(SYSTEM, outside_cost=limit)),
    "cached": lambda limit: functools.lru_cache(above(limit)),
    "set": lambda limit: above({"a", "b", "c", limit}),
    "generator": lambda limit: above(np.random.default_rng(int(limit))),
    "list in itself": lambda limit: above(
        functools.reduce(lambda a, _: a.append(a) or a, [0], [limit])
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rules_that_hold_something_else_are_told_apart(make: Callable[[Any], Any]) -> None:
    one, same, other = make(2.0), make(2.0), make(3.0)
    assert identity_of(one) == identity_of(same) != identity_of(other)
    assert hash_of(one) == hash_of(same) != hash_of(other)
    keys = [key(scenario(policies={"mine": rule})) for rule in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]


def test_what_a_rule_has_computed_of_itself_does_not_count() -> None:
    one, used = Threshold(2.0), Threshold(2.0)
    used(1.0)
    assert "squared" in vars(used)
    assert identity_of(one) == identity_of(used)
    used.limit = 3.0
    assert identity_of(one) != identity_of(used)


def test_rules_of_different_code_are_told_apart() -> None:
    rules = [lambda x: x + 1, lambda x: x + 2, lambda x: x - 1, lambda y: y + 1, lambda x: len(x)]
    inner = [lambda x: [i + 1 for i in x], lambda x: [i + 2 for i in x]]
    members = [lambda x: x in {"a", "b"}, lambda x: x in {"a", "c"}]
    found = [identity_of(rule) for rule in (*rules, *inner, *members)]
    assert len({*found}) == len(found)


def test_a_rule_that_cannot_be_told_from_others_has_no_key(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        with pytest.raises(InputError, match=r"policy 'mine': .* cannot be told from others"):
            content_of(scenario(policies={"mine": above(file)}), "compare")
        assert hash_of(above(file)) != hash_of(above(file))  # never the same again


# --- sources --------------------------------------------------------------------------------------


def test_the_sources_of_what_the_package_has_are_the_package() -> None:
    found = sources_of(scenario(policies={"mine": "bernoulli_split"}), mdpcloud.compare)
    assert found == {"mdpcloud": mdpcloud.__version__, "package": package_hash(), "own": {}}


def test_own_systems_tasks_and_rules_are_sources() -> None:
    one = scenario(Strange(1.0), {"mine": above(1), "known": "bernoulli_split"})
    assert sources_of(one, above).keys() == {"mdpcloud", "package", "own"}
    assert sources_of(one, above)["own"].keys() == {"system", "task", "policy mine"}


def test_every_module_of_studies_that_tasks_import_counts() -> None:
    folder = PACKAGE / "study"
    keep = {f"records/{name}.py" for name in ("identity", "own", "own_files", "plain", "record")}
    counted = {"running/work.py", *(one.name for one in folder.glob("*tasks.py"))}
    behind = {file for name in (*counted, *STUDY) for file in imported(folder / name)}
    found = counted | behind - keep - {"study.py"}
    assert found == {*STUDY}, "does it change a number, or only keep or name it?"


def imported(path: Path) -> set[str]:
    """Modules of studies that another imports."""
    folder = PACKAGE / "study"
    names = (
        name for _, name in imports_of(path.read_bytes()) if name.startswith("mdpcloud.study.")
    )
    steps = [name.split(".")[2:] for name in names]
    files = {"/".join(one[:length]) + ".py" for one in steps for length in (1, 2)}
    return {file for file in files if (folder / file).is_file()}


PROGRAM = """
import sys
from pathlib import Path
from mdpcloud.study.records.identity import sources_of, content_of, key_of
from mdpcloud.scenario import read_scenario
from mdpcloud.study.tasks import find_task
from mdpcloud.neighbours import _known
for folder in sys.argv[1:]:
    _known.clear()  # as in another process
    for name in ("near", "farther", "rules"):
        sys.modules.pop(name, None)
    one = read_scenario(Path(folder) / "base.toml")
    task = find_task("tasks.py:run", Path(folder))
    made = __import__("dataclasses").replace(one.compare, policies={"made": task.run(3)})
    print(key_of(content_of(one, "tasks.py:run")), sources_of(one, task.run)["own"])
    made = __import__("dataclasses").replace(one, compare=made)
    print(key_of(content_of(made, "compare")), sources_of(made)["own"])
"""
OWN = {
    "base.toml": FILE.format(name="own", rule="rules.py:wait", rate=3.0).replace(
        '"cloud_routing"', '"systems.py:Mine"'
    ),
    "systems.py": "from mdpcloud.systems import CloudRouting\n"
    "from dataclasses import dataclass\n"
    "@dataclass(frozen=True)\n"
    "class Mine(CloudRouting):\n    extra: float = 1.0\n",
    "rules.py": "import near\ndef wait(x):\n    from deep import down\n    return near.first(x)\n",
    "near.py": "import numpy, farther\ndef first(x):\n    return 1\n",
    "farther.py": "import rules\nWORDS = {'a', 'b', 'c'}\n",
    "deep/__init__.py": "",
    "deep/down.py": "from . import side\n",
    "deep/side.py": "from ..other import x\n",
    "tasks.py": "def run(scenario):\n"
    "    words = {'a', 'b', 'c', scenario}\n"
    "    return lambda x: words and x in {'d', 'e', 'f'}\n",
    "alone.py": "x = 1\n",
}


def folder_of(place: Path, **changes: str) -> Path:
    """A folder with a scenario and the files behind it, some of them changed."""
    for name, text in {**OWN, **changes}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def said(folders: list[Path], seed: str) -> list[str]:
    """What another process says of the scenarios in folders: two lines each."""
    command = [sys.executable, "-c", PROGRAM, *map(str, folders)]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_file_behind_a_rule_counts_and_no_other_in_any_process(tmp_path: Path) -> None:
    names = [name for name in OWN if name.endswith(".py")]
    changed = {name: {name: f"{OWN[name]}# changed\n"} for name in names}
    folders = [folder_of(tmp_path / "base")]
    folders += [folder_of(tmp_path / name / "x", **changed[name]) for name in names]
    one, other = (said(folders, seed) for seed in ("1", "2"))
    assert one == other
    base, differs = one[0], {name: one[2 * i + 2] != one[0] for i, name in enumerate(names)}
    assert differs == {name: name != "alone.py" for name in names}
    assert {line.split()[0] for line in one[::2]} == {base.split()[0]}  # the key is the same
    assert len({line.split()[0] for line in one[1::2]}) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"import a.b, c", {(0, "a.b"), (0, "c")}),
        (b"def f():\n  from a import b as c, d", {(0, "a.b"), (0, "a.d")}),
        (b"from . import a\nfrom ..b.c import d", {(1, "a"), (2, "b.c.d")}),
        (b"x = '\\d'  # a warning\nimport a", {(0, "a")}),
        (b"\xff\xfe\0", set()),
        (b"import", set()),
    ],
)
def test_imports_are_read_from_the_text(source: bytes, expected: set[tuple[int, str]]) -> None:
    assert imports_of(source) == expected


def test_a_file_that_has_changed_since_it_was_loaded_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **{"farther.py": "LIMIT = 1\n"})
    first = load("rules.py:wait", folder)
    before = hash_of(first)
    (folder / "near.py").write_text("import farther\ndef first(x):\n    return 2\n")
    with pytest.raises(InputError, match=r"near\.py has changed since this process loaded it"):
        hash_of(first)
    (folder / "near.py").write_text(OWN["near.py"])
    assert hash_of(first) == before
    (folder / "rules.py").write_text(f"{OWN['rules.py']}\n# changed")
    with pytest.raises(InputError, match=r"rules\.py has changed since"):
        hash_of(first)
    second = load("rules.py:wait", folder)
    assert hash_of(second) != before


SESSION = """
from mdpcloud.study.records.own import hash_of, identity_of
WORDS = {"a", "b", "c"}
def known(x): return x > LIMIT
def rule(x): return known(x) and x in WORDS
class Rule:
    def __call__(self, x): return known(x)
for LIMIT in (1, 1, 2):
    for one in (rule, Rule(), lambda x: rule(x)):
        print(identity_of(one), hash_of(one))
"""


@pytest.mark.slow
def test_functions_of_a_session_are_hashed_with_what_they_use() -> None:
    def run(seed: str) -> list[list[str]]:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SESSION]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [line.rsplit(" ", 1) for line in found.stdout.splitlines()]

    one = run("1")
    assert one == run("2")
    first, same, other = (dict(one[i : i + 3]) for i in (0, 3, 6))
    assert first == same
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)


def test_no_field_of_settings_is_forgotten() -> None:
    """What is not in the content must be known to change no number."""
    content = content_of(scenario(), "compare")
    for table, settings in (("solve", SolveSettings), ("simulate", SimulateSettings)):
        names = {one.name for one in dataclasses.fields(settings)}
        assert names - content[table].keys() == {"time_limit"} | (
            {"threads"} if table == "solve" else {"n_jobs"}
        )
    fields = {one.name for one in dataclasses.fields(Scenario)}
    assert fields == {
        *("system", "system_name", "solve", "compare", "simulate"),  # in the content
        *("format", "name", "time_unit", "cost_unit", "figure", "path", "sha256"),
    }
