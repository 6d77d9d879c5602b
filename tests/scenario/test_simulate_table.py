"""The table [simulate] of a scenario."""

from dataclasses import asdict
from pathlib import Path

import pytest

import mdpcloud as mc
from mdpcloud.scenario import Scenario, SimulateSettings, new_scenario, read_scenario

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
"""


def read(folder: Path, table: str) -> Scenario:
    file = folder / "simulated.toml"
    file.write_text(f"{SCENARIO}\n{table}", encoding="utf-8")
    return read_scenario(file)


def mistakes(folder: Path, table: str) -> list[str]:
    with pytest.raises(mc.InputError) as caught:
        read(folder, table)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_the_table_holds_how_to_simulate(tmp_path: Path) -> None:
    table = """
        [simulate]
        events = 20_000
        half_width = 1
        warm_up = 12
        replications = 4
        seed = 7
        n_jobs = 2
        time_limit = 60
        paths = ["node[0]"]
    """
    settings = read(tmp_path, table).simulate
    assert settings == SimulateSettings(
        events=20_000,
        half_width=1.0,
        warm_up=12.0,
        replications=4,
        seed=7,
        n_jobs=2,
        time_limit=60.0,
        paths=("node[0]",),
    )
    assert isinstance(settings.half_width, float)


def test_without_the_table_everything_has_its_default(tmp_path: Path) -> None:
    found = read(tmp_path, "").simulate
    assert found == read(tmp_path, "[simulate]").simulate == SimulateSettings()
    assert (found.warm_up, found.replications, found.seed) == ("mser", 8, 0)


def test_every_mistake_is_reported_at_once_with_its_place_and_what_is_allowed(
    tmp_path: Path,
) -> None:
    table = """
        [simulate]
        events = 0
        time = "long"
        half_width = -0.1
        warm_up = "msr"
        replications = 1
        seed = -1
        n_jobs = 1.5
        time_limit = 0
        paths = "node[0]"
        sed = 3
    """
    assert mistakes(tmp_path, table) == [
        "simulate.events must be an integer >= 1, or left out, not 0",
        "simulate.time must be a finite number > 0, or left out, not 'long'",
        "simulate.half_width must be a finite number > 0, or left out, not -0.1",
        "simulate.warm_up must be 'mser' or a finite number >= 0, not 'msr'; did you mean 'mser'?",
        "simulate.replications must be an integer >= 2, not 1",
        "simulate.seed must be an integer >= 0, not -1",
        "simulate.n_jobs must be an integer >= 1, not 1.5",
        "simulate.time_limit must be a finite number > 0, or left out, not 0",
        "simulate.paths must be a list, each a text, not 'node[0]'",
        "simulate.sed is not known; did you mean 'seed'?",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("events = 10\ntime = 3.0", "simulate: at most one of events and time can be given"),
        ("time = 3.0\nwarm_up = 3", "simulate: warm_up is 3; it must be < time, 3"),
        ("warm_up = -1.0", "simulate.warm_up must be 'mser' or a finite number >= 0, not -1.0"),
        ("warm_up = inf", "simulate.warm_up must be 'mser' or a finite number >= 0, not inf"),
        ("events = 1e6", "simulate.events must be an integer >= 1, or left out, not 1000000.0"),
        ("paths = ['']", "simulate.paths[0] must be a text, not ''"),
        ("seed = true", "simulate.seed must be an integer >= 0, not True"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, table: str, message: str) -> None:
    assert mistakes(tmp_path, f"[simulate]\n{table}") == [message]


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "simulated.toml"
    file.write_text(f"simulate = 3\n{SCENARIO}", encoding="utf-8")
    with pytest.raises(mc.InputError, match="simulate must be a table of events, time, half_width"):
        read_scenario(file)


def test_a_new_scenario_shows_a_table_that_can_be_used(tmp_path: Path) -> None:
    lines = new_scenario("cloud_routing").splitlines()
    first = next(k for k, line in enumerate(lines) if "[simulate]" in line)
    shown = "\n".join(line.removeprefix("# ") for line in lines[first:])
    found = asdict(read(tmp_path, shown).simulate)
    assert [name for name, value in found.items() if value is None] == ["time"]
    assert all(len(line) <= 100 for line in lines[first:])
