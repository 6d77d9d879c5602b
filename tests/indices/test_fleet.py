"""Small fleets: relaxation <= optimum <= index policy, and cases where they are equal."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.indices.fleets.fleet import Fleet, fleet
from mdpcloud.indices.fleets.relax import relax
from mdpcloud.indices.restless.arm import Arm, arm, rate_arm
from mdpcloud.indices.restless.gittins import gittins, gittins_rates
from tests.common.exact import solve_exactly
from tests.indices.arms import TURNING, TestArm, arms, make_arm

STEPS = ("dense", "peaked", "sparse", "coarse", "alike", "absorbing", "restful")
RATES = ("decades", "ladder")
SLACK = 1e-12  # relative: joint probabilities are rounded products


def in_continuous_time(one: TestArm) -> TestArm:
    return replace(one, moves=one.rates, discrete=False)


def groups(discount: Fraction) -> st.SearchStrategy[list[TestArm]]:
    """Two or three arms with at most eighteen joint states, all in one kind of time."""
    steps = st.lists(arms(STEPS, 3, [discount]), min_size=2, max_size=3)
    rates = st.lists(arms(RATES, 3, [discount]), min_size=2, max_size=3)
    either = steps | rates | steps.map(lambda few: [in_continuous_time(one) for one in few])
    return either.filter(
        lambda few: (
            len({one.alpha for one in few}) == 1
            and math.prod(one.n for one in few) <= 18
            and all(one.discrete or one.n > 1 for one in few)
        )
    )


def size_of(few: list[TestArm]) -> float:
    """Scale of the fleet's cost."""
    return sum(float(np.abs(one.costs).max()) for one in few) / float(few[0].alpha or 1)


def some_indices(few: list[TestArm], seed: int) -> list[np.ndarray]:
    """Any priorities: an index policy is a policy whatever they are."""
    rng = np.random.default_rng(seed)
    return [np.round(rng.standard_normal(one.n), 1) for one in few]


def reached(solve: Any, *arguments: Any) -> Any:
    """What a solver finds, or how far it got where rates are too many decades apart.

    The bounds hold in any case.
    """
    try:
        return solve(*arguments)
    except mc.SolveError as error:
        return error.partial


@settings(max_examples=20)
@given(groups(Fraction(0)), st.integers(0, 3), st.integers(0, 99), st.booleans())
def test_average_cost_of_relaxation_optimum_and_policy_are_in_order(
    few: list[TestArm], budget: int, seed: int, exactly: bool
) -> None:
    assume(budget <= len(few))
    built = [one.built() for one in few]
    try:
        relaxed = relax(built, budget, exactly=exactly)
    except mc.MultichainError:
        assume(False)
    joint = fleet(built, budget, exactly=exactly)
    optimum = reached(joint.optimum)
    policy = reached(joint.policy_cost, some_indices(few, seed))
    slack = SLACK * (size_of(few) + abs(relaxed.multiplier) * budget)
    assert relaxed.bound <= np.min(optimum.bounds[1]) + slack
    assert (np.asarray(optimum.bounds[0]) <= np.asarray(policy.bounds[1]) + slack).all()


@settings(max_examples=20)
@given(groups(Fraction(1, 8)), st.integers(0, 3), st.integers(0, 99), st.booleans())
def test_discounted_cost_of_relaxation_optimum_and_policy_are_in_order(
    few: list[TestArm], budget: int, seed: int, exactly: bool
) -> None:
    assume(budget <= len(few))
    built, criterion = [one.built() for one in few], few[0].criterion
    joint = fleet(built, budget, exactly=exactly)
    starts = [seed % one.n for one in few]
    relaxed = relax(built, budget, criterion=criterion, exactly=exactly, starts=starts)
    optimum = reached(joint.optimum, criterion)
    policy = reached(joint.policy_cost, some_indices(few, seed), criterion)
    here = int(np.ravel_multi_index(starts, joint.shape))
    slack = SLACK * (size_of(few) + abs(relaxed.multiplier) * budget / float(few[0].alpha))
    assert relaxed.bound <= optimum.bounds[1][here] + slack
    assert (optimum.bounds[0] <= policy.bounds[1] + slack).all()


