"""Stiff chains by doubling: entries far below the tolerance are accurate relatively."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.solve.stationary.stationary import stationary
from mdpcloud.solve.transient.doubling import sum_by_doubling
from mdpcloud.solve.transient.products import sum_products
from mdpcloud.solve.transient.steps import Steps
from mdpcloud.solve.transient.transient import transient
from mdpcloud.solve.transient.twofold_kernels import complements, multiply, shares

from .exact_transients import distance, exact_law

REPORTED = {10.0: 9.95016525082e-15, 1000.0: 6.32120557828e-13}


def reported(fast=1e6, slow=1e-6, rare=1e-3):
    return np.array([[0, slow, 0], [fast, 0, rare], [rare, 0, 0]])


def chain_of(rates):
    x, y = np.nonzero(rates)
    return markov_chain(rates=(x, y, rates[x, y]))


def test_the_reported_entry_of_1e_minus_15_is_met_to_1e_minus_11():
    found = transient(chain_of(reported()), 0, list(REPORTED))
    assert found.method == "doubling"
    assert found.laws[:, 2] == pytest.approx(list(REPORTED.values()), rel=1e-11)


@given(st.floats(0, 6), st.floats(-8, 0), st.floats(-6, 0), st.floats(-2, 4))
@settings(max_examples=30, deadline=None)
def test_rare_states_of_stiff_chains_have_relative_accuracy(fast, slow, rare, time):
    rates, t = reported(10.0**fast, 10.0**slow, 10.0**rare), 10.0**time
    steps = Steps.of(chain_of(rates))
    found = sum_by_doubling(steps, np.eye(3)[0], np.array([t]), rates[:1])
    law, spent = exact_law(rates, np.eye(3)[0], t, rates[0])
    for value, exact in zip(found.values[0], law, strict=True):
        assert value == pytest.approx(float(exact), rel=1e-12)
    assert found.costs[0, 0] == pytest.approx(float(spent), rel=1e-12)
    assert distance(found.values[0], law) <= found.error[0] <= 1e-12


@given(st.integers(0, 2**32 - 1), st.floats(-2, 3))
@settings(max_examples=30, deadline=None)
def test_rates_over_twelve_decades_keep_their_errors_enclosed(seed, time):
    rng = np.random.default_rng(seed)
    n, t = int(rng.integers(2, 6)), 10.0**time
    rates = 10.0 ** rng.uniform(-6, 6, (n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(rates, 0.0)
    rates[0, n - 1], rates[n - 1, 0] = 1e6, 1e-6
    cost = rng.normal(size=n)
    found = transient(chain_of(rates), 0, t, cost_rate=cost)
    law, spent = exact_law(rates, np.eye(n)[0], t, cost)
    assert distance(found.laws[0], law) <= found.error[0] <= 1e-10
    assert found.cost_bounds[0][0] <= spent <= found.cost_bounds[1][0]


@pytest.mark.parametrize("n", [30, 150])
def test_both_methods_agree_on_random_chains(n):
    rng = np.random.default_rng(n)
    ends = np.repeat(np.arange(n), 4), rng.integers(0, n, 4 * n)
    chain = markov_chain(rates=(*ends, 10.0 ** rng.uniform(-3, 2, 4 * n)))
    steps, start = Steps.of(chain), np.full(n, 1.0 / n)
    cost, times = rng.normal(size=(2, n)), np.array([0.01, 1.0, 7.3])
    one = sum_products(steps, start, times, cost, 1e-10)
    two = sum_by_doubling(steps, start, times, cost)
    distances = np.abs(one.values - two.values).sum(axis=1)
    assert (distances <= one.error + two.error).all()
    assert (np.abs(one.costs - two.costs) <= one.cost_error + two.cost_error).all()


def test_very_many_steps_of_a_small_chain_are_doubled():
    matrix = np.array([[1 - 2.0**-40, 2.0**-40], [0.0, 1.0]])
    count = 2**41 + 12345
    found = transient(matrix, 0, count, cost_rate=[1.0, 0.0])
    with mpmath.workdps(50):
        stays = (1 - mpmath.mpf(2) ** -40) ** count
        spent = (1 - stays) * mpmath.mpf(2) ** 40
        assert abs(mpmath.mpf(float(found.laws[0, 0])) - stays) <= found.error[0]
        assert found.cost_bounds[0][0] <= spent <= found.cost_bounds[1][0]
    assert found.products == 42


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_products_of_matrices_with_twice_the_digits_keep_their_bound(seed, n):
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** rng.uniform(-30, 0, (2, n, n))
    a_low, b_low = 2.0**-54 * rng.random() * a, 2.0**-54 * rng.random() * b
    high, low = np.empty((n, n)), np.empty((n, n))
    multiply(a, a_low, b, b_low, high, low)
    with mpmath.workdps(60):
        exact = _sum(a, a_low) * _sum(b, b_low)
        error = _sum(high, low) - exact
        for i in range(n):
            for j in range(n):
                assert abs(error[i, j]) <= (n + 8) ** 2 * mpmath.mpf(2) ** -106 * exact[i, j]


def _sum(high, low):
    return mpmath.matrix(high.tolist()) + mpmath.matrix(low.tolist())


@given(st.integers(0, 2**32 - 1))
def test_complements_and_shares_have_twice_the_digits(seed):
    rng = np.random.default_rng(seed)
    rate = 10.0 ** rng.uniform(-20, 0, 5)
    scale = rate.sum() * (1 + 10.0 ** rng.uniform(-15, 0))
    high, low = np.empty(1), np.empty(1)
    complements(np.array([0, 5], np.int32), rate, scale, high, low)
    parts, rests = np.empty(5), np.empty(5)
    shares(rate, scale, parts, rests)
    with mpmath.workdps(60):
        total = sum(mpmath.mpf(float(r)) for r in rate) / mpmath.mpf(float(scale))
        assert abs(mpmath.mpf(high[0]) + mpmath.mpf(low[0]) - (1 - total)) <= 1e-30
        for part, rest, r in zip(parts, rests, rate, strict=True):
            exact = mpmath.mpf(float(r)) / mpmath.mpf(float(scale))
            assert abs(mpmath.mpf(float(part)) + mpmath.mpf(float(rest)) - exact) <= 1e-31 * exact


A_HAIR_OVER = [[0, 0.1, 0.9], [0.1, 0, 0.9], [0.9, 0.1, 0]]  # .1 + .9 is 1 + 2**-55


@pytest.mark.parametrize("steps", [1e3, 1e5])
def test_rows_that_sum_to_a_hair_over_1_do_not_make_mass(steps):
    found = transient(A_HAIR_OVER, 0, [steps], cost_rate=np.ones(3))
    assert np.abs(found.laws[0] - stationary(A_HAIR_OVER)).sum() <= found.error[0] + 1e-13
    assert found.cost_bounds[0][0] <= steps <= found.cost_bounds[1][0]


@pytest.mark.parametrize("steps", [1e15, 1e17])
def test_so_many_steps_that_a_hair_is_mass_are_refused(steps):
    with pytest.raises(SolveError):
        transient(A_HAIR_OVER, 0, [steps])


def test_random_tables_sum_to_1_over_many_steps():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        v = rng.integers(0, 4, (4, 4)) + np.eye(4)[rng.permutation(4)]
        P = v / v.sum(axis=1, keepdims=True)
        found = transient(P, 0, [100_000.0], cost_rate=np.ones(4))
        assert abs(found.laws[0].sum() - 1.0) <= found.error[0]
        assert found.cost_bounds[0][0] <= 1e5 <= found.cost_bounds[1][0]
