"""Seeded random designs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.study.file.axes import Axis
from mdpcloud.study.file.designs import DesignKind, Range, design_points

KINDS: tuple[DesignKind, ...] = ("latin_hypercube", "sobol", "uniform")
UNIT = Range(0.0, 1.0)


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 2**32))
def test_a_latin_hypercube_hits_each_stratum_once_in_each_dimension(
    size: int, dimensions: int, seed: int
) -> None:
    points = design_points("latin_hypercube", [UNIT] * dimensions, size, seed)
    for column in zip(*points, strict=True):
        assert sorted(int(u * size) for u in column) == list(range(size))


@settings(max_examples=40)
@given(st.integers(0, 7), st.integers(1, 4), st.integers(0, 2**32))
def test_sobol_points_hit_each_stratum_once_in_each_dimension(
    power: int, dimensions: int, seed: int
) -> None:
    size = 2**power
    points = design_points("sobol", [UNIT] * dimensions, size, seed)
    for column in zip(*points, strict=True):
        assert sorted(int(u * size) for u in column) == list(range(size))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_points(kind: DesignKind) -> None:
    ranges = [Range(1.0, 2.0), Range(1, 9, whole=True), Range(among=("a", "b"))]
    first, again, other = (design_points(kind, ranges, 64, seed) for seed in (3, 3, 4))
    assert first == again != other
    assert len(first) == 64


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_in_their_ranges_and_fill_them(kind: DesignKind) -> None:
    ranges = [
        Range(-1.5, 2.0),
        Range(0.01, 100.0, spacing="logarithmic"),
        Range(1, 4, whole=True),
        Range(1, 1000, whole=True, spacing="logarithmic"),
        Range(among=("begin_service", "end_service")),
    ]
    linear, logarithmic, whole, counts, words = zip(
        *design_points(kind, ranges, 256, 1), strict=True
    )
    assert -1.5 <= min(linear) < -1.4
    assert 1.9 < max(linear) <= 2.0
    assert sum(one < 1.0 for one in logarithmic) == pytest.approx(128, abs=30)
    assert {*whole} == {1, 2, 3, 4}
    assert min(whole.count(k) for k in range(1, 5)) > 40
    assert min(counts) == 1
    assert 500 < max(counts) <= 1000
    assert {type(one) for one in (*whole, *counts)} == {int}
    assert words.count("begin_service") == pytest.approx(128, abs=30)


@given(st.floats(0, 1, exclude_max=True), st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_values_have_at_most_twelve_digits_or_are_ends(
    u: float, first: float, width: float
) -> None:
    one = Range(first, first + width)
    value = one.value(u)
    assert first <= value <= first + width
    assert value in (float(f"{value:.12g}"), first, first + width)


def test_a_design_is_an_axis_with_a_column_for_each_range() -> None:
    ranges = {
        "parameters.nodes[0].servers": Range(1, 10, whole=True),
        "load": Range(0.5, 1.5, label="rho"),
        "parameters.nodes": Range(among=([1], [2])),
    }
    axis = Axis(design="latin_hypercube", size=5, seed=1, ranges=ranges)
    assert axis.targets == tuple(ranges)
    assert axis.columns == ("nodes[0].servers", "rho", "nodes")
    assert axis.count == len(axis.all_points) == 5
    for point in axis.all_points:
        servers, load, nodes = point.values
        shown = "[1]" if nodes == [1] else "[2]"
        assert point.labels == {"nodes[0].servers": servers, "rho": load, "nodes": shown}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "either first and last or among must be given"),
        ({"first": 1}, "either first and last or among must be given"),
        ({"first": 2, "last": 2}, "last must be > first, 2, not 2"),
        ({"first": 0, "last": 2, "spacing": "logarithmic"}, "first must be > 0 on a logarithmic"),
        (
            {"first": 1, "last": 2.5, "whole": True},
            "must be whole numbers, as whole is true, not 1",
        ),
        ({"among": (1,), "first": 1}, "first, last and whole are not for values given by among"),
    ],
)
def test_a_mistake_of_a_range_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Range(**keys)
    assert message in str(caught.value)


@pytest.mark.parametrize("size", [3, 100])
def test_sobol_points_are_as_many_as_a_power_of_two(size: int) -> None:
    with pytest.raises(InputError, match=r"size must be a power of two for a Sobol design, such"):
        Axis(design="sobol", size=size, seed=0, ranges={"load": UNIT})
