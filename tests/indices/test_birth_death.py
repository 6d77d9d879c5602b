"""Index of birth-death arms: exact rationals, the routing index and the general method."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.indices import Node, restless_bandit
from mdpcloud.indices.birth_death.birth_death import birth_death_index
from mdpcloud.indices.path.path import price_path
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm, birth_death_arm
from mdpcloud.indices.restless.result import ArmIndex
from tests.indices.birth_death_arms import (
    built,
    exact,
    refusing,
    small_arm,
    within,
)
from tests.indices.exact_index import ExactPath, bisection_index, optimal_differences

SEEDS = st.integers(0, 2**32 - 1)
RATES = st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(2)])


def check(found: ArmIndex, truth: ExactPath) -> None:
    assert truth.solved
    assert truth.verdict == "indexable"
    assert found.error is not None
    assert found.error_kind == "bound"
    for i in range(truth.n):
        assert within(found.index[i], found.error[i], *truth.index_range(i))


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 4), alpha=RATES)
def test_every_verdict_holds_in_exact_arithmetic(seed: int, n: int, alpha: Fraction) -> None:
    arm = small_arm(seed, n)
    found = birth_death_index(arm, float(alpha))
    if found is not None:
        check(found, exact(arm, alpha))


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 5), alpha=RATES)
def test_every_verdict_on_many_arms_holds_in_exact_arithmetic(
    seed: int, n: int, alpha: Fraction
) -> None:
    arm = small_arm(seed, n)
    found = birth_death_index(arm, float(alpha))
    if found is not None:
        check(found, exact(arm, alpha))


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(1, 8)])
def test_most_indices_that_are_monotone_are_found(alpha: Fraction) -> None:
    certified = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rates = rng.integers(1, 9, (2, 2, 4)) / 2.0
        rates[0, 1] = rates[0, 0] / 2.0
        rates[1, 1] = rates[1, 0]
        costs = np.cumsum(np.cumsum(rng.integers(1, 5, 4))) * np.ones((2, 1))
        arm = built(rates, costs, np.stack([np.zeros(4), np.ones(4)]))
        truth = exact(arm, alpha)
        if not truth.solved or truth.verdict != "indexable":
            continue
        ends = [truth.index_range(i)[0] for i in range(4)]
        monotone = ends in (sorted(ends), sorted(ends, reverse=True))
        if monotone:
            assert birth_death_index(arm, float(alpha)) is not None
            certified += 1
    assert certified >= 5


# --- closed forms and other methods ---------------------------------------------------------------


@pytest.mark.parametrize(
    "node",
    [
        Node(5, 4.0, 0.3125, fee=2.0, holding_cost=0.5),
        Node(5, 4.0, 0.3125, "end_service", fee=2.0, holding_cost=0.5),
        Node(400, 1.0, 0.25),
        Node(1, 1.0, 2.0**-10),
    ],
)
@pytest.mark.parametrize("lam", [0.25, 20.0, 1000.0])
def test_a_node_that_refuses_jobs_at_a_price_has_the_routing_index(node: Node, lam: float) -> None:
    found = birth_death_index(refusing(node, lam, 1000), 0.0)
    assert found is not None
    wanted = restless_bandit(node, lam, 999)
    assert found.error is not None
    slack = found.error[:-1] + 1e-12 * wanted  # the routing index has rounding errors of its own
    assert (np.abs(found.index[:-1] - wanted) <= slack).all()
    assert found.index[-1] == np.inf


def test_a_million_states_have_an_index_with_all_its_digits() -> None:
    node, lam, room = Node(500_000, 1.0, 0.25, holding_cost=0.125), 600_000.0, 999_999
    found = birth_death_index(refusing(node, lam, room), 0.0)
    assert found is not None
    assert found.error is not None
    wanted = restless_bandit(node, lam, room)
    assert (np.diff(found.index) >= 0.0).all()
    assert np.isfinite(found.index[:-1]).all()
    assert found.error.max() <= 1e-11
    assert np.abs(found.index - wanted)[:-1].max() <= 1e-11


@pytest.mark.parametrize("alpha", [0.0, 0.05, 1.0])
def test_the_index_is_where_policy_iteration_changes_its_mind(alpha: float) -> None:
    rng = np.random.default_rng(7)
    n = 25
    for _ in range(4):
        rates = rng.uniform(0.5, 2.0, (2, 2, n))
        rates[0, 1], rates[1, 1] = 0.5 * rates[0, 0], rates[1, 0]
        costs = np.cumsum(np.cumsum(rng.random(n))) * np.ones((2, 1))
        arm = built(np.sort(rates, axis=-1), costs, np.stack([np.zeros(n), np.ones(n)]))
        arm = dataclasses.replace(arm, births=np.where(np.arange(n) < n - 1, arm.births, 0.0))
        found = birth_death_index(arm, alpha)
        if found is None:
            continue
        generators = [q.toarray() for q in arm.general().moves]
        differences = optimal_differences(generators, arm.costs, arm.work, alpha)
        wanted = bisection_index(differences, n)
        assert np.abs(found.index - wanted).max() <= 1e-10 * np.abs(wanted).max()


@pytest.mark.parametrize("criterion", [mc.AverageCost(), mc.Discounted(rate=0.125)])
def test_the_general_method_finds_the_same_index(criterion: Any) -> None:
    arm = refusing(Node(4, 1.0, 0.25, holding_cost=0.5), 6.0, 40)
    quick = birth_death_index(arm, criterion.rate_for(False))
    general = mc.indices.whittle(dataclasses.replace(arm.general(), enlarged=None), criterion)
    assert quick is not None
    assert quick.error is not None
    assert general.error is not None
    assert general.index[-1] == quick.index[-1] == np.inf
    apart = np.abs(quick.index[:-1] - general.index[:-1])
    assert (apart <= (quick.error + 10.0 * general.error)[:-1] + 1e-12).all()


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 30), alpha=st.sampled_from([0.0, 0.25]))
def test_the_index_does_not_depend_on_units_or_direction(seed: int, n: int, alpha: float) -> None:
    arm = small_arm(seed, n)
    found = birth_death_index(arm, alpha)
    faster = 2.0**200
    scaled = dataclasses.replace(
        arm, births=faster * arm.births, deaths=faster * arm.deaths, costs=4.0 * arm.costs
    )
    turned = BirthDeathArm(
        *(np.ascontiguousarray(values[:, ::-1]) for values in (arm.deaths, arm.births)),
        *(np.ascontiguousarray(values[:, ::-1]) for values in (arm.costs, arm.work)),
    )
    others = birth_death_index(scaled, faster * alpha), birth_death_index(turned, alpha)
    if found is None:
        assert others == (None, None)
        return
    assert others[0] is not None
    assert others[1] is not None
    np.testing.assert_array_equal(others[0].index, 4.0 * found.index)
    finite = np.isfinite(found.index)
    assert found.error is not None
    apart = np.abs(others[1].index[::-1][finite] - found.index[finite])
    assert (apart <= 2.0 * found.error[finite]).all()


def test_marginal_cost_over_marginal_work_is_the_index() -> None:
    found = birth_death_index(refusing(Node(3, 1.0, 0.5), 4.0, 30), 0.1)
    assert found is not None
    assert found.marginal_cost is not None
    assert found.marginal_work is not None
    assert (found.marginal_work[:-1] > 0.0).all()
    ratios = found.marginal_cost[:-1] / found.marginal_work[:-1]
    np.testing.assert_allclose(ratios, found.index[:-1], rtol=1e-14, atol=0.0)


@given(st.integers(1, 5), st.floats(0.5, 8.0), st.floats(0.1, 2.0), st.sampled_from([0.0, 0.3]))
def test_marginal_cost_and_work_are_those_of_the_general_method(
    servers: int, arrivals: float, patience: float, alpha: float
) -> None:
    arm = refusing(Node(servers, 1.0, patience), arrivals, 12)
    found, other = birth_death_index(arm, alpha), price_path(arm.general(), alpha)
    assert found is not None
    assert found.marginal_cost is not None
    assert found.marginal_work is not None
    apart = np.flatnonzero(np.diff(other.prices) > 1e-9)  # ties may change in any order
    own, states = np.concatenate([[0], apart + 1]), other.states
    own = own[np.append(np.diff(own) == 1, states.size - own[-1] == 1)]
    assert own.size
    for bound, path in (
        (found.marginal_cost, other.marginal_cost),
        (found.marginal_work, other.marginal_work),
    ):
        np.testing.assert_allclose(path[own], bound[states[own]], rtol=1e-9, atol=1e-12)


# --- no index by thresholds -----------------------------------------------------------------------


def test_traps_on_both_sides_give_no_verdict() -> None:
    none, inner = np.zeros(3), np.array([0.0, 1.0, 0.0])
    for arm in (
        birth_death_arm(none, none, none, none),
        birth_death_arm(inner, inner, inner, inner),
        birth_death_arm(inner, none, inner, inner),
    ):
        assert birth_death_index(arm, 0.0) is None
        assert birth_death_index(arm, 1.0) is not None


def test_an_index_that_rises_and_falls_is_left_to_the_general_method() -> None:
    jobs = np.arange(21.0)
    up = np.where(jobs < 20, 0.5, 0.0)
    arm = birth_death_arm(up, up, 0.6 * (jobs > 0), 1.0 * (jobs > 0), jobs, jobs)
    assert birth_death_index(arm, 0.0) is None


def test_numbers_too_far_apart_are_left_to_the_general_method() -> None:
    tiny = birth_death_arm([1e-200, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0])
    large = birth_death_arm(1.0, 0.0, 1.0, 1.0, 1e300, 1e300, room=3, unbounded=False)
    assert birth_death_index(tiny, 0.0) is None
    assert birth_death_index(large, 0.0) is None


def test_a_last_state_whose_index_is_out_of_order_is_priced_apart() -> None:
    """Where room ends both actions move alike, and that state's index is its own cost's."""
    for own, alpha in itertools.product((0.25, 0.5, 40.0), (Fraction(0), Fraction(1, 8))):
        up, down = np.array([2.0, 2.0, 2.0, 0.0]), np.array([0.0, 1.0, 2.0, 2.5])
        costs = np.array([0.0, 0.0, 1.0, 3.0])
        passive = costs + np.array([0.0, 0.0, 0.0, own])
        work0 = np.array([0.0, 0.0, 0.0, 1.0])
        arm = birth_death_arm(up, 0.0 * up, down, down, passive, costs, work0=work0, work1=2.0)
        found = birth_death_index(arm, float(alpha))
        assert found is not None
        assert found.index[-1] == own
        check(found, exact(arm, alpha))
