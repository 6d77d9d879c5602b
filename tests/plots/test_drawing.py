"""What the functions draw, read back from the artists."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from mdpcloud.plots import style
from mdpcloud.plots.actions import crop, draw_map, draw_strips, maps_figure
from mdpcloud.plots.costs import Cost, draw_costs
from mdpcloud.plots.indices import Curve, draw_indices


def axes() -> Axes:
    return style.new_figure(3.0).subplots()


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


OPTIMUM = Cost("optimum", 2.0, 1.9, 2.1, "2")


def test_costs_stand_in_the_given_order_below_the_optimum() -> None:
    drawn = draw_costs(
        axes(), OPTIMUM, [Cost("b", 3, 3, 3, "+50 %"), Cost("a", 2.5, 2.5, 2.5)], "euro per hour"
    )
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["optimum", "b", "a"]
    assert drawn.yaxis.get_inverted()
    assert drawn.get_xlabel() == "long-run cost, euro per hour"
    assert texts(drawn) == ["2", "+50 %", ""]


def test_the_certified_interval_of_the_optimum_is_a_band() -> None:
    (band,) = draw_costs(axes(), OPTIMUM, [], "euro").patches
    assert band.get_window_extent().width > 0
    assert not draw_costs(axes(), Cost("optimum", 2, -np.inf, np.inf), [], "euro").patches


def test_costs_far_apart_have_a_logarithmic_axis_that_says_so() -> None:
    drawn = draw_costs(axes(), OPTIMUM, [Cost("broken", 20, 20, 20, "+900 %")], "euro")
    assert drawn.get_xscale() == "log"
    assert drawn.get_xlabel() == "long-run cost, euro (logarithmic)"
    assert drawn.get_xlim()[0] < 2 < 20 < drawn.get_xlim()[1]


@pytest.mark.parametrize("best", [0.0, -5.0])
def test_costs_that_are_not_positive_have_a_linear_axis(best: float) -> None:
    optimum = Cost("optimum", best, best, best)
    drawn = draw_costs(axes(), optimum, [Cost("far", 100, 100, 100)], "euro")
    assert drawn.get_xscale() == "linear"


def test_equal_costs_can_be_drawn() -> None:
    drawn = draw_costs(axes(), OPTIMUM, [Cost("best", 2.0, 2.0, 2.0)], "euro")
    assert drawn.get_xlim()[0] < 2.0 < drawn.get_xlim()[1]


def test_estimated_costs_have_an_error_bar_and_an_open_dot() -> None:
    drawn = draw_costs(axes(), OPTIMUM, [Cost("rule", 3, 2.7, 3.4, certain=False)], "euro")
    (bar,) = drawn.containers
    (segment,) = bar[2][0].get_segments()
    np.testing.assert_allclose(segment[:, 0], [2.7, 3.4])
    assert to_rgb(drawn.lines[-4].get_markerfacecolor()) == (1, 1, 1)
    unknown = Cost("rule", 3, -np.inf, np.inf, certain=False)
    assert not draw_costs(axes(), OPTIMUM, [unknown], "euro").containers


def test_a_long_label_fits_beside_its_dot() -> None:
    label = "+3.1 % to +3.5 % (estimated)"
    figure = style.new_figure(3.0)
    for cost in (3.0, 50.0):
        drawn = draw_costs(figure.subplots(), OPTIMUM, [Cost("rule", cost, cost, cost, label)], "€")
        figure.draw_without_rendering()
        assert drawn.texts[-1].get_window_extent().x1 <= figure.bbox.x1
        figure.clear()


def test_an_index_curve_has_a_marker_in_every_state_and_the_limit_a_line() -> None:
    drawn = draw_indices(axes(), [Curve("rule", [0.0, 0.1, 0.3], "red", "s")], 0.25)
    limit, curve = drawn.lines
    np.testing.assert_array_equal(curve.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(curve.get_ydata(), [0.0, 0.1, 0.3])
    assert curve.get_marker() == "s"
    assert list(limit.get_ydata()) == [0.25, 0.25]
    assert [line.get_label() for line in drawn.lines] == ["outside cost", "rule"]
    assert len(draw_indices(axes(), [Curve("rule", [0.0])]).lines) == 1


def test_a_map_has_the_first_coordinate_on_the_horizontal_axis() -> None:
    actions = np.array([[0, 1], [0, 0], [-1, 0]])
    drawn = draw_map(axes(), actions, [(1, 0, 0), (0, 0, 1)])
    colours = np.asarray(drawn.collections[0].get_array())
    np.testing.assert_array_equal(colours[1, 0], (0, 0, 1))
    np.testing.assert_array_equal(colours[0, 2], (1, 1, 1))
    assert drawn.get_xlim() == (-0.5, 2.5)
    assert drawn.get_ylim() == (-0.5, 1.5)


def test_strips_stand_top_down() -> None:
    drawn = draw_strips(axes(), ["a", "b"], np.array([[0, 1, 1], [0, 0, 1]]), ["red", "blue"])
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["a", "b"]
    assert drawn.yaxis.get_inverted()


def test_a_legend_names_the_actions_that_occur() -> None:
    colours = style.action_colours(["outside", "node 0", "node 1"])
    tables = [np.zeros((2, 2), int), np.full((2, 2), 2)]
    figure = maps_figure(["a", "b"], tables, colours, ("jobs at node 0", "jobs at node 1"))
    assert [text.get_text() for text in figure.legends[0].texts] == ["outside", "node 1"]
    left, right = figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("jobs at node 0", "jobs at node 1")
    assert right.get_ylabel() == ""


def test_maps_are_cut_after_the_last_change_in_any_of_them() -> None:
    one = np.ones((9, 9), int)
    two = one.copy()
    one[:3], two[:, :5] = 2, 0
    assert [table.shape for table in crop([one, two], 2)] == [(6, 8), (6, 8)]
    assert [table.shape for table in crop([np.ones((9, 9), int)], 2)] == [(3, 3)]


def test_unknown_actions_are_no_change() -> None:
    table = np.ones((9, 9), int)
    table[6:] = -1
    assert crop([table], 0)[0].shape == (1, 1)


def test_policies_differ_in_colour_or_marker() -> None:
    looks = style.policy_colours([f"rule {i}" for i in range(20)])
    assert len(set(looks.values())) == 20


def test_actions_differ_in_colour_and_refusals_are_grey() -> None:
    colours = style.action_colours(["outside", *(f"node {k}" for k in range(15))])
    assert list(colours)[:2] == ["outside", "node 0"]
    assert len(set(colours.values())) == 16
    assert len(set(colours["outside"])) == 1


def test_names_are_made_for_people() -> None:
    assert style.pretty("rules.py:" + "very_long_name_" * 4).count("\n") == 2
    assert style.plain("US$") == r"US\$"


def test_pyplot_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from mdpcloud.plots import style, costs, indices, actions;"
        "f = style.new_figure(2.0); f.subplots();"
        f"style.save(f, {str(tmp_path / 'a.png')!r}); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
