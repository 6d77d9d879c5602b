"""Multichain problems against enumeration in exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.rows import Rows, RowsProblem
from mdpcloud.engine.tabular import tabular_problem
from mdpcloud.errors import SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.model.tabular import tabular
from mdpcloud.solve import leaving
from mdpcloud.solve.multichain import multichain
from mdpcloud.solve.stationary.stationary import long_run

from .exact_gains import exact_gains, exact_optimum, solve_component


def problem_of(cost_rate, listing):
    """Problem from {(state, term): [(cost, {target: rate}), ...]}."""
    keys = [(x, e, a, act) for (x, e), acts in listing.items() for a, act in enumerate(acts)]
    moves = [(r, y, w) for r, key in enumerate(keys) for y, w in key[3][1].items()]
    row, target, rate = (np.array([m[k] for m in moves]) for k in range(3))
    head = np.array([key[:3] for key in keys], int).reshape(-1, 3).T
    table = Rows.from_moves(
        cost_rate,
        head,
        np.ones(len(keys)),
        [key[3][0] for key in keys],
        (row.astype(int), target.astype(int), rate.astype(float)),
    )
    terms = 1 + max((e for _, e in listing), default=0)
    return RowsProblem(
        table, tuple(TermInfo(f"term {e}", ("a", "b", "c"), True) for e in range(terms))
    )


RATES = st.sampled_from([0.25, 0.5, 1.0, 3.0])


@st.composite
def problems(draw, rates=RATES, terms=2, actions=2):
    """Random problems with few moves, hence with several end components."""
    n = draw(st.integers(1, 4))
    moves = st.dictionaries(st.integers(0, n - 1), rates, max_size=2)
    action = st.tuples(st.integers(-3, 3), moves)
    listing = {
        (x, e): draw(st.lists(action, min_size=1, max_size=actions if e == 0 or x < 2 else 1))
        for x in range(n)
        for e in range(draw(st.integers(1, terms)))
    }
    return problem_of([float(draw(st.integers(0, 5))) for _ in range(n)], listing)


def check(problem, width):
    """Bounds enclose the exact optimum and are narrow; the choice is as good as the upper one."""
    found = multichain(problem, solve_component)
    best, _ = exact_optimum(problem)
    reached = exact_gains(problem, found.choice)
    for x in range(problem.n):
        assert Fraction(found.lower[x]) <= best[x] <= Fraction(found.upper[x])
        assert reached[x] <= Fraction(found.upper[x])
    assert (found.upper - found.lower <= width * (1 + np.abs(found.upper))).all()
    return found


@settings(max_examples=150)
@given(problems())
def test_bounds_and_policy_agree_with_the_best_of_all_policies(problem):
    check(problem, 1e-12)


@given(problems(rates=st.floats(1e-6, 1e6)))
def test_bounds_hold_for_rates_over_twelve_decades(problem):
    check(problem, 1e-2)


@given(problems(actions=1))
def test_a_chain_gets_the_mean_of_its_classes_by_absorption(problem):
    found = check(problem, 1e-12)
    assert found.stays.all()
    generator, cost = problem.chain()
    chain = markov_chain(generator=generator)
    means = [long_run(chain, x) @ cost for x in range(problem.n)]
    np.testing.assert_allclose((found.lower + found.upper) / 2, means, rtol=1e-12, atol=1e-12)


def three_ways():
    """From 0 a fair coin or a cheap stay at cost 4; states 1 and 2 absorb at costs 1 and 5."""
    return problem_of(
        [0.0, 1.0, 5.0],
        {(0, 0): [(4.0, {}), (0.0, {1: 0.5, 2: 0.5})], (1, 0): [(0.0, {})], (2, 0): [(0.0, {})]},
    )


def test_a_component_is_left_when_what_follows_is_cheaper():
    found = check(three_ways(), 1e-14)
    np.testing.assert_allclose(found.upper, [3, 1, 5], rtol=1e-14)
    assert found.stays.tolist() == [False, True, True]
    assert found.choice[0, 0] == 1


def test_a_component_is_kept_when_leaving_costs_more():
    problem = problem_of(
        [0.0, 1.0, 5.0],
        {(0, 0): [(0.0, {2: 1.0}), (2.0, {})], (1, 0): [(0.0, {})], (2, 0): [(0.0, {})]},
    )
    found = check(problem, 1e-14)
    np.testing.assert_allclose(found.upper, [2, 1, 5], rtol=1e-14)
    assert found.stays.all()
    assert found.components.count == 3


def test_the_policy_walks_to_the_exit_of_a_component():
    """A ring of four at cost 1; only state 2 has a way out, to cost 0."""
    listing = {(x, 0): [(0.0, {(x + 1) % 4: 1.0}), (0.0, {(x - 1) % 4: 1.0})] for x in range(4)}
    listing[2, 0].append((7.0, {4: 1e-3, 0: 2.0}))
    listing[4, 0] = [(0.0, {})]
    problem = problem_of([1.0, 1.0, 1.0, 1.0, 0.0], listing)
    found = check(problem, 1e-12)
    np.testing.assert_allclose(found.upper, 0, atol=1e-12)
    assert found.choice[0, 2] == 2


def test_terms_are_left_one_by_one():
    """The second term has to keep the process until the first has left."""
    problem = problem_of(
        [3.0, 0.0, 9.0],
        {
            (0, 0): [(0.0, {}), (0.0, {1: 1.0})],
            (0, 1): [(0.0, {}), (-100.0, {2: 1.0})],
            (1, 0): [(0.0, {})],
            (2, 0): [(0.0, {})],
        },
    )
    found = check(problem, 1e-14)
    assert found.upper[0] == 0
    assert found.choice[:, 0].tolist() == [1, 0]


def test_a_tabular_model_is_solved_state_by_state():
    model = tabular(
        [np.eye(3), [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]], costs=[[2, 0], [0, 0], [6, 6]]
    )
    found = check(tabular_problem(model), 1e-14)
    np.testing.assert_allclose(found.upper, [2, 0, 6])


def test_slow_leaks_keep_the_bounds_right():
    listing = {
        (0, 0): [(0.0, {1: 1.0, 2: 1e-9})],
        (1, 0): [(0.0, {0: 1.0, 3: 3e-9})],
        (2, 0): [(0.0, {})],
        (3, 0): [(0.0, {})],
    }
    found = check(problem_of([0.0, 0.0, 1.0, 2.0], listing), 1e-5)
    assert found.upper[0] == pytest.approx(1.75, rel=1e-6)


def test_without_a_proof_the_bounds_are_the_extreme_components(monkeypatch):
    monkeypatch.setattr(leaving, "MAX_WIDENINGS", 0)
    found = multichain(three_ways(), solve_component)
    assert found.lower[0] == pytest.approx(1.0)
    assert found.upper[0] == pytest.approx(5.0)


def test_a_system_that_cannot_be_factored_is_a_solve_error(monkeypatch):
    def fail(matrix):
        raise RuntimeError("Factor is exactly singular")

    monkeypatch.setattr(leaving, "factor", fail)
    with pytest.raises(SolveError, match="exactly singular"):
        multichain(three_ways(), solve_component)


@pytest.mark.slow
def test_a_hundred_thousand_absorbing_states_take_seconds():
    n = 100_000
    k = np.arange(n)
    state = np.concatenate([k, n + k])
    moves = (np.r_[k, k], np.r_[n + k, np.maximum(k - 1, 0)], np.ones(2 * n))
    zeros = np.zeros(2 * n)
    table = Rows.from_moves(
        np.r_[np.zeros(n), 1.0 * k], (state, zeros, zeros), zeros + 1, zeros, moves
    )
    found = multichain(RowsProblem(table, (TermInfo("move", ("go",), False),)), solve_component)
    assert found.components.count == n
    assert found.upper[1] == pytest.approx(0.5)
    assert (found.upper - found.lower <= 1e-9 + 1e-9 * found.upper).all()


def test_a_model_in_which_nothing_happens_costs_what_its_states_cost():
    idle = mc.Event("service", 0.0, mc.step(jobs=-1))
    model = mc.Model(mc.Lattice({"jobs": 3}), [idle], cost_rate=lambda x: 1.0 * x.jobs)
    for result in (mc.solve(model), mc.evaluate(model, {})):
        assert result.gains.tolist() == [0.0, 1.0, 2.0, 3.0]
