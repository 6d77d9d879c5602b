"""The relaxation's bound against exact duals, linear programming and closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import mdpcloud as mc
from mdpcloud.indices.fleets.relax import Relaxation, relax
from mdpcloud.indices.restless.arm import Arm, arm, rate_arm
from tests.indices.arms import TURNING, TestArm, arms, make_arm, published, with_diagonal

STEPS = ("dense", "peaked", "sparse", "coarse", "alike", "periodic", "laborious")
RATES = ("decades", "ladder")
AVERAGE = (Fraction(0),)
DISCOUNTED = (Fraction(1, 8),)


def fleets(discounts: Any, kinds: Any = (STEPS, RATES)) -> Any:
    """Two or three arms of one kind of time and one discount rate."""
    return st.sampled_from(kinds).flatmap(
        lambda names: st.lists(
            arms(names, 3, discounts).filter(lambda one: one.discrete or one.n > 1),
            min_size=2,
            max_size=3,
        )
    )


def exact_dual(fleet: list[TestArm], budget: Fraction, exactly: bool) -> Fraction | None:
    """max over p of L(p) in fractions, from the enumeration of all policies; a uniform start."""
    paths = [one.exact() for one in fleet]
    assume(all(path.solved for path in paths))
    duration = Fraction(1) if fleet[0].alpha == 0 else 1 / fleet[0].alpha
    ends = sorted({end for path in paths for piece in path.pieces for end in (piece.upper,)})
    corners = [end for end in ends if not math.isinf(end)] or [Fraction(0)]
    if not exactly:
        corners = [*(p for p in corners if p > 0), Fraction(0)]

    def dual(price: Fraction) -> Fraction:
        optima = [path.at(price).optimum for path in paths]
        means = [sum((v.at(price) for v in o), Fraction(0)) / len(o) for o in optima if o]
        return sum(means, Fraction(0)) - price * budget * duration

    best = max(dual(price) for price in corners)
    outer = [max(corners) + 1] if not exactly else [min(corners) - 1, max(corners) + 1]
    if any(dual(price) > best for price in outer):
        return None  # unbounded: the arms cannot do that work
    scale = 1 + fleet[0].alpha if fleet[0].discrete else 1
    return best * scale


def starts(fleet: list[TestArm]) -> Any:
    return None if fleet[0].alpha == 0 else [np.full(one.n, 1.0 / one.n) for one in fleet]


@settings(max_examples=25)
@given(fleets(AVERAGE) | fleets(DISCOUNTED), st.integers(0, 24), st.booleans())
def test_the_bound_is_below_the_exact_dual_and_near_it(
    fleet: list[TestArm], eighths: int, exactly: bool
) -> None:
    """Starts are uniform; thirds are rounded, by less than the tolerance."""
    budget = Fraction(eighths, 8)
    exact = exact_dual(fleet, budget, exactly)
    built = [one.built() for one in fleet]
    arguments: Any = {"criterion": fleet[0].criterion, "exactly": exactly, "starts": starts(fleet)}
    if exact is None:
        with pytest.raises(mc.InputError, match="arms do at"):
            relax(built, float(budget), **arguments)
        return
    found = relax(built, float(budget), **arguments)
    size = sum(float(np.abs(one.costs).max()) for one in fleet) / float(fleet[0].alpha or 1)
    size += abs(found.multiplier) * float(budget + 3) / float(fleet[0].alpha or 1)
    assert found.bound <= float(exact) + 1e-15 * size
    assert found.bound >= float(exact) - 1e-9 * size
    assert abs(found.value - float(exact)) <= abs(found.gap) + 1e-10 * size


@settings(max_examples=12)
@given(fleets(AVERAGE, (STEPS,)), st.floats(0.05, 0.95))
def test_the_relaxation_is_the_linear_program_of_all_arms(
    fleet: list[TestArm], part: float
) -> None:
    assume(all(one.exact().unichain for one in fleet))
    least, most = (sum(extreme_work(one, sign) for one in fleet) for sign in (1, -1))
    budget = least + part * (most - least)
    found = relax([one.built() for one in fleet], budget)
    optimum = occupation_program(fleet, budget)
    assert found.value == pytest.approx(optimum, abs=1e-7)
    assert found.bound <= optimum + 1e-7


def extreme_work(one: TestArm, sign: int) -> float:
    """Least (sign 1) or largest (-1) average work of an arm."""
    if one.n == 1:
        return float(one.work[:, 0].min() if sign == 1 else one.work[:, 0].max())
    model = mc.tabular(one.moves, costs=sign * one.work.T)
    return sign * mc.solve(model).gain


def occupation_program(fleet: list[TestArm], budget: float) -> float:
    """Least cost of stationary frequencies of states and actions that do the work on average."""
    n = [one.n for one in fleet]
    total = 2 * sum(n)
    rows, right, first = [], [], 0
    work = np.zeros(total)
    cost = np.zeros(total)
    for one in fleet:
        own = slice(first, first + 2 * one.n)
        balance = np.zeros((one.n, total))
        balance[:, own] = np.hstack([one.rates[0].T, one.rates[1].T])
        norm = np.zeros(total)
        norm[own] = 1.0
        rows += [*balance, norm]
        right += [0.0] * one.n + [1.0]
        work[own], cost[own] = one.work.ravel(), one.costs.ravel()
        first += 2 * one.n
    solved = linprog(cost, A_eq=np.array([*rows, work]), b_eq=[*right, budget], bounds=(0, None))
    assert solved.status == 0, solved.message
    return float(solved.fun)


# --- the policy -----------------------------------------------------------------------------------


@settings(max_examples=20)
@given(fleets(AVERAGE), st.integers(1, 16), st.booleans())
def test_the_relaxed_policy_keeps_to_the_budget_and_attains_the_value(
    fleet: list[TestArm], eighths: int, exactly: bool
) -> None:
    budget = eighths / 8
    built = [one.built() for one in fleet]
    try:
        found = relax(built, budget, exactly=exactly)
    except (mc.InputError, mc.MultichainError):
        assume(False)
    assert found.counts @ found.work <= budget + 1e-9
    if exactly or found.multiplier > 0:
        assert found.counts @ found.work == pytest.approx(budget, abs=1e-9)
    cost, work = 0.0, np.zeros(len(fleet))
    for k, one in enumerate(fleet):
        for policy, share in ((found.more[k], found.share), (found.less[k], 1 - found.share)):
            c, w = averages(one, policy)
            cost += share * c
            work[k] += share * w
    size = sum(float(np.abs(one.costs).max()) for one in fleet)
    assert work == pytest.approx(found.work, abs=1e-8)
    assert cost == pytest.approx(found.value, abs=1e-8 * (size + abs(found.multiplier)))


def averages(one: TestArm, active: np.ndarray) -> tuple[float, float]:
    """Average cost and work of a policy, from its stationary law."""
    rows = np.where(active[:, None], one.rates[1], one.rates[0])
    system = np.vstack([rows.T, np.ones(one.n)])
    law = np.linalg.lstsq(system, np.append(np.zeros(one.n), 1.0), rcond=None)[0]
    pick = active.astype(int), np.arange(one.n)
    return float(law @ one.costs[pick]), float(law @ one.work[pick])


# --- special cases --------------------------------------------------------------------------------


def machine(wear: float = 3.0, repair: float = 5.0) -> Arm:
    return rate_arm([[-wear, wear], [0, 0]], [[-wear, wear], [repair, -repair]], [0, 1], [0, 1])


def test_repairmen_in_short_supply_are_always_busy() -> None:
    """Machines break at rate w and are repaired at rate r: (N - broken) w = r budget."""
    relaxed = relax([(machine(), 10)], 2)
    assert relaxed.value == pytest.approx(10 - 2 * 5 / 3)
    assert relaxed.bound == pytest.approx(relaxed.value, abs=1e-12)
    assert relaxed.multiplier == pytest.approx(5 / 3)
    assert relaxed.work == pytest.approx([0.2])
    assert relaxed.bound <= relaxed.value


def test_at_most_the_budget_is_never_dearer_than_exactly_that() -> None:
    wasteful = arm([[1.0]], [[1.0]], [0.0], [1.0])
    exactly, at_most = (relax([wasteful] * 3, 2, exactly=e) for e in (True, False))
    assert exactly.value == pytest.approx(2.0)
    assert (at_most.value, at_most.multiplier) == (0.0, 0.0)
    assert at_most.work == pytest.approx([0.0] * 3)


@pytest.mark.parametrize("seed", TURNING[:4])
def test_counts_repeated_arms_and_mappings_mean_the_same(seed: int) -> None:
    one, other = make_arm("peaked", seed, 3).built(), make_arm("dense", seed, 3).built()
    ways: list[Any] = [[one, other, one], [(one, 2), other], {one: 2, other: 1}]
    found = [relax(way, 1.5) for way in ways]
    for each in found[1:]:
        assert each.value == pytest.approx(found[0].value, rel=1e-14)
        assert each.counts.tolist() == [2, 1]
    copied = relax([(make_arm("peaked", seed, 3).built(), 2), (other, 1)], 1.5)
    assert copied.value == pytest.approx(found[0].value, rel=1e-12)


def test_the_arm_that_is_not_indexable_has_a_relaxation() -> None:
    one = published()
    found = relax([(one.built(), 4)], 2, criterion=one.criterion, starts=[0])
    assert abs(found.gap) <= 1e-9 * abs(found.value)
    assert found.counts @ found.work == pytest.approx(2)


def test_models_are_arms() -> None:
    P, costs = make_arm("dense", 1, 3).moves, make_arm("dense", 1, 3).costs
    model = mc.tabular(P, costs=costs.T)
    assert relax([(model, 2)], 1).value == pytest.approx(relax([(arm(*P, *costs), 2)], 1).value)


def test_a_bound_on_rewards_is_a_negative_cost() -> None:
    earning = arm([[1.0]], [[1.0]], rewards1=[2.0])
    assert relax([(earning, 3)], 2).bound == pytest.approx(-4.0)


def test_starts_are_states_or_probabilities() -> None:
    one = make_arm("dense", 2, 3)
    criterion = mc.Discounted(factor=0.9)
    by_state = [
        relax([one.built()], 0.5, criterion=criterion, starts=[law]).bound
        for law in (1, np.eye(3)[1])
    ]
    assert by_state[0] == by_state[1]


def test_the_order_of_arms_does_not_matter_and_shares_of_sparse_arms_agree() -> None:
    pair = [make_arm("dense", k, 4) for k in range(2)]
    there = relax([one.built() for one in pair], 1)
    back = relax([one.built(sparse=True) for one in reversed(pair)], 1)
    assert back.value == pytest.approx(there.value, rel=1e-12)
    assert back.work[::-1] == pytest.approx(there.work, rel=1e-9)


def frozen() -> Relaxation:
    return relax([arm(np.eye(2), np.eye(2), rewards1=[1.0, 2.0])], 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relax([], 1), "no arms"),
        (lambda: relax(3, 1), "sequence of arms"),
        (lambda: relax([machine()], -1), "budget is -1"),
        (lambda: relax([machine()], "x"), "budget"),
        (lambda: relax([machine()], 2), "at most 1"),
        (lambda: relax([(machine(), 0)], 0), "count of arm 0"),
        (lambda: relax([7], 0), "arm 0 is 7"),
        (lambda: relax([machine(), arm([[1]], [[1]])], 1), "discrete"),
        (lambda: relax([machine()], 1, criterion=mc.Discounted(rate=1.0)), "give starts"),
        (lambda: relax([machine()], 1, starts=[0]), "starts are for discounted"),
        (lambda: relax([machine()], 1, criterion=mc.FiniteHorizon(1)), "criterion"),
        (
            lambda: relax([machine()], 1, criterion=mc.Discounted(rate=1.0), starts=[5]),
            "starts in state 5",
        ),
        (
            lambda: relax([machine()], 1, criterion=mc.Discounted(rate=1.0), starts=[[1, 1]]),
            "sum to 1",
        ),
        (
            lambda: relax([machine()], 1, criterion=mc.Discounted(rate=1.0), starts=[[1, 0, 0]]),
            "shape",
        ),
        (
            lambda: relax([machine()], 1, criterion=mc.Discounted(rate=1.0), starts=[0, 0]),
            "there are 1",
        ),
    ],
)
def test_wrong_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        call()


def test_an_arm_whose_average_depends_on_its_start_is_refused() -> None:
    with pytest.raises(mc.MultichainError, match="arm 0"):
        frozen()


def test_work_that_must_be_done_is_not_free() -> None:
    busy = arm([[1.0]], [[1.0]], work0=1.0, work1=2.0)
    with pytest.raises(mc.InputError, match="at least 2"):
        relax([busy, busy], 1, exactly=False)


@pytest.mark.parametrize("budget", [0.0, 2.0])
def test_no_budget_is_refused_because_of_rounding(budget: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 5))
        rates = 10.0 ** rng.uniform(-30, 30, (2, n, n))
        one = rate_arm(*with_diagonal(rates), *rng.standard_normal((2, n)))
        try:
            relaxed = relax([(one, 2)], budget, criterion=mc.Discounted(rate=1.0), starts=[0])
        except mc.SolveError:
            continue
        assert relaxed.bound <= 2 * one.costs[int(budget > 0)].max()
