"""Error bounds of birth-death arms, against fractions."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.indices import Node
from mdpcloud.indices.birth_death.birth_death import birth_death_index
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm, birth_death_arm
from tests.indices.birth_death_arms import (
    built,
    exact,
    refusing,
    saved,
    saved_by,
    within,
)

SEEDS = st.integers(0, 2**32 - 1)


def wide_arm(seed: int, n: int, decades: float) -> BirthDeathArm:
    """Rates over many decades, costs that grow along the states."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-decades, decades, (2, 2, n))
    if rng.random() < 0.5:
        rates[rng.integers(2), :] = rates[0, 0]
    costs = np.cumsum(10.0 ** rng.uniform(-3, 3, n)) * np.ones((2, 1))
    work = np.stack([np.zeros(n), np.ones(n)])
    if rng.random() < 0.3:
        work += rng.random((2, n))
    return built(rates, costs, work)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    n=st.integers(1, 12),
    decades=st.sampled_from([0.5, 3.0, 20.0, 60.0]),
    alpha=st.sampled_from([0.0, 1e-9, 0.1, 1e3]),
    low=st.booleans(),
)
def test_error_bounds_hold_whatever_the_order(
    seed: int, n: int, decades: float, alpha: float, low: bool
) -> None:
    from mdpcloud.indices.birth_death import birth_death
    from mdpcloud.indices.birth_death.kernels import threshold_indices

    arm = wide_arm(seed, n, decades)
    line = birth_death._line(arm, alpha, low, 0.0)
    if line is None:
        return
    found = np.full((4, n), np.nan)
    beyond = birth_death._far_blocks(line, 0)
    threshold_indices(
        *(line.alpha, line.onward, line.back, line.costs, line.work, line.step),
        *(line.given, beyond, False, found),
    )
    for k in np.flatnonzero(~np.isnan(found[0])):
        cost, work = (saved(arm, Fraction(alpha), k, low, of) for of in (arm.costs, arm.work))
        assert work < 0
        assert within(found[0, k], found[1, k], cost / -work, cost / -work)


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    n=st.integers(2, 5),
    decades=st.sampled_from([0.2, 2.0]),
    alpha=st.sampled_from([0.0, 0.1]),
    action=st.sampled_from([0, 1]),
)
def test_marginal_work_under_policies_of_one_action_has_the_exact_sign(
    seed: int, n: int, decades: float, alpha: float, action: int
) -> None:
    from mdpcloud.indices.birth_death import birth_death
    from mdpcloud.indices.birth_death.kernels import work_is_marginal

    arm = wide_arm(seed, n, decades)
    work = np.random.default_rng(seed).uniform([[0.0], [1.0]], [[4.0], [5.0]], (2, n))
    arm = dataclasses.replace(arm, work=work)
    exactly = [
        saved_by(arm, np.full(n, action == 1), Fraction(alpha), k, arm.work) for k in range(n)
    ]
    for low in (False, True):
        line = birth_death._line(arm, alpha, low, 0.0)
        assert line is not None
        beyond = birth_death._far_blocks(line, action)
        numbers = (line.alpha, line.onward, line.back, line.work, line.step, line.given)
        assert work_is_marginal(*numbers, action, beyond) == all(each < 0 for each in exactly)


def test_marginal_work_may_turn_negative_where_no_state_is_active() -> None:
    births, deaths = np.array([3.5, 3.5, 0.0]), np.array([0.0, 4.0, 3.5])
    costs = np.array([-2.0, -0.5, -1.5])
    work = [np.array([0.0, 3.0, 0.0]), np.array([2.0, 2.0, 0.0])]
    arm = birth_death_arm(
        *(births, 0.0 * births, deaths, deaths, costs, costs), work0=work[0], work1=work[1]
    )
    assert exact(arm, Fraction(1, 8)).verdict == "not indexable"
    assert birth_death_index(arm, 0.125) is None


