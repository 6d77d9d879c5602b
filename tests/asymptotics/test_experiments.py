"""The figures of the sources: every scenario can be read, and the numbers are published ones."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mdpcloud.asymptotics.evaluation import Effort
from mdpcloud.asymptotics.figures import chart_of
from mdpcloud.asymptotics.settings import Axis, BestMember, Finite, Sweep
from mdpcloud.plots.chart import Panel
from mdpcloud.scenario import Scenario, read_scenario
from tests.models import reference

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FILES = sorted(EXPERIMENTS.glob("*_2017/*.toml"))
EXACT = Effort(tolerance=1e-8)


def scenario(name: str) -> Scenario:
    return read_scenario(EXPERIMENTS / f"{name}.toml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_experiment_says_what_it_shows(file: Path) -> None:
    assert read_scenario(file).figure is not None
    first, second = file.read_text(encoding="utf-8").splitlines()[:2]
    assert first.startswith(("# Thompson (2017)", "# Fricker, Guillemin, Robert, Thompson (2017)"))
    assert second.startswith("# ")


def limits(panel: Panel, curve: str) -> dict[float, float]:
    (one,) = (s for s in panel.series if s.curve == curve and s.kind == "limit")
    return dict(zip(one.x, one.y, strict=True))


@pytest.mark.parametrize(
    ("figure", "rows", "x", "curve", "label"),
    [
        ("figure_4_4", "fig_lambda2=8", "lambda1", "p1", "$p_1$"),
        ("figure_4_5", "fig_lambda2=12", "lambda1", "p1", "$p_1$"),
        ("figure_4_6", "fig_4_6", "p1", "lambda2", r"$\lambda_2$"),
    ],
)
def test_the_lines_of_the_figures_on_offloading_are_those_of_the_source(
    figure: str, rows: str, x: str, curve: str, label: str
) -> None:
    """Known to nine digits or more, except on the boundary of regimes."""
    found = scenario(f"thompson_2017/{figure}")
    published = reference("allocation")["S5"][rows]
    settings: Any = found.figure
    assert isinstance(settings, Sweep)
    axis = Axis(settings.x.path, values=tuple(sorted({row[x] for row in published})))
    chart = chart_of(found.system, dataclasses.replace(settings, x=axis, finite=None), EXACT)
    for row in published:
        for panel, name in zip(chart.panels, ("beta1", "beta2"), strict=True):
            value = limits(panel, f"{label} = {row[curve]:g}")[row[x]]
            assert value == pytest.approx(row[name], abs=1e-9), (row, name)


def test_the_points_of_the_figures_on_offloading_are_the_exact_ones() -> None:
    found = scenario("thompson_2017/figure_4_5")
    settings: Any = found.figure
    finite = Finite((5.0, 10.0), values=(1.5,))
    one = dataclasses.replace(settings, finite=finite, limit=False, curves=None)
    chart = chart_of(found.system, one, EXACT)
    exact = {"N = 5": (0.123929692, 0.250597308), "N = 10": (0.104878626, 0.230088863)}
    for kind, values in exact.items():
        for panel, value in zip(chart.panels, values, strict=True):
            (points,) = (series for series in panel.series if series.kind == kind)
            assert points.y == pytest.approx([value], abs=1e-9)


def test_the_blocking_of_a_loss_system_is_that_of_figure_1_5() -> None:
    found = scenario("thompson_2017/figure_1_5")
    settings: Any = found.figure
    axis = Axis("arrival_rate", values=(0.9, 1.0, 1.1, 1.4))
    (panel,) = chart_of(found.system, dataclasses.replace(settings, x=axis)).panels
    (hundred,) = (series for series in panel.series if series.kind == "N = 100")
    exact = [0.026957380464359, 0.075700452710861, 0.136114838911918, 0.301243764781241]
    assert hundred.y == pytest.approx(exact, rel=1e-12)
    assert limits(panel, "")[1.4] == pytest.approx(1.0 - 1.0 / 1.4, rel=1e-14)


@pytest.mark.parametrize(
    ("rate", "name"), [(1.5, "2.0,1.5,1,2,w=1.0,2.0"), (2.0, "2.0,2.0,1,2,w=1.0,2.0")]
)
def test_the_best_numbers_of_servers_to_hold_back_are_the_known_ones(
    rate: float, name: str
) -> None:
    found = scenario("thompson_2017/trunk_reservation_best")
    settings: Any = found.figure
    assert isinstance(settings, BestMember)
    assert settings.curves is not None
    curves = dataclasses.replace(settings.curves, values=(rate,))
    one = dataclasses.replace(settings, scales=(5.0, 10.0), curves=curves)
    parameters, costs = chart_of(found.system, one, EXACT).panels
    known = reference("allocation")["S6_best_a_vs_N"][name]
    best = parameters.series[0]
    assert best.y == [row["best_a"] for row in known["finite"][:2]]
    assert best.lower == best.upper == best.y
    cost, bound = costs.series
    assert cost.y == pytest.approx([row["cost_over_N"] for row in known["finite"][:2]], rel=1e-8)
    assert bound.y == pytest.approx([known["fluid"]] * 2, rel=1e-12)
