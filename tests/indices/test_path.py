"""Paths of optimal policies against exact rationals and bisection."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array

from mdpcloud.errors import SolveError
from mdpcloud.indices.path.path import MultichainPolicy, price_path
from mdpcloud.indices.path.walk import thinned
from mdpcloud.indices.restless.arm import arm, rate_arm
from mdpcloud.indices.restless.result import PricePath
from tests.indices.arms import TURNING, TestArm, arms, make_arm, published, with_diagonal
from tests.indices.exact_index import bisection_index

WELL_CONDITIONED = ("dense", "peaked", "coarse", "alike", "periodic", "restful", "laborious")


@given(arms(WELL_CONDITIONED), st.booleans())
def test_the_optimum_at_every_price_is_the_exact_one(given_arm: TestArm, sparse: bool) -> None:
    exact = given_arm.exact()
    path = price_path(given_arm.built(sparse), float(given_arm.alpha))
    assert path.complete
    longest = max(1.0, 1.0 / float(given_arm.alpha or 1))
    for piece in exact.pieces:
        price = float(piece.inside)
        k = int(np.searchsorted(path.prices, price))
        found = path.costs[k] + price * path.work[k]
        scale = longest * (
            np.abs(given_arm.costs).max() + abs(price) * np.abs(given_arm.work).max()
        )
        assert found == pytest.approx(optimum(given_arm, piece), rel=1e-11, abs=1e-11 * scale)


def optimum(given_arm: TestArm, piece: object) -> float:
    """Exact average, or discounted total from a uniform start, at a price inside."""
    values = [each.at(piece.inside) for each in piece.optimum]  # type: ignore[attr-defined]
    mean = sum(values) / len(values)
    return float(mean * (1 + given_arm.alpha) if given_arm.discrete else mean)


@given(arms(), st.booleans())
def test_the_exact_prices_are_within_the_reported_errors(given_arm: TestArm, sparse: bool) -> None:
    exact = given_arm.exact()
    path = path_of(given_arm, sparse)
    if path is None or not path.complete or not exact.solved:
        return
    for state in range(given_arm.n):
        if not exact.turns_back(state):
            price, error = last_price(path, state)
            low, high = map(float, exact.index_range(state))
            allowed = error + 2e-16 * abs(price) if math.isfinite(price) else 0.0
            assert low - allowed <= price <= high + allowed


@given(arms(WELL_CONDITIONED), st.booleans())
def test_reported_errors_of_good_arms_are_small(given_arm: TestArm, sparse: bool) -> None:
    path = path_of(given_arm, sparse)
    assert path is not None
    work = given_arm.work.max() / np.abs(path.marginal_work)
    slow = 1.0 / float(given_arm.alpha or 1)
    assert (path.errors <= 1e-9 * slow * (1.0 + np.abs(path.prices)) * np.maximum(work, 1.0)).all()


def path_of(given_arm: TestArm, sparse: bool) -> PricePath | None:
    """The path; None where it does not exist or rounding hides it."""
    try:
        return price_path(given_arm.built(sparse), float(given_arm.alpha))
    except (MultichainPolicy, SolveError):
        return None


def last_price(path: PricePath, state: int) -> tuple[float, float]:
    """The price at which a state becomes passive for good, and its error; infinite if never."""
    own = np.flatnonzero(path.states == state)
    if own.size and path.active[own[-1]]:
        return math.inf, 0.0
    if own.size:
        return float(path.prices[own[-1]]), float(path.errors[own[-1]])
    return (math.inf if path.first[state] else -math.inf), 0.0


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("sparse", [False, True])
def test_prices_are_those_of_bisection(alpha: float, sparse: bool) -> None:
    given_arm = make_arm("dense", 3, 60)
    path = price_path(given_arm.built(sparse), alpha)
    index = np.empty(60)
    index[path.states] = path.prices
    differences = TestArm(
        given_arm.moves, given_arm.costs, given_arm.work, alpha=alpha
    ).differences()
    assert not path.active.any()
    np.testing.assert_allclose(index, bisection_index(differences, 60), rtol=1e-10, atol=1e-10)


def test_a_state_of_the_published_arm_becomes_active_again() -> None:
    given_arm = published()
    path = price_path(given_arm.built(), float(given_arm.alpha))
    assert path.states.tolist() == [2, 1, 0, 2, 3, 2]
    assert path.active.tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize("seed", TURNING)
def test_states_that_turn_back_are_those_of_exact_arithmetic(seed: int) -> None:
    given_arm = make_arm("peaked", seed, 3)
    exact, path = given_arm.exact(), price_path(given_arm.built(), 0.0)
    turning = {i for i in range(3) if exact.turns_back(i)}
    assert set(path.states[path.active]) == turning != set()
    ends = [piece.upper for piece in exact.pieces[:-1]]
    np.testing.assert_allclose(path.prices, np.array(ends, float), rtol=1e-11)


@pytest.mark.parametrize(("seed", "n", "alpha"), [(15366298, 3, 1), (3397717, 2, 0)])
def test_a_state_that_only_touches_indifference_does_not_change(
    seed: int, n: int, alpha: int
) -> None:
    given_arm = make_arm("idle", seed, n, Fraction(alpha))
    path = price_path(given_arm.built(), float(alpha))
    assert not path.active.any()
    assert path.complete
    assert np.unique(path.states).size == path.states.size


def test_an_identity_is_multichain() -> None:
    with pytest.raises(MultichainPolicy, match="3 recurrent classes") as caught:
        price_path(arm(np.eye(3), np.eye(3), rewards1=[1.0, 2.0, 3.0]), 0.0)
    assert caught.value.policy.tolist() == [True] * 3
    assert len(caught.value.classes) == 3


def test_progress_is_told_after_every_change() -> None:
    told: list[tuple[int, int]] = []
    given_arm = make_arm("dense", 1, 5)
    price_path(given_arm.built(), 0.0, progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 5) for k in range(1, 6)]


def test_below_all_prices_the_policy_does_the_most_work() -> None:
    given_arm = make_arm("laborious", 2, 6)
    path = price_path(given_arm.built(), 0.0)
    assert path.work[0] == path.work.max()
    assert (np.diff(path.work) < 0.0).all()
    assert not math.isnan(path.costs.sum())


def test_sparse_arms_whose_factors_are_full_are_followed_with_dense_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mdpcloud.indices.path import path as module

    rng = np.random.default_rng(3)
    shape, places = (300, 300), rng.integers(0, 300, (2, 300, 5))
    rows, weights = np.repeat(np.arange(300), 5), rng.dirichlet(np.ones(5), (2, 300))
    moves = [
        csr_array((w.ravel(), (rows, p.ravel())), shape)
        for w, p in zip(weights, places, strict=True)
    ]
    given_arm = arm(*moves, rewards1=rng.random(300))
    full = price_path(given_arm, 0.1)
    monkeypatch.setattr(module, "FULL", 2.0)
    kept = price_path(given_arm, 0.1)
    assert (full.states == kept.states).all()
    assert (np.abs(full.prices - kept.prices) <= full.errors + kept.errors).all()
    assert not np.array_equal(full.prices, kept.prices)  # another method indeed


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("decades", [8, 15, 30])
def test_arms_with_rates_far_apart_are_followed_or_refused(sparse: bool, decades: int) -> None:
    rng = np.random.default_rng(decades)
    for _ in range(40):
        n = int(rng.integers(6, 15))
        rates = rng.random((2, n, n)) * 10.0 ** rng.uniform(-decades, decades, (2, n, 1))
        moves = [csr_array(q) if sparse else q for q in with_diagonal(rates)]
        given_arm = rate_arm(*moves, *rng.standard_normal((2, n)))
        try:
            path = price_path(given_arm, 0.0)
        except SolveError:
            continue
        assert (np.diff(path.prices) >= 0.0).all()


def test_a_path_without_digits_is_cut_short_in_little_time() -> None:
    """A line of states with random rates, whose values are far beyond float64."""
    rng = np.random.default_rng(0)
    n = 1000
    moves = [
        diags_array([down, -np.append(up, 0) - np.append(0, down), up], offsets=[-1, 0, 1]).tocsr()
        for up, down in rng.random((2, 2, n - 1))
    ]
    told: list[int] = []
    path = price_path(
        rate_arm(*moves, *rng.random((2, n))), 0.0, progress=lambda k, _: told.append(k)
    )
    assert not path.complete
    assert len(told) < 300


@pytest.mark.parametrize("size", [1, 16, 17, 1000])
def test_few_of_many_ties_are_looked_at(size: int) -> None:
    found = thinned(np.arange(size), 16)
    assert found.size == min(size, 16)
    assert (found[0], found[-1]) == (0, size - 1)
    assert (np.diff(found) > 0).all()
