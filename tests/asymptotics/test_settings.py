"""What the table ``[figure]`` of a scenario allows."""

from pathlib import Path

import pytest

import mdpcloud as mc
from mdpcloud.asymptotics.settings import Axis, Curves, Finite, Scales, Sweep
from mdpcloud.scenario import read_scenario

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
"""


def read(folder: Path, figure: str) -> object:
    file = folder / "node.toml"
    file.write_text(SCENARIO + figure, encoding="utf-8")
    return read_scenario(file).figure


def test_a_scenario_needs_no_figure(tmp_path: Path) -> None:
    assert read(tmp_path, "") is None


def test_the_kind_tells_what_else_there_is(tmp_path: Path) -> None:
    found = read(tmp_path, '[figure]\nkind = "scales"\nscales = [5, 10]\nmeasures = ["cost"]')
    assert found == Scales((5.0, 10.0), ("cost",))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('kind = "seep"', "figure.kind must be 'sweep' or 'scales' or"),
        ("scales = [1]", "figure.kind is missing"),
        ('kind = "fluid"\nhorizon = 0', "figure.horizon must be a finite number > 0, not 0"),
        ('kind = "fluid"\nhorizn = 1', "figure.horizn is not known; did you mean 'horizon'?"),
        (
            'kind = "scales"\nscales = [1, 0]\nmeasures = ["cost"]',
            "figure.scales[1] must be a finite number > 0, not 0",
        ),
        (
            'kind = "scales"\nscales = [1]\nmeasures = ["cost"]\ntitles = ["a", "b"]',
            "figure: titles must be as many as the measures, 1, not 2",
        ),
        (
            'kind = "sweep"\nmeasures = ["cost"]\nx = { path = "rate", first = 1 }',
            "figure.x: either first and last or values must be given",
        ),
    ],
)
def test_a_mistake_in_a_figure_is_told_with_its_place(
    tmp_path: Path, table: str, words: str
) -> None:
    with pytest.raises(mc.InputError) as error:
        read(tmp_path, f"[figure]\n{table}")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "ends",
    [{}, {"first": 1.0}, {"last": 1.0}, {"first": 1.0, "last": 2.0, "values": (1.0,)}],
)
def test_an_axis_is_a_range_or_a_list(ends: dict[str, object]) -> None:
    with pytest.raises(mc.InputError, match="either first and last or values"):
        Axis("rate", **ends)  # type: ignore[arg-type]


def test_an_axis_goes_upwards() -> None:
    with pytest.raises(mc.InputError, match="last must be > first, 2, not 2"):
        Axis("rate", first=2.0, last=2.0)


def test_finite_systems_are_at_some_values_or_at_so_many() -> None:
    with pytest.raises(mc.InputError, match="at most one of points and values"):
        Finite((1.0,), points=3, values=(1.0,))


def test_a_sweep_shows_something() -> None:
    with pytest.raises(mc.InputError, match="nothing to draw"):
        Sweep(Axis("rate", values=(1.0,)), ("cost",), limit=False)


def test_the_scale_is_no_path_of_a_sweep_or_of_curves() -> None:
    with pytest.raises(mc.InputError, match="kind = 'scales'"):
        Axis("scale", values=(1.0, 2.0))
    with pytest.raises(mc.InputError, match="kind = 'scales'"):
        Curves("scale", (1.0, 2.0))
