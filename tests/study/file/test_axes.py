"""Axes of a study: their values, their labels, and what is wrong with them."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.study.file.axes import Axis
from mdpcloud.study.file.grids import by_points, by_step, rounded

DECIMALS = st.builds(lambda n, digits: n / 10**digits, st.integers(-9999, 9999), st.integers(0, 4))


def values(axis: Axis) -> list[Any]:
    return [point.values[0] for point in axis.all_points]


def labels(axis: Axis) -> list[dict[str, Any]]:
    return [dict(point.labels) for point in axis.all_points]


# --- values ---------------------------------------------------------------------------------------


@given(DECIMALS, DECIMALS, st.integers(1, 60))
def test_steps_give_the_decimals_that_a_person_would_write(
    first: float, step: float, count: int
) -> None:
    assume(step)
    last = float(Decimal(repr(first)) + (count - 1) * Decimal(repr(step)))
    found = by_step(first, last, step)
    assert found == [float(Decimal(repr(first)) + k * Decimal(repr(step))) for k in range(count)]


@given(DECIMALS, DECIMALS, DECIMALS)
def test_steps_stop_at_or_before_the_last_value(first: float, last: float, step: float) -> None:
    assume(step and (last - first) * step >= 0 and abs(last - first) <= 1000 * abs(step))
    found = by_step(first, last, step)
    assert found[0] == first
    assert (last - found[-1]) * step >= 0
    assert abs(Fraction(repr(last)) - Fraction(repr(found[-1]))) < abs(Fraction(repr(step)))


@given(DECIMALS, DECIMALS, st.integers(2, 100))
def test_points_have_equal_distances_and_end_at_the_ends(
    first: float, last: float, points: int
) -> None:
    assume(first < last)
    found = by_points(first, last, points)
    assert (len(found), found[0], found[-1]) == (points, first, last)
    start, width = Fraction(repr(first)), Fraction(repr(last)) - Fraction(repr(first))
    assert found == [float(start + width * k / (points - 1)) for k in range(points)]


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e9), st.integers(2, 50))
def test_logarithmic_points_have_equal_ratios(first: float, ratio: float, points: int) -> None:
    last = first * ratio
    found = by_points(first, last, points, "logarithmic")
    assert (len(found), found[0], found[-1]) == (points, first, last)
    expected = [first * (last / first) ** (k / (points - 1)) for k in range(points)]
    assert found == pytest.approx(expected, rel=1e-13)


@given(st.integers(-8, 8), st.integers(1, 12))
def test_logarithmic_points_meet_the_powers_of_ten(start: int, decades: int) -> None:
    found = by_points(
        float(f"1e{start}"), float(f"1e{start + decades}"), decades + 1, "logarithmic"
    )
    assert found == [float(f"1e{start + k}") for k in range(decades + 1)]


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 9))
def test_ends_that_are_integers_give_integers_where_all_values_are(
    first: int, more: int, step: int
) -> None:
    found = by_step(first, first + more, step)
    assert found == list(range(first, first + more + 1, step))
    assert {type(one) for one in found} == {int}
    assert {type(one) for one in by_points(first, first + more, more + 1)} == {int}
    assert {type(one) for one in by_points(float(first), first + more, more + 1)} == {float}
    assert {type(one) for one in by_points(first, first + 1, 3)} == {float}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_rounded_values_are_the_nearest_integers_once_each(given: list[float]) -> None:
    found = rounded(list(given))
    assert len({*found}) == len(found)
    assert {*found} == {math.floor(Fraction(one) + Fraction(1, 2)) for one in given}


def test_a_whole_logarithmic_axis_counts_up() -> None:
    axis = Axis("x.n", first=1, last=100, points=7, spacing="logarithmic", whole=True)
    assert values(axis) == [1, 2, 5, 10, 22, 46, 100]
    assert axis.count == 7


# --- points and labels ----------------------------------------------------------------------------


@given(st.lists(st.integers(), min_size=1, unique=True))
def test_values_are_points_in_their_order_and_their_own_labels(given: list[int]) -> None:
    axis = Axis("parameters.nodes[0].servers", values=tuple(given))
    assert values(axis) == given
    assert labels(axis) == [{"nodes[0].servers": one} for one in given]


@given(st.integers(1, 4), st.data())
def test_zipped_paths_take_their_values_together(size: int, data: Any) -> None:
    rows = data.draw(
        st.lists(
            st.lists(st.floats(0, 1), min_size=size, max_size=size),
            min_size=1,
            max_size=5,
            unique_by=repr,
        )
    )
    paths = tuple(f"parameters.rates[{k}]" for k in range(size))
    axis = Axis(paths=paths, values=tuple(rows))
    assert axis.targets == paths
    assert axis.count == len(rows)
    assert [list(point.values) for point in axis.all_points] == rows
    assert [list(point.labels.values()) for point in axis.all_points] == rows
    assert axis.columns == tuple(f"rates[{k}]" for k in range(size))


def test_zipped_paths_with_a_label_have_one_column() -> None:
    paths, rows = ("a.x", "a.y"), ([1, 2], [3, 4])
    assert labels(Axis(paths=paths, values=rows, label="both")) == [
        {"both": "[1,2]"},
        {"both": "[3,4]"},
    ]
    named = Axis(paths=paths, values=rows, label="both", labels=("small", "large"))
    assert labels(named) == [{"both": "small"}, {"both": "large"}]
    assert [point.values for point in named.all_points] == [(1, 2), (3, 4)]


def test_tables_and_lists_are_shown_as_json_unless_they_have_labels() -> None:
    nodes = ([{"servers": 1}], [{"servers": 2, "rate": 0.5}])
    axis = Axis("parameters.nodes", values=nodes)
    assert labels(axis) == [
        {"nodes": '[{"servers":1}]'},
        {"nodes": '[{"servers":2,"rate":0.5}]'},
    ]
    named = Axis("parameters.nodes", values=nodes, labels=("slow", "fast"), label="pool")
    assert labels(named) == [{"pool": "slow"}, {"pool": "fast"}]
    assert values(named) == [*nodes]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"values": (1,)}, "either path or paths must be given"),
        ({"path": "a.b", "paths": ("c",), "values": (1,)}, "either path or paths must be given"),
        ({"path": "a.b"}, "either values or first and last must be given"),
        ({"path": "a.b", "first": 1}, "either values or first and last must be given"),
        ({"path": "a.b", "values": (1,), "first": 1}, "first cannot be given together with values"),
        ({"path": "a.b", "values": (1,), "whole": True}, "whole cannot be given together with"),
        (
            {"path": "a.b", "values": (1,), "spacing": "logarithmic"},
            "spacing cannot be given together with values",
        ),
        ({"path": "a.b", "first": 1, "last": 2}, "either points or step must be given"),
        ({"path": "a.b", "first": 1, "last": 2, "points": 2, "step": 1}, "either points or step"),
        ({"path": "a.b", "first": 2, "last": 1, "points": 2}, "last must be > first, 2, not 1"),
        ({"path": "a.b", "first": 2, "last": 2, "points": 2}, "last must be > first, 2, not 2"),
        ({"path": "a.b", "first": 2, "last": 1, "step": 1}, "step must be < 0 to lead from 2 to 1"),
        ({"path": "a.b", "first": 1, "last": 2, "step": -0.1}, "step must be > 0 to lead from 1"),
        ({"path": "a.b", "first": 1, "last": 2, "step": 0}, "step must be > 0 to lead from 1 to 2"),
        ({"path": "a.b", "first": 0, "last": 1, "step": 1e-6}, "makes 1000001 values; at most"),
        (
            {"path": "a.b", "first": 1, "last": 2, "step": 1, "spacing": "logarithmic"},
            "a logarithmic axis needs points, not a step",
        ),
        (
            {"path": "a.b", "first": 0, "last": 2, "points": 3, "spacing": "logarithmic"},
            "first must be > 0 on a logarithmic axis, not 0",
        ),
        ({"path": "a..b", "values": (1,)}, "'a..b' is no path; it must be names and places"),
        ({"path": "a.b", "values": (1, 2, 1)}, "values[2]: 1 is given twice"),
        ({"path": "a.b", "values": (1, 2), "labels": ("a",)}, "as many as the values, 2, not 1"),
        ({"path": "a.b", "values": (1, 2), "labels": ("a", "a")}, "labels[1]: 'a' is given twice"),
        (
            {"paths": ("a", "b"), "values": ([1, 2], [3])},
            "values[1] must be a list of 2, one for each of the paths, not [3]",
        ),
        ({"paths": ("a", "b"), "values": (3, [1, 2])}, "values[0] must be a list of 2, one for"),
        ({"paths": ("a", "b"), "first": 1, "last": 2, "points": 2}, "several paths need values"),
        ({"paths": ("a", "b"), "values": ([1, 2],), "labels": ("x",)}, "labels of several paths"),
        ({"path": "a.b", "values": (1,), "size": 3}, "size can be given for a design only"),
        ({"path": "a", "first": 1, "last": math.inf, "points": 2}, "last must be a finite number"),
        ({"path": "a", "first": 1, "last": 2, "step": math.nan}, "step must be a finite number"),
        ({"design": "uniform", "size": 2, "seed": -1}, "seed must be >= 0, not -1"),
        ({"design": "sobol", "path": "a.b"}, "path cannot be given for a design"),
        ({"design": "sobol", "size": 4}, "a design needs size, seed and ranges; seed, ranges is"),
    ],
)
def test_a_mistake_of_an_axis_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Axis(**settings)
    assert message in str(caught.value)
