"""Stationary laws against closed forms, exact rationals and public reports."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.engine.structure import closed_classes
from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.model.tabular import tabular
from mdpcloud.solve.stationary import irreducible
from mdpcloud.solve.stationary.stationary import chain_of, long_run, recurrent_classes, stationary

from .exact_gains import exact_law

CASES = {
    case["id"]: case
    for line in (Path(__file__).parents[1] / "reference/cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))
}


@st.composite
def stiff_chains(draw, connected=True):
    """Rates over twenty decades; a cycle keeps them irreducible."""
    n = draw(st.integers(2, 6))
    rates = np.zeros((n, n))
    if connected:
        for k in range(n):
            rates[k, (k + 1) % n] = draw(st.floats(1e-10, 1e10))
    for _ in range(draw(st.integers(0, 2 * n))):
        x, y = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        if x != y:
            rates[x, y] = draw(st.floats(1e-10, 1e10))
    return rates


def triplets(rates):
    x, y = np.nonzero(rates)
    return x, y, rates[x, y]


@given(stiff_chains())
def test_every_entry_of_a_stiff_chain_is_accurate(rates):
    exact = exact_law([[Fraction(float(r)) for r in row] for row in rates])
    law = stationary(markov_chain(rates=triplets(rates)))
    np.testing.assert_allclose(law, np.array(exact, float), rtol=1e-14)
    assert law.sum() == pytest.approx(1.0, abs=1e-15)


@given(stiff_chains(), st.data())
def test_permuting_the_states_permutes_the_law(rates, data):
    order = data.draw(st.permutations(range(len(rates))))
    law = stationary(markov_chain(rates=triplets(rates)))
    moved = stationary(markov_chain(rates=triplets(rates[np.ix_(order, order)])))
    np.testing.assert_allclose(moved, law[order], rtol=1e-14)


@given(stiff_chains(connected=False), st.data())
def test_the_long_run_is_a_stationary_law_that_weights_the_classes(rates, data):
    n = len(rates)
    rates[0, n - 1] += 1.0
    chain = markov_chain(rates=triplets(rates))
    start = data.draw(st.integers(0, chain.n - 1))
    law = long_run(chain, start)
    assert law.sum() == pytest.approx(1.0)
    assert (law >= 0).all()
    balance = chain.rates.T @ law - law * np.asarray(chain.rates.sum(axis=1)).ravel()
    assert np.abs(balance).max() <= 1e-13 * rates.max()
    for found in recurrent_classes(chain):
        inside = law[found.states]
        np.testing.assert_allclose(inside, inside.sum() * found.stationary, rtol=1e-12)
        if start in found.states:
            assert inside.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", CASES["stat-neareps"]["input"]["e"])
def test_a_nearly_decomposable_chain_keeps_its_law(epsilon):
    e = epsilon
    matrix = [[0.5 - e, 0.5, e], [0.5, 0.5 - e, e], [e, e, 1 - 2 * e]]
    np.testing.assert_allclose(
        stationary(markov_chain(transition_matrix=matrix)), 1 / 3, rtol=1e-12
    )


def test_rows_are_origins():
    law = stationary(np.array(CASES["stat-transpose"]["input"]["P"]))
    np.testing.assert_allclose(law, [1 / 3, 1 / 2, 1 / 6], rtol=1e-14)


@pytest.mark.parametrize(
    ("case", "classes", "laws"),
    [
        ("stat-identity", "{0}, {1}", [[1], [1]]),
        ("stat-sympy", "{0, 1}, {2, 3}", [[1 / 2, 1 / 2], [4 / 19, 15 / 19]]),
        ("stat-2absorb-ctmc", "{1}, {2}", [[1], [1]]),
    ],
)
def test_several_closed_classes_are_named_and_each_has_its_law(case, classes, laws):
    given_input = CASES[case]["input"]
    matrix = given_input.get("P", given_input.get("Q"))
    with pytest.raises(MultichainError, match=re.escape(f"2 closed classes: {classes}; ")):
        stationary(matrix)
    for found, law in zip(recurrent_classes(matrix), laws, strict=True):
        np.testing.assert_allclose(found.stationary, law, rtol=1e-14)


def test_many_large_classes_are_listed_in_short():
    chain = sparse.block_diag([np.full((5, 5), 0.2)] * 6)
    with pytest.raises(MultichainError, match=re.escape("{0, 1, 2, 3, ... (5 states)}, {5,")):
        stationary(chain)


def six_states():
    """A, P, T, W, L, K of the case stat-reducible6."""
    matrix = np.zeros((6, 6))
    matrix[0, [1, 2]] = 0.5
    matrix[1, [2, 5]] = 0.99, 0.01
    matrix[2, [1, 3]] = 0.8, 0.2
    matrix[3, 4] = matrix[4, 3] = matrix[5, 5] = 1
    return matrix


def test_the_long_run_of_a_reducible_chain_with_a_periodic_class():
    law = long_run(markov_chain(transition_matrix=six_states()), 0)
    answer = CASES["stat-reducible6"]["right_answer"]
    half = float(answer["long-run fraction W = L"])
    np.testing.assert_allclose(law, [0, 0, 0, half, half, 9 / 208], rtol=1e-14)
    found = recurrent_classes(six_states())
    assert [(c.states.tolist(), c.period) for c in found] == [([3, 4], 2), ([5], 1)]


def test_the_long_run_starts_from_the_given_law():
    np.testing.assert_allclose(long_run(np.eye(2), CASES["init-two-bscc"]["input"]["initial"]), 0.5)
    matrix = CASES["stat-2absorb-ctmc"]["input"]["Q"]
    np.testing.assert_allclose(long_run(matrix, 0), [0, 0.5, 0.5])
    np.testing.assert_allclose(long_run(matrix, [0.5, 0.5, 0.0]), [0, 0.75, 0.25])


def test_a_leak_far_below_rounding_decides_where_the_chain_ends():
    rates = ([0, 1, 1, 0], [1, 0, 2, 3], [1.0, 1.0, 1e-20, 3e-20])
    np.testing.assert_allclose(
        long_run(markov_chain(rates=rates), 0), [0, 0, 0.25, 0.75], rtol=1e-14
    )


@pytest.mark.parametrize("scale", CASES["stat-scale"]["input"]["c"])
def test_the_law_does_not_depend_on_the_unit_of_time(scale):
    n = 21
    up = (np.arange(n - 1), np.arange(1, n), np.full(n - 1, 2.0 * scale))
    down = (np.arange(1, n), np.arange(n - 1), np.full(n - 1, 3.0 * scale))
    law = stationary(markov_chain(rates=tuple(map(np.concatenate, zip(up, down, strict=True)))))
    assert law[0] == pytest.approx(0.33340017532527326, rel=1e-14)
    np.testing.assert_allclose(law[1:] / law[:-1], 2 / 3, rtol=1e-14)


def test_two_blocks_with_a_weak_link_get_their_masses():
    ring = np.arange(10)
    origin = np.concatenate([ring, 10 + ring, [0, 10]])
    target = np.concatenate([(ring + 1) % 10, 10 + (ring + 1) % 10, [10, 0]])
    rate = np.concatenate([np.ones(20), [1e-10, 2e-10]])
    law = stationary(markov_chain(rates=(origin, target, rate)))
    assert law[:10].sum() == pytest.approx(2 / 3, rel=1e-9)
    np.testing.assert_allclose(law[:10], 2 / 30, rtol=1e-8)


def test_a_cycle_of_two_is_not_a_problem():
    np.testing.assert_allclose(stationary(CASES["jacobi-2state"]["input"]["Q"]), 0.5)
    np.testing.assert_allclose(stationary([[0, 1], [1, 0]]), 0.5)


def test_transient_states_have_weight_zero():
    np.testing.assert_allclose(stationary([[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0]]), [0, 0.5, 0.5])


@pytest.mark.parametrize("ratio", [0.5, 2.0, 1e3])
def test_a_long_birth_death_chain_neither_overflows_nor_loses_entries(ratio):
    n = 20_000
    k = np.arange(n - 1)
    rates = (np.r_[k, k + 1], np.r_[k + 1, k], np.r_[np.full(n - 1, ratio), np.ones(n - 1)])
    law = stationary(markov_chain(rates=rates))
    top = law[::-1] if ratio > 1 else law
    quotient = min(ratio, 1 / ratio)
    np.testing.assert_allclose(top[:50], (1 - quotient) * quotient ** np.arange(50), rtol=1e-13)


def grid(width, arrival=1.0, service=1.7):
    """Two independent M/M/1 queues with width places, the law being a product."""
    i, j = np.divmod(np.arange(width * width), width)
    origin, target, rate = [], [], []
    for axis, step in ((i, width), (j, 1)):
        up, down = np.flatnonzero(axis < width - 1), np.flatnonzero(axis > 0)
        origin += [up, down]
        target += [up + step, down - step]
        rate += [np.full(up.size, arrival), np.full(down.size, service)]
    one = (arrival / service) ** np.arange(width)
    one /= one.sum()
    return markov_chain(rates=tuple(map(np.concatenate, (origin, target, rate)))), np.outer(
        one, one
    ).ravel()


@pytest.mark.parametrize(
    ("limits", "accuracy"),
    [({}, 1e-13), ({"REDUCTION_WORK": 0}, 1e-6)],
)
def test_both_methods_find_a_product_form_law(monkeypatch, limits, accuracy):
    for name, value in limits.items():
        monkeypatch.setattr(irreducible, name, value)
    chain, expected = grid(30)
    law = stationary(chain)
    assert (law >= 0).all()
    assert law.sum() == pytest.approx(1.0, abs=1e-14)
    likely = expected > 1e-6
    np.testing.assert_allclose(law[likely], expected[likely], rtol=accuracy)


def test_a_residual_above_the_tolerance_is_an_error_that_carries_the_law(monkeypatch):
    chain, expected = grid(10)
    with pytest.raises(SolveError, match="relative residual") as caught:
        stationary(chain, tolerance=1e-30)
    np.testing.assert_allclose(caught.value.partial, expected, rtol=1e-12)


def test_large_transient_parts_are_solved_too(monkeypatch):
    rng = np.random.default_rng(3)
    n = 40
    rates = rng.random((n, n)) * (rng.random((n, n)) < 0.2)
    rates[-3:] = 0
    rates[:, -3:] += 0.01 * rng.random((n, 3))
    rates[-3:] = 0
    chain = markov_chain(rates=triplets(rates))
    expected = long_run(chain, 0)
    monkeypatch.setitem(long_run.__globals__, "DENSE_TRANSIENT", 0)
    np.testing.assert_allclose(long_run(chain, 0), expected, rtol=1e-12)


def test_matrices_are_taken_for_what_their_rows_sum_to():
    assert not chain_of(np.zeros((2, 2))).discrete
    assert not chain_of(sparse.csr_matrix([[-1.0, 1.0], [0, 0]])).discrete
    assert chain_of([[0.5, 0.5], [1, 0]]).discrete


def test_a_model_without_decisions_is_a_chain():
    law = stationary(tabular([[[0, 1], [1, 0]]]))
    np.testing.assert_allclose(law, 0.5)
    assert recurrent_classes(tabular([[[0, 1], [1, 0]]]))[0].period == 2
    with pytest.raises(InputError, match="has decisions"):
        stationary(tabular([np.eye(2), np.eye(2)]))


@pytest.mark.parametrize(
    "initial",
    [2, -1, 0.5, [1.0], [0.5, 0.4], [1.5, -0.5], [np.nan, 1.0], None, "a", True, np.nan],
)
def test_a_wrong_initial_law_is_refused(initial):
    with pytest.raises(InputError, match="initial"):
        long_run(np.eye(2), initial)


def test_a_policy_for_a_chain_is_refused():
    with pytest.raises(InputError, match="no decisions"):
        stationary(np.eye(2), policy=0)


def test_the_classes_are_those_of_the_graph():
    chain = markov_chain(transition_matrix=six_states())
    assert [c.states.tolist() for c in recurrent_classes(chain)] == [
        c.tolist() for c in closed_classes(chain.rates)
    ]
