"""The engine against the second reading, on random models."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import mdpcloud as mc
from mdpcloud.engine import fused
from mdpcloud.solve.optimise import SOLVERS
from tests.common import interpreter
from tests.common.conftest import FORMS, FUSED, compile_as
from tests.common.exact import exact_optimum
from tests.common.random_models import Maker, models, returning_models

LIMIT = settings(max_examples=40)


def every_form(model: mc.Model) -> dict[str, Any]:
    return {form: compile_as(model, form) for form in FORMS}


def right_hand_side(problem: Any, h: Any, discount: float = 0.0) -> Any:
    work, out = problem.pack(h), problem.pack(np.zeros(problem.n))
    low, high = problem.backup(work, out, step=1.0, discount=discount)
    v = problem.unpack(out) - h
    assert abs(low - v.min()) <= 1e-10
    assert abs(high - v.max()) <= 1e-10
    lower, upper = problem.certify(problem.pack(h), discount=discount)
    assert lower <= v.min() + 1e-12 * (1 + np.abs(v).max())
    assert upper >= v.max() - 1e-12 * (1 + np.abs(v).max())
    assert upper - lower <= np.ptp(v) + 1e-10
    return v


@LIMIT
@given(models())
def test_every_form_sweeps_like_the_second_reading(model: mc.Model) -> None:
    plain = interpreter.interpret(model)
    h = np.random.default_rng(1).uniform(-1.0, 1.0, len(plain.states))
    expected = interpreter.values(plain, h, 0.3)
    for form, problem in every_form(model).items():
        assert problem.n == len(plain.states)
        error = np.abs(right_hand_side(problem, h, 0.3) - expected).max()
        assert error <= 1e-12 * (problem.rate_bound + problem.cost_scale + 1), form


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_fused_sweeps_are_like_the_second_reading(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "FEWEST", 0)
    model = Maker(np.random.default_rng(seed), (4, 3, 5)).model()
    plain = interpreter.interpret(model)
    h = np.random.default_rng(1).uniform(-1.0, 1.0, len(plain.states))
    expected = interpreter.values(plain, h, 0.3)
    for form in FUSED:
        problem = compile_as(model, form)
        assert np.abs(right_hand_side(problem, h, 0.3) - expected).max() <= 1e-11
        under = problem.under(problem.greedy(problem.pack(h), 0.0))
        assert np.abs(right_hand_side(under, h, 0.3) - expected).max() <= 1e-11


@LIMIT
@given(models())
def test_every_form_follows_its_greedy_policy(model: mc.Model) -> None:
    plain = interpreter.interpret(model)
    h = np.random.default_rng(2).uniform(-1.0, 1.0, len(plain.states))
    expected = interpreter.values(plain, h)
    choices = []
    for form, problem in every_form(model).items():
        choice = problem.greedy(problem.pack(h), 0.0)
        choices.append(choice)
        error = np.abs(right_hand_side(problem.under(choice), h) - expected).max()
        assert error <= 1e-12 * (problem.rate_bound + problem.cost_scale + 1), form
    assert all(np.array_equal(choice, choices[0]) for choice in choices)


@LIMIT
@given(models())
def test_every_form_follows_any_policy(model: mc.Model) -> None:
    plain = interpreter.interpret(model)
    rng = np.random.default_rng(3)
    h = rng.uniform(-1.0, 1.0, len(plain.states))
    choice = np.full((len(plain.names), len(plain.states)), -1, dtype=np.int8)
    chances: interpreter.Chances = [{} for _ in plain.states]
    for i, alive in enumerate(plain.terms):
        for term in alive:
            action = int(rng.choice([o.action for o in term.options]))
            choice[term.term, i] = action
            chances[i][term.term] = {action: 1.0}
    q, c = interpreter.under(plain, chances)
    for form, problem in every_form(model).items():
        error = np.abs(right_hand_side(problem.under(choice), h) - (c + q @ h)).max()
        assert error <= 1e-12 * (problem.rate_bound + problem.cost_scale + 1), form


@LIMIT
@given(returning_models(decades=0.0))
def test_every_solver_meets_the_tolerance_around_the_exact_optimum(model: mc.Model) -> None:
    exact = exact_optimum(interpreter.interpret(model))
    for solver in SOLVERS:
        solution = mc.solve(model, solver=solver, tolerance=1e-8)
        lower, upper = solution.bounds
        assert Fraction(lower) <= exact <= Fraction(upper), solver


@LIMIT
@given(returning_models(decades=6.0))
def test_bounds_enclose_the_exact_optimum_with_rates_over_twelve_decades(model: mc.Model) -> None:
    exact = exact_optimum(interpreter.interpret(model))
    for solver in SOLVERS:
        partial = mc.solve(model, solver=solver, tolerance=1e-8, max_iterations=3000, strict=False)
        lower, upper = partial.bounds
        assert Fraction(lower) <= exact <= Fraction(upper), solver
