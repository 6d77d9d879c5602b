"""Studies of systems made in Python."""

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.study import Outputs, Table
from mdpcloud.study.making import system_name
from mdpcloud.study.records.identity import sources_of
from mdpcloud.study.study import Study
from mdpcloud.study.tasks import TASKS
from mdpcloud.systems import CloudRouting, Node

SYSTEM = CloudRouting((Node(2, 2.0, 0.5), Node(3, 1.0, 0.5)), 3.0, 0.4)
LABELS = st.text(max_size=5) | st.integers() | st.floats(allow_nan=False) | st.booleans()


@dataclasses.dataclass(frozen=True)
class Own:
    """A system that names no registry."""

    rate: float

    def model(self, caps: Any = None) -> Any:
        return caps


@dataclasses.dataclass(frozen=True)
class Impostor:
    """A system whose class calls itself like another."""

    rate: float
    system_name = "cloud_routing"

    def model(self, caps: Any = None) -> Any:
        return caps


def some_rule(x: Any) -> int:
    return 0


@given(st.lists(st.dictionaries(st.sampled_from("abc"), LABELS), min_size=1, max_size=5))
def test_points_are_instances_in_their_order(points: list[dict[str, Any]]) -> None:
    study = Study.of((labels, SYSTEM) for labels in points)
    assert [one.labels for one in study.instances] == points
    assert [one.number for one in study.instances] == [*range(len(points))]
    assert len(study.unique) == 1


