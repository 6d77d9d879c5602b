"""Many sweeps in one call, with policies kept for some of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.engine.rows_kernels import HELD, sweeps
from mdpcloud.engine.tabular import tabular_problem
from mdpcloud.model.tabular import tabular


def random_problem(seed, n=8, actions=3):
    """Every state is reached from every other, so that the gain is one number."""
    rng = np.random.default_rng(seed)
    weights = rng.random((n * actions, n)) ** 4 + 1e-3
    weights /= weights.sum(axis=1, keepdims=True)
    state, action = np.repeat(np.arange(n), actions), np.tile(np.arange(actions), n)
    cost = rng.normal(size=n * actions)
    model = tabular(weights, s_indices=state, a_indices=action, costs=cost)
    return tabular_problem(model)


def best_gain(problem):
    """By policy iteration on dense matrices."""
    choice = problem.greedy(np.zeros(problem.n), 0.0)
    while True:
        generator, cost = problem.generator(choice)
        matrix = generator.toarray()
        matrix[:, 0] = -1.0
        values = np.linalg.solve(matrix, -cost)
        gain, values[0] = values[0], 0.0
        better = problem.greedy(values, 1e-9)
        if (better == choice).all():
            return gain
        choice = better


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.1]))
def test_sweeps_without_recentring_are_as_many_backups_bit_by_bit(seed, count, discount):
    problem = random_problem(seed)
    h = np.random.default_rng(seed).normal(size=problem.n)
    h, out = problem.pack(h), np.empty(problem.n)
    one, other = h.copy(), h.copy()
    for _ in range(count):
        bounds = problem.backup(one, other, step=0.8, shift=0.3, discount=discount)
        one, other = other, one
    done, low, high, in_out = problem.sweeps(
        h, out, count, step=0.8, shift=0.3, discount=discount, target=-1.0
    )
    assert (done, low, high) == (count, *bounds)
    assert ((out if in_out else h) == one).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 500))
def test_recentred_sweeps_close_on_the_optimal_gain_and_repeat_bit_by_bit(seed, count):
    problem = random_problem(seed)
    results = []
    for _ in range(2):
        h, out = problem.pack(np.zeros(problem.n)), np.empty(problem.n)
        done, low, high, in_out = problem.sweeps(
            h, out, count, step=1 / problem.rate_bound, target=1e-9, recentre=True
        )
        results.append((done, low, high, *(out if in_out else h)))
    assert results[0] == results[1]
    assert done <= count
    gain = best_gain(problem)
    assert low - 1e-9 <= gain <= high + 1e-9
    assert high - low <= 1e-9 or done == count


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_kept_policies_find_the_gain_of_plain_sweeps(seed):
    problem = random_problem(seed)
    found = []
    for held in (0, HELD):
        h, out = np.zeros(problem.n), np.zeros(problem.n)
        chosen = np.empty(problem.n, np.uint32)
        step = 1 / problem.rate_bound
        _, low, high = sweeps(
            *problem.table.arrays, h, out, chosen, 5000, step, 0.0, 0.0, 1e-10, True, held
        )
        assert high - low <= 1e-10
        found.append(0.5 * (low + high))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_where_keeping_a_policy_does_not_close_the_bounds_plain_sweeps_do():
    """Either state may be kept for good; a policy kept too long drives their values apart."""
    P = [np.eye(2), [[0, 1], [1, 0]]]
    problem = tabular_problem(tabular(P, costs=[[0.0, 5.0], [1.0, 5.0]]))
    h, out = np.zeros(2), np.zeros(2)
    _, low, high, _ = problem.sweeps(
        h, out, 1000, step=1 / problem.rate_bound, target=1e-9, recentre=True
    )
    assert high - low <= 1e-9
    assert low == pytest.approx(0.0, abs=1e-8)


def test_no_sweeps_are_none():
    problem = random_problem(1)
    h = np.zeros(problem.n)
    assert problem.sweeps(h, h.copy(), 0, step=1.0) == (0, -np.inf, np.inf, False)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_the_chain_of_one_term_is_that_of_the_matrix(seed):
    problem = random_problem(seed)
    fixed = problem.under(problem.greedy(np.zeros(problem.n), 0.0))
    generator, cost = fixed.chain()
    table = fixed.rows()
    dense = table.transitions.toarray()
    np.testing.assert_allclose(
        generator.toarray(), dense - np.diag(dense.sum(axis=1)), rtol=0, atol=1e-15
    )
    assert (cost == table.cost).all()


def test_products_that_underflow_widen_the_bounds_and_exact_zeros_do_not():
    model = tabular(sparse.csr_array([[0.5, 0.5], [0.5, 0.5]]), s_indices=[0, 1], a_indices=[0, 0])
    problem = tabular_problem(model)
    lower, upper = problem.enclose(np.array([0.0, 3e-324]))
    assert lower[0] < 0 < upper[0]
    lower, upper = problem.enclose(np.array([1.0, 1.0]))
    assert (lower == 0).all()
    assert (upper == 0).all()


def test_a_policy_that_is_asked_for_twice_is_fixed_once_and_a_changed_one_again():
    problem = random_problem(3)
    choice = problem.greedy(np.zeros(problem.n), 0.0)
    fixed = problem.under(choice)
    assert problem.under(choice.copy()) is fixed
    choice[0, 0] = (choice[0, 0] + 1) % 3
    other = problem.under(choice)
    assert other is not fixed
    assert other.rows().action[0] == choice[0, 0]
