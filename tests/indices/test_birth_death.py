"""Birth-death arms: exact rationals, the routing model's index, and the general definition."""

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
from mdpcloud.indices.birth_death import birth_death_index
from mdpcloud.indices.birth_death_arm import BirthDeathArm, birth_death_arm
from mdpcloud.indices.result import ArmIndex
from tests.indices.exact_index import ExactPath, bisection_index, exact_path, optimal_differences

SEEDS = st.integers(0, 2**32 - 1)
RATES = st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(2)])


def fractions(array: np.ndarray) -> Any:
    return [fractions(a) if a.ndim else fraction(a) for a in array]


def fraction(number: Any) -> Fraction:
    return number if isinstance(number, Fraction) else Fraction(float(number))


def exact(arm: BirthDeathArm, alpha: Fraction) -> ExactPath:
    """All optimal policies, from the general definition."""
    moves = [fractions(q.toarray()) for q in arm.general().moves]
    return exact_path(moves, fractions(arm.costs), fractions(arm.work), alpha, discrete=False)


def built(rates: np.ndarray, costs: np.ndarray, work: np.ndarray) -> BirthDeathArm:
    """The arm of rates (2, 2, n), births and deaths, passive and active."""
    rates[0, :, -1] = rates[1, :, 0] = 0.0
    return birth_death_arm(*rates[0], *rates[1], *costs, work0=work[0], work1=work[1])


def small_arm(seed: int, n: int) -> BirthDeathArm:
    """Small whole numbers, so that ties, zeros and traps are common."""
    rng = np.random.default_rng(seed)
    rates = rng.integers(1, 9, (2, 2, n)) / 2.0 * (rng.random((2, 2, n)) >= rng.choice([0, 0.2]))
    kind = rng.integers(6)
    if kind == 0:  # jobs are refused
        rates[0, 1], rates[1, 1] = 0.0, rates[1, 0]
    elif kind == 1:  # passive arms rest
        rates[:, 0] = 0.0
    elif kind == 2:  # active arms are faster
        rates[:, 1] = 2.0 * rates[:, 0]
    elif kind == 3:  # passive arms get worse
        rates[1, 0] = 0.0
    costs = rng.integers(-4, 5, (2, n)) / 2.0
    if rng.random() < 0.7:
        costs = np.cumsum(np.abs(costs), axis=1)
        costs[1] = costs[0]
    work = np.stack([np.zeros(n), np.ones(n)])
    if rng.random() < 0.4:
        work = rng.integers(-1, 4, (2, n)) * 1.0
    elif rng.random() < 0.3:
        work[0, rng.choice([0, -1])] = rng.choice([-1.0, 1.0])
    return built(rates, costs, work)


def within(value: float, error: float, lower: Any, upper: Any) -> bool:
    """Whether lower - error <= value <= upper + error, exactly."""
    if np.isinf(value):
        return bool(value == (lower if value > 0 else upper))
    return bool(lower - Fraction(error) <= Fraction(value) <= upper + Fraction(error))


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


# --- error bounds ---------------------------------------------------------------------------------


def shot_values(
    arm: BirthDeathArm, active: np.ndarray, alpha: Fraction, k: int, of: np.ndarray
) -> tuple[Fraction, Fraction]:
    """eta_{k-1} and eta_k of a policy, whose cost is `of`, by shooting from both ends.

    With G = alpha v (or the gain) unknown at an end, G_i = of_i + b_i eta_i - d_i eta_{i-1} gives
    all others as constant + factor * G; both sides meet in state k.
    """
    births, deaths, paid = (
        [fraction(values[int(a), i]) for i, a in enumerate(active)]
        for values in (arm.births, arm.deaths, of)
    )
    zero, one = (Fraction(0), Fraction(0)), (Fraction(0), Fraction(1))

    def shoot(states: Any, onward: Any, back: Any, sign: int) -> Any:
        g, eta = one, zero
        for i in states:
            own = (paid[i], Fraction(0))
            eta = tuple(
                (g[t] - own[t] + back[i] * sign * eta[t]) / (sign * onward[i]) for t in (0, 1)
            )
            g = tuple(g[t] + sign * alpha * eta[t] for t in (0, 1))
        return g, eta

    low, before = shoot(range(k), births, deaths, 1)
    high, after = shoot(range(arm.n - 1, k, -1), deaths, births, -1)
    # low = high and low = paid + b after - d before, in the factors x and y
    rows = [
        [low[1], -high[1], high[0] - low[0]],
        [
            low[1] + deaths[k] * before[1],
            -births[k] * after[1],
            paid[k] + births[k] * after[0] - low[0] - deaths[k] * before[0],
        ],
    ]
    det = rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    x = (rows[0][2] * rows[1][1] - rows[0][1] * rows[1][2]) / det
    y = (rows[0][0] * rows[1][2] - rows[0][2] * rows[1][0]) / det
    return before[0] + before[1] * x, after[0] + after[1] * y


def saved(arm: BirthDeathArm, alpha: Fraction, k: int, low: bool, of: np.ndarray) -> Fraction:
    """What activity saves in state k if the states below (above) are active."""
    states = np.arange(arm.n)
    return saved_by(arm, states < k if low else states > k, alpha, k, of)


def saved_by(
    arm: BirthDeathArm, active: np.ndarray, alpha: Fraction, k: int, of: np.ndarray
) -> Fraction:
    """What activity saves in state k under a policy."""
    before, after = shot_values(arm, active, alpha, k, of)
    gaps = [fraction(v[0, k]) - fraction(v[1, k]) for v in (of, arm.births, arm.deaths)]
    return gaps[0] + gaps[1] * after - gaps[2] * before


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
    from mdpcloud.indices import birth_death
    from mdpcloud.indices.birth_death_kernels import threshold_indices

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
    from mdpcloud.indices import birth_death
    from mdpcloud.indices.birth_death_kernels import work_is_marginal

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
    from mdpcloud.indices import birth_death

    line = birth_death._line(arm, 0.0, False, 0.0)
    assert line is not None
    blocks = birth_death._far_blocks(line, 0)
    assert np.isfinite(blocks[1:]).all()
    rates = np.ldexp(blocks[:, 0], blocks[:, 1].astype(int))
    assert (blocks[:, 0] > 0.0).all()
    assert rates[20] == 0.0
    assert rates[-1] > 0.0


# --- closed forms and other methods ---------------------------------------------------------------


def refusing(node: Node, lam: float, room: int) -> BirthDeathArm:
    """Activity refuses jobs; work is the rate of refused jobs."""
    rates, costs = node.departures, node.costs
    return birth_death_arm(lam, 0.0, rates, rates, costs, costs, work1=lam, room=room)


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
