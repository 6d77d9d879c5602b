"""What ``mdpcloud figure`` writes and prints, and what it refuses."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from mdpcloud.cli import app
from mdpcloud.cli.figure import figure_bar
from mdpcloud.scenario import new_scenario, read_scenario

SHOP = Path(__file__).parents[1] / "asymptotics" / "shop.py"
SCENARIO = f"""
format = 1
system = "{SHOP}:Shop"
name = "a shop"
time_unit = "hour"
cost_unit = "customer"
"""
SWEEP = """
[figure]
kind = "sweep"
x = { path = "arrival_rates[0]", values = [1.5, 2.0, 2.5], label = '$\\lambda$' }
measures = ["blocking[0]"]
finite = { scales = [2] }
"""


def draw(folder: Path, figure: str, *more: object) -> Result:
    file = folder / "shop.toml"
    file.write_text(SCENARIO + figure, encoding="utf-8")
    return CliRunner().invoke(app, ["figure", str(file), *map(str, more)])


def test_a_figure_is_written_with_every_number_that_it_shows(tmp_path: Path) -> None:
    result = draw(tmp_path, SWEEP, "--json", tmp_path / "more.json")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "figures"
    assert (folder / "shop.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "shop.pdf").read_bytes()[:4] == b"%PDF"
    record = json.loads((folder / "shop.json").read_text(encoding="utf-8"))
    assert record["parameters"]["arrival_rates"] == [2.0]
    limit, finite = record["panels"][0]["series"]
    assert limit["x"] == [1.5, 2.0, 2.5]
    assert limit["y"] == pytest.approx([1 - 1 / 1.5, 0.5, 0.6])
    erlang = 8 / 13  # two places and the load 4
    assert finite["kind"] == "N = 2"
    assert finite["y"][1] == pytest.approx(erlang, abs=1e-8)
    assert finite["lower"][1] <= erlang <= finite["upper"][1]
    assert json.loads((tmp_path / "more.json").read_text(encoding="utf-8")) == record
    with (folder / "shop.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [float(row["y"]) for row in rows] == limit["y"] + finite["y"]


def test_the_folder_can_be_chosen(tmp_path: Path) -> None:
    result = draw(tmp_path, SWEEP, "--out", tmp_path / "elsewhere")
    assert result.exit_code == 0, result.output
    assert {path.suffix for path in (tmp_path / "elsewhere").iterdir()} == {
        ".png",
        ".pdf",
        ".json",
        ".csv",
    }


def test_a_scenario_without_a_figure_is_refused(tmp_path: Path) -> None:
    result = draw(tmp_path, "")
    assert result.exit_code == 2
    assert "no table [figure]" in result.stderr


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("arrival_rates[0]", "arrival_rate", "no parameter 'arrival_rate'; did you mean"),
        ("blocking[0]", "blocking[1]", "blocking[1] has no place 1: it is a list of 1"),
        ("1.5, ", "-1, ", "arrival_rates[0] = -1: Shop: arrival_rates[0] must be"),
    ],
)
def test_what_the_system_does_not_know_is_refused_with_the_file(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    result = draw(tmp_path, SWEEP.replace(before, after))
    assert result.exit_code == 2
    assert "shop.toml" in result.stderr
    assert words in result.stderr


def test_progress_is_told_now_and_then_where_there_is_no_terminal() -> None:
    output, seconds = io.StringIO(), iter([0.0, 1.0, 12.0, 13.0])
    with figure_bar(Console(file=output), lambda: next(seconds)) as progress:
        for done in range(3):
            progress(done, 3, f"N = {done}")
    assert output.getvalue() == "after 12 s: 1 of 3, N = 1\n"


def test_progress_is_a_bar_on_a_terminal() -> None:
    output = io.StringIO()
    with figure_bar(Console(file=output, force_terminal=True)) as progress:
        progress(1, 3, "N = 10")
    assert "1 of 3: N = 10" in output.getvalue()


@pytest.mark.parametrize("name", ["cooperation", "downgrading", "erlang_loss", "offloading"])
def test_the_figure_of_a_new_scenario_can_be_drawn(tmp_path: Path, name: str) -> None:
    head, mark, figure = new_scenario(name).partition("# [figure]")
    file = tmp_path / "new.toml"
    file.write_text(head + re.sub(r"^# ", "", mark + figure, flags=re.M), encoding="utf-8")
    assert read_scenario(file).figure.kind == "scales"
    run = CliRunner().invoke(app, ["figure", str(file), "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert (tmp_path / "new.pdf").stat().st_size > 1000
