"""The numbers of figures: of a system whose limit, fluid and optimum are formulas."""

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.asymptotics.evaluation import Effort
from mdpcloud.asymptotics.figures import chart_of
from mdpcloud.asymptotics.paths import POINTS
from mdpcloud.asymptotics.settings import (
    Axis,
    BestMember,
    Curves,
    FamilyCosts,
    Finite,
    Fluid,
    Scales,
    Sweep,
)
from mdpcloud.errors import NoLimitError
from mdpcloud.plots.chart import Series
from mdpcloud.queues import erlang_b
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.systems import CloudRouting, Node
from tests.asymptotics.shop import Shop

LOAD = Axis("arrival_rates[0]", values=(0.5, 1.0, 2.0))


def of_kind(series: tuple[Series, ...], kind: str) -> list[Series]:
    return [one for one in series if one.kind == kind]


# --- sweeps ---------------------------------------------------------------------------------------


def test_a_sweep_has_the_limit_as_lines_and_erlangs_formula_as_points() -> None:
    settings = Sweep(LOAD, ("blocking[0]",), finite=Finite((4.0, 8.0), values=(0.5, 2.0)))
    (panel,) = chart_of(Shop(), settings).panels
    (limit,) = of_kind(panel.series, "limit")
    assert limit.y == pytest.approx([0.0, np.nan, 0.5], nan_ok=True)
    for scale in (4, 8):
        (points,) = of_kind(panel.series, f"N = {scale}")
        assert points.x == [0.5, 2.0]
        exact = [erlang_b(scale, 0.5 * scale), erlang_b(scale, 2.0 * scale)]
        assert points.y == pytest.approx(exact, abs=1e-8)
        assert points.lower[0] <= exact[0] <= points.upper[0]
        assert points.lower[1] <= exact[1] <= points.upper[1]


def test_where_there_is_no_limit_the_chart_says_why() -> None:
    chart = chart_of(Shop(), Sweep(LOAD, ("blocking[0]", "cost")))
    assert chart.notes == ("limit at 1: no limit: the load is 1, and it must not be",)
    assert [panel.title for panel in chart.panels] == ["blocking[0]", "cost"]


def test_a_limit_that_is_nowhere_is_no_line() -> None:
    axis = Axis("places", values=(2.0,))
    (panel,) = chart_of(Shop(), Sweep(axis, ("cost",), finite=Finite((3.0,)))).panels
    assert [one.kind for one in panel.series] == ["N = 3"]


def test_jobs_and_costs_are_drawn_over_the_scale() -> None:
    settings = Sweep(Axis("places", values=(1.0,)), ("mean_jobs[0]", "cost"), finite=Finite((9.0,)))
    jobs, cost = chart_of(Shop(), settings).panels
    lost = erlang_b(9, 18.0)
    assert of_kind(jobs.series, "N = 9")[0].y == pytest.approx([2.0 * (1 - lost)], rel=1e-8)
    assert of_kind(cost.series, "N = 9")[0].y == pytest.approx([2.0 * lost], rel=1e-8)


def test_each_curve_has_its_own_line_and_points() -> None:
    curves = Curves("places", (1.0, 3.0), label="c")
    settings = Sweep(LOAD, ("blocking[0]",), curves, Finite((2.0,), points=2))
    (panel,) = chart_of(Shop(), settings).panels
    assert [(one.curve, one.kind) for one in panel.series] == [
        ("c = 1", "limit"),
        ("c = 3", "limit"),
        ("c = 1", "N = 2"),
        ("c = 3", "N = 2"),
    ]
    assert [one.x for one in panel.series[2:]] == [[0.5, 2.0]] * 2
    assert panel.series[3].y == pytest.approx([erlang_b(6, 1.0), erlang_b(6, 4.0)], abs=1e-8)


def test_points_may_be_more_than_there_are_values() -> None:
    settings = Sweep(LOAD, ("cost",), finite=Finite((1.0,), points=9))
    (panel,) = chart_of(Shop(), settings).panels
    assert panel.series[1].x == [0.5, 1.0, 2.0]


def test_what_is_too_large_to_be_evaluated_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdpcloud.asymptotics.measures.MOST", 3)
    effort = Effort(simulate=SimulateSettings(events=100_000, seed=1))
    axis = Axis("places", values=(1.0,))
    settings = Sweep(axis, ("blocking[0]",), finite=Finite((5.0,)), limit=False)
    (panel,) = chart_of(Shop(), settings, effort).panels
    (points,) = panel.series
    assert points.kind == "N = 5, simulated (95 %)"
    assert points.lower[0] < erlang_b(5, 10.0) < points.upper[0]
    assert 1e-4 < points.upper[0] - points.lower[0] < 0.05


