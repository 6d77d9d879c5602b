"""Tasks, and the columns that they say they have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mdpcloud.scenario.settings import SimulateSettings
from mdpcloud.study import Study
from mdpcloud.study.tasks import COLUMNS, TASKS
from mdpcloud.systems import CloudRouting, Node

SYSTEM = CloudRouting((Node(1, 2.0, 0.5), Node(2, 1.0, 0.5)), 3.0, 0.4)
APART = {"measures"}
KINDS: dict[type, tuple[type, ...]] = {
    float: (float, int),
    int: (int,),
    bool: (bool,),
    str: (str, list, dict),  # which become texts
}


@pytest.mark.parametrize("simulate", [None, SimulateSettings(events=1000, replications=2)])
@pytest.mark.parametrize("task", TASKS)
def test_rows_have_no_columns_but_those_declared(task: str, simulate: object) -> None:
    study = Study.of([({}, SYSTEM)], task=task)
    scenario = replace(study.instances[0].scenario, simulate=simulate)
    declared = COLUMNS[task]
    rows = study.task.run(scenario)["rows"]
    assert rows
    for row in rows:
        assert row.keys() - APART <= declared.keys()
        for name, value in row.items():
            if value is not None and name not in APART:
                assert isinstance(value, KINDS[declared[name]]), name
    if simulate is None:
        rare = {"difference", "difference_lower", "difference_upper", "parameter"}
        found = {name for row in rows for name in row}
        assert declared.keys() - rare - {"notes"} <= found
