"""Paths of optimal policies against exact rationals and bisection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.indices.arm import arm
from mdpcloud.indices.path import MultichainPolicy, price_path
from tests.indices.arms import TestArm, arms, make_arm, published
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


@given(arms(("dense", "laborious", "restful")))
def test_states_change_at_the_exact_prices(given_arm: TestArm) -> None:
    exact = given_arm.exact()
    path = price_path(given_arm.built(), float(given_arm.alpha))
    for state in range(given_arm.n):
        if exact.turns_back(state):
            continue
        low, high = exact.index_range(state)
        last = path.prices[path.states == state][-1]
        assert low == high
        assert last == pytest.approx(float(low), rel=1e-10, abs=1e-12)


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
