"""Gittins' index against exact rationals, the restart problem, and its theorems."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.indices.path.path import price_path
from mdpcloud.indices.restless.arm import arm
from mdpcloud.indices.restless.gittins import gittins, gittins_rates
from tests.common.exact import solve_exactly
from tests.indices.arms import TestArm, arms, make_arm

KINDS = ("dense", "peaked", "sparse", "coarse", "alike", "decomposable", "periodic", "absorbing")
FACTORS = (0.0, 0.5, 0.875, 1.0 - 2.0**-20, 1.0 - 2.0**-45)

played_arms = arms(KINDS, discounts=(Fraction(0),))


def exact_index(rates: Any, rewards: Any, alpha: Fraction) -> list[Fraction]:
    """Largest remaining index first, each by a linear system (Varaiya, Walrand, Buyukkoc 1985)."""
    n = len(rewards)
    index: dict[int, Fraction] = {}
    while len(index) < n:
        left = [i for i in range(n) if i not in index]
        quotients = {i: quotient(rates, rewards, alpha, [*index, i], i) for i in left}
        best = max(left, key=lambda i: quotients[i])
        index[best] = quotients[best]
    return [index[i] for i in range(n)]


def quotient(rates: Any, rewards: Any, alpha: Fraction, stay: list[int], start: int) -> Fraction:
    """Discounted reward over discounted time until the states are left."""
    system = [[alpha * (i == j) - rates[i][j] for j in stay] for i in stay]
    reward = solve_exactly(system, [rewards[i] for i in stay])
    time = solve_exactly(system, [Fraction(1)] * len(stay))
    return reward[stay.index(start)] / time[stay.index(start)]


def fractions(array: np.ndarray) -> Any:
    return [fractions(a) if a.ndim else Fraction(float(a)) for a in array]


@pytest.mark.parametrize("exponent", [-1070, -1040, -900, 900])
def test_the_error_bound_holds_for_rewards_of_any_size(exponent: int) -> None:
    for seed in range(20):
        given_arm = make_arm("dense", seed, 3)
        P, rewards = given_arm.moves[1], np.ldexp(-given_arm.costs[1], exponent)
        found = gittins(P, rewards, criterion=mc.Discounted(factor=0.5))
        exact = exact_index(fractions(P - np.eye(3)), fractions(rewards), Fraction(1))
        for value, error, right in zip(found.index, found.error, exact, strict=True):
            assert abs(Fraction(float(value)) - right) <= Fraction(float(error))


@given(played_arms, st.sampled_from(FACTORS), st.booleans())
def test_the_error_bound_holds_against_exact_rationals(
    given_arm: TestArm, factor: float, is_sparse: bool
) -> None:
    P, rewards = given_arm.moves[1], -given_arm.costs[1]
    found = gittins(
        sparse.csr_array(P) if is_sparse else P, rewards, criterion=mc.Discounted(factor=factor)
    )
    alpha = 1 / Fraction(factor) - 1 if factor else Fraction(10) ** 100
    exact = exact_index(fractions(P - np.eye(given_arm.n)), fractions(rewards), alpha)
    assert found.error_kind == "bound"
    for i, value in enumerate(exact):
        assert abs(Fraction(float(found.index[i])) - value) <= Fraction(float(found.error[i]))
    assert found.error.max() <= 1e-12 * np.ptp(rewards) + 1e-15


@given(arms(("decades", "ladder"), discounts=(Fraction(1), Fraction(1, 1024))))
def test_the_error_bound_holds_for_rates_over_many_decades(given_arm: TestArm) -> None:
    Q, rewards, rate = given_arm.moves[1], -given_arm.costs[1], float(given_arm.alpha)
    found = gittins_rates(Q, rewards, criterion=mc.Discounted(rate=rate))
    rates = fractions(Q)
    for i, row in enumerate(rates):
        row[i] = -sum(row[:i] + row[i + 1 :])
    for i, value in enumerate(exact_index(rates, fractions(rewards), given_arm.alpha)):
        assert abs(Fraction(float(found.index[i])) - value) <= Fraction(float(found.error[i]))


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([0.3, 0.9]))
def test_the_index_is_the_value_of_the_restart_problem(seed: int, n: int, factor: float) -> None:
    """Katehakis and Veinott (1987), Mathematics of Operations Research 12, 262-268."""
    rng = np.random.default_rng(seed)
    P, rewards = rng.dirichlet(np.ones(n), n), rng.standard_normal(n)
    criterion = mc.Discounted(factor=factor)
    index = gittins(P, rewards, criterion=criterion).index
    for i in range(n):
        restart = mc.tabular(
            [P, np.tile(P[i], (n, 1))], rewards=np.stack([rewards, np.full(n, rewards[i])], 1)
        )
        lower, upper = mc.solve(restart, criterion).bounds
        slack = 1e-12
        assert (1 - factor) * lower[i] - slack <= index[i] <= (1 - factor) * upper[i] + slack


@settings(max_examples=30)
@given(arms(KINDS, discounts=(Fraction(1), Fraction(1, 8))), st.booleans())
def test_the_index_is_whittles_of_the_arm_that_rests(given_arm: TestArm, is_sparse: bool) -> None:
    P, costs, n = given_arm.moves[1], given_arm.costs[1], given_arm.n
    given = sparse.csr_array(P) if is_sparse else P
    found = gittins(given, costs=costs, criterion=given_arm.criterion)
    path = price_path(arm(np.eye(n), P, 0.0, costs), float(given_arm.alpha))
    prices = np.empty(n)
    prices[path.states] = path.prices
    assert not path.active.any()
    assert found.index == pytest.approx(prices, rel=1e-9, abs=1e-9 * np.abs(costs).max())
    assert found.marginal_cost / found.marginal_work == pytest.approx(found.index, abs=1e-12)


@settings(max_examples=40)
@given(played_arms, st.sampled_from([0.01, 1.0, 100.0]))
def test_continuous_time_is_uniformised_discrete_time(given_arm: TestArm, rate: float) -> None:
    P, rewards = given_arm.moves[1], -given_arm.costs[1]
    speed = 4.0
    steps = gittins(P, rewards, criterion=mc.Discounted(factor=speed / (speed + rate)))
    rates = gittins_rates(
        speed * (P - np.eye(given_arm.n)), rewards, criterion=mc.Discounted(rate=rate)
    )
    assert rates.index == pytest.approx(steps.index, rel=1e-12, abs=1e-12)


@settings(max_examples=40)
@given(played_arms, st.sampled_from([0.5, 2.0]), st.sampled_from([-3.0, 0.0, 10.0]))
def test_scaled_and_shifted_rewards_scale_and_shift_the_index(
    given_arm: TestArm, factor: float, shift: float
) -> None:
    P, rewards, criterion = given_arm.moves[1], -given_arm.costs[1], mc.Discounted(factor=0.9)
    index = gittins(P, rewards, criterion=criterion).index
    other = gittins(P, factor * rewards + shift, criterion=criterion).index
    assert other == pytest.approx(factor * index + shift, rel=1e-12, abs=1e-12)


def test_an_arm_that_only_gets_worse_is_worth_its_present_reward() -> None:
    n = 40
    P = np.triu(np.random.default_rng(1).random((n, n)))
    P /= P.sum(axis=1, keepdims=True)
    rewards = np.linspace(1.0, -1.0, n)
    found = gittins(P, rewards, criterion=mc.Discounted(factor=0.99))
    assert found.index == pytest.approx(rewards, abs=1e-14)


def test_with_costs_the_index_is_minus_the_least_mean_cost() -> None:
    found = gittins([[1, 0], [0.5, 0.5]], costs=[1.0, 4.0], criterion=mc.Discounted(factor=0.5))
    assert found.index == pytest.approx([-1.0, -3.0])


@pytest.mark.parametrize(
    ("successes", "failures", "published"),
    [(1, 1, 0.7029), (1, 2, 0.5001), (1, 3, 0.3796), (2, 1, 0.8001), (2, 2, 0.6346)],
)
def test_bernoulli_arms_have_the_published_indices(
    successes: int, failures: int, published: float
) -> None:
    """Gittins, Multi-armed Bandit Allocation Indices (1989), table of factor 0.9."""
    index = bernoulli_index(60, 0.9)
    assert index[successes, failures] == pytest.approx(published, abs=5.1e-5)


def bernoulli_index(trials: int, factor: float) -> dict[tuple[int, int], float]:
    """Index of each beta posterior; after so many trials the mean is taken to be known."""
    states = [(a, m - a) for m in range(2, trials + 1) for a in range(1, m)]
    number = {state: i for i, state in enumerate(states)}
    rows, columns, shares = [], [], []
    for (a, b), i in number.items():
        last = a + b == trials
        moves = [((a, b), 1.0)] if last else [((a + 1, b), a / (a + b)), ((a, b + 1), b / (a + b))]
        for target, share in moves:
            rows.append(i)
            columns.append(number[target])
            shares.append(share)
    P = sparse.csr_array((shares, (rows, columns)), shape=(len(states),) * 2)
    means = [a / (a + b) for a, b in states]
    found = gittins(P, means, criterion=mc.Discounted(factor=factor))
    return dict(zip(states, found.index.tolist(), strict=True))


@pytest.mark.parametrize("n", [65, 200])
def test_blocks_and_lists_of_rows_agree(n: int) -> None:
    given_arm = make_arm("dense", 5, n)
    P, rewards, criterion = given_arm.moves[1], -given_arm.costs[1], mc.Discounted(factor=0.99)
    dense = gittins(P, rewards, criterion=criterion)
    thin = np.where(n * P > 1.9, P, 0.0)
    thin[:, 0] += 1.0 - thin.sum(axis=1)
    few = gittins(thin, rewards, criterion=criterion)
    lists = gittins(sparse.csr_array(thin), rewards, criterion=criterion)
    assert lists.index == pytest.approx(few.index, rel=1e-13, abs=1e-14)
    assert dense.error.max() < 1e-8


def test_many_blocks_agree_with_the_path_of_prices() -> None:
    """Of 700 states the first 64 leave their rows in the matrix."""
    given_arm = make_arm("dense", 6, 700)
    P, costs = given_arm.moves[1], given_arm.costs[1]
    found = gittins(P, costs=costs, criterion=mc.Discounted(factor=0.5))
    path = price_path(arm(np.eye(700), P, 0.0, costs), 1.0)
    prices = np.empty(700)
    prices[path.states] = path.prices
    assert found.index == pytest.approx(prices, abs=1e-11)


def test_a_graph_that_fills_up_is_refused_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdpcloud.indices.restless.elimination.available_memory", lambda: 100)
    P = sparse.csr_array(np.full((9, 9), 1 / 9))
    with pytest.raises(mc.InputError, match="fills up"):
        gittins(P, np.arange(9), criterion=mc.Discounted(factor=0.5))


def test_a_band_of_ten_thousand_states_is_solved_without_a_dense_matrix() -> None:
    n = 10_000
    rng = np.random.default_rng(2)
    P = sparse.diags_array([0.3, 0.4, 0.3], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    P[0, 0], P[n - 1, n - 1] = 0.7, 0.7
    rewards = rng.random(n)
    found = gittins(P.tocsr(), rewards, criterion=mc.Discounted(factor=0.9))
    assert (found.index >= rewards - found.error).all()
    assert found.index.max() == rewards.max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"P": [[0.5, 0.4], [0, 1]], "rewards": [1, 2]}, "row 0 of P sums to 0.9"),
        ({"P": [[1.5, -0.5], [0, 1]], "rewards": [1, 2]}, r"P\[0, 1\] is -0.5"),
        ({"P": [[0.5, 0.5]], "rewards": 1}, r"P has shape \(1, 2\)"),
        ({"P": sparse.csr_array((0, 0)), "rewards": 1}, "not empty"),
        ({"P": np.eye(2)}, "either rewards or costs"),
        ({"P": np.eye(2), "rewards": 1, "costs": 1}, "either rewards or costs"),
        ({"P": np.eye(2), "rewards": [1, 2, 3]}, r"rewards has shape \(3,\)"),
        ({"P": np.eye(2), "rewards": 1, "criterion": mc.AverageCost()}, "discounted"),
        ({"P": np.eye(2), "rewards": 1, "criterion": mc.Discounted(rate=1.0)}, "factor"),
    ],
)
def test_wrong_input_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        gittins(**{"criterion": mc.Discounted(factor=0.5), **arguments})


def test_a_wrong_generator_is_refused() -> None:
    for Q, message in (([[-1, 2], [0, 0]], "row 0 of Q"), ([[1, -1], [0, 0]], r"Q\[0, 1\]")):
        with pytest.raises(mc.InputError, match=message):
            gittins_rates(Q, 1.0, criterion=mc.Discounted(rate=1.0))


def test_numbers_beyond_float64_are_an_error() -> None:
    with pytest.raises(mc.SolveError, match="too large"):
        gittins(np.eye(2), [-1.7e308, 1.7e308], criterion=mc.Discounted(factor=0.5))
