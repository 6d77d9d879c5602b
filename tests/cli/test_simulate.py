"""What ``mdpcloud simulate`` prints and writes, and how it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from mdpcloud.cli import app
from mdpcloud.cli.progress import simulation_bar
from mdpcloud.compare import size
from mdpcloud.numbers import with_half_width

SCENARIO = """
format = 1
system = "cloud_routing"
name = "a node"
time_unit = "hour"
cost_unit = "fee"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 1
service_rate = 2.0
abandonment_rate = 0.5
[[parameters.nodes]]
servers = 1
service_rate = 1.0
abandonment_rate = 0.5
[simulate]
events = 20_000
replications = 4
seed = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "node.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def failed(result: Result, code: int) -> str:
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    return result.stderr


# --- what it prints and writes --------------------------------------------------------------------


def test_costs_intervals_and_differences_are_printed_in_the_scenarios_units(file: Path) -> None:
    result = run("simulate", file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "a node (cloud_routing)"
    assert lines[1].startswith("4 replications of ")
    assert lines[1].endswith(" hours, seed 3")
    assert lines[2] == "costs in fee per hour"
    heading = "policy cost 95 % above the best 95 % events warm-up status"
    assert " ".join(lines[4].split()) == heading
    rows = [line.split() for line in lines[5:9]]
    assert [row[0] for row in rows] == [
        "bernoulli_split",
        "individually_optimal",
        "policy_improvement",
        "restless_bandit",
    ]
    assert all(row[2] == "±" for row in rows)
    assert sum("best" in row for row in rows) == 1
    assert "simulated" in rows[3]
    measures = lines[10:]
    assert measures[0].split() == ["policy", "measure", "value", "95", "%"]
    assert any("mean_jobs[1]" in line and "±" in line for line in measures)
    assert any(line.startswith("note: ") for line in measures)


def test_the_record_has_estimates_runs_and_differences(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = run("simulate", file, "--policy", "restless_bandit", "--json", out, "--seed", 9)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["name"] == "a node"
    assert record["units"] == {"time": "hour", "cost": "fee"}
    assert record["optimum"] is None
    assert record["truncation"] == {"kind": "simulated", "error": None}
    assert record["simulate"]["seed"] == 9
    assert len(record["run"]["scenario_sha256"]) == 64
    (row,) = record["policies"]
    assert row["difference"] == {"value": 0.0, "lower": 0.0, "upper": 0.0, "kind": "best"}
    assert row["simulation"]["replications"] == 4
    assert set(row["simulation"]["estimates"]["mean_jobs"]) == {
        "value",
        "lower",
        "upper",
        "standard_error",
        "effective_samples",
    }


def test_equal_seeds_print_the_same(file: Path) -> None:
    arguments = ("simulate", file, "--policy", "restless_bandit", "--seed", 4)
    assert run(*arguments).stdout == run(*arguments).stdout
    assert run(*arguments).stdout == run(*arguments, "--jobs", 2).stdout


def test_flags_override_the_file_and_are_echoed(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    flags = ("--events", "1e4", "--seed", 1, "--jobs", 2, "--half-width", 0.5)
    result = run("simulate", file, "--policy", "restless_bandit", "--json", out, *flags)
    assert result.exit_code == 0, result.output
    assert "--events 10000 (the file has 20000)" in result.stderr
    assert "--seed 1 (the file has 3)" in result.stderr
    assert "--jobs 2 (the file has 1)" in result.stderr
    assert "--half-width 0.5 (the file has none)" in result.stderr
    used = json.loads(out.read_text(encoding="utf-8"))["simulate"]
    assert (used["events"], used["seed"], used["n_jobs"], used["half_width"]) == (10000, 1, 2, 0.5)


def test_a_number_of_events_takes_the_place_of_the_files_time(file: Path, tmp_path: Path) -> None:
    file.write_text(SCENARIO.replace("events = 20_000", "time = 50.0"), encoding="utf-8")
    out = tmp_path / "out.json"
    result = run("simulate", file, "--policy", "restless_bandit", "--json", out)
    assert result.exit_code == 0, result.output
    assert "4 replications of 50 hours" in result.stdout
    result = run("simulate", file, "--policy", "restless_bandit", "--events", "5_000")
    assert result.exit_code == 0, result.output
    assert "replications of 50 hours" not in result.stdout


def test_pictures_go_into_the_folder(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "pictures"
    file.write_text(SCENARIO + 'paths = ["node[1]"]\n', encoding="utf-8")
    result = run("simulate", file, "--policy", "restless_bandit", "--plots", folder)
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == {
        "costs.png",
        "indices.png",
        "convergence_restless_bandit.png",
        "path_restless_bandit_node_1.png",
    }
    assert f"picture: {folder / 'costs.png'}" in result.stderr


def test_of_very_many_measures_those_of_the_whole_system_are_printed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdpcloud.cli.tables.MOST_MEASURES", 5)
    printed = run("simulate", file, "--policy", "restless_bandit").stdout
    assert "mean_jobs " in printed
    assert "mean_jobs[0]" not in printed
    assert "measures of single nodes and the like, which --json writes" in printed


def test_compare_and_evaluate_simulate_what_is_too_large(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size, "MOST", 1)
    out, folder = tmp_path / "out.json", tmp_path / "pictures"
    result = run("compare", file, "--json", out, "--plots", folder)
    assert result.exit_code == 0, result.output
    assert "above the best" in result.stdout
    assert "closed form" in result.stdout
    assert "note: the policies are simulated, since the smallest" in result.stdout
    assert json.loads(out.read_text(encoding="utf-8"))["optimum"] is None
    assert not (folder / "actions.png").exists()
    result = run("evaluate", file, "--policy", "restless_bandit", "--json", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[3].split() == ["policy", "measure", "value", "95", "%"]
    (row,) = json.loads(out.read_text(encoding="utf-8"))["policies"]
    assert row["status"] == "simulated"
    assert row["simulation"]["estimates"]["cost"]["value"] == row["cost"]


QUEUE = """
from dataclasses import dataclass

import mdpcloud as mc


@dataclass(frozen=True)
class Queue:
    rate: float = 0.5
    choice: bool = False

    def model(self, caps=None):
        join, leave = mc.Action("join", mc.step(jobs=+1)), mc.Action("leave", cost=1.0)
        arrival = mc.Event("arrival", self.rate, [join, leave] if self.choice else join)
        service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
        space = mc.Lattice({"jobs": 10**12})
        return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs)
"""


@pytest.mark.parametrize("choice", ["false", "true"])
def test_a_system_without_decisions_needs_no_policy(tmp_path: Path, choice: str) -> None:
    (tmp_path / "queue.py").write_text(QUEUE, encoding="utf-8")
    file = tmp_path / "queue.toml"
    file.write_text(
        f'format = 1\nsystem = "queue.py:Queue"\nparameters = {{ choice = {choice} }}\n'
        "simulate = { events = 20_000, replications = 2 }\n",
        encoding="utf-8",
    )
    result = run("simulate", file)
    if choice == "false":
        assert result.exit_code == 0, result.output
        assert "no decisions" in result.stdout
    else:
        assert "policy 'no decisions': no rule for decision 'arrival'" in failed(result, 2)


# --- how it ends ----------------------------------------------------------------------------------


def test_a_half_width_that_is_not_met_is_printed_written_and_an_error(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    flags = ("--policy", "restless_bandit", "--half-width", 1e-6, "--json", out)
    result = run("simulate", file, *flags)
    message = failed(result, 1)
    assert "the simulation did not converge: restless_bandit is known to ± " in message
    assert "and half_width is 1e-06; allow more events or time" in message
    assert "interval too wide" in result.stdout
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["policies"][0]["status"] == "half_width"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--events", "0"), "error: --events must be an integer >= 1, not 0"),
        (("--half-width", "-1"), "error: --half-width must be a finite number > 0"),
        (("--seed", "-1"), "error: --seed must be an integer >= 0, not -1"),
        (("--jobs", "0"), "error: --jobs must be an integer >= 1, not 0"),
        (("--policy", "restles_bandit"), "did you mean 'restless_bandit'?"),
        (("--json", "none/out.json"), "there is no folder none"),
        (("--events", "1.5"), "Invalid value"),
        (("--events", "many"), "Invalid value"),
    ],
)
def test_a_wrong_flag_exits_with_2(file: Path, flags: tuple[str, ...], message: str) -> None:
    result = run("simulate", file, *flags)
    assert message in failed(result, 2)
    assert "(the file has" not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("events = 20_000", "event = 5", "simulate.event is not known; did you mean 'events'?"),
        ("seed = 3", 'seed = 3\npaths = ["nod[0]"]', "'nod[0]'"),
        ("seed = 3", "seed = 3\nwarm_up = 1e9", "warm_up is 1e+09"),
    ],
)
def test_a_mistake_in_the_file_exits_with_2(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(SCENARIO.replace(old, new), encoding="utf-8")
    assert message in failed(run("simulate", file), 2)


PROGRAM = """
from mdpcloud.cli import main, progress
progress.EVERY = 0.0
main()
"""


@pytest.mark.slow
def test_an_interrupt_prints_and_writes_what_is_known_and_exits_with_1(
    file: Path, tmp_path: Path
) -> None:
    """The signal comes after a few reports of the interval."""
    out = tmp_path / "out.json"
    flags = ["--events", "1e9", "--policy", "restless_bandit", "--json", str(out)]
    command = [sys.executable, "-c", PROGRAM, "simulate", str(file), *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = 0
        while told < 3:
            line = process.stderr.readline()
            assert line
            told += " events, " in line
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "interrupted at restless_bandit" in said
    assert "Traceback" not in said
    assert "interrupted" in printed
    (row,) = json.loads(out.read_text(encoding="utf-8"))["policies"]
    assert row["status"] == "interrupted"
    assert row["lower"] < row["upper"]


# --- numbers and progress -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((2.35318, 2.34108, 2.36528), ("2.353", "± 0.013")),
        ((0.0, -0.01, 0.01), ("0", "± 0.010")),
        ((5.0, 5.0, 5.0), ("5.000000000", "± 0")),
        ((1.0, float("-inf"), float("inf")), ("1", "unknown")),
        ((-3e-15, -4e-15, -2e-15), ("-3.0e-15", "± 1.0e-15")),
    ],
)
def test_an_estimate_has_the_digits_that_its_interval_supports(
    numbers: tuple[float, float, float], text: tuple[str, str]
) -> None:
    assert with_half_width(*numbers) == text


def test_the_bar_shows_policies_events_and_the_interval() -> None:
    console = Console(force_terminal=True, width=100)
    with console.capture() as shown, simulation_bar(100, None, 2, console) as progress:
        progress(50, 1.0, 2.0)
        progress(100, 1.25, 1.75)
        progress(30, 1.5, 1.75)
    assert "policy 2 of 2: 30 events, 1.5 to 1.75" in shown.get()


def test_the_bar_follows_the_half_width() -> None:
    console = Console(force_terminal=True, width=100)
    with console.capture() as shown, simulation_bar(None, 0.1, 1, console) as progress:
        progress(50, float("-inf"), float("inf"))
        progress(100, 1.0, 2.0)
        progress(200, 1.0, 1.2)
    assert "policy 1 of 1: 200 events, 1 to 1.2" in shown.get()


def test_without_a_terminal_a_line_tells_how_far_a_long_simulation_is() -> None:
    console = Console(force_terminal=False)
    with console.capture() as shown, simulation_bar(100, None, 1, console) as progress:
        progress(10, 1.0, 2.0)
    assert shown.get() == ""


def test_the_command_is_listed_with_its_options() -> None:
    result: Any = run("simulate", "--help")
    assert result.exit_code == 0
    for flag in ("--policy", "--json", "--plots", "--events", "--half-width", "--seed", "--jobs"):
        assert flag in result.stdout
