"""Intervals against closed forms: independent and autoregressive segments, and M/M/1."""

import numpy as np
import pytest
from scipy.special import stdtrit

from mdpcloud import InputError
from mdpcloud.simulate.estimates import difference, estimate, estimates


def test_replications_of_one_segment_give_the_interval_of_student() -> None:
    kept = np.random.default_rng(1).normal(size=(30, 1))
    found = estimate(kept)
    error = kept.std(ddof=1) / np.sqrt(30)
    assert found.value == pytest.approx(kept.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-12)
    assert found.half_width == pytest.approx(stdtrit(29, 0.975) * error, rel=1e-9)
    assert found.effective_samples == pytest.approx(30)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1e300])
@pytest.mark.parametrize("shape", [(1, 1000), (8, 500), (3, 7)])
def test_a_constant_has_an_interval_of_rounding(value: float, shape: tuple[int, int]) -> None:
    found = estimate(np.full(shape, value))
    assert found.value == value
    assert found.standard_error == 0
    assert found.lower <= value <= found.upper
    assert found.half_width <= 1e-11 * abs(value)
    assert found.effective_samples == shape[0] * shape[1]


def test_one_observation_gives_no_interval() -> None:
    found = estimate(np.ones((1, 1)))
    assert (found.lower, found.value, found.upper) == (-np.inf, 1.0, np.inf)
    assert found.standard_error == np.inf
    assert difference(np.ones((1, 1)), np.ones((8, 1)), paired=False).upper == np.inf


def test_no_segment_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="at least one segment"):
        estimates(np.empty((8, 0, 2)), ["cost", "jobs"])


def test_pairs_of_different_shape_are_refused() -> None:
    with pytest.raises(InputError, match="equal shapes"):
        difference(np.ones((2, 3)), np.ones((2, 4)), paired=True)
