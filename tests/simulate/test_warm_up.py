"""MSER-5 against its definition, and on series whose warm-up is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mdpcloud.simulate.warm_up import common, mser

whole = st.integers(-50, 50)


def by_definition(series: np.ndarray) -> int:
    """The rule of the module, by its sums."""
    y = series.mean(axis=0)
    n = len(y) // 5
    y = y[: 5 * n].reshape(n, 5).mean(axis=1)
    squares = [((y[d:] - y[d:].mean()) ** 2).sum() / (n - d) ** 2 for d in range(n // 2 + 1)]
    least = min(range(n // 2 + 1), key=lambda d: squares[d])
    most = squares[least] * (1 + 2 * np.sqrt(2 / (n - least))) * (1 + 1e-12)
    return 5 * next(d for d in range(n // 2 + 1) if squares[d] <= most)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(10, 80)), elements=whole),
    st.floats(-20, 20),
)
def test_the_fast_sums_agree_with_the_definition(series: np.ndarray, transient: float) -> None:
    # Noise of a fixed seed keeps ties, which rounding breaks either way, out of the comparison.
    noise = np.random.default_rng(2).normal(size=series.shape)
    series = series + noise + transient * np.exp(-np.arange(series.shape[1]) / 10)
    assert mser(series) == by_definition(series)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(10, 50)), elements=whole),
    st.integers(-20, 20),
    st.integers(-1000, 1000),
)
def test_units_and_origin_do_not_matter(series: np.ndarray, power: int, origin: int) -> None:
    series = series + np.random.default_rng(3).normal(size=series.shape)
    assert mser(2.0**power * series) == mser(series)
    assert mser(series + origin) == mser(series)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, -3.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 9), (8, 500)])
def test_nothing_is_left_out_of_a_constant(value: float, shape: tuple[int, int]) -> None:
    assert mser(np.full(shape, value)) == 0
    assert mser(np.full(shape, value) * (1 + 1e-15 * np.arange(shape[1]))) == 0


def test_segments_that_alternate_within_batches_leave_nothing_out() -> None:
    assert mser(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 100)[None]) == 0


def test_a_jump_is_left_out_up_to_the_next_batch() -> None:
    series = np.random.default_rng(4).normal(size=(8, 1000))
    series[:, :203] += 10
    assert mser(series) == 205


def test_never_more_than_half_is_left_out() -> None:
    series = np.concatenate([np.full(700, 100.0), np.zeros(300)])[None]
    series = series + np.random.default_rng(5).normal(size=series.shape)
    assert mser(series) <= 500


def test_a_series_without_warm_up_keeps_nearly_everything() -> None:
    noise = np.random.default_rng(6).normal(size=(200, 8, 500))
    assert np.mean([mser(series) for series in noise]) < 5


def test_measures_decide_where_the_cost_is_constant() -> None:
    noise = np.random.default_rng(7).normal(size=(4, 500))
    jump = noise + 10 * (np.arange(500) < 100)
    assert common(np.stack([np.ones((4, 500)), jump, np.zeros((4, 500))], axis=2)) == 100


def test_a_burst_in_one_of_many_measures_is_not_taken_for_a_warm_up() -> None:
    series = np.random.default_rng(8).normal(size=(4, 500, 51))
    series[:, :, 50] = 0
    series[0, 120, 50] = 1
    assert common(series) < 50


def test_the_warm_up_of_the_cost_counts_among_many_measures() -> None:
    series = np.random.default_rng(9).normal(size=(4, 500, 51))
    series[:, :100, 0] += 10
    assert common(series) == 100
