"""Numbers of any size: powers of two in time, cost and work change the index by a power of two."""

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from mdpcloud.errors import SolveError
from mdpcloud.indices.path.path import price_path
from mdpcloud.indices.restless.arm import Arm, rate_arm
from mdpcloud.indices.restless.single_arm import solve_single_arm
from mdpcloud.indices.restless.units import Units, in_units
from mdpcloud.indices.restless.verdict import verdict_of
from tests.indices.arms import make_arm


def scaled(arm: Arm, time: int, cost: int, work: int) -> Arm:
    """The arm with rates, costs and work times powers of two."""
    moves = tuple(matrix * 2.0**time for matrix in arm.moves)
    return replace(arm, moves=moves, costs=arm.costs * 2.0**cost, work=arm.work * 2.0**work)


def index_of(arm: Arm, alpha: float):
    return verdict_of(arm, price_path(arm, alpha), alpha)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("time", [-900, 0, 900])
@pytest.mark.parametrize(("cost", "work"), [(900, 0), (-900, 0), (0, 900), (0, -900), (900, 900)])
def test_the_index_is_in_the_units_of_the_arm(sparse, time, cost, work):
    given_arm = make_arm("ladder", 3, 6)
    arm = given_arm.built(sparse)
    usual, other = index_of(arm, 0.0), index_of(scaled(arm, time, cost, work), 0.0)
    shift = cost - work
    assert other.is_indexable
    assert other.index == pytest.approx(np.ldexp(usual.index, shift), rel=1e-12)
    assert other.error == pytest.approx(np.ldexp(usual.error, shift), rel=0.5)
    assert other.marginal_cost == pytest.approx(np.ldexp(usual.marginal_cost, cost), rel=1e-12)
    assert other.marginal_work == pytest.approx(np.ldexp(usual.marginal_work, work), rel=1e-12)


@pytest.mark.parametrize(("time", "cost"), [(0, 900), (900, 0), (-900, -900), (900, 900)])
def test_totals_are_in_the_units_of_the_arm(time, cost):
    arm = make_arm("decades", 5, 4).built()
    for alpha, shift in ((0.0, cost), (0.5, cost - time)):
        usual = price_path(arm, alpha)
        other = price_path(scaled(arm, time, cost, 0), alpha * 2.0**time)
        with np.errstate(under="ignore"):
            assert other.costs == pytest.approx(np.ldexp(usual.costs, shift), rel=1e-6)


@pytest.mark.parametrize("cost", [-900, 900])
def test_a_witness_is_in_the_units_of_the_arm(cost):
    arm = make_arm("peaked", 40, 3).built()
    found = index_of(scaled(arm, 0, cost, 0), 0.0)
    usual = index_of(arm, 0.0)
    assert found.witness.margins == pytest.approx(np.ldexp(usual.witness.margins, cost), rel=1e-9)
    assert found.witness.state == usual.witness.state


def test_advantages_are_in_the_units_of_the_arm():
    arm = make_arm("ladder", 1, 5).built()
    usual, other = (
        solve_single_arm(one, p, 0.0)
        for one, p in ((arm, 1.0), (scaled(arm, 800, 900, 0), 2.0**900))
    )
    assert other.advantage == pytest.approx(np.ldexp(usual.advantage, 900), rel=1e-9)


def test_numbers_near_1_stay_as_they_are():
    arm = make_arm("dense", 1, 3).built()
    assert in_units(arm, 0.0) == (arm, 0.0, Units())


def test_rates_too_far_apart_are_refused():
    slow, fast = [[-1e-300, 1e-300], [1.0, -1.0]], [[-1.0, 1.0], [1e300, -1e300]]
    with pytest.raises(SolveError, match="too far apart"):
        in_units(rate_arm(slow, fast, 0.0, 0.0), 0.0)


def test_a_price_beyond_float64_is_refused():
    arm = make_arm("dense", 1, 3).built()
    with pytest.raises(SolveError, match="too large"):
        solve_single_arm(scaled(arm, 0, 0, 900), 1e300, 0.0)


def test_an_index_beyond_float64_is_refused():
    moves = [[-1.0, 1.0], [1.0, -1.0]]
    arm = rate_arm(moves, moves, [1e300, 0.0], [0.0, 0.0], work1=1e-300)
    with pytest.raises(SolveError, match="too large"):
        price_path(arm, 0.0)


def test_costs_of_any_size_have_errors_that_hold():
    rng = np.random.default_rng(5)
    for seed in range(20):
        given_arm = make_arm("dense", seed, 3)
        costs = np.ldexp(given_arm.costs, rng.integers(-1000, 1000, (2, 3)))
        given_arm = replace(given_arm, costs=costs)
        found = index_of(given_arm.built(), 0.0)
        exact = given_arm.exact()
        for i in range(3):
            low, high = exact.index_range(i)
            value, error = F(float(found.index[i])), F(float(found.error[i]))
            assert low - error <= value <= high + error