@pytest.mark.parametrize("seed", TURNING)
def test_arms_that_are_not_indexable_are_bounded_all_the_same(seed: int) -> None:
    one = make_arm("peaked", seed, 3)
    for each in (one, in_continuous_time(one)):
        built = [(each.built(), 3)]
        relaxed, joint = relax(built, 1), fleet(built, 1)
        optimum = joint.optimum()
        policy = joint.policy_cost([[0.0, 1.0, 2.0]])
        assert relaxed.value - 1e-9 <= optimum.gain <= policy.gain + 1e-9


# --- independent answers --------------------------------------------------------------------------


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_optimum_is_the_best_of_all_policies_in_fractions(
    seed: int, discrete: bool, exactly: bool
) -> None:
    pair = [make_arm("dense", seed, 2), make_arm("coarse", seed, 2)]
    few = pair if discrete else [in_continuous_time(one) for one in pair]
    joint = fleet([one.built() for one in few], 1, exactly=exactly)
    gains = {choice: exact_gain(few, choice) for choice in choices(exactly)}
    known = [gain for gain in gains.values() if gain is not None]
    lower, upper = joint.optimum(tolerance=1e-10).bounds
    assert lower - 1e-14 <= float(min(known)) <= upper + 1e-14
    indices = some_indices(few, seed)
    first = tuple(by_index(indices, x, exactly) for x in itertools.product(range(2), repeat=2))
    exact = gains[first]
    if exact is not None:
        lower, upper = joint.policy_cost(indices).bounds
        assert np.min(lower) - 1e-14 <= float(exact) <= np.max(upper) + 1e-14


def choices(exactly: bool) -> Any:
    """Every deterministic policy of two arms with two states: a set of active arms per state."""
    sets = [(1, 0), (0, 1)] if exactly else [(0, 0), (1, 0), (0, 1)]
    return itertools.product(sets, repeat=4)


def by_index(indices: list[np.ndarray], x: tuple[int, ...], exactly: bool) -> tuple[int, int]:
    first, second = indices[0][x[0]], indices[1][x[1]]
    if not exactly and max(first, second) < 0:
        return 0, 0
    return (1, 0) if first >= second else (0, 1)


def exact_gain(few: list[TestArm], choice: tuple[tuple[int, int], ...]) -> Fraction | None:
    """Average cost by exact elimination; None where the chain has several classes."""
    states = list(itertools.product(range(2), repeat=2))
    rows, cost = [], []
    for x, active in zip(states, choice, strict=True):
        parts = [
            [Fraction(float(r)) for r in one.moves[a, i]]
            for one, a, i in zip(few, active, x, strict=True)
        ]
        cost.append(
            sum(Fraction(float(one.costs[a, i])) for one, a, i in zip(few, active, x, strict=True))
        )
        if few[0].discrete:
            rows.append([parts[0][y[0]] * parts[1][y[1]] - (x == y) for y in states])
        else:
            rows.append(
                [parts[0][y[0]] * (x[1] == y[1]) + parts[1][y[1]] * (x[0] == y[0]) for y in states]
            )
    system = [[-entry for entry in row[:-1]] + [Fraction(1)] for row in rows]
    try:
        return solve_exactly(system, cost)[-1]  # type: ignore[arg-type]
    except StopIteration:
        return None


@pytest.mark.parametrize(("machines", "repairmen"), [(2, 1), (4, 1), (5, 2), (4, 4)])
def test_repairing_broken_machines_first_is_the_machine_repair_model(
    machines: int, repairmen: int
) -> None:
    """Palm's model: the number of broken machines is a birth-death process."""
    wear, repair = 3.0, 5.0
    one = rate_arm([[-wear, wear], [0, 0]], [[-wear, wear], [repair, -repair]], [0, 1], [0, 1])
    joint = fleet([(one, machines)], repairmen)
    law = [1.0]
    for broken in range(machines):
        law.append(law[-1] * (machines - broken) * wear / (repair * min(broken + 1, repairmen)))
    mean = sum(k * p for k, p in enumerate(law)) / sum(law)
    assert joint.policy_cost([[0.0, 1.0]]).gain == pytest.approx(mean, rel=1e-9)
    assert joint.optimum().gain == pytest.approx(mean, rel=1e-8)
    assert relax([(one, machines)], repairmen).bound <= mean * (1 + 1e-12)


