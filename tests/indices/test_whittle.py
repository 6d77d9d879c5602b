"""The index of any arm against exact rationals and bisection; verdicts, witnesses, refusals."""

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError, NoIndexError
from mdpcloud.indices.restless.arm import arm, rate_arm
from mdpcloud.indices.restless.birth_death_arm import birth_death_arm
from mdpcloud.indices.restless.result import Verdict
from mdpcloud.indices.restless.whittle import whittle
from tests.indices.arms import KINDS, TURNING, TestArm, arms, make_arm, published, standard_work
from tests.indices.exact_index import bisection_index, closed_classes_of

EASY = ("dense", "coarse", "alike", "periodic", "restful", "ladder", "laborious")
ILL_CONDITIONED = ("decades", "decomposable")
TURNING_KINDS = ("peaked", "absorbing", "decades", "laborious", "idle")
ROUNDING = F(1, 2**52)  # of the discount rate of a step
turning_arms = st.one_of(
    st.sampled_from(TURNING).map(lambda seed: make_arm("peaked", seed, 3)),
    arms(TURNING_KINDS, largest=4),
)


def solved(test_arm: TestArm, sparse: bool = False):
    return whittle(test_arm.built(sparse), test_arm.criterion)


def assert_verdict(found, test_arm, path):
    """The verdict is the exact one, and so is what comes with it.

    Where all prices have optimal policies with one recurrent class, the path may still meet another
    one. A degenerate arm has no margins that would prove that it turns back.
    """
    if found.verdict is Verdict.MULTICHAIN:
        rows = [test_arm.rates[int(on)][i] for i, on in enumerate(found.offender)]
        assert test_arm.alpha == 0
        assert len(closed_classes_of(rows)) > 1
    elif found.verdict is Verdict.UNDECIDED:
        assert path.is_degenerate or test_arm.kind.split()[0] in ILL_CONDITIONED, found.reason
    else:
        assert found.verdict == path.verdict, found.reason
    if found.is_indexable:
        assert_within_error(found, test_arm, path)


def assert_within_error(found, test_arm, path):
    """No error is under-reported, and infinite indices are known to be so."""
    for i in range(test_arm.n):
        lower, upper = path.index_range(i)
        value = float(found.index[i])
        if not math.isfinite(value):
            assert value in (lower, upper), (i, value, lower, upper)
            continue
        assert math.isfinite(found.error[i])
        error = F(float(found.error[i]))
        if test_arm.discrete and test_arm.alpha:
            error += 4 * ROUNDING * (1 + abs(F(value)))
        off = max(beyond(lower, F(value)), beyond(F(value), upper))
        assert off <= error, (i, value, float(off), float(error))


def assert_near(one, other, error):
    """Equal up to an error where finite, and infinite in the same states."""
    finite = np.isfinite(one)
    assert np.array_equal(one[~finite], other[~finite])
    assert (np.abs(one[finite] - other[finite]) <= error[finite]).all()


def beyond(lower, value):
    """By how much a value is below a number, which may be infinite."""
    return 0 if math.isinf(lower) or math.isinf(value) else lower - value


def assert_is_witness(witness, test_arm, path):
    """Preferences at both prices, in exact arithmetic."""
    assert witness.lower < witness.upper
    prices = [F(float(p)) for p in (witness.lower, witness.upper)]
    passive, active = [path.at(p).differences[witness.state].at(p) for p in prices]
    assert passive < 0 < active
    assert witness.margins == pytest.approx((float(-passive), float(active)), rel=1e-5)
    for p, policy in zip(prices, witness.policies, strict=True):
        signs = [d.at(p) for d in path.at(p).differences]
        assert all(d >= 0 if on else d <= 0 for d, on in zip(signs, policy, strict=True))


