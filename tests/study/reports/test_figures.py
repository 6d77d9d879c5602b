"""Figures of studies: the numbers of their charts, their looks, their files, mistakes."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.plots.chart import Panel, Series
from mdpcloud.plots.curves import draw_chart
from mdpcloud.plots.style import policy_colours
from mdpcloud.study import Figure, Outputs
from mdpcloud.study.records.record import FAILED, NOT_CONVERGED
from mdpcloud.study.reports.figures import NothingToDraw, chart_of, draw
from mdpcloud.study.reports.results import Results
from tests.study.made import Point, policy, results_of

LOADS = (0.8, 1.0, 1.2)
DEADLINES = ("begin_service", "end_service")
POLICIES = ("bernoulli_split", "my_rules.py:fast_first")
LINES = Figure("gaps", x="load", panels=("deadline",))
LOST = Point({"deadline": "end_service", "load": 1.0}, None, FAILED, "ZeroDivisionError: oh")


def gap_at(name: str, deadline: str, load: float) -> float:
    return 0.01 * (1 + POLICIES.index(name)) * (1 + DEADLINES.index(deadline)) * load


def point(deadline: str, load: float) -> Point:
    optimum = {"policy": "optimum", "cost": 1.0, "lower": 1.0, "upper": 1.0, "status": "converged"}
    rows = [policy(name, gap_at(name, deadline, load), 1e-3, note=name) for name in POLICIES]
    return Point({"deadline": deadline, "load": load}, [optimum, *rows])


def points() -> list[Point]:
    return [point(deadline, load) for deadline in DEADLINES for load in LOADS]


def with_gaps(*gaps: Sequence[float | None], width: float = 0.0) -> Results:
    """An instance at each load 0, 1, ..., with the gap of a policy each."""
    return results_of(
        [
            Point({"load": load}, [policy(f"p{k}", gap, width) for k, gap in enumerate(those)])
            for load, those in enumerate(gaps)
        ]
    )


def curves(panel: Panel) -> dict[str, Series]:
    return {one.curve: one for one in panel.series}


# --- lines ----------------------------------------------------------------------------------------


def test_lines_show_the_numbers_of_the_rows() -> None:
    chart = chart_of(results_of(points()), LINES)
    assert [panel.title for panel in chart.panels] == ["begin service", "end service"]
    for panel, deadline in zip(chart.panels, DEADLINES, strict=True):
        assert tuple(curves(panel)) == POLICIES
        for name, one in curves(panel).items():
            gaps = [gap_at(name, deadline, load) for load in LOADS]
            assert (one.x, one.y) == ([*LOADS], gaps)
            assert one.lower == [gap - 1e-3 for gap in gaps]
            assert one.upper == [gap + 1e-3 for gap in gaps]
    assert [chart.curves[name] for name in POLICIES] == ["Bernoulli split", "fast first"]
    assert chart.notes == ()


def test_counts_on_the_axis_have_whole_ticks() -> None:
    axes = draw_chart(chart_of(with_gaps((0.1,), (0.2,), (0.3,)), Figure("gaps"))).axes[0]
    assert np.allclose(axes.get_xticks() % 1.0, 0.0)


def test_the_optimum_is_a_line_beside_costs_but_not_beside_gaps() -> None:
    chart = chart_of(results_of(points()), replace(LINES, y="cost"))
    found = curves(chart.panels[0])
    assert tuple(found) == (*POLICIES, "optimum")
    assert (found["optimum"].y, found["optimum"].look) == ([1.0] * 3, "dashed")
    assert found["optimum"].lower == [1.0] * 3
    assert "optimum" not in chart_of(results_of(points()), LINES).curves


def test_numbers_stand_in_their_order_whatever_that_of_the_instances() -> None:
    shuffled = [point("begin_service", load) for load in (1.2, 0.8, 1.0)]
    (panel,) = chart_of(results_of(shuffled), Figure("gaps")).panels
    assert curves(panel)[POLICIES[0]].x == [0.8, 1.0, 1.2]


def test_the_axis_may_be_left_out_where_it_is_the_only_one() -> None:
    panels = chart_of(results_of(points()), Figure("gaps", panels=("deadline",))).panels
    assert [panel.x_label for panel in panels] == ["load", "load"]
    with pytest.raises(mc.InputError, match="needs x: one of deadline, load"):
        chart_of(results_of(points()), Figure("gaps"))


def test_texts_are_categories_in_the_order_of_the_study() -> None:
    results = results_of(
        [Point({"base": name}, [policy("a", 0.1 * i)]) for i, name in enumerate(("C2", "C1"))]
    )
    chart = chart_of(results, Figure("gaps", x="base"))
    (panel,) = chart.panels
    assert panel.categories == ("C2", "C1")
    assert [row[3] for row in chart.rows()] == ["C2", "C1"]
    figure = draw_chart(chart)
    figure.draw_without_rendering()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["C2", "C1"]


def test_only_rows_that_are_as_wanted_are_shown() -> None:
    where = {"deadline": "end_service", "policy": [POLICIES[1]], "load": [0.8, 0.4 + 0.8]}
    chart = chart_of(results_of(points()), Figure("gaps", x="load", where=where))
    ((name, one),) = curves(chart.panels[0]).items()
    assert (name, one.x) == (POLICIES[1], [0.8, 1.2])
    assert set(chart.curves) > set(POLICIES)  # so that colours stay the same


def test_curves_may_be_the_values_of_an_axis() -> None:
    figure = Figure("gaps", x="load", curves="deadline", where={"policy": POLICIES[0]})
    chart = chart_of(results_of(points()), figure)
    assert tuple(curves(chart.panels[0])) == DEADLINES
    figure = Figure("gaps", x="deadline", curves="load", where={"policy": POLICIES[0]})
    chart = chart_of(results_of(points()), figure)
    assert [*chart.curves.values()] == ["load = 0.8", "load = 1", "load = 1.2"]


def test_a_measure_is_shown_with_its_bounds() -> None:
    rows = [{**policy("a", 0.1), "measures": {"mean_jobs": [2.0, 4.0]}}]
    results = results_of([Point({"load": 1.0}, rows)], Outputs(("mean_jobs",)))
    (one,) = chart_of(results, Figure("jobs", y="mean_jobs", x="load")).panels[0].series
    assert (one.y, one.lower, one.upper) == ([3.0], [2.0], [4.0])


def test_an_instance_that_failed_breaks_the_curves_of_its_panel() -> None:
    rest = [one for one in points() if one.labels != LOST.labels]
    chart = chart_of(results_of([*rest, LOST]), LINES)
    begin, end = chart.panels
    assert all(np.isfinite(one.y).all() for one in begin.series)
    assert all(np.isnan(one.y).tolist() == [False, True, False] for one in end.series)
    assert chart.notes == ("no result at load = 1 (end service)",)


def test_an_instance_that_was_not_computed_breaks_the_curves_too() -> None:
    some = [replace(one, computed=i != 1) for i, one in enumerate(points())]
    chart = chart_of(results_of(some), LINES)
    assert np.isnan(chart.panels[0].series[0].y).tolist() == [False, True, False]
    assert chart.notes == ("no result at load = 1 (begin service)",)


def test_what_did_not_converge_is_shown_with_its_bounds_and_a_note() -> None:
    loose = Point({"load": 1.5}, [policy("p0", 0.2, 0.1)], NOT_CONVERGED, "stopped")
    results = results_of([Point({"load": 1.0}, [policy("p0", 0.2)]), loose])
    chart = chart_of(results, Figure("gaps"))
    assert chart.panels[0].series[0].lower == pytest.approx([0.2, 0.1])
    assert chart.notes == ("not converged, with its bounds, at load = 1.5",)


def test_a_policy_without_a_gap_is_told() -> None:
    chart = chart_of(with_gaps((0.1, None), (0.2, 0.1)), Figure("gaps"))
    assert np.isnan(curves(chart.panels[0])["p1"].y).tolist() == [True, False]
    assert chart.notes == ("p1 has no gap at load = 0",)


# --- zeros on logarithmic axes --------------------------------------------------------------------


def test_gaps_that_cannot_be_told_from_zero_stand_at_the_foot_as_open_marks() -> None:
    results = with_gaps((0.0, 0.3), (1e-9, 0.2), (0.1, 0.1), width=1e-8)
    chart = chart_of(results, Figure("gaps", logarithmic="y"))
    assert chart.notes == ("gap that is 0, or cannot be told from 0, stands at the bottom, at 0",)
    assert curves(chart.panels[0])["p0"].y == [0.0, 1e-9, 0.1]  # the numbers are what they are
    axes = draw_chart(chart).axes[0]
    line, marks, _ = axes.lines
    foot, again, above = line.get_ydata()
    assert foot == again < above == 10.0  # percent
    assert axes.get_ylim()[0] < foot
    assert marks.get_ydata().tolist() == [foot, foot]
    assert marks.get_markerfacecolor() == "none"
    assert axes.yaxis.get_major_formatter()(foot) == "0"


def test_a_logarithmic_axis_without_zeros_has_no_foot() -> None:
    chart = chart_of(with_gaps((0.1,), (0.3,)), Figure("gaps", logarithmic="y"))
    assert chart.notes == ()
    assert draw_chart(chart).axes[0].get_ylim()[0] > 1.0


def test_gaps_that_are_all_zero_have_a_linear_axis() -> None:
    chart = chart_of(with_gaps((0.0,), (0.0,)), Figure("gaps", logarithmic="y"))
    assert draw_chart(chart).axes[0].get_yscale() == "linear"


# --- distributions and bars -----------------------------------------------------------------------


def test_a_distribution_function_steps_at_every_value() -> None:
    results = with_gaps((0.3,), (0.1,), (0.0,), (0.2,))
    chart = chart_of(results, Figure("gaps", "distribution"))
    (one,) = chart.panels[0].series
    assert (one.x, one.y) == ([0.0, 0.1, 0.2, 0.3], [0.25, 0.5, 0.75, 1.0])
    (line,) = draw_chart(chart).axes[0].lines
    axes = line.axes
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xdata()[[0, -1]].tolist() == [*axes.get_xlim()]
    assert line.get_ydata().tolist() == [25.0, 50.0, 75.0, 100.0, 100.0]
    assert axes.get_xscale() == "log"


def test_a_distribution_on_a_linear_axis_begins_at_zero() -> None:
    results = with_gaps((0.3,), (0.1,))
    figure = Figure("gaps", "distribution", logarithmic="")
    (line,) = draw_chart(chart_of(results, figure)).axes[0].lines
    assert line.axes.get_xscale() == "linear"
    assert line.get_ydata().tolist() == [0.0, 50.0, 100.0, 100.0]


def test_instances_missing_in_a_distribution_are_counted() -> None:
    failed = Point({"load": 7}, None, FAILED, "oh")
    loose = Point({"load": 8}, [policy("p0", 0.1)], NOT_CONVERGED, "stopped")
    rows = [Point({"load": i}, [policy("p0", gap)]) for i, gap in enumerate((0.1, None))]
    chart = chart_of(results_of([*rows, failed, loose]), Figure("gaps", "distribution"))
    assert chart.notes == (
        "1 instance without a result left out",
        "1 instance did not converge",
        "p0 has no gap in 1 instance",
    )


def test_bars_are_means_over_the_instances() -> None:
    results = results_of(points())
    (panel,) = chart_of(results, Figure("mean", "bars", x="deadline")).panels
    for name, one in curves(panel).items():
        means = [np.mean([gap_at(name, of, load) for load in LOADS]) for of in DEADLINES]
        assert one.y == pytest.approx(means)
    assert panel.y_label == "mean cost above the optimum (%)"


def test_bars_of_one_instance_each_are_no_means() -> None:
    figure = Figure("gaps", "bars", x="deadline", where={"load": 1.0})
    (panel,) = chart_of(results_of(points()), figure).panels
    assert panel.y_label == "cost above the optimum (%)"


def test_bars_of_truth_values_are_shares_of_the_instances() -> None:
    rows = [[{"index": "a", "of": "P1", "bad": i < 1}] for i in range(4)]
    results = results_of([Point({"sample": i}, those) for i, those in enumerate(rows)])
    chart = chart_of(results, Figure("bad", "bars", x="of", y="bad", curves="index"))
    (one,) = chart.panels[0].series
    assert one.y == [0.25]
    figure = draw_chart(chart)
    assert [bar.get_height() for bar in figure.axes[0].patches] == [25.0]
    assert chart.panels[0].y_label == "bad (% of instances)"


# --- looks ----------------------------------------------------------------------------------------


def test_a_policy_has_the_same_colour_and_marker_in_every_figure() -> None:
    results = results_of(points())
    usual = mc.systems.CloudRouting.policy_names
    looks = policy_colours([*usual, POLICIES[1]])
    for where in ({"policy": POLICIES[1]}, {"load": LOADS[:2]}):
        chart = chart_of(results, replace(LINES, where=where))
        for axes in draw_chart(chart).axes:
            curves_of = [line for line in axes.lines if line.get_marker() != "_"]  # no whiskers
            found = [(line.get_color(), line.get_marker()) for line in curves_of]
            assert found == [looks[name] for name in curves(chart.panels[0])]


@pytest.mark.parametrize(
    ("width", "count"), [("column", 1), ("column", 2), ("column", 8), ("page", 1), ("page", 3)]
)
def test_everything_lies_within_its_axes_and_nothing_covers_the_legend(
    width: Any, count: int
) -> None:
    rows = [
        Point(
            {"load": load, "theta": theta},
            [policy(f"some policy {k}", load * (k + theta)) for k in range(5)],
        )
        for theta in range(count)
        for load in LOADS
    ]
    panels = ("theta",) if count > 1 else ()
    figure = draw_chart(
        chart_of(results_of(rows), Figure("a", x="load", panels=panels, width=width))
    )
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0.0 <= box.x0 <= box.x1 <= figure.bbox.x1
    assert figure.get_figwidth() == {"column": 3.5, "page": 7.0}[width]
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        for line in axes.lines:
            assert np.all((left <= line.get_xdata()) & (line.get_xdata() <= right))
            assert np.all((low <= line.get_ydata()) & (line.get_ydata() <= high))
        assert axes.get_tightbbox().y0 >= box.y1 - 1.0


def test_panels_with_unlike_numbers_have_their_own_axes() -> None:
    def figure(scale: float) -> Any:
        rows = [
            Point({"load": load, "of": of}, [policy("a", load * (scale if of else 1.0))])
            for of in (0, 1)
            for load in LOADS
        ]
        return draw_chart(chart_of(results_of(rows), Figure("a", x="load", panels=("of",))))

    like, unlike = figure(2.0).axes, figure(50.0).axes
    assert like[0].get_ylim() == like[1].get_ylim()
    assert unlike[0].get_ylim()[1] < 0.1 * unlike[1].get_ylim()[1]


# --- files ----------------------------------------------------------------------------------------


def study_with(*figures: Figure) -> Results:
    return results_of(points(), Outputs(figures=figures))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The files of a figure, for a page and for a column of a journal; those for a page twice."""
    page, column = study_with(LINES), study_with(replace(LINES, width="column"))
    which = {"page": page, "column": column, "again": page}
    return {name: draw(one, tmp_path_factory.mktemp(name)) for name, one in which.items()}


