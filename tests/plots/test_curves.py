"""Charts as they are drawn: colours, markers, intervals, axes, legend."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.curves import draw_chart
from mdpcloud.plots.style import BLUE, INK, VERMILLION

X = [1.0, 10.0, 100.0]


def drawn(*series: Series, **settings: str) -> Figure:
    panel = Panel("a panel", "x", "y", series, **settings)  # type: ignore[arg-type]
    figure = draw_chart(Chart((panel,)), "a title")
    figure.canvas.draw()
    return figure


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def colours(figure: Figure) -> list[str]:
    return [to_hex(line.get_color()).upper() for line in figure.axes[0].lines]


def test_curves_have_colours_and_kinds_markers() -> None:
    figure = drawn(
        Series("limit", X, [1.0, 2.0, 3.0], "p = 0"),
        Series("limit", X, [2.0, 3.0, 4.0], "p = 1"),
        Series("N = 5", X, [1.5, 2.5, 3.5], "p = 0", look="marks"),
        Series("N = 9", X, [2.5, 3.5, 4.5], "p = 1", look="marks"),
    )
    assert colours(figure) == [BLUE, VERMILLION, BLUE, VERMILLION]
    assert [line.get_marker() for line in figure.axes[0].lines] == ["None", "None", "o", "s"]
    assert labels(figure) == ["p = 0", "p = 1", "limit", "N = 5", "N = 9"]


def test_kinds_have_colours_where_there_is_one_curve() -> None:
    figure = drawn(
        Series("limit", X, X), Series("N = 5", X, X, look="marks"), Series("N = 9", X, X)
    )
    assert colours(figure) == [INK, BLUE, VERMILLION]
    assert labels(figure) == ["limit", "N = 5", "N = 9"]


def test_lines_of_several_curves_are_dashed_by_kind() -> None:
    figure = drawn(*(Series(kind, X, X, curve) for kind in ("a", "b") for curve in "pq"))
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "-", "--", "--"]


def test_a_single_series_has_no_legend() -> None:
    assert labels(drawn(Series("limit", X, X))) == []


def test_curves_of_one_kind_are_told_by_their_colours_alone() -> None:
    assert labels(drawn(Series("best", X, X, "p"), Series("best", X, X, "q"))) == ["p", "q"]


def test_zeros_are_left_out_of_logarithmic_axes_but_not_of_the_numbers() -> None:
    series = Series("N", X, [0.0, 0.1, 0.01], look="joined")
    figure = drawn(series, logarithmic="xy")
    (line,) = figure.axes[0].lines
    assert np.isnan(line.get_ydata()[0])
    assert figure.axes[0].get_ylim()[0] > 1e-3
    rows = list(Chart((Panel("", "", "", (series,)),)).rows())
    assert [row[4] for row in rows] == [0.0, 0.1, 0.01]


def test_short_logarithmic_axes_have_plain_numbers() -> None:
    figure = drawn(Series("N", X, X), logarithmic="x")
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert {"1", "2", "5", "10", "20", "50", "100"} <= set(ticks)


@pytest.mark.parametrize("logarithmic", ["", "y"])
def test_only_intervals_that_can_be_seen_are_drawn(logarithmic: str) -> None:
    y = [0.1, 0.5, 0.9]
    lower, upper = [0.1 - 1e-9, 0.4, 0.9 - 1e-9], [0.1 + 1e-9, 0.6, 0.9 + 1e-9]
    figure = drawn(Series("N", X, y, "", lower, upper, "marks"), logarithmic=logarithmic)
    (bars,) = figure.axes[0].containers
    (segment,) = bars.lines[2][0].get_segments()
    assert np.allclose(segment, [[10.0, 0.4], [10.0, 0.6]])


def test_the_axis_reaches_the_ends_of_intervals() -> None:
    figure = drawn(Series("N", X, [1.0, 1.0, 1.0], "", [0.0] * 3, [9.0] * 3, "marks"))
    low, high = figure.axes[0].get_ylim()
    assert low <= 0.0
    assert high >= 9.0


def test_exact_points_have_no_whiskers() -> None:
    y = [0.1, 0.5, 0.9]
    assert not drawn(Series("N", X, y, "", y, y, "marks")).axes[0].containers


def test_an_axis_near_zero_begins_there() -> None:
    low, high = drawn(Series("N", X, [0.01, 0.5, 1.0])).axes[0].get_ylim()
    assert -0.05 < low < 0.0 < 1.0 < high
    assert drawn(Series("N", X, [0.9, 0.95, 1.0])).axes[0].get_ylim()[0] > 0.8


def test_whole_numbers_have_whole_ticks() -> None:
    figure = drawn(Series("N", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), whole="xy")
    ticks = figure.axes[0].get_xticks()
    assert np.allclose(ticks, np.round(ticks))


def test_marks_are_told_in_the_panel() -> None:
    panel = Panel("", "time", "", (Series("limit", X, X),), marks=((3.0, "full"),))
    figure = draw_chart(Chart((panel,)))
    assert [text.get_text() for text in figure.axes[0].texts] == ["full"]


def test_texts_of_marks_do_not_cover_each_other() -> None:
    marks = ((1.0, "a threshold that is reached after a while\nt = 1"), (1.1, "full"), (99.0, "x"))
    figure = draw_chart(Chart((Panel("", "time", "", (Series("limit", X, X),), marks=marks),)))
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    edge = figure.axes[0].get_window_extent().x1
    assert len(boxes) == 3
    assert all(upper.y0 >= lower.y1 for lower, upper in pairwise(boxes))
    assert all(box.x1 <= edge for box in boxes)


def test_panels_are_side_by_side() -> None:
    panel = Panel("a", "x", "y", (Series("limit", X, X),))
    figure = draw_chart(Chart((panel, panel, panel)))
    assert [axes.get_subplotspec().colspan.start for axes in figure.axes] == [0, 1, 0]


def test_what_is_missing_is_null_in_the_record() -> None:
    series = Series("limit", [1.0, 2.0], [float("nan"), 0.5], look="dots")
    (panel,) = Chart((Panel("a", "x", "y", (series,)),)).to_dict()["panels"]
    assert panel["series"][0] == {
        "curve": "",
        "kind": "limit",
        "x": [1.0, 2.0],
        "y": [None, 0.5],
        "lower": [],
        "upper": [],
    }