@given(arms(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_verdict_and_index_are_those_of_exact_arithmetic(test_arm, sparse):
    assert_verdict(solved(test_arm, sparse), test_arm, test_arm.exact())


@given(arms(EASY, largest=5))
@settings(max_examples=60, deadline=None)
def test_errors_of_well_conditioned_arms_are_small(test_arm):
    found = solved(test_arm)
    if found.is_indexable:
        finite = np.isfinite(found.index)
        assert (found.error[finite] <= 1e-9 * (1.0 + np.abs(found.index[finite]))).all()


@given(turning_arms)
@settings(max_examples=80, deadline=None)
def test_a_witness_shows_that_an_arm_is_not_indexable(test_arm):
    path, found = test_arm.exact(), solved(test_arm)
    if found.verdict is Verdict.NOT_INDEXABLE:
        assert path.verdict == "not indexable"
        assert_is_witness(found.witness, test_arm, path)
        with pytest.raises(NoIndexError, match="not indexable"):
            _ = found.index


@pytest.mark.parametrize("seed", TURNING)
def test_both_single_arm_problems_of_a_witness_are_solved_the_same_way(seed):
    test_arm = make_arm("peaked", seed, 3)
    witness = solved(test_arm).witness
    for price, on in ((witness.lower, False), (witness.upper, True)):
        costs = test_arm.costs + price * test_arm.work
        model = mc.tabular(test_arm.moves, costs=costs.T)
        policy = mc.solve(model, tolerance=1e-12).policy.table()
        assert bool(policy[witness.state]) is on


@given(arms(largest=4))
@settings(max_examples=80, deadline=None)
def test_the_path_is_optimal_at_every_price(test_arm):
    path, found = test_arm.exact(), solved(test_arm)
    if found.path is None or not path.solved or not found.path.complete:
        return
    prices = np.concatenate([[-np.inf], found.path.prices, [np.inf]])
    for k, (low, high) in enumerate(itertools.pairwise(prices)):
        error = 2 * np.max(found.path.errors, initial=0.0)
        if high - low <= 4.0 * error + 1e-12 * (abs(high) if np.isfinite(high) else abs(low)):
            continue
        middle = _between(low, high)
        piece = path.at(F(middle))
        policy = found.path.policy(k)
        for on, sign in zip(policy, piece.signs, strict=True):
            assert sign == 0 or on == (sign > 0)
        if test_arm.alpha == 0 and test_arm.kind.split()[0] not in ILL_CONDITIONED:
            optimum = found.path.costs[k] + middle * found.path.work[k]
            scale = np.abs(test_arm.costs).max() + abs(middle) * np.abs(test_arm.work).max()
            assert optimum == pytest.approx(float(piece.optimum[0].at(F(middle))), abs=1e-7 * scale)


def _between(low, high):
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    if np.isfinite(low):
        return low + 1.0 + abs(low)
    return high - 1.0 - abs(high) if np.isfinite(high) else 0.0


@pytest.mark.parametrize("kind", ["dense", "sparse", "laborious", "restful"])
@pytest.mark.parametrize("discount", [F(0), F(1, 8)])
def test_bisection_finds_the_same_index(kind, discount):
    test_arm = make_arm(kind, 7 if kind == "sparse" else 5, 30, discount)
    found = solved(test_arm)
    assert found.is_indexable
    by_hand = bisection_index(test_arm.differences(), test_arm.n)
    np.testing.assert_allclose(found.index, by_hand, rtol=1e-10, atol=1e-10)


@given(arms(EASY, largest=5), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_numbers_of_the_states_do_not_matter(test_arm, random):
    order = list(range(test_arm.n))
    random.shuffle(order)
    moved = TestArm(
        test_arm.moves[:, order][:, :, order],
        test_arm.costs[:, order],
        test_arm.work[:, order],
        test_arm.discrete,
        test_arm.alpha,
    )
    before, after = solved(test_arm), solved(moved)
    assert before.verdict is after.verdict
    if before.is_indexable:
        assert_near(before.index[order], after.index, before.error[order] + after.error)


@given(arms(EASY, largest=5), st.integers(-3, 3), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_a_dearer_activity_lowers_the_index_and_a_unit_of_money_scales_it(test_arm, more, unit):
    costs = unit * (test_arm.costs + more * test_arm.work)
    changed = TestArm(test_arm.moves, costs, test_arm.work, test_arm.discrete, test_arm.alpha)
    before, after = solved(test_arm), solved(changed)
    assert before.verdict is after.verdict
    if before.is_indexable:
        wanted = unit * (before.index - more)
        assert_near(wanted, after.index, unit * before.error + after.error + 1e-14)


@given(arms(["ladder", "decades"], largest=5), st.integers(-6, 6))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_time_does_not_matter_where_costs_and_work_are_per_time(test_arm, power):
    faster = TestArm(test_arm.moves * 2.0**power, test_arm.costs, test_arm.work, False)
    slow = TestArm(test_arm.moves, test_arm.costs, test_arm.work, False)
    before, after = solved(slow), solved(faster)
    if Verdict.UNDECIDED in (before.verdict, after.verdict):
        assert test_arm.kind.split()[0] in ILL_CONDITIONED
        return
    assert before.verdict is after.verdict
    if before.is_indexable:
        assert_near(before.index, after.index, before.error + after.error)


def test_the_published_arm_turns_back_where_it_is_said_to():
    found = solved(published())
    assert found.verdict is Verdict.NOT_INDEXABLE
    assert found.witness.state == 2
    assert found.witness.lower < 0.08
    assert found.witness.upper > 0.06
    assert_is_witness(found.witness, published(), published().exact())
    assert found.path.states.tolist() == [2, 1, 0, 2, 3, 2]
    assert found.path.active.tolist() == [False, False, False, True, False, False]
    around = [(-0.48, -0.46), (-0.38, -0.36), (-0.12, -0.1), (0.06, 0.08), (0.16, 0.18)]
    for price, (low, high) in zip(found.path.prices, [*around, (0.24, 0.26)], strict=True):
        assert low < price < high


def test_the_published_arm_as_printed_has_the_same_verdict():
    near, printed = published(), published().moves.round(4)
    rewards = -near.costs
    found = whittle(arm(*printed, rewards0=rewards[0], rewards1=rewards[1]), near.criterion)
    assert found.verdict is Verdict.NOT_INDEXABLE
    assert found.witness.state == 2


@pytest.mark.parametrize("kind", ["dense", "coarse", "alike", "sparse", "ladder", "laborious"])
@pytest.mark.parametrize("seed", range(3))
def test_at_every_price_between_indices_the_states_above_are_the_active_ones(kind, seed):
    """By policy iteration at that price, with ties and without."""
    test_arm = make_arm(kind, seed, 20 + 10 * seed)
    found, differences = solved(test_arm, sparse=seed == 1), test_arm.differences()
    if not found.is_indexable:
        assert kind == "sparse"
        return
    values = np.unique(found.index)
    ends = np.concatenate([[values[0] - 2.0], values, [values[-1] + 2.0]])
    for low, high in itertools.pairwise(ends):
        if high - low > 1e-8:
            price = 0.5 * (low + high)
            assert np.array_equal(differences(price) > 0, found.index > price)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([F(0), F(1), F(1, 8)]))
@settings(max_examples=40, deadline=None)
def test_birth_death_arms_have_the_exact_verdict_and_index(seed, n, discount):
    test_arm = make_arm("ladder", seed, n, discount)
    births = [np.append(np.diag(matrix, 1), 0.0) for matrix in test_arm.moves]
    deaths = [np.append(0.0, np.diag(matrix, -1)) for matrix in test_arm.moves]
    chain = birth_death_arm(*births, *deaths, *test_arm.costs)
    assert_verdict(whittle(chain, test_arm.criterion), test_arm, test_arm.exact())


@pytest.mark.parametrize("n", [2, 3, 20])
def test_arms_that_never_move_are_multichain_and_have_an_index_if_discounted(n):
    gains = np.arange(n, 0.0, -1.0)
    still = arm(np.eye(n), np.eye(n), rewards0=np.zeros(n), rewards1=gains)
    found = whittle(still, mc.AverageCost())
    assert found.verdict is Verdict.MULTICHAIN
    assert found.offender.shape == (n,)
    with pytest.raises(NoIndexError, match="multichain"):
        _ = found.index
    np.testing.assert_allclose(whittle(still, mc.Discounted(factor=0.5)).index, gains, atol=1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_identical_rows_under_both_actions_leave_the_difference_of_the_costs(seed, n):
    test_arm = make_arm("dense", seed, n)
    moves = np.stack([test_arm.moves[0]] * 2)
    found = solved(TestArm(moves, test_arm.costs, standard_work(n)))
    wanted = test_arm.costs[0] - test_arm.costs[1]
    assert (np.abs(found.index - wanted) <= found.error).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.data())
@settings(max_examples=60, deadline=None)
def test_rows_that_are_no_probabilities_are_named(seed, n, data):
    moves = make_arm("dense", seed, n).moves.copy()
    a, i = data.draw(st.integers(0, 1)), data.draw(st.integers(0, n - 1))
    kind = data.draw(st.sampled_from(["short", "negative", "nan", "inf"]))
    if kind == "short":
        moves[a, i] *= 0.9
        message = rf"row {i} of P{a} sums to 0\.9; it must sum to 1"
    else:
        j = data.draw(st.integers(0, n - 1))
        moves[a, i, j] = {"negative": -0.25, "nan": np.nan, "inf": np.inf}[kind]
        message = rf"P{a}\[{i}, {j}\] is (-0\.25|nan|inf)"
    with pytest.raises(InputError, match=message):
        arm(moves[0], moves[1])


def test_the_reported_invalid_arm_is_refused():
    with pytest.raises(InputError, match=r"row 0 of P0 sums to 0\.9; it must sum to 1"):
        arm([[0.5, 0.4], [0.3, 0.7]], [[1, 0], [0.5, 0.5]], rewards1=[1.0, 2.0])


def test_criteria_that_do_not_fit_are_refused():
    steps = arm([[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2)
    with pytest.raises(InputError, match="factor"):
        whittle(steps, mc.Discounted(rate=0.1))
    rates = rate_arm([[-1.0, 1.0], [1.0, -1.0]], [[-1.0, 1.0], [2.0, -2.0]])
    with pytest.raises(InputError, match="rate"):
        whittle(rates, mc.Discounted(factor=0.5))
    with pytest.raises(InputError, match="criterion"):
        whittle(steps, mc.FiniteHorizon(3.0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_arms_of_a_kind_have_the_exact_verdict(kind):
    for seed in range(25):
        test_arm = make_arm(kind, seed, 2 + seed % 5)
        path = test_arm.exact()
        for sparse in (False, True):
            assert_verdict(solved(test_arm, sparse), test_arm, path)
