"""Total cost against enumeration in exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.total.border import refuse_if_earning
from mdpcloud.solve.total.optimum import optimal
from mdpcloud.solve.total.structure import Backwards, hopeful
from tests.common.exact import better, solve_exactly
from tests.common.interpreter import interpret
from tests.common.random_models import returning_models

from .exact_totals import exact_optimum, exact_totals
from .test_multichain import RATES, problem_of

INF = float("inf")
COSTS = st.integers(-2, 5)
FEES = st.sampled_from([0, 0, 0, 1, 2, -1, -2])


@st.composite
def problems(draw, rates=RATES, costs=COSTS, fees=FEES, terms=2):
    """Random problems with a target, state 0, which most moves have a way to."""
    n = draw(st.integers(2, 4))
    moves = st.dictionaries(st.integers(0, n - 1), rates, max_size=2)
    action = st.tuples(fees, moves)
    listing = {
        (x, e): draw(st.lists(action, min_size=1, max_size=2 if e == 0 or x == 1 else 1))
        for x in range(n)
        for e in range(draw(st.integers(1, terms)))
    }
    problem = problem_of([float(draw(costs)) for _ in range(n)], listing)
    return problem, np.arange(n) == 0


def solved(problem, targets):
    def refuse(fixed, states, members):
        refuse_if_earning(problem, fixed, states, members, 1)

    return optimal(problem, targets, Monitor(), refuse, 1e-8)


def check(problem, targets, width=INF):
    """Bounds enclose the exact optimum; the policy costs no more than the upper one."""
    able = hopeful(Backwards(problem.rows()), targets).states
    best, least = exact_optimum(problem, targets)
    assert [value != INF for value in best] == able.tolist()
    assume((able & ~targets).any())
    if least < 0:
        with pytest.raises(InputError, match="as long as it likes"):
            solved(problem, targets)
        return None
    found = solved(problem, targets)
    reached = exact_totals(problem, found.choice, targets)
    for x in np.flatnonzero(able):
        assert found.lower[x] == -INF or Fraction(found.lower[x]) <= best[x]
        assert best[x] <= reached[x] <= Fraction(found.upper[x])
    assert np.isinf(found.upper[~able]).all()
    gap = found.upper[able] - found.lower[able]
    if least > 0 or width < INF:
        assert (gap <= width * max(1, np.abs(found.upper[able]).max())).all()
    return found


FREE_OR_DEAR = {"costs": st.just(0), "fees": st.sampled_from([0, 0, 1, 3])}


@pytest.mark.slow
@settings(max_examples=150)
@given(problems())
def test_bounds_hold_and_the_policy_attains_the_best_of_all_proper_ones(drawn):
    check(*drawn)


@pytest.mark.slow
@settings(max_examples=100)
@given(problems(**FREE_OR_DEAR))
def test_ways_that_are_free_do_not_tempt_the_policy_to_stay(drawn):
    check(*drawn, width=1e-12)


@pytest.mark.slow
@settings(max_examples=100)
@given(problems(rates=st.floats(-6, 6).map(lambda x: 10.0**x)))
def test_bounds_hold_for_rates_over_twelve_decades(drawn):
    check(*drawn)


@pytest.mark.slow
@settings(max_examples=100)
@given(problems(rates=st.floats(-6, 6).map(lambda x: 10.0**x), **FREE_OR_DEAR))
def test_bounds_are_narrow_for_rates_over_twelve_decades(drawn):
    check(*drawn, width=1e-12)


# --- models in continuous time --------------------------------------------------------------------


def values_before_the_origin(problem, policy):
    """Exact total cost until state 0 of a policy that returns there from everywhere."""
    n = len(problem.states)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    right = [Fraction(0)] + [-Fraction(c) for c in problem.cost[1:]]
    matrix[0][0] = Fraction(1)
    for i in range(1, n):
        for term in problem.terms[i]:
            option, rate = policy[i][term.term], Fraction(term.rate)
            right[i] -= rate * Fraction(option.cost)
            for w, y in option.moves:
                matrix[i][y] += rate * Fraction(w)
                matrix[i][i] -= rate * Fraction(w)
    return solve_exactly(matrix, right)


def least_before_the_origin(problem):
    """The optimum of the same by policy iteration."""
    policy = [{t.term: t.options[0] for t in alive} for alive in problem.terms]
    while True:
        values = values_before_the_origin(problem, policy)
        after = [
            {t.term: better(t, policy[i][t.term], values, i) for t in alive}
            for i, alive in enumerate(problem.terms)
        ]
        if after[1:] == policy[1:]:
            return values
        policy = after


@pytest.mark.slow
@settings(max_examples=60)
@given(returning_models(decades=6.0))
def test_bounds_enclose_the_exact_cost_until_the_origin_of_models_with_events(model):
    exact = least_before_the_origin(interpret(model))
    found = mc.solve(model, mc.TotalCost(targets=[0]), strict=False)
    again = mc.evaluate(model, found.policy, mc.TotalCost(targets=[0]), strict=False)
    for low, high, value in zip(*found.bounds, exact, strict=True):
        assert low == -INF or Fraction(low) <= value
        assert high == INF or value <= Fraction(high)
    assert (again.bounds[0] <= found.bounds[1]).all()
    for high, value in zip(again.bounds[1], exact, strict=True):
        assert high == INF or value <= Fraction(high)