@settings(max_examples=8)
@given(st.lists(arms(("restful",), 3), min_size=2, max_size=3), st.booleans())
def test_gittins_policy_is_optimal_for_arms_that_rest(few: list[TestArm], discrete: bool) -> None:
    """Gittins (1979): one arm is played at a time, the others stay where they are."""
    few = few if discrete else [in_continuous_time(one) for one in few]
    criterion = few[0].criterion
    find = gittins if discrete else gittins_rates
    indices = [find(one.moves[1], costs=one.costs[1], criterion=criterion) for one in few]
    joint = fleet([one.built() for one in few], 1)
    optimum, policy = (
        joint.optimum(criterion, tolerance=1e-11),
        joint.policy_cost(indices, criterion),
    )
    assert (policy.bounds[0] <= optimum.bounds[1] + 1e-9 * size_of(few)).all()
    assert policy.values == pytest.approx(optimum.values, abs=1e-9 * size_of(few))


@pytest.mark.parametrize("active", [0, 1])
def test_a_fleet_of_one_arm_does_what_it_must(active: int) -> None:
    one = make_arm("dense", 4, 4)
    joint = fleet([one.built()], active)
    alone = mc.solve(mc.tabular([one.moves[active]], costs=one.costs[active]))
    assert joint.optimum().gain == pytest.approx(alone.gain, rel=1e-8)
    assert joint.policy_cost([np.arange(4)]).gain == pytest.approx(alone.gain, rel=1e-8)
    assert relax([one.built()], active).value == pytest.approx(alone.gain, rel=1e-9)


def test_one_arm_that_may_be_active_is_solved_by_its_relaxation() -> None:
    one = make_arm("dense", 4, 4)
    joint = fleet([one.built()], 1, exactly=False)
    free = mc.solve(mc.tabular(one.moves, costs=one.costs.T)).gain
    assert joint.optimum().gain == pytest.approx(free, rel=1e-8)


