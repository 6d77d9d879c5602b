import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from tests.admission import admission

TWO = mc.tabular([[[0, 1], [1, 0]]], costs=[1.0, 0.0])


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "give rate (continuous time) or factor (discrete time), and not both"),
        ({"rate": 1.0, "factor": 0.5}, "and not both"),
        ({"rate": 0.0}, "discount rate is 0.0; it must be finite and > 0"),
        ({"rate": -1.0}, "discount rate is -1.0"),
        ({"rate": math.inf}, "discount rate is inf"),
        ({"rate": math.nan}, "discount rate is nan"),
        ({"rate": "1"}, "discount rate is '1'; it must be a number"),
        ({"rate": True}, "discount rate is True; it must be a number"),
        ({"factor": -0.1}, "discount factor is -0.1; it must be in [0, 1)"),
        ({"factor": 1.5}, "discount factor is 1.5; it must be in [0, 1)"),
        ({"factor": math.nan}, "discount factor is nan"),
        ({"factor": False}, "discount factor is False; it must be a number"),
    ],
)
def test_discounts_that_do_not_discount_are_refused(settings, said):
    with refused(said):
        mc.Discounted(**settings)


@pytest.mark.parametrize("one", [1, 1.0, np.float64(1)])
def test_factor_one_points_to_the_average_cost(one):
    """The discounted equations are singular then (QuantEcon, issue 242)."""
    with refused("it must be in [0, 1); for the undiscounted case use mdpcloud.AverageCost()"):
        mc.Discounted(factor=one)


@pytest.mark.parametrize("use", [mc.solve, lambda m, c: mc.evaluate(m, {}, c)])
@pytest.mark.parametrize(
    ("model", "criterion", "said"),
    [
        (TWO, mc.Discounted(rate=0.1), "the model is in discrete time: use Discounted(factor=...)"),
        (
            admission(actions=[mc.Action("lost")]),
            mc.Discounted(factor=0.9),
            "the model is in continuous time: use Discounted(rate=...)",
        ),
        (TWO, "average", "criterion is 'average'; it must be one of mdpcloud.AverageCost(), "),
        (TWO, mc.AverageCost, "it must be one of mdpcloud.AverageCost()"),
        (TWO, 0.9, "criterion is 0.9"),
    ],
)
def test_a_criterion_must_fit_the_time_of_the_model(use, model, criterion, said):
    with refused(said):
        use(model, criterion)


@given(st.floats(1e-3, 1e3), st.floats(-5, 5, allow_subnormal=False))
def test_a_constant_cost_is_worth_itself_over_the_rate(rate, cost):
    model = mc.Model(mc.Lattice({"a": 1}), mc.Event("e", 1.0, mc.Action("stay")), cost_rate=cost)
    solution = mc.solve(model, mc.Discounted(rate=rate))
    np.testing.assert_allclose(solution.values, cost / rate, rtol=1e-8, atol=1e-200)


@given(st.floats(0.0, 0.999), st.floats(-5, 5, allow_subnormal=False))
def test_a_constant_cost_per_step_is_a_geometric_series(factor, cost):
    model = mc.tabular([np.eye(2)], costs=[cost, cost])
    solution = mc.solve(model, mc.Discounted(factor=factor))
    np.testing.assert_allclose(solution.values, cost / (1 - factor), rtol=1e-8, atol=1e-200)


def test_factor_zero_counts_the_first_step_alone():
    model = mc.tabular([[[0, 1], [1, 0]], np.eye(2)], costs=[[1.0, 2.0], [4.0, 3.0]])
    solution = mc.solve(model, mc.Discounted(factor=0.0))
    np.testing.assert_allclose(solution.values, [1.0, 3.0], rtol=1e-12)
    assert solution.policy.table().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (0, "the horizon is 0; it must be finite and > 0"),
        (-1.0, "the horizon is -1.0"),
        (math.inf, "the horizon is inf"),
        (math.nan, "the horizon is nan"),
        ("10", "the horizon is '10'; it must be a number"),
        (True, "the horizon is True; it must be a number"),
    ],
)
def test_horizons_that_are_no_times_are_refused(time, said):
    with refused(said):
        mc.FiniteHorizon(time)


def test_a_horizon_in_steps_is_a_whole_number():
    assert mc.FiniteHorizon(3.0).steps() == 3
    with refused("the horizon is 2.5; in discrete time it must be a whole number of steps"):
        mc.FiniteHorizon(2.5).steps()


@pytest.mark.parametrize("criterion", [mc.FiniteHorizon(1), mc.TotalCost()])
@pytest.mark.parametrize("given", [{"solver": "value_iteration"}, {"start": [0.0, 0.0]}])
def test_solvers_and_starts_are_for_average_and_discounted_cost(criterion, given):
    with refused("solver and start are for average and discounted cost without constraints"):
        mc.solve(TWO, criterion, **given)


def test_constraints_are_on_long_run_averages():
    with refused("constraints are on long-run averages; they need the criterion AverageCost()"):
        mc.solve(TWO, mc.Discounted(factor=0.5), constraints={"lost": 1.0})
