"""What every form of every compiled model must satisfy."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mdpcloud.engine import compile_model, fused
from mdpcloud.errors import InputError
from tests.common import interpreter
from tests.common.conftest import FORMS, Compiled, compiled, forms, small_pieces
from tests.common.exact import bracket
from tests.models import Case, case, cases

STEP, SHIFT, DISCOUNT = 0.03, 0.7, 0.25
ROUNDING = 1e-12  # relative to the rate bound times max |h|


def some_values(n: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, n)


def a_policy(one: Compiled, seed: int = 2) -> tuple[Any, interpreter.Chances]:
    """Random allowed actions, as the engine's choice and as the interpreter's chances."""
    rng = np.random.default_rng(seed)
    choice = np.full((len(one.problem.terms), one.problem.n), -1, dtype=np.int8)
    chances: interpreter.Chances = []
    for i, alive in enumerate(one.plain.terms):
        chances.append({})
        for term in alive:
            action = int(rng.choice([o.action for o in term.options]))
            choice[term.term, i] = action
            chances[i][term.term] = {action: 1.0}
    return choice, chances


def backup(problem: Any, h: NDArray[Any], **options: float) -> tuple[NDArray[Any], float, float]:
    work = problem.pack(h)
    out = problem.pack(np.zeros(problem.n))
    low, high = problem.backup(work, out, **options)
    assert np.array_equal(problem.unpack(work), h)
    return problem.unpack(out), low, high


def test_states_are_the_same_in_the_same_order(one: Compiled) -> None:
    assert one.problem.n == len(one.plain.states)
    for number, state in enumerate(one.plain.states):
        label = re.sub(r"\w+=", "", one.problem.label(number))
        assert tuple(map(int, re.findall(r"\d+", label))) == state


def test_terms_have_the_names_of_the_model(one: Compiled) -> None:
    assert tuple(t.name for t in one.problem.terms) == one.plain.names
    assert tuple(t.actions for t in one.problem.terms) == one.plain.actions


def test_a_term_is_a_decision_if_some_state_has_two_allowed_actions(one: Compiled) -> None:
    several = {t.term for alive in one.plain.terms for t in alive if len(t.options) > 1}
    assert [t.decision for t in one.problem.terms] == [
        e in several for e in range(len(one.plain.names))
    ]


def test_the_rate_bound_is_the_largest_total_rate_with_a_margin(one: Compiled) -> None:
    """Self-loops and actions that are not allowed may count or not."""

    def out(i: int, own: bool) -> float:
        return sum(
            t.rate * max(sum(w for w, y in o.moves if own or y != i) for o in t.options)
            for t in one.plain.terms[i]
        )

    states = range(one.problem.n)
    least = 1.05 * max(out(i, False) for i in states)
    most = 1.05 * max(out(i, True) for i in states)
    assert least * (1 - 1e-12) <= one.problem.rate_bound <= most * (1 + 1e-12)


def test_the_cost_scale_is_the_largest_cost_rate(one: Compiled) -> None:
    largest = max(
        abs(cost) + sum(t.rate * max(abs(o.cost) for o in t.options) for t in alive)
        for cost, alive in zip(one.plain.cost, one.plain.terms, strict=True)
    )
    assert one.problem.cost_scale == pytest.approx(largest, rel=1e-12)


def test_packing_and_unpacking_gives_the_values_back(one: Compiled) -> None:
    h = some_values(one.problem.n)
    assert np.array_equal(one.problem.unpack(one.problem.pack(h)), h)


@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
def test_a_backup_equals_the_second_reading(one: Compiled, discount: float) -> None:
    h = some_values(one.problem.n)
    out, low, high = backup(one.problem, h, step=STEP, shift=SHIFT, discount=discount)
    v = interpreter.values(one.plain, h, discount)
    assert np.abs(out - (h + STEP * (v - SHIFT))).max() <= ROUNDING * STEP * one.scale
    assert low == pytest.approx(v.min(), abs=ROUNDING * one.scale)
    assert high == pytest.approx(v.max(), abs=ROUNDING * one.scale)


def test_a_backup_of_large_values_equals_the_second_reading(one: Compiled) -> None:
    h = 1e6 * some_values(one.problem.n, seed=3)
    out, low, high = backup(one.problem, h, step=1.0)
    v = interpreter.values(one.plain, h)
    assert np.abs(out - (h + v)).max() <= 1e6 * ROUNDING * one.scale
    assert (low, high) == pytest.approx((v.min(), v.max()), abs=1e6 * ROUNDING * one.scale)


def test_the_forms_agree(a_case: Case) -> None:
    h = some_values(compiled(a_case.name, "rows").n, seed=4)
    rows, *results = (
        backup(compiled(a_case.name, form), h, step=STEP)
        for form in sorted(forms(a_case), key="rows".__ne__)
    )
    problem = compiled(a_case.name, "rows")
    bound = ROUNDING * (problem.rate_bound + problem.cost_scale)
    for out, low, high in results:
        assert np.abs(out - rows[0]).max() <= STEP * bound
        assert (low, high) == pytest.approx(rows[1:], abs=bound)


@pytest.mark.parametrize("discount", [0.0, DISCOUNT])
def test_certified_bounds_enclose_the_exact_right_hand_side(one: Compiled, discount: float) -> None:
    h = some_values(one.problem.n, seed=5)
    low, high = one.problem.certify(one.problem.pack(h), discount=discount)
    exact = [Fraction(value) for value in h]
    v = [
        Fraction(cost)
        - Fraction(discount) * exact[i]
        + sum(Fraction(t.rate) * min(bracket(o, exact, i) for o in t.options) for t in alive)
        for i, (cost, alive) in enumerate(zip(one.plain.cost, one.plain.terms, strict=True))
    ]
    assert Fraction(low) <= min(v)
    assert max(v) <= Fraction(high)
    assert float(min(v)) - low <= 1e-12 * one.scale
    assert high - float(max(v)) <= 1e-12 * one.scale


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_the_greedy_action_is_the_first_within_the_margin(one: Compiled, margin: float) -> None:
    h = some_values(one.problem.n, seed=6)
    choice = one.problem.greedy(one.problem.pack(h), margin)
    assert choice.shape == (len(one.problem.terms), one.problem.n)
    for i, alive in enumerate(one.plain.terms):
        dead = set(range(len(one.problem.terms))) - {t.term for t in alive}
        assert all(choice[e, i] == -1 for e in dead)
        for term in alive:
            worths = [(o.action, term.rate * interpreter.worth(o, h, i)) for o in term.options]
            best = min(value for _, value in worths)
            rounding = 1e-12 * one.scale
            sure = next(a for a, value in worths if value <= best + margin + rounding)
            last = next(a for a, value in worths if value <= best + max(margin - rounding, 0))
            assert choice[term.term, i] in (sure, last)


def test_a_fixed_policy_is_swept_like_the_second_reading(one: Compiled) -> None:
    choice, chances = a_policy(one)
    h = some_values(one.problem.n, seed=7)
    q, c = interpreter.under(one.plain, chances)
    v = c + q @ h
    fixed = one.problem.under(choice)
    out, low, high = backup(fixed, h, step=1.0)
    assert np.abs(out - (h + v)).max() <= ROUNDING * one.scale
    assert (low, high) == pytest.approx((v.min(), v.max()), abs=ROUNDING * one.scale)
    lower, upper = fixed.certify(fixed.pack(h))
    assert lower <= v.min() + ROUNDING * one.scale
    assert upper >= v.max() - ROUNDING * one.scale


def test_the_greedy_policy_attains_the_minimum(one: Compiled) -> None:
    h = some_values(one.problem.n, seed=8)
    fixed = one.problem.under(one.problem.greedy(one.problem.pack(h), 0.0))
    out, _, _ = backup(fixed, h, step=1.0)
    v = interpreter.values(one.plain, h)
    assert np.abs(out - (h + v)).max() <= ROUNDING * one.scale


def test_rows_list_every_allowed_action_once_in_order(one: Compiled) -> None:
    rows = one.problem.rows()
    expected = [
        (i, t.term, o.action, t.rate, t.rate * o.cost)
        for i, alive in enumerate(one.plain.terms)
        for t in alive
        for o in t.options
    ]
    found = zip(rows.state, rows.term, rows.action, rows.rate, rows.cost, strict=True)
    assert [tuple(map(int, r[:3])) for r in found] == [e[:3] for e in expected]
    np.testing.assert_allclose(rows.rate, [e[3] for e in expected], rtol=1e-14)
    np.testing.assert_allclose(rows.cost, [e[4] for e in expected], rtol=1e-14)
    np.testing.assert_allclose(rows.cost_rate, one.plain.cost, rtol=1e-14)


def test_rows_hold_the_rates_of_the_moves_without_self_loops(one: Compiled) -> None:
    transitions = one.problem.rows().transitions
    expected = np.zeros(transitions.shape)
    row = 0
    for i, alive in enumerate(one.plain.terms):
        for term in alive:
            for option in term.options:
                for w, y in option.moves:
                    expected[row, y] += term.rate * w * (y != i)
                row += 1
    np.testing.assert_allclose(transitions.toarray(), expected, rtol=1e-14)
    assert transitions.nnz == np.count_nonzero(expected)


def test_a_step_that_depends_on_the_state_has_no_lattice_form() -> None:
    with pytest.raises(InputError, match="lattice form"):
        compile_model(case("closed phase-type network").build(), form="lattice")


def test_most_models_have_all_forms() -> None:
    assert sum(set(forms(one)) >= set(FORMS) for one in cases()) >= 15


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [("retrial", "lattice"), ("routing C6", "indexed")])
def test_two_threads_sweep_like_one(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "FEWEST", 0)
    with small_pieces():
        alone, both = (compile_model(case(name).build(), form=form, threads=t) for t in (1, 2))
    h = some_values(alone.n, seed=9)
    out, low, high = backup(both, h, step=STEP)
    expected = backup(alone, h, step=STEP)
    assert np.array_equal(out, expected[0])
    assert (low, high) == expected[1:]


def test_fused_sweeps_are_used_where_they_pay() -> None:
    large: Any = compile_model(case("routing A2, wide").build())
    assert not fused.pays(large.program, large.n)
    assert fused.pays(large.program, 100_000)