def test_a_figure_is_written_as_png_pdf_and_csv(written: dict[str, list[Path]]) -> None:
    paths = written["page"]
    assert [path.name for path in paths] == ["gaps.png", "gaps.pdf", "gaps.csv"]
    assert {path.parent.name for path in paths} == {"figures"}
    with paths[2].open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["panel", "curve", "kind", "x", "y", "lower", "upper"]
    assert len(rows) == len(DEADLINES) * len(POLICIES) * len(LOADS)
    first = gap_at(POLICIES[0], DEADLINES[0], LOADS[0])
    assert rows[0][:4] == ["begin service", "bernoulli_split", "gap", "0.8"]
    assert [float(cell) for cell in rows[0][4:]] == [first, first - 1e-3, first + 1e-3]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.5), ("page", 7.0)])
def test_a_pdf_has_the_width_of_the_journal_and_its_fonts(
    width: str, inches: float, written: dict[str, list[Path]]
) -> None:
    png, pdf, _ = (path.read_bytes() for path in written[width])
    box = re.search(rb"/MediaBox \[ *0 0 ([\d.]+) ([\d.]+) *\]", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(72.0 * inches)
    assert b"/CreationDate" not in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert int.from_bytes(png[16:20], "big") == 300 * inches


def test_the_bytes_of_a_figure_are_always_the_same(written: dict[str, list[Path]]) -> None:
    pairs = zip(written["page"], written["again"], strict=True)
    assert all(one.read_bytes() == other.read_bytes() for one, other in pairs)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written without pictures, which take long."""
    monkeypatch.setattr("mdpcloud.study.reports.figures.files_of", lambda chart, name: {"csv": b""})


@pytest.mark.usefixtures("undrawn")
def test_notes_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    results = results_of([*points()[:2], LOST], Outputs(figures=(LINES,)))
    draw(replace(results), tmp_path, told.append)
    assert told == []  # the panel of the instance that failed has nothing else
    results = results_of([*points()[:4], LOST], Outputs(figures=(LINES,)))
    draw(results, tmp_path, told.append)
    assert told == ["note on figure 'gaps': no result at load = 1 (end service)"]


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (Figure("f", x="laod"), "figure 'f': x: there is no column 'laod'; did you mean 'load'"),
        (Figure("f", x="load", y="gaps"), "y: there is no column 'gaps'; did you mean 'gap'"),
        (Figure("f", x="load", curves="rule"), "curves: there is no column 'rule'; there are inst"),
        (Figure("f", x="load", panels=("dead",)), "panels: there is no column 'dead'"),
        (Figure("f", x="load", where={"polcy": "a"}), "where: there is no column 'polcy'; did you"),
        (Figure("f", x="load", where={"policy": "BS"}), "no row has policy = 'BS'; there are 'opt"),
        (
            Figure("f", x="deadline", where={"load": 1.0}, logarithmic="x"),
            "'x' cannot be: x is no number",
        ),
        (Figure("f", x="load", panels=("deadline",), y="note"), "must hold numbers: 'bernoulli"),
        (Figure("f", x="load", title=r"$\lamda$"), "cannot be drawn"),
        (
            Figure("f", x="load"),
            r"stand at load = 0.8; they differ in deadline \('begin_service', 'end_service', ...\)",
        ),
        (
            Figure("f", x="load", panels=("deadline",), curves="status"),
            r"they differ in policy \('bernoulli_split', 'my_rules.py:fast_first', ...\)",
        ),
        (
            Figure("f", x="load", where={"policy": POLICIES[0], "note": POLICIES[1]}),
            "no row has all of",
        ),
    ],
)
def test_mistakes_are_told(figure: Figure, words: str) -> None:
    with pytest.raises(mc.InputError, match=words):
        chart_of(results_of(points()), figure)


def test_what_has_no_place_on_a_logarithmic_axis_is_refused() -> None:
    results = with_gaps((0.1,), (-0.2,))
    with pytest.raises(mc.InputError, match=r"logarithmic: -0\.2 of 'gap' has no place there"):
        chart_of(results, Figure("f", logarithmic="y"))
    with pytest.raises(mc.InputError, match=r"-0\.2 of 'gap' has no place"):
        chart_of(results, Figure("f", "distribution"))
    with pytest.raises(mc.InputError, match="0 of 'load' has no place"):
        chart_of(results, Figure("f", logarithmic="x"))


def test_a_gap_within_the_bounds_of_zero_has_a_place_on_a_logarithmic_axis() -> None:
    results = with_gaps((0.1,), (-1e-4,), width=1e-3)
    chart = chart_of(results, Figure("f", logarithmic="y"))
    assert chart.notes == ("gap that is 0, or cannot be told from 0, stands at the bottom, at 0",)


@pytest.mark.usefixtures("undrawn")
def test_all_figures_without_mistakes_are_drawn_before_those_with_mistakes_are_told(
    tmp_path: Path,
) -> None:
    results = study_with(Figure("bad", x="laod"), LINES, Figure("worse", y="?", x="load"))
    with pytest.raises(mc.InputError, match=r"(?s)'bad'.*'worse'"):
        draw(results, tmp_path)
    assert (tmp_path / "figures" / "gaps.csv").exists()


def test_a_study_without_results_has_nothing_to_draw_and_says_why(tmp_path: Path) -> None:
    results = results_of([LOST], Outputs(figures=(LINES,)))
    why = "figure 'gaps' has nothing to draw: no instance is done; the first error is: ZeroDivision"
    with pytest.raises(NothingToDraw, match=why):
        chart_of(results, LINES)
    told: list[str] = []
    assert draw(results, tmp_path, told.append) == []
    assert re.match(why, told[0])


def test_a_column_without_numbers_has_nothing_to_draw() -> None:
    with pytest.raises(NothingToDraw, match="no row has a number in 'gap'"):
        chart_of(with_gaps((None,), (None,)), Figure("gaps"))
