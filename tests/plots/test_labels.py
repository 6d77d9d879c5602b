"""Texts of a chart at a journal's size."""

from itertools import pairwise
from typing import Any

import pytest
from matplotlib.figure import Figure

from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.curves import draw_chart

MANY = tuple(f"deadline to begin service {k}" for k in range(7))
LONG = "join the fastest of all the nodes that have a free server"


def drawn(count: int, categories: tuple[str, ...] = (), curves: int = 1, **settings: Any) -> Figure:
    x = [float(i) for i in range(len(categories) or 3)]
    names = {str(k): f"{LONG} {k}" for k in range(curves)}
    series = tuple(Series("gap", x, x, name, look="joined") for name in names)
    panel = Panel("a panel", "load", "gap", series, categories=categories)
    figure = draw_chart(Chart((panel,) * count, curves=names, **{"page": "column", **settings}))
    figure.draw_without_rendering()
    return figure


def test_numbers_and_labels_of_panels_stand_once() -> None:
    figure = drawn(4, columns=2)
    assert figure.get_supylabel() == "gap"
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "load", "load"]
    assert [axes.yaxis.get_tick_params()["labelleft"] for axes in figure.axes] == [True, False] * 2
    assert [axes.xaxis.get_tick_params()["labelbottom"] for axes in figure.axes] == [
        False,
        False,
        True,
        True,
    ]


def test_the_last_panel_of_each_column_has_its_numbers() -> None:
    figure = drawn(3, columns=2)
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "load", "load"]


def test_a_single_panel_has_its_own_label() -> None:
    (axes,) = drawn(1).axes
    assert axes.get_ylabel() == "gap"


@pytest.mark.parametrize(
    ("categories", "rotation"),
    [
        (("C1", "C2", "C3"), 0.0),
        (("begin service", "end service"), 0.0),
        ((LONG, "b", "c"), 0.0),
        (MANY, 90.0),
    ],
)
def test_names_of_categories_do_not_cover_each_other(
    categories: tuple[str, ...], rotation: float
) -> None:
    figure = drawn(1, categories)
    labels = figure.axes[0].get_xticklabels()
    assert {label.get_rotation() for label in labels} == {rotation}
    boxes = [label.get_window_extent() for label in labels]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert figure.axes[0].get_window_extent().height > 1.2 * figure.dpi


@pytest.mark.parametrize("page", ["page", "column"])
def test_long_names_stay_within_the_page(page: str) -> None:
    figure = drawn(1, curves=7, page=page)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0.0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.axes[0].get_window_extent().height > 1.5 * figure.dpi


def test_a_long_title_is_wrapped_and_the_figure_grows() -> None:
    panel = Panel("", "x", "y", (Series("a", [0.0], [1.0]),))
    short, long = (draw_chart(Chart((panel,), page="column"), text) for text in ("a", LONG * 2))
    assert long.get_figheight() > short.get_figheight()
    title = long.get_suptitle()
    assert title.count("\n") >= 1
