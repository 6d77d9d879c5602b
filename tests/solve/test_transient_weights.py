"""Poisson weights against logarithms in forty digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.solve.transient.poisson import poisson_weights

MEANS = st.floats(-9, 5).map(lambda x: 10.0**x)


def exact(mean, k):
    with mpmath.workdps(40):
        q = mpmath.mpf(mean)
        return mpmath.exp(k * mpmath.log(q) - q - mpmath.loggamma(k + 1))


@settings(deadline=None)
@given(MEANS, st.floats(-14, -3).map(lambda x: 10.0**x))
def test_the_error_of_the_weights_is_within_its_bound(mean, tolerance):
    found = poisson_weights(mean, tolerance)
    shown = np.unique(np.linspace(found.first, found.last, 200).astype(int))
    for k in shown:
        assert abs(exact(mean, int(k)) - found.weights[k - found.first]) <= found.error
    assert found.error <= 2.1 * tolerance + 1e-15 * (60 + 5 * np.sqrt(mean))
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-14)


@settings(deadline=None)
@given(st.floats(-6, 3).map(lambda x: 10.0**x))
def test_the_mass_outside_the_window_is_counted_in_the_error(mean):
    found = poisson_weights(mean, 1e-6)
    inside = range(found.first, found.last + 1)
    law = [exact(mean, k) for k in inside]
    distance = sum(abs(p - w) for p, w in zip(law, found.weights, strict=True))
    assert distance + (1 - sum(law)) <= found.error


@settings(deadline=None)
@given(st.floats(-6, 3).map(lambda x: 10.0**x))
def test_the_excess_beyond_the_window_is_bounded(mean):
    found = poisson_weights(mean, 1e-4)
    further = range(found.last + 1, found.last + 60)
    excess = sum((k - found.last) * exact(mean, k) for k in further)
    assert excess <= found.beyond * (1 + 1e-12)


@settings(deadline=None)
@given(MEANS)
def test_probabilities_of_exceeding_sum_to_the_mean(mean):
    found = poisson_weights(mean, 1e-15)
    assert found.exceeding().sum() == pytest.approx(mean, rel=1e-11, abs=1e-13)
    assert (np.diff(found.exceeding()) <= 0).all()


def test_a_mean_of_zero_has_all_its_mass_at_zero():
    found = poisson_weights(0.0, 1e-10)
    assert (found.first, found.weights.tolist(), found.error) == (0, [1.0], 0.0)
    assert found.exceeding().size == 0
