"""Tasks on the indices of a routing system."""

import json

import pytest

from mdpcloud.errors import InputError
from mdpcloud.study import Study
from mdpcloud.study.tasks import TASKS
from mdpcloud.systems import CloudRouting, ErlangLoss, Node
from mdpcloud.systems.routing_properties import INDICES, PROPERTIES, index_tables

SYSTEM = CloudRouting((Node(1, 2.0, 0.5), Node(2, 1.0, 0.5, room=5)), 3.0, 1.0)


def rows(task: str, system: object, policies: list[str] | None = None) -> list[dict[str, object]]:
    study = Study.of([({}, system)], policies, task=task)
    result = TASKS[task](study.instances[0].scenario)
    return json.loads(json.dumps(result, allow_nan=False))["rows"]


def test_every_index_has_a_row_for_each_property() -> None:
    found = rows("index_properties", CloudRouting.example())
    assert [(r["index"], r["property"]) for r in found] == [
        (index, name) for index in INDICES for name in PROPERTIES
    ]
    broken = [(r["index"], r["property"]) for r in found if r["violated"]]
    assert broken == [("restless_bandit", "P3")]


def test_curves_are_the_tables_as_far_as_a_node_has_room() -> None:
    found = rows("index_curves", SYSTEM)
    for index in INDICES:
        for k, table in enumerate(index_tables(SYSTEM, index, 22)):
            values = [r["value"] for r in found if r["index"] == index and r["node"] == k]
            assert values == table.tolist()[: 5 if k else None]


def test_the_policies_of_the_study_choose_the_indices() -> None:
    found = rows("index_curves", SYSTEM, ["bernoulli_split", "restless_bandit"])
    assert {r["index"] for r in found} == {"restless_bandit"}
    with pytest.raises(InputError, match="must name an index policy"):
        rows("index_curves", SYSTEM, ["bernoulli_split"])


@pytest.mark.parametrize("task", ["index_curves", "index_properties"])
def test_other_systems_have_no_such_indices(task: str) -> None:
    with pytest.raises(InputError, match="erlang_loss has none"):
        rows(task, ErlangLoss.example())