@pytest.mark.parametrize("discrete", [True, False])
def test_the_gap_per_arm_shrinks_as_identical_arms_are_added(discrete: bool) -> None:
    """Weber and Weiss (1990), Journal of Applied Probability 27, 637-648."""
    one = make_arm("dense", 11, 2)
    built = (one if discrete else in_continuous_time(one)).built()
    index = relaxed_index(built)
    gaps = []
    for number in (2, 4, 6):
        bound = relax([(built, number)], number // 2).bound
        cost = fleet([(built, number)], number // 2).policy_cost([index]).gain
        assert cost >= bound - 1e-12
        gaps.append((cost - bound) / number)
    assert gaps[0] > gaps[1] > gaps[2]


def relaxed_index(built: Arm) -> np.ndarray:
    """Prices at which the states change."""
    from mdpcloud.indices.path.path import price_path

    path = price_path(built, 0.0)
    index = np.empty(built.n)
    index[path.states] = path.prices
    return index


# --- policies and the joint model -----------------------------------------------------------------


def mixed_fleet(discrete: bool = True) -> tuple[Fleet, list[np.ndarray]]:
    few = [make_arm("dense", k, n) for k, n in enumerate((2, 3, 2))]
    if not discrete:
        few = [in_continuous_time(one) for one in few]
    return fleet([one.built() for one in few], 2), some_indices(few, 5)


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("ties", ["first", "last", [1, 2, 0]])
def test_the_policy_takes_the_largest_indices(discrete: bool, ties: Any) -> None:
    joint, indices = mixed_fleet(discrete)
    order = (
        {"first": [0, 1, 2], "last": [2, 1, 0]}.get(ties, ties) if isinstance(ties, str) else ties
    )
    table = joint.policy(indices, ties=ties).table().ravel()
    for number, x in enumerate(itertools.product(*map(range, joint.shape))):
        best = sorted(order, key=lambda k: (-indices[k][x[k]], order.index(k)))[:2]
        assert np.flatnonzero(joint.sets[table[number]]).tolist() == sorted(best)


def test_without_indices_the_policy_is_whittles() -> None:
    few = [make_arm("dense", k, n) for k, n in enumerate((2, 3, 2))]
    built = [one.built() for one in few]
    joint = fleet([(built[0], 2), built[1], built[2]], 2)
    indices = [mc.indices.whittle(one) for one in built]
    for way in (indices, [indices[0], *indices]):
        assert joint.policy_cost().gain == joint.policy_cost(way).gain
    turning = fleet([(make_arm("peaked", TURNING[0], 3).built(), 2)], 1)
    with pytest.raises(mc.indices.NoIndexError):
        turning.policy_cost()


def test_permuted_arms_cost_the_same() -> None:
    few = [make_arm("dense", k, n) for k, n in enumerate((2, 3, 2))]
    indices = some_indices(few, 6)
    costs = [
        fleet([few[k].built() for k in order], 1).policy_cost(
            [indices[k] for k in order], ties=[order.index(k) for k in range(3)]
        )
        for order in ([0, 1, 2], [2, 0, 1])
    ]
    assert costs[0].gain == pytest.approx(costs[1].gain, rel=1e-12)


def test_states_that_are_not_free_are_respected() -> None:
    """Arm 0 must rest in state 1: then arm 1 has the budget."""
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(2), (2, 2))
    costs = np.array([[1.0, 0.0], [2.0, np.inf]])
    resting = mc.tabular(P, costs=costs)
    free = arm(P[0], P[1], [0.0, 5.0], [1.0, 0.0])
    joint = fleet([resting, free], 1)
    index = [[9.0, -np.inf], [0.0, 1.0]]
    active = joint.sets[joint.policy(index).table().ravel()]
    assert active[:, 0].tolist() == [True, True, False, False]
    assert relax([resting, free], 1).bound <= joint.optimum().gain + 1e-12
    with pytest.raises(mc.InputError, match="some arms must be active"):
        fleet([resting, resting], 1)
    both = fleet([resting, resting], 1, exactly=False)
    bound = relax([resting, resting], 1, exactly=False).bound
    assert bound <= both.optimum().gain + 1e-12


def test_rewards_are_negative_costs() -> None:
    P = [[0.5, 0.5], [0.5, 0.5]]
    earning = arm(P, P, rewards1=[1.0, 2.0])
    joint = fleet([(earning, 2)], 1)
    gain = joint.optimum().gain
    assert gain == pytest.approx(-(0.25 * 1 + 0.75 * 2))
    assert joint.policy_cost([[1.0, 2.0]]).gain == pytest.approx(gain)


def plain(n: int = 2) -> Arm:
    return arm(np.full((n, n), 1 / n), np.eye(n))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fleet([(plain(11), 6)], 3), "joint states"),
        (lambda: fleet([(plain(2), 18)], 9), "sets of 9"),
        (lambda: fleet([(plain(40), 3)], 1), "entries"),
        (lambda: fleet([plain()], 2), "there are 1 arms"),
        (lambda: fleet([plain()], 0.5), "whole number"),
        (lambda: fleet([], 0), "no arms"),
        (lambda: fleet([arm([[1]], [[1]], work1=2.0)], 1), "does work 0 passive and 2 active"),
        (lambda: fleet([plain(), plain()], 1).policy([[1, 2]] * 3), "2 of them distinct"),
        (lambda: fleet([plain(), plain()], 1).policy([[1, 2], [1, 2, 3]]), "shape"),
        (lambda: fleet([plain(), plain()], 1).policy([[1, 2], [1, np.nan]]), "nan"),
        (lambda: fleet([plain(), plain()], 1).policy([[1, 2]] * 2, ties="best"), "ties"),
        (lambda: fleet([plain(), plain()], 1).policy([[1, 2]] * 2, ties=[0, 0]), "0 to 1"),
    ],
)
def test_wrong_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        call()
