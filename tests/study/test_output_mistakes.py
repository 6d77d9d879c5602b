"""Mistakes in tables and figures that are found before anything is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.scenario.settings import SimulateSettings
from mdpcloud.study import Figure, Outputs, Study, Table
from mdpcloud.study.known_names import names_of_measures, names_of_policies
from mdpcloud.study.output_mistakes import labels_of, mistakes_in_columns, mistakes_in_names
from mdpcloud.systems import CloudRouting, Node
from mdpcloud.systems.registry import find_system, system_names

NODES = (Node(1, 2.0, 0.5), Node(2, 1.0, 0.5))
SYSTEM = CloudRouting(NODES, 3.0, 0.4)


def anything(scenario: Any) -> dict[str, Any]:
    return {"rows": [{"blocked": 0.5, "rule": "mine"}]}


def study(task: Any = "compare", policies: Any = None) -> Study:
    labels = [{"load": x, "deadline": y} for x in (0.0, 0.5) for y in ("begin", "end")]
    points = [(one, replace(SYSTEM, arrival_rate=2.0 + i)) for i, one in enumerate(labels)]
    return Study.of(points, policies, task=task)


def found(outputs: Outputs, task: Any = "compare") -> list[str]:
    one = study(task)
    mistakes = [*mistakes_in_columns(outputs, one.task, labels_of(one.instances))]
    return [*mistakes, *mistakes_in_names(outputs, one.instances)]


def table(**settings: Any) -> Outputs:
    return Outputs(tables=(Table(**({"name": "t"} | settings)),))


def figure(**settings: Any) -> Outputs:
    return Outputs(
        figures=(Figure(**({"name": "f", "x": "load", "panels": ("deadline",)} | settings)),)
    )


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        (table(value="gapp"), "tables[0].value: there is no column 'gapp'; did you mean 'gap'?"),
        (table(value="status"), "tables[0].value: column 'status' must hold numbers"),
        (table(value="deadline"), "tables[0].value: column 'deadline' must hold numbers"),
        (table(rows="polcy"), "tables[0].rows: there is no column 'polcy'; did you mean 'policy'?"),
        (table(by=("load", "dedline")), "tables[0].by: there is no column 'dedline'; did you"),
        (
            table(by=("xyz",)),
            "there is no column 'xyz'; there are instance, load, deadline, policy",
        ),
        (table(value="mean_jobs"), "what `measures` names has columns too"),
        (table(where={"laod": 0.5}), "tables[0].where: there is no column 'laod'; did you mean"),
        (table(where={"load": 7.0}), "tables[0].where: no row has load = 7.0; there are 0.0, 0.5"),
        (table(where={"policy": "fast"}), "no row has policy = 'fast'; there are 'optimum', 'bern"),
        (figure(x="laod"), "figures[0].x: there is no column 'laod'; did you mean 'load'?"),
        (figure(y="gapp"), "figures[0].y: there is no column 'gapp'; did you mean 'gap'?"),
        (figure(curves="rule"), "figures[0].curves: there is no column 'rule'; there are instance"),
        (figure(panels=("dead",)), "figures[0].panels: there is no column 'dead'"),
        (figure(where={"deadline": ["x"]}), "figures[0].where: no row has deadline = ['x']"),
        (figure(where={"policy": ["x"]}), "figures[0].where: no row has policy = ['x']"),
        (figure(x=None, panels=()), "figures[0].x is missing; it must be one of load, deadline"),
        (
            figure(x="deadline", panels=("load",), logarithmic="xy"),
            "figures[0].logarithmic: 'x' cannot be: deadline",
        ),
        (figure(logarithmic="x"), "figures[0].logarithmic: 0 of 'load' has no place there"),
        (figure(title="$\\lamda$"), "figures[0].title: '$\\\\lamda$' cannot be drawn"),
        (
            figure(panels=()),
            "figures[0]: several instances stand at load = 0.0; they differ in deadline ('begin', "
            "'end', ...): name it in panels or curves, or a value in where",
        ),
        (Outputs(("mean_job",)), "measures[0]: there is no 'mean_job'; did you mean 'mean_jobs'?"),
        (
            Outputs(("xyz",)),
            "measures[0]: there is no 'xyz'; there are abandonment_rate, outsourcing",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(outputs: Outputs, told: str) -> None:
    (mistake,) = found(outputs)
    assert told in mistake


@pytest.mark.parametrize(
    "outputs",
    [
        Outputs(),
        table(value="profit_gap", by=("load",), where={"load": [0.5, 9.0], "policy": "optimum"}),
        table(value="difference", where={"truncation": "exact"}),
        figure(x=None),
        figure(panels=(), where={"deadline": "end", "policy": "optimum"}),
        figure(panels=(), y="profit_gap"),  # which may not be there
        figure(panels=(), kind="bars"),
        figure(panels=(), curves="deadline", where={"policy": "optimum"}),
        figure(logarithmic="x", where={"load": [0.5]}),
        figure(x=None, panels=(), where={"deadline": "begin"}),
        figure(curves="deadline", panels=(), x="load", where={"policy": "restless_bandit"}),
        replace(table(value="mean_jobs[1]_upper"), measures=("mean_jobs[1]", "profit_rate")),
        replace(table(value="measure_gap"), measures=("mean_jobs",)),
    ],
)
def test_nothing_is_said_of_what_there_will_be(outputs: Outputs) -> None:
    assert found(outputs) == []


def test_nothing_is_said_of_columns_of_a_task_that_may_have_any() -> None:
    outputs = Outputs(
        ("blocking",),
        (Table("t", "blocked", "rule", by=("x",), where={"load": 0.5, "policy": "mine"}),),
        (Figure("f", y="blocked", curves="rule", x="blocks", panels=("deadline",)),),
    )
    assert found(outputs, anything) == []
    (told,) = found(table(where={"load": 7.0}), anything)
    assert "no row has load = 7.0" in told


def test_tasks_without_policies_have_no_measures() -> None:
    (told,) = found(Outputs(("mean_jobs",)), "index_properties")
    assert "measures[0]: there is no 'mean_jobs'; the task has none" in told
    assert found(table(value="violation", rows="index"), "index_properties") == []


@pytest.mark.parametrize("kind", ["distribution", "bars"])
def test_what_no_figure_of_a_kind_can_have_is_refused(kind: Any) -> None:
    with pytest.raises(mc.InputError, match=f"logarithmic: 'y' cannot be for kind '{kind}'"):
        Figure("f", kind, logarithmic="y")
    with pytest.raises(mc.InputError, match="x: a distribution has none: it is that of y"):
        Figure("f", "distribution", x="load")


@pytest.mark.parametrize("simulate", [None, SimulateSettings(events=2000, replications=2)])
def test_names_are_those_of_the_rows(simulate: Any) -> None:
    one = study("evaluate")
    scenario = replace(one.instances[0].scenario, simulate=simulate)
    rows = one.task.run(scenario)["rows"]
    assert [row["policy"] for row in rows] == names_of_policies(one.instances)
    measured = {name for row in rows for name in row["measures"]}
    assert measured <= {*names_of_measures(one.instances, ["none"])}


def test_instances_of_different_policies_may_stand_at_the_same_place() -> None:
    outputs = figure(panels=())
    parts = [
        Study.of([({"load": 0.5, "block": name}, SYSTEM)], name)
        for name in ("restless_bandit", "policy_improvement")
    ]
    both = [part.instances[0] for part in parts]
    assert [*mistakes_in_names(outputs, both)] == []
    same = replace(both[0], number=1, labels={"load": 0.5, "block": "other"})
    (told,) = mistakes_in_names(outputs, [both[0], same])
    assert "they differ in block ('restless_bandit', 'other', ...)" in told


def test_rules_of_ones_own_have_rows_by_their_names() -> None:
    one = study("compare", {"mine": {"arrival": lambda x: 0}, "his": "restless_bandit"})
    assert names_of_policies(one.instances) == ["optimum", "mine", "his"]


@pytest.mark.parametrize("name", system_names())
def test_names_of_every_system_are_known_before_it_is_solved(name: str) -> None:
    (one,) = Study.of([({}, find_system(name).example())], task="evaluate").instances  # type: ignore[attr-defined]
    limited = replace(one.scenario, simulate=SimulateSettings(events=500, replications=2))
    rows = one.task.run(limited)["rows"]
    measured = {measure for row in rows for measure in row["measures"]}
    assert measured <= {*(names_of_measures([one], ["none"]) or ())}
    assert [row["policy"] for row in rows] == names_of_policies([one])


def test_measures_of_any_node_of_any_instance_are_known() -> None:
    more = CloudRouting((*NODES, NODES[0]), 3.0, 0.4)
    both = Study.of([({"n": 2}, SYSTEM), ({"n": 3}, more)])
    assert names_of_measures(both.instances, ["mean_jobs[2]"]) is not None
    assert [*mistakes_in_names(Outputs(("mean_jobs[2]",)), both.instances)] == []
    assert len([*mistakes_in_names(Outputs(("mean_jobs[3]",)), both.instances)]) == 1