def test_progress_is_told_before_each_finite_system() -> None:
    told: list[tuple[int, int, str]] = []
    effort = Effort(progress=lambda *what: told.append(what))
    chart_of(Shop(), Sweep(LOAD, ("cost",), finite=Finite((2.0,), points=2)), effort)
    assert [what for *_, what in told[:3]] == ["limit"] * 3
    assert told[3:] == [
        (0, 2, "N = 2, arrival_rates[0] = 0.5"),
        (1, 2, "N = 2, arrival_rates[0] = 2"),
    ]


# --- scales ---------------------------------------------------------------------------------------


def test_the_distance_from_the_limit_has_a_panel_of_its_own() -> None:
    chart = chart_of(Shop(), Scales((5.0, 20.0, 80.0), ("blocking[0]",)))
    values, distances = chart.panels
    exact = [erlang_b(5, 10.0), erlang_b(20, 40.0), erlang_b(80, 160.0)]
    assert of_kind(values.series, "finite N")[0].y == pytest.approx(exact, abs=1e-8)
    assert of_kind(values.series, "limit")[0].y == [0.5, 0.5]
    assert distances.logarithmic == "xy"
    found = of_kind(distances.series, "finite N")[0]
    assert found.y == pytest.approx([value - 0.5 for value in exact], abs=1e-8)
    steep = min(of_kind(distances.series, "slope −1/2 and −1"), key=lambda one: one.y[1])
    assert steep.y[1] == pytest.approx(found.y[0] * 5 / 80)


def test_a_distance_within_the_errors_is_not_drawn() -> None:
    chart = chart_of(Shop((0.01,)), Scales((50.0,), ("blocking[0]",)))
    (found,) = chart.panels[1].series
    assert np.isnan(found.y[0])


def test_without_a_limit_there_are_the_finite_systems() -> None:
    chart = chart_of(Shop((1.0,)), Scales((5.0, 10.0), ("blocking[0]",)))
    assert len(chart.panels) == 1
    assert chart.notes == ("no limit: the load is 1, and it must not be",)


def test_what_was_rounded_is_told() -> None:
    shop = Shop((2.0,), 1.25)
    note = "N = 2: places = 1.25 times the scale 2 is 2.5, rounded to 3"
    assert chart_of(shop, Scales((2.0, 4.0), ("cost",))).notes == (note,)
    sweep = Sweep(LOAD, ("cost",), finite=Finite((2.0, 4.0)))
    assert chart_of(shop, sweep).notes == (note,)


# --- fluid ----------------------------------------------------------------------------------------


def test_simulated_paths_follow_the_trajectory() -> None:
    effort = Effort(simulate=SimulateSettings(seed=5))
    chart = chart_of(Shop(), Fluid(3.0, scales=(400.0,), points=31), effort)
    (panel,) = chart.panels
    limit, path = panel.series
    assert panel.marks == ((pytest.approx(np.log(2.0)), "full\nt = 0.6931"),)
    assert (path.x[0], path.y[0], path.x[-1]) == (0.0, 0.0, 3.0)
    there = np.interp(path.x, limit.x, limit.y)
    assert np.abs(there - path.y).max() < 0.2


def test_paths_begin_where_the_trajectory_does() -> None:
    chart = chart_of(Shop((0.5,), 2.0), Fluid(1.0, start=(1.5,), scales=(10.0,)))
    limit, path = chart.panels[0].series
    assert limit.y[0] == path.y[0] == 1.5
    assert chart.panels[0].marks == ()


def test_a_path_with_too_many_changes_is_told_at_equal_distances() -> None:
    chart = chart_of(Shop(), Fluid(8.0, scales=(2000.0,)))
    limit, path = chart.panels[0].series
    assert path.x == pytest.approx(np.linspace(0.0, 8.0, POINTS))
    assert np.abs(np.interp(path.x, limit.x, limit.y) - path.y).max() < 0.1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Fluid(1.0, titles=("a", "b")), "titles must be as many as the coordinates, 1, not 2"),
        (Fluid(1.0, start=(0.1, 0.2)), "start must be as many as the coordinates, 1, not 2"),
    ],
)
def test_a_start_and_titles_are_as_many_as_the_coordinates(settings: Fluid, words: str) -> None:
    with pytest.raises(mc.InputError, match=words):
        chart_of(Shop(), settings)


