"""Axes: percent, zeros at the foot, ticks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.curves import draw_chart
from mdpcloud.plots.scales import scale_of

gaps = st.lists(st.just(0.0) | st.floats(1e-12, 1e3), min_size=1, max_size=6)


def panel(y: list[float], lower: list[float] | None = None, **settings: object) -> Panel:
    x = [float(i) for i in range(len(y))]
    upper = [] if lower is None else [*y]
    one = Series("gap", x, y, "", lower or [], upper, "joined")
    return Panel("", "load", "gap", (one,), logarithmic="y", zeros=True, **settings)  # type: ignore[arg-type]


@given(gaps)
def test_the_foot_is_below_every_number_that_is_drawn(y: list[float]) -> None:
    scale = scale_of("y", [panel(y)])
    foot = scale.at_foot(y, [])
    if scale.foot is None:
        assert not scale.logarithmic or not foot.any()
        return
    assert scale.ends is not None
    rest = np.array(y)[~foot]
    assert scale.ends[0] < scale.foot < rest.min()
    assert rest.max() <= scale.ends[1]
    assert all(value <= 1e-7 * max(y) for value in np.array(y)[foot])


def test_a_number_whose_lower_bound_is_not_above_zero_stands_at_the_foot() -> None:
    y, lower = [0.2, 0.2], [0.1, 0.0]
    scale = scale_of("y", [panel(y, lower)])
    assert scale.at_foot(y, lower).tolist() == [False, True]


def test_panels_that_share_an_axis_share_its_foot() -> None:
    scale = scale_of("y", [panel([0.0, 0.5]), panel([0.1, 5.0])])
    assert scale.foot is not None
    assert scale.foot < 0.1


def test_percents_are_a_hundred_times_the_numbers() -> None:
    figure = draw_chart(Chart((panel([0.01, 0.5], percent="y"),)))
    assert figure.axes[0].lines[0].get_ydata() == pytest.approx([1.0, 50.0])


@pytest.mark.parametrize(
    ("y", "ticks"),
    [
        ([0.0, 0.01, 1.0, 100.0], ["0", "0.01", "0.1", "1", "10", "100"]),
        ([0.0, 1e-7, 1e-3], ["0", "$10^{-7}$", "$10^{-6}$", "$10^{-5}$", "$10^{-4}$", "$10^{-3}$"]),
    ],
)
def test_ticks_above_the_foot_are_all_written_alike(y: list[float], ticks: list[str]) -> None:
    axes = draw_chart(Chart((panel(y),))).axes[0]
    written = axes.yaxis.get_major_formatter()
    assert [written(tick) for tick in axes.get_yticks()] == ticks


def test_numbers_far_from_one_are_not_rounded_to_powers_of_ten() -> None:
    axes = draw_chart(
        Chart((Panel("", "x", "y", (Series("a", [0.0, 1.0], [2e7, 8e7]),), logarithmic="y"),))
    ).axes[0]
    written = axes.yaxis.get_major_formatter()
    assert written(2e7) == r"$2\cdot 10^{7}$"
