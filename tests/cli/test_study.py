"""What ``mdpcloud study`` prints and writes, its exit codes, and what it refuses."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mdpcloud.cli import app

SCENARIO = """
format = 1
system = "cloud_routing"

[parameters]
arrival_rate = 3.0
outside_cost = 0.4

[[parameters.nodes]]
servers = 1
service_rate = 2.0
abandonment_rate = 0.5

[compare]
policies = ["policy_improvement", "rules.py:mine"]
"""
STUDY = """
format = 1
base = "base.toml"

[[axes]]
path = "parameters.outside_cost"
values = [0.3, 0.4, 0.5]

[[figures]]
name = "gaps"
"""
RULES = """
def mine(x):
    return "node 0" if x.node[0] < 2 else "outside"
"""
FAILS_AT_THE_DEAREST = """
def my_task(scenario):
    if scenario.system.outside_cost > 0.45:
        raise RuntimeError("too dear")
    return {"rows": [{"policy": "none", "cost": 1.0, "gap": 0.0}]}
"""
SLOW = """
import time

def my_task(scenario):
    time.sleep(1.0)
    return {"rows": [{"policy": "none", "cost": 1.0, "gap": 0.0}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with a scenario, a study of it, and rules."""
    for name, text in (("base.toml", SCENARIO), ("prices.toml", STUDY), ("rules.py", RULES)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["study", "prices.toml", *map(str, arguments)])


def test_a_dry_run_lists_the_instances_and_computes_nothing(folder: Path) -> None:
    result = study("--dry-run")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["instance", "outside_cost", "key", "record"]
    assert [line.split()[1] for line in lines[1:4]] == ["0.3", "0.4", "0.5"]
    assert lines[-1] == "prices: 3 instances, 3 missing"
    assert not (folder / "prices.results").exists()


@pytest.mark.slow
def test_a_study_prints_its_table_and_leaves_everything_beside_its_file(folder: Path) -> None:
    result = study("--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "policy improvement" in result.stdout
    assert "prices: 3 instances, 3 done" in result.stdout
    results = folder / "prices.results"
    text = (results / "results.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["policy"] for row in rows} == {"optimum", "policy_improvement", "mine"}
    for name in ("tables/gaps.tex", "figures/gaps.png", "figures/gaps.pdf"):
        assert (results / name).stat().st_size
        assert f"written: prices.results/{name}" in result.stderr


@pytest.mark.slow
def test_a_store_with_records_is_gone_on_with_only_on_request(folder: Path) -> None:
    assert study().exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in folder.glob("prices.results/records/*")}
    refused = study()
    assert refused.exit_code == 2
    assert "--resume" in refused.stderr
    table = (folder / "prices.results/results.csv").read_bytes()
    assert study("--resume").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (folder / "prices.results/results.csv").read_bytes() == table
    assert study("--dry-run").stdout.count(" done") == 4


@pytest.mark.slow
def test_records_made_by_another_rule_are_listed_and_computed_again(folder: Path) -> None:
    assert study().exit_code == 0
    table = (folder / "prices.results/results.csv").read_bytes()
    (folder / "rules.py").write_text(RULES.replace("< 2", "< 1"), encoding="utf-8")
    kept = study("--resume", "--keep-old")
    assert "3 records made by other sources, kept" in kept.stderr
    assert (folder / "prices.results/results.csv").read_bytes() == table
    again = study("--resume")
    assert "3 records made by other sources, computed again" in again.stderr
    assert "outside_cost 0.4" in again.stderr
    assert (folder / "prices.results/results.csv").read_bytes() != table


@pytest.mark.slow
def test_instances_that_fail_are_told_and_the_exit_code_is_three(folder: Path) -> None:
    (folder / "tasks.py").write_text(FAILS_AT_THE_DEAREST, encoding="utf-8")
    text = f'task = "tasks.py:my_task"\n{STUDY}'
    (folder / "prices.toml").write_text(text, encoding="utf-8")
    result = study()
    assert result.exit_code == 3
    assert "prices: 3 instances, 2 done, 1 failed" in result.stdout
    assert "failed: instance 2 (outside_cost 0.5): " in result.stderr
    assert "too dear" in result.stderr
    kept = study("--resume")
    assert kept.exit_code == 3
    assert "--retry-failed" in kept.stderr
    (folder / "tasks.py").write_text(FAILS_AT_THE_DEAREST.replace("0.45", "1"), encoding="utf-8")
    assert study("--resume", "--retry-failed", "--keep-old").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STUDY.replace("outside_cost", "outside_price"), "did you mean 'outside_cost'?"),
        (STUDY.replace("0.5]", "-0.5]"), "outside_cost -0.5"),
        (STUDY.replace('base = "base.toml"', ""), "base"),
        (STUDY.replace("[[figures]]", "[[figure]]"), "did you mean 'figures'?"),
    ],
)
def test_mistakes_of_the_file_are_told_before_anything_is_computed(
    folder: Path, text: str, message: str
) -> None:
    (folder / "prices.toml").write_text(text, encoding="utf-8")
    result = study()
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (folder / "prices.results").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupted_study_says_how_to_go_on(folder: Path) -> None:
    (folder / "tasks.py").write_text(SLOW, encoding="utf-8")
    text = STUDY.replace("values = [0.3, 0.4, 0.5]", "first = 0.1\nlast = 0.9\npoints = 30")
    (folder / "prices.toml").write_text(f'task = "tasks.py:my_task"\n{text}', encoding="utf-8")
    command = [sys.executable, "-m", "mdpcloud", "study", "prices.toml", "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        deadline = time.monotonic() + 60
        while not list(folder.glob("prices.results/records/*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith("interrupted: ")
    assert told.endswith(" of 30 kept; go on with: mdpcloud study prices.toml --resume\n")
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX")
def test_a_list_that_nobody_reads_on_ends_in_silence(folder: Path) -> None:
    text = STUDY.replace("values = [0.3, 0.4, 0.5]", "first = 0.1\nlast = 0.9\npoints = 3000")
    (folder / "prices.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mdpcloud", "study", "prices.toml", "--dry-run"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()
    assert (process.returncode, told) == (141, "")