def test_a_system_without_a_fluid_limit_is_refused() -> None:
    with pytest.raises(mc.InputError, match="CloudRouting has no fluid limit"):
        chart_of(CloudRouting((Node(1, 1.0, 1.0),), 1.0, 1.0), Fluid(1.0))


# --- families -------------------------------------------------------------------------------------


def reserved_cost(scale: int, reserved: int) -> float:
    """Held back places are never used."""
    rate = 2.0 * scale
    return rate * erlang_b(scale - reserved, rate) / scale


def test_the_cost_of_each_member_is_beside_the_optimum() -> None:
    chart = chart_of(Shop(), FamilyCosts("trunk_reservation", (5.0,)))
    (panel,) = chart.panels
    (members,) = of_kind(panel.series, "member")
    exact = [reserved_cost(5, a) for a in range(6)]
    assert members.x == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert members.y == pytest.approx(exact, rel=1e-7)
    (best,) = of_kind(panel.series, "best")
    assert (best.x, best.y) == ([0.0], pytest.approx(exact[:1], rel=1e-7))
    assert of_kind(panel.series, "optimum")[0].y == pytest.approx(exact[:1] * 2, rel=1e-7)
    assert of_kind(panel.series, "fluid bound")[0].y == [1.0, 1.0]


def test_the_parameter_may_be_drawn_over_the_scale() -> None:
    settings = FamilyCosts("trunk_reservation", (4.0,), per_scale=True, optimum=False)
    (panel,) = chart_of(Shop(), settings).panels
    assert of_kind(panel.series, "member")[0].x == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert not of_kind(panel.series, "optimum")


def test_the_best_member_is_told_for_each_scale() -> None:
    curves = Curves("arrival_rates[0]", (2.0, 3.0))
    parameters, costs = chart_of(Shop(), BestMember("trunk_reservation", (3.0, 6.0), curves)).panels
    assert [one.y for one in parameters.series] == [[0.0, 0.0], [0.0, 0.0]]
    first = of_kind(costs.series, "best member")[0]
    assert first.y == pytest.approx([reserved_cost(3, 0), reserved_cost(6, 0)], rel=1e-7)
    assert of_kind(costs.series, "fluid bound")[1].y == pytest.approx([2.0, 2.0])


def test_members_that_the_bounds_cannot_tell_apart_are_an_interval() -> None:
    effort = Effort(tolerance=0.5)
    parameters, _ = chart_of(Shop(), BestMember("trunk_reservation", (6.0,)), effort).panels
    (best,) = parameters.series
    assert best.lower[0] <= 0.0 <= best.upper[0]


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("trunk_reservatin", "no family 'trunk_reservatin'; did you mean 'trunk_reservation'"),
        ("x", "there are trunk_reservation, pairs"),
        ("pairs", "'pairs' has 2 parameters; a figure shows one"),
    ],
)
def test_a_family_of_one_parameter_is_needed(family: str, words: str) -> None:
    with pytest.raises(mc.InputError, match=words):
        chart_of(Shop(), FamilyCosts(family, (2.0,)))


# --- all of them ----------------------------------------------------------------------------------


def test_a_system_without_a_scale_is_refused() -> None:
    with pytest.raises(mc.InputError, match="CloudRouting has no scale"):
        chart_of(CloudRouting((Node(1, 1.0, 1.0),), 1.0, 1.0), Scales((1.0,), ("cost",)))


def test_a_formula_that_cannot_be_drawn_is_refused_before_anything_is_solved() -> None:
    axis = Axis("places", values=(1.0,), label=r"$\lamda$")
    with pytest.raises(mc.InputError, match="cannot be drawn"):
        chart_of(Shop(), Sweep(axis, ("cost",)))


def test_a_measure_that_nothing_has_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(mc.InputError, match="there is no measure 'blocked"):
        chart_of(Shop(), Sweep(Axis("arrival_rates[0]", values=(0.1,)), ("blocked[0]",)))


def test_a_figure_without_a_number_is_not_drawn() -> None:
    critical = Sweep(Axis("arrival_rates[0]", values=(1.0,)), ("blocking[0]",))
    with pytest.raises(NoLimitError, match=r"nothing to draw; .*no limit"):
        chart_of(Shop(), critical)
