"""`mdpcloud evaluate` of an allocation system: the exact measures beside the limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mdpcloud.cli.app import app
from mdpcloud.scenario import new_scenario
from mdpcloud.systems.registry import find_system, system_names

SYSTEMS = [name for name in system_names() if hasattr(find_system(name), "own_policy")]
KINDS = ("blocking", "downgraded", "forwarded", "mean_jobs")


def evaluated(folder: Path, text: str, *more: str) -> tuple[str, dict]:
    file = folder / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    out = folder / "out.json"
    run = CliRunner().invoke(app, ["evaluate", str(file), "--json", str(out), *more])
    assert run.exit_code == 0, run.output
    return run.output, json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_allocation_system_is_evaluated_beside_its_limit(tmp_path: Path, name: str) -> None:
    output, record = evaluated(tmp_path, new_scenario(name))
    exact = record["measures"]["exact"]
    assert record["policy"] == find_system(name).own_policy
    assert exact["certified"]
    assert exact["cost"] >= 0.0
    assert exact["errors"]["cost"] <= 1e-8 * max(exact["cost"], 1.0)
    for kind in KINDS:
        for row in exact[kind] or ():
            values = row if isinstance(row, list) else [row]
            assert all(value >= 0.0 for value in values)
            assert kind == "mean_jobs" or all(value <= 1.0 for value in values)
    assert "blocking[0]" in output
    assert set(record["measures"]) == {"exact", "simulated", "limit"}
    limit = record["measures"]["limit"]
    assert (limit is None) == ("no limit: " in " ".join(record["notes"]))
    if limit is not None:
        assert record["regime"] == limit["regime"]
        assert [*limit] == [*exact]


def test_pictures_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    text = new_scenario("offloading")
    output, _ = evaluated(tmp_path, text, "--plots", str(tmp_path / "pictures"))
    assert {path.name for path in (tmp_path / "pictures").iterdir()} >= {"limit.png", "fluid.pdf"}
    assert "picture: " in output


def test_pictures_of_other_systems_are_left_to_compare(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(new_scenario("cloud_routing"), encoding="utf-8")
    run = CliRunner().invoke(app, ["evaluate", str(file), "--plots", str(tmp_path)])
    assert run.exit_code == 2
    assert "mdpcloud compare --plots" in run.output
