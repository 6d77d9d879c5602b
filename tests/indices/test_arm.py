"""Arms from arrays: what is stored, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc

P = np.array([[0.5, 0.5], [0.25, 0.75]])
Q = np.array([[-2.0, 2.0], [1.0, -1.0]])


@pytest.mark.parametrize(
    ("P0", "P1", "message"),
    [
        ([[0.5, 0.4], [0.3, 0.7]], [[1, 0], [0.5, 0.5]], r"row 0 of P0 sums to 0\.9"),
        (P, [[0.5, 0.5], [-0.1, 1.1]], r"P1\[1, 0\] is -0\.1"),
        (P, [[0.5, 0.5], [np.nan, 1.0]], r"P1\[1, 0\] is nan"),
        (P, [[0.5, 0.5], [np.inf, 1.0]], r"P1\[1, 0\] is inf"),
        (P, np.eye(3), r"P1 has shape \(3, 3\)"),
        (P, np.ones((2, 1)), r"P1 has shape \(2, 1\)"),
        (np.zeros((0, 0)), np.zeros((0, 0)), "not empty"),
        (P, "nonsense", "P1 is not an array of numbers"),
    ],
)
def test_matrices_that_are_not_stochastic_are_refused_by_place(P0, P1, message):
    with pytest.raises(mc.InputError, match=message):
        mc.indices.arm(P0, P1)


@pytest.mark.parametrize("dense_first", [True, False])
def test_sparse_matrices_are_checked_in_the_same_way(dense_first):
    wrong = sparse.csr_array(np.array([[0.5, 0.4], [0.0, 1.0]]))
    right = P if dense_first else sparse.csr_array(P)
    with pytest.raises(mc.InputError, match=r"row 0 of P1 sums to 0\.9"):
        mc.indices.arm(right, wrong)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"costs0": [1.0, np.inf], "costs1": 0.0}, "costs0 of state 1 is not finite"),
        ({"rewards1": [np.nan, 0.0]}, "rewards1 of state 0 is not finite"),
        ({"work1": [1.0, 2.0, 3.0]}, r"work1 has shape \(3,\)"),
        ({"costs0": [1.0, 2.0]}, "costs1 is missing; give both costs"),
        ({"costs1": 3.0}, "costs0 is missing; give both costs"),
        ({"costs0": [1.0, 2.0], "rewards1": [1.0, 2.0]}, "costs and rewards are both given"),
    ],
)
def test_costs_that_do_not_fit_are_refused_by_name(given, message):
    with pytest.raises(mc.InputError, match=message):
        mc.indices.arm(P, P, **given)


def test_rates_must_sum_to_zero_and_be_positive_off_the_diagonal():
    with pytest.raises(mc.InputError, match="row 1 of Q1 sums to 1; it must sum to 0"):
        mc.indices.rate_arm(Q, [[-2.0, 2.0], [2.0, -1.0]])
    with pytest.raises(mc.InputError, match=r"Q0\[0, 1\] is -2"):
        mc.indices.rate_arm(-Q, Q)


def test_probabilities_for_rates_are_told_apart():
    with pytest.raises(mc.InputError, match=r"mdpcloud\.indices\.arm takes steps"):
        mc.indices.rate_arm(P, P)


def test_arms_and_indices_are_shown_in_a_line():
    shown = mc.indices.arm(P, P, rewards1=[1.0, 2.0])
    assert repr(shown) == "<Arm of 2 states in discrete time, dense>"
    assert repr(mc.indices.whittle(shown)).startswith("<ArmIndex: indexable, 2 states, estimate")
    multichain = mc.indices.whittle(mc.indices.arm(np.eye(2), np.eye(2), rewards1=[1.0, 2.0]))
    assert repr(multichain).startswith("<ArmIndex: multichain, a policy has 2 recurrent classes")


def test_rewards_are_negative_costs():
    by_rewards = mc.indices.arm(P, P, rewards0=[1.0, 2.0], rewards1=3.0)
    by_costs = mc.indices.arm(P, P, [-1.0, -2.0], -3.0)
    np.testing.assert_array_equal(by_rewards.costs, by_costs.costs)


def test_dense_matrices_are_shared_and_sparse_ones_stay_sparse():
    assert mc.indices.arm(P, P).moves[0] is P
    assert not mc.indices.arm(P, P).is_sparse
    assert mc.indices.arm(P, sparse.csr_array(P)).is_sparse


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_any_stochastic_matrix_and_any_generator_is_taken(n, seed, scale):
    random = np.random.default_rng(seed)
    stochastic = random.dirichlet(np.ones(n), n)
    rates = random.exponential(scale, (n, n))
    np.fill_diagonal(rates, 0.0)
    np.fill_diagonal(rates, -rates.sum(axis=1))
    assert mc.indices.arm(stochastic, stochastic).discrete
    assert not mc.indices.rate_arm(rates, rates).discrete