@pytest.mark.parametrize("lam", [4, 40])
def test_decimals_out_of_order_by_rounding_have_the_index_of_the_decimals(lam: int) -> None:
    """The node's rates 0.3 i are rounded; far beyond its load all its indices are nearly 1."""
    room = 60
    states = np.arange(room + 1)
    deaths = [Fraction(min(i, 5)) + Fraction(3, 10) * max(i - 5, 0) for i in range(room + 1)]
    costs = [Fraction(3, 10) * max(i - 5, 0) for i in range(room + 1)]
    births = [Fraction(lam)] * room + [Fraction(0)]
    none, full = [Fraction(0)] * (room + 1), [Fraction(lam)] * (room + 1)
    exactly = BirthDeathArm(
        *(
            np.array(rows, dtype=object)
            for rows in ([births, none], [deaths, deaths], [costs, costs], [none, full])
        )
    )
    node = Node(5, 1.0, 0.3)
    found = birth_death_index(refusing(node, float(lam), room), 0.0)
    assert found is not None
    assert found.error is not None
    assert ("rounding of the arm's numbers" in found.reason) == (lam == 40)
    for k in states[:-1:6]:
        cost, work = (
            saved(exactly, Fraction(0), k, False, of) for of in (exactly.costs, exactly.work)
        )
        assert abs(Fraction(found.index[k]) - cost / -work) <= Fraction(found.error[k]) + Fraction(
            (lam < 40) * 1e-13
        )


def test_a_rate_that_underflows_on_the_way_comes_back() -> None:
    births, deaths = np.full(40, 1.0), np.full(40, 1.0)
    deaths[1:20], births[20:] = 2.0**80, 2.0**80
    births[-1] = deaths[0] = 0.0
    costs = np.arange(40.0) ** 2
    arm = birth_death_arm(births, births, deaths, deaths / 2, costs, costs)
    from mdpcloud.indices.birth_death import birth_death

    line = birth_death._line(arm, 0.0, False, 0.0)
    assert line is not None
    blocks = birth_death._far_blocks(line, 0)
    assert np.isfinite(blocks[1:]).all()
    rates = np.ldexp(blocks[:, 0], blocks[:, 1].astype(int))
    assert (blocks[:, 0] > 0.0).all()
    assert rates[20] == 0.0
    assert rates[-1] > 0.0


# --- indices under another order of the states ----------------------------------------------------

STEEP = (  # births, deaths, costs and rate of arms with two indices that only rounding tells apart
    (
        [[8.228404094360791e18, 0.004257705443335271, 0.0], [2.36430607e-08, 1.70251392e23, 0.0]],
        [[0.0, 6427095353655585.0, 6.3669374860426296e16], [0.0, 148355679697199.34, 0.05767578]],
        [[0.46168584, 0.13949626, 0.1000153], [-0.01021190, 0.59517771, -1.58918464]],
        1e-3,
    ),
    (
        [[1.475811929, 1.92127817e-25, 13.9316478, 0.0], [2.89196e-17, 3.4055289e25, 1.019e-4, 0]],
        [[0.0, 4.2651e-24, 7.548983e26, 3.6327903e15], [0.0, 3.7024e-10, 1.733521e-13, 9.6899e-11]],
        [[0.3502995, -1.5418081, 0.0533099, -0.1030892], [0.1446795, -1.231324, -0.734, -1.2744]],
        1e-12,
    ),
)


@pytest.mark.parametrize("given_arm", STEEP)
def test_no_tie_is_certified_where_the_index_hangs_on_its_order(given_arm: tuple) -> None:
    births, deaths, costs, rate = given_arm
    arm = birth_death_arm(*births, *deaths, *costs, unbounded=False)
    assert_bounds_hold(arm, rate)


@pytest.mark.parametrize("scale", [1.0, 1e-309, 1e-320])
def test_bounds_hold_for_rates_over_sixty_decades_and_tiny_costs(scale: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        n = int(rng.integers(1, 5))
        births, deaths = 10.0 ** rng.uniform(-30, 30, (2, 2, n))
        births[:, -1], deaths[:, 0] = 0.0, 0.0
        costs = scale * np.cumsum(rng.random(n)) if rng.random() < 0.5 else rng.random((2, n))
        costs = np.broadcast_to(costs, (2, n))
        arm = birth_death_arm(*births, *deaths, *costs, unbounded=False)
        assert_bounds_hold(arm, float(rng.choice([1e-12, 1e-3, 1.0])))


def assert_bounds_hold(arm: BirthDeathArm, rate: float) -> None:
    found = birth_death_index(arm, rate)
    if found is None:
        return
    path = exact(arm, Fraction(rate))
    assert path.verdict == found.verdict
    for i in range(arm.n):
        assert within(float(found.index[i]), float(found.error[i]), *path.index_range(i)), i