def test_the_study_is_that_of_a_file_with_the_same_values(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
        format = 1
        policies = ["policy_improvement", "restless_bandit"]
        [base]
        system = "cloud_routing"
        parameters.arrival_rate = 3
        parameters.outside_cost = 0.4
        parameters.nodes = [
            { servers = 2, service_rate = 2, abandonment_rate = 0.5 },
            { servers = 3, service_rate = 1, abandonment_rate = 0.5 },
        ]
        [[axes]]
        path = "load"
        values = [0.5, 1.0]
        """,
        encoding="utf-8",
    )
    read = mc.study.read_study(tmp_path / "study.toml")
    points = [({"load": load}, SYSTEM.with_load(load)) for load in (0.5, 1.0)]
    made = Study.of(points, ["policy_improvement", "restless_bandit"], name="study")
    assert [one.key for one in made.instances] == [one.key for one in read.instances]
    assert [one.labels for one in made.instances] == [one.labels for one in read.instances]
    assert made.name == read.name


def test_labels_of_numpy_become_plain() -> None:
    labels = {"load": np.float64(0.5), "servers": np.int64(3), "late": np.bool_(True)}
    (one,) = Study.of([(labels, SYSTEM)]).instances
    assert [type(value) for value in one.labels.values()] == [float, int, bool]


def test_policies_are_names_or_a_mapping() -> None:
    def policies(given: Any) -> Any:
        return Study.of([({}, SYSTEM)], given).instances[0].scenario.compare.policies

    assert policies(None) is None
    assert policies("restless_bandit") == {"restless_bandit": "restless_bandit"}
    names = ["restless_bandit", "policy_improvement"]
    assert policies(iter(names)) == dict(zip(names, names, strict=True))
    assert policies({"mine": some_rule}) == {"mine": some_rule}


def test_systems_of_different_classes_have_different_names_and_keys() -> None:
    here = __name__
    assert system_name(CloudRouting) == "cloud_routing"
    assert system_name(Own) == f"{here}:Own"
    assert system_name(Impostor) == f"{here}:Impostor"
    keys = {one.key for one in Study.of(({}, kind(1.0)) for kind in (Own, Impostor)).instances}
    assert len(keys) == 2


def own_task(scenario: Any) -> dict[str, Any]:
    return {"rows": [{"rate": scenario.system.arrival_rate}]}


def task_of(factor: float) -> Callable[[Any], dict[str, Any]]:
    return lambda scenario: {"rows": [{"rate": factor * scenario.system.arrival_rate}]}


def test_a_task_may_be_a_function_known_by_its_name() -> None:
    (one,) = Study.of([({}, SYSTEM)], task=own_task).instances
    assert one.task.name == f"{__name__}:own_task"
    assert one.content["task"] == one.task.name
    assert one.task.run(one.scenario) == {"rows": [{"rate": 3.0}]}
    assert sources_of(one.scenario, own_task)["own"]["task"]


def test_functions_made_while_a_program_runs_are_told_apart_by_what_they_hold() -> None:
    def key(task: Any) -> str:
        return Study.of([({}, SYSTEM)], task=task).instances[0].key

    assert key(task_of(2.0)) == key(task_of(2.0)) != key(task_of(3.0))


def test_tasks_of_the_package_are_the_same_by_name_and_as_functions() -> None:
    for name, run in TASKS.items():
        by_name, by_function = (Study.of([({}, SYSTEM)], task=task) for task in (name, run))
        assert by_name.instances[0].key == by_function.instances[0].key
    assert Study.of([({}, SYSTEM)], task=mc.compare).task.name == "mdpcloud:compare"


def made(points: Iterable[Any], *arguments: Any, **settings: Any) -> Study:
    return Study.of(points, *arguments, **settings)


@pytest.mark.parametrize(
    ("points", "settings", "message"),
    [
        ([], {}, "a study needs at least one point; there is none"),
        ([SYSTEM], {}, "points[0] must be a pair of labels, such as {'load': 0.9}, and a system"),
        ([("a", SYSTEM)], {}, "points[0] must be a pair of labels"),
        ([({}, SYSTEM), ({}, 3)], {}, "points[1]: 3 is no system; it must be an instance of a"),
        ([({}, CloudRouting)], {}, "is no system; it must be an instance of a dataclass"),
        ([({"a": [1]}, SYSTEM)], {}, "a label must have a text as its name and a number, a text"),
        ([({"a": None}, SYSTEM)], {}, "not 'a': None"),
        ([({3: 1}, SYSTEM)], {}, "not 3: 1"),
        ([({"": 1}, SYSTEM)], {}, "not '': 1"),
        ([({"a": np.ones(2)}, SYSTEM)], {}, "points[0]: a label must have a text as its name"),
        ([({"policy": 1}, SYSTEM)], {}, "'policy' is a column of the results; rename the label"),
        ([({}, SYSTEM)], {"name": ""}, "name must be a text, not ''"),
        ([({}, SYSTEM)], {"name": 3}, "name must be a text, not 3"),
        ([({}, SYSTEM)], {"ties": "frst"}, "ties must be 'first' or 'last' or"),
        ([({}, SYSTEM)], {"task": "compar"}, "there is no task 'compar'; did you mean 'compare'?"),
        ([({}, SYSTEM)], {"task": 3}, "task must be a name (compare, evaluate, index_properties"),
        ([({}, SYSTEM)], {"task": threading.Lock().acquire}, "task: <"),
        ([({}, SYSTEM)], {"tolerance": math.nan}, "tolerance must be a finite number > 0"),
        ([({}, SYSTEM)], {"policies": []}, "policies must be names, or a mapping of names to"),
        ([({}, SYSTEM)], {"policies": ["restles_bandit"]}, "did you mean 'restless_bandit'?"),
        (
            [({}, SYSTEM)],
            {"outputs": Outputs(("mean_job",))},
            "measures[0]: there is no 'mean_job'",
        ),
        (
            [({"load": 1}, SYSTEM)],
            {
                "outputs": Outputs(
                    tables=(Table(by=("laod",)), Table(value="gap", where={"load": 2}))
                )
            },
            "tables[0].by: there is no column 'laod'; did you mean 'load'?",
        ),
        ([({}, SYSTEM)], {"policies": [some_rule]}, "policies must be names, or a mapping"),
        ([({}, SYSTEM)], {"policies": {3: some_rule}}, "there is 3"),
    ],
)
def test_a_mistake_is_named(points: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError) as caught:
        made(points, **settings)
    assert message in str(caught.value)
