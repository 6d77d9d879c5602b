"""What ``mdpcloud solve`` prints and writes, within limits and without."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from mdpcloud.cli import app
from mdpcloud.cli.solutions import print_solution
from mdpcloud.scenario import read_scenario
from mdpcloud.solve.constrained.constrained import RandomisedState

SCENARIO = """
format = 1
system = "cloud_routing"
name = "a node"
time_unit = "minute"
cost_unit = "fee"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 1
service_rate = 2.0
abandonment_rate = 0.5
[solve]
tolerance = 1e-6
"""
RATIO = "abandonment_rate[0] / routing_rate[0]"


def run(folder: Path, table: str, *arguments: object) -> Result:
    file = folder / "node.toml"
    file.write_text(SCENARIO + table, encoding="utf-8")
    return CliRunner().invoke(app, ["solve", str(file), *map(str, arguments)])


def test_the_optimum_within_limits_is_printed(tmp_path: Path) -> None:
    result = run(tmp_path, f'[solve.constraints]\n"{RATIO}" = 0.05\nmean_jobs = 5\n')
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "a node (cloud_routing)"
    assert lines[1].startswith("least cost within the constraints, fee per minute: 0.7")
    assert lines[3].split() == ["constraint", "limit", "average", "bounds", "multiplier"]
    assert lines[4].startswith(f"{RATIO}  <= 0.05  0.0500000000")
    assert lines[5].startswith("mean_jobs")
    assert lines[5].endswith(" 0")
    assert lines[7] == "randomised in 1 state"
    assert lines[8].startswith("  arrival in (node=(")
    assert lines[9] == "best of the policies that stay within the caps 3"


def test_the_record_has_multipliers_measures_and_randomised_states(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = run(tmp_path, f'[solve.constraints]\n"{RATIO}" = 0.05\n', "--json", out)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["system"] == "cloud_routing"
    assert record["status"] == "converged"
    assert 0 < record["optimum"]["lower"] <= record["optimum"]["upper"]
    (constraint,) = record["constraints"].values()
    assert constraint["at_most"] == 0.05
    assert constraint["at_least"] is None
    assert constraint["multiplier"] > 0
    assert constraint["slack"] >= 0
    assert constraint["bounds"][1] == pytest.approx(0.05)
    (state,) = record["randomised"]
    assert sum(state["probabilities"].values()) == pytest.approx(1.0)
    assert record["caps"] == [3]


def test_without_limits_the_record_is_the_optimum(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = run(tmp_path, "", "--json", out)
    assert result.exit_code == 0, result.output
    assert "least cost, fee per minute: 0.71" in result.stdout
    record = json.loads(out.read_text(encoding="utf-8"))
    assert "constraints" not in record
    assert record["optimum"]["lower"] <= record["optimum"]["upper"]


def test_limits_that_cannot_be_met_are_reported(tmp_path: Path) -> None:
    table = (
        "[solve.constraints]\nmean_jobs = { at_least = 1.5 }\noutsourcing_rate = { at_least = 2.9 }"
    )
    result = run(tmp_path, table)
    assert result.exit_code == 1
    assert "no policy meets the constraints" in result.stderr
    assert "mean_jobs >= 1.5" in result.stderr


def test_an_unknown_measure_is_named_with_the_file(tmp_path: Path) -> None:
    result = run(tmp_path, "[solve.constraints]\nmean_job = 1.0")
    assert result.exit_code == 2
    assert "node.toml: constraint 'mean_job': the model has no measure 'mean_job'" in result.stderr
    assert "did you mean 'mean_jobs'" in result.stderr


def test_what_is_not_known_or_too_much_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text(SCENARIO + f'[solve.constraints]\n"{RATIO}" = 0.5\n', encoding="utf-8")
    states = [
        RandomisedState("arrival", k, f"(node=({k},))", {"outside": 0.5, "node 0": 0.5})
        for k in range(10)
    ]
    solution = SimpleNamespace(
        bounds=(1.0, 2.0),
        measures={},
        multipliers={RATIO: 0.0},
        randomised=states,
        status="converged",
        solver="some",
        iterations=3,
        elapsed=1.0,
    )
    print_solution(read_scenario(file), solution)
    printed = capsys.readouterr().out.splitlines()
    assert printed[4].split() == [*RATIO.split(), "<=", "0.5", "-", "0"]
    assert "  and 2 more" in printed
