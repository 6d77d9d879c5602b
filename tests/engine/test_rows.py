"""Explicit rows against exact rational arithmetic."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import TermInfo, choice_dtype
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.engine.rows import Rows, RowsProblem
from mdpcloud.engine.tabular import tabular_problem
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.tabular import tabular

RATES = st.floats(1e-6, 1e6) | st.sampled_from([1e-6, 1e6, 1.0, 1 / 3])
COSTS = st.floats(-10, 10) | st.sampled_from([0.0, 0.1])


@st.composite
def problems(draw, max_states=5, max_terms=3, max_actions=3):
    """Random problems with rates over twelve decades; a term may be absent in a state."""
    n, terms = draw(st.integers(2, max_states)), draw(st.integers(1, max_terms))
    rows, rates, costs, moves = [], [], [], []
    for x in range(n):
        for e in range(terms):
            for a in range(draw(st.integers(0, max_actions))):
                targets = draw(st.lists(st.integers(0, n - 1), max_size=3))
                moves += [(len(rows), y, draw(RATES)) for y in targets]
                rows.append((x, e, a))
                rates.append(1.0)
                costs.append(draw(COSTS))
    cost_rate = [draw(COSTS) for _ in range(n)]
    table = Rows.from_moves(
        cost_rate,
        np.array(rows, int).reshape(-1, 3).T,
        rates,
        costs,
        (
            np.array([m[0] for m in moves], int),
            np.array([m[1] for m in moves], int),
            np.array([m[2] for m in moves]),
        ),
    )
    names = tuple("abc"[:max_actions])
    infos = tuple(TermInfo(f"term {e}", names, True) for e in range(terms))
    return RowsProblem(table, infos)


def exact_values(problem, h, discount=0.0):
    """Every v(x) as a fraction, from the stored numbers."""
    table = problem.rows()
    h = [Fraction(float(value)) for value in h]
    values = []
    for x in range(problem.n):
        v = Fraction(float(table.cost_rate[x])) - Fraction(discount) * h[x]
        for e in range(len(problem.terms)):
            options = []
            for row in np.flatnonzero((table.state == x) & (table.term == e)):
                moves = table.transitions[[row]].tocoo()
                options.append(
                    Fraction(float(table.cost[row]))
                    + sum(
                        Fraction(float(w)) * (h[y] - h[x])
                        for y, w in zip(moves.col, moves.data, strict=True)
                    )
                )
            v += min(options, default=0)
        values.append(v)
    return values


@settings(max_examples=150)
@given(problems(), st.data(), st.sampled_from([0.0, 0.1, 1e-3]))
def test_the_certificate_encloses_the_exact_values(problem, data, discount):
    h = np.array([data.draw(st.floats(-1e8, 1e8)) for _ in range(problem.n)])
    exact = exact_values(problem, h, discount)
    lower, upper = problem.enclose(h, discount=discount)
    for x in range(problem.n):
        assert Fraction(lower[x]) <= exact[x] <= Fraction(upper[x])
    low, high = problem.certify(h, discount=discount)
    assert Fraction(low) <= min(exact)
    assert max(exact) <= Fraction(high)


@given(problems(), st.data())
def test_the_certificate_is_as_narrow_as_its_rounding_bound(problem, data):
    h = np.array([data.draw(st.floats(-1e3, 1e3)) for _ in range(problem.n)])
    lower, upper = problem.enclose(h)
    table = problem.rows()
    spread = abs(table.transitions) @ np.ones(problem.n) * np.ptp(h)
    size = np.abs(table.cost_rate) + table.largest_per_state(np.abs(table.cost) + spread)
    assert (upper - lower <= 60 * UNIT_ROUNDOFF * size + 1e-300).all()


@given(problems(), st.data(), st.sampled_from([0.0, 0.25]))
def test_the_fast_sweep_agrees_with_the_certificate(problem, data, discount):
    h = np.array([data.draw(st.floats(-1e3, 1e3)) for _ in range(problem.n)])
    work, out = problem.pack(h), np.empty(problem.n)
    low, high = problem.backup(work, out, step=0.5, shift=2.0, discount=discount)
    lower, upper = problem.enclose(h, discount=discount)
    scale = 1e-14 * (problem.rate_bound * 2e3 * len(problem.terms) + problem.cost_scale + 1e3)
    np.testing.assert_allclose(
        problem.unpack(out), h + 0.5 * ((lower + upper) / 2 - 2.0), rtol=0, atol=scale
    )
    assert low == pytest.approx(lower.min(), abs=scale)
    assert high == pytest.approx(upper.max(), abs=scale)


@given(problems(), st.data())
def test_the_greedy_choice_is_the_first_action_within_the_margin(problem, data):
    h = np.array([data.draw(st.integers(-3, 3)) for _ in range(problem.n)], float)
    choice = problem.greedy(h, 0.0)
    table = problem.rows()
    assert choice.dtype == np.int8
    assert choice.shape == (len(problem.terms), problem.n)
    present = np.zeros(choice.shape, bool)
    present[table.term, table.state] = True
    assert ((choice >= 0) == present).all()
    lower, upper = problem.enclose(h)
    fixed_lower, fixed_upper = problem.under(choice).enclose(h)
    assert (fixed_lower <= upper).all()
    assert (fixed_upper >= lower).all()
    widest = problem.greedy(h, np.inf)
    expected = np.full(choice.shape, -1)
    expected[table.term[table.groups], table.state[table.groups]] = table.action[table.groups]
    assert (widest == expected).all()


@given(problems(), st.data())
def test_generator_and_cost_rate_reproduce_the_backup_under_a_choice(problem, data):
    h = np.array([data.draw(st.floats(-1e3, 1e3)) for _ in range(problem.n)])
    choice = problem.greedy(h, 0.0)
    generator, cost = problem.generator(choice)
    np.testing.assert_allclose(generator.sum(axis=1), 0, atol=1e-9)
    lower, upper = problem.under(choice).enclose(h)
    scale = 1e-13 * (problem.rate_bound * 2e3 * len(problem.terms) + problem.cost_scale)
    np.testing.assert_allclose(generator @ h + cost, (lower + upper) / 2, rtol=0, atol=scale)


@given(problems(), st.data())
def test_a_mixture_that_is_certain_is_the_choice(problem, data):
    h = np.array([data.draw(st.floats(-1e3, 1e3)) for _ in range(problem.n)])
    choice = problem.greedy(h, 0.0)
    mixture = [np.array([choice[e] == a for a in range(3)], float) for e in range(len(choice))]
    generator, cost = problem.generator(choice)
    mixed, mixed_cost = problem.generator(mixture)
    np.testing.assert_allclose(mixed.toarray(), generator.toarray(), rtol=1e-14)
    np.testing.assert_allclose(mixed_cost, cost, rtol=1e-14, atol=1e-14)


P = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]])
COST = np.array([[5.0, 10.0], [-1.0, 2.0]])
MODEL = tabular_problem(tabular(P, costs=COST))


def test_a_mixture_averages_costs_and_rates():
    generator, cost = MODEL.generator([np.array([[0.25, 1.0], [0.75, 0.0]])])
    np.testing.assert_allclose(cost, [0.25 * 5 + 0.75 * 10, -1.0])
    np.testing.assert_allclose(generator.toarray(), [[-0.875, 0.875], [0.8, -0.8]])


@pytest.mark.parametrize("first", [0.3, -0.25, np.nan])
def test_probabilities_of_a_mixture_must_sum_to_one(first):
    with pytest.raises(InputError, match="'step' in state 0 must be >= 0 and sum to 1"):
        MODEL.generator([np.array([[first, 1.0], [0.75, 0.0]])])


def test_an_action_that_is_not_allowed_is_refused_by_state_and_name():
    model = tabular_problem(tabular(P, costs=[[5.0, 10.0], [np.inf, 2.0]]))
    with pytest.raises(
        InputError,
        match=re.escape("action '0' of 'step' is not allowed in state 1; allowed there: 1"),
    ):
        model.under(np.zeros((1, 2), np.int8))
    with pytest.raises(InputError, match="action '-1' of 'step' is not allowed in state 0"):
        model.under(np.array([[-1, 1]], np.int8))


def test_the_chain_of_a_problem_with_decisions_is_refused():
    with pytest.raises(InputError, match="decisions"):
        MODEL.chain()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_a_value_that_is_not_finite_is_an_error(bad):
    with pytest.raises(SolveError, match="not finite"):
        MODEL.certify(np.array([bad, -bad]))


def test_a_tabular_model_has_rate_one_and_no_moves_to_the_own_state():
    assert MODEL.discrete
    assert MODEL.terms == (TermInfo("step", ("0", "1"), True),)
    table = MODEL.rows()
    assert (table.rate == 1).all()
    assert table.transitions.toarray().tolist() == [[0, 0.5], [0, 1], [0.8, 0], [0.1, 0]]
    assert MODEL.rate_bound == pytest.approx(1.05)
    assert MODEL.cost_scale == 10.0
    assert MODEL.label(1) == "1"


def test_a_model_that_never_moves_has_a_positive_rate_bound():
    assert tabular_problem(tabular([np.eye(3)])).rate_bound == 1.0


def test_rows_of_rate_zero_are_dropped():
    rows = Rows.from_moves(
        [0.0, 0.0],
        ([1, 0, 0], [0, 0, 1], [0, 0, 0]),
        [1.0, 0.0, 2.0],
        [3.0, 4.0, 5.0],
        ([0, 1, 2], [0, 1, 1], [6.0, 7.0, 8.0]),
    )
    assert rows.state.tolist() == [0, 1]
    assert rows.cost.tolist() == [5.0, 3.0]
    assert rows.transitions.toarray().tolist() == [[0, 8], [6, 0]]


def test_choices_of_many_actions_get_a_wider_type():
    assert choice_dtype([TermInfo("e", ("a",) * 128, True)]) == np.int8
    assert choice_dtype([TermInfo("e", ("a",) * 129, True)]) == np.int32


def test_gamma_bounds_a_product_of_roundings():
    assert (1 + Fraction(UNIT_ROUNDOFF)) ** 5 - 1 <= Fraction(gamma(5))
    assert (1 - Fraction(UNIT_ROUNDOFF)) ** -5 - 1 <= Fraction(gamma(5))
    with pytest.raises(ValueError, match="roundings"):
        gamma(2**26)


def test_costs_that_cancel_in_a_randomised_choice_are_enclosed():
    """Half the time 1e8 + 1/3 is paid, half the time 1e8 is earned."""
    model = mc.tabular([[[1.0]], [[1.0]]], costs=[[1e8 + 1 / 3, -1e8]])
    problem = compile_model(model)
    fixed = problem.mixed([np.array([[0.5], [0.5]])])
    low, high = fixed.certify(np.zeros(1))
    exact = (Fraction(1e8 + 1 / 3) - Fraction(1e8)) / 2
    assert low <= exact <= high
    assert high - low < 1e-6


def test_costs_of_both_signs_that_cancel_are_listed_exactly():
    space = mc.Lattice({"i": 1})
    parts = [
        lambda x: np.where(x.i == 1, 1 / 3, 0.0),
        lambda x: 1e8 * (x.i >= 0),
        lambda x: -1e8 * (x.i >= 0),
    ]
    model = mc.Model(space, mc.Event("down", lambda x: 1.0 * x.i, mc.step(i=-1)), cost_rate=parts)
    lower, upper = mc.solve(model, mc.TotalCost(lambda x: x.i == 0)).bounds
    assert lower[1] <= 1 / 3 <= upper[1]
    assert upper[1] - lower[1] < 1e-12
