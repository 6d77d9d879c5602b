"""What every solver and evaluation must satisfy on every model."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.solve.optimise import SOLVERS
from tests.common import interpreter
from tests.common.conftest import read
from tests.models import Case, Heuristic, case

NAMES = [*SOLVERS, None]
TOLERANCE = 1e-9

by_solver = pytest.mark.parametrize("solver", NAMES, ids=lambda name: str(name))


@cache
def model_of(name: str) -> Any:
    return case(name).build()


@cache
def solved(name: str, solver: str | None = None) -> Any:
    return mc.solve(model_of(name), solver=solver, tolerance=TOLERANCE)


@cache
def dense_optimum(name: str) -> float:
    sign = -1 if case(name).rewards else 1
    return sign * interpreter.optimum(read(name))[0]


@cache
def evaluated(name: str, heuristic: str) -> Any:
    return mc.evaluate(model_of(name), rules_of(name, heuristic))


def rules_of(name: str, heuristic: str) -> Any:
    rules: Any = case(name).heuristics[heuristic].rules
    return mc.policy(model_of(name), rules)


def slack(one: Case) -> float:
    """How far a reference number and a dense solve may be from the truth."""
    return max(one.tolerance, 1e-11 * max(1.0, abs(float(one.optimum or 1.0))))


@by_solver
def test_the_bounds_enclose_the_optimum(a_case: Case, solver: str | None) -> None:
    solution = solved(a_case.name, solver)
    lower, upper = solution.bounds
    reference = a_case.optimum if a_case.optimum is not None else dense_optimum(a_case.name)
    assert solution.converged
    assert lower - slack(a_case) <= float(reference) <= upper + slack(a_case)
    assert lower <= solution.gain <= upper
    assert np.all(solution.gains == solution.gain)


@by_solver
def test_the_bounds_are_as_close_as_asked(a_case: Case, solver: str | None) -> None:
    solution = solved(a_case.name, solver)
    lower, upper = solution.bounds
    scale = interpreter_scale(a_case.name)
    assert upper - lower <= max(TOLERANCE * abs(solution.gain), 1e-12 * scale) * (1 + 1e-9)


def interpreter_scale(name: str) -> float:
    plain = read(name)
    return max(
        abs(cost) + sum(t.rate * max(abs(o.cost) for o in t.options) for t in alive)
        for cost, alive in zip(plain.cost, plain.terms, strict=True)
    )


def test_the_solvers_agree_to_the_sum_of_their_brackets(a_case: Case) -> None:
    solutions = [solved(a_case.name, solver) for solver in NAMES]
    assert max(s.bounds[0] for s in solutions) <= min(s.bounds[1] for s in solutions)
    widths = [s.bounds[1] - s.bounds[0] for s in solutions]
    gains = [s.gain for s in solutions]
    assert max(gains) - min(gains) <= sum(widths)


@by_solver
def test_the_values_solve_the_optimality_equation(a_case: Case, solver: str | None) -> None:
    solution = solved(a_case.name, solver)
    sign = -1 if a_case.rewards else 1
    h = sign * solution.values
    v = sign * interpreter.values(read(a_case.name), h)
    lower, upper = solution.bounds
    rounding = 1e-13 * (interpreter_scale(a_case.name) + np.abs(h).max() * 100)
    assert lower - rounding <= v.min()
    assert v.max() <= upper + rounding


@by_solver
def test_the_policy_costs_no_more_than_the_upper_bound(a_case: Case, solver: str | None) -> None:
    solution = solved(a_case.name, solver)
    evaluation = mc.evaluate(model_of(a_case.name), solution.policy)
    lower, upper = solution.bounds
    below, above = evaluation.bounds
    worst = above if a_case.rewards else below
    assert (worst >= lower - 1e-12) if a_case.rewards else (worst <= upper + 1e-12)
    assert below <= upper + 1e-12 if not a_case.rewards else above >= lower - 1e-12


def test_the_bounds_of_an_evaluation_enclose_the_reference(a_case: Case, heuristic: str) -> None:
    known: Heuristic = a_case.heuristics[heuristic]
    evaluation = evaluated(a_case.name, heuristic)
    assert evaluation.converged
    if known.cost is not None:
        lower, upper = evaluation.bounds
        assert lower - slack(a_case) <= float(known.cost) <= upper + slack(a_case)
        assert lower <= evaluation.gain <= upper
    for measure, value in known.measures.items():
        lower, upper = evaluation.measures[measure]
        assert lower - slack(a_case) <= float(value) <= upper + slack(a_case)


def test_every_measure_has_bounds_around_the_second_reading(a_case: Case, heuristic: str) -> None:
    plain = read(a_case.name)
    evaluation = evaluated(a_case.name, heuristic)
    assert set(evaluation.measures) == set(plain.measures)
    for measure, (lower, upper) in evaluation.measures.items():
        expected = interpreter.measure(plain, a_case.heuristics[heuristic].rules, measure)
        rounding = 1e-11 * max(1.0, abs(expected))
        assert lower - rounding <= expected <= upper + rounding
        assert upper - lower <= 1e-6 * max(1.0, abs(expected))


def test_the_values_of_an_evaluation_solve_the_poisson_equation(
    a_case: Case, heuristic: str
) -> None:
    plain = read(a_case.name)
    sign = -1 if a_case.rewards else 1
    evaluation = evaluated(a_case.name, heuristic)
    chances = interpreter.chances(plain, a_case.heuristics[heuristic].rules)
    q, c = interpreter.under(plain, chances)
    v = sign * (c + q @ (sign * evaluation.values))
    lower, upper = evaluation.bounds
    rounding = 1e-12 * (interpreter_scale(a_case.name) + np.abs(evaluation.values).max() * 10)
    assert lower - rounding <= v.min()
    assert v.max() <= upper + rounding


def test_no_policy_beats_the_optimum(a_case: Case, heuristic: str) -> None:
    solution, evaluation = solved(a_case.name), evaluated(a_case.name, heuristic)
    if a_case.rewards:
        assert evaluation.bounds[0] <= solution.bounds[1]
    else:
        assert evaluation.bounds[1] >= solution.bounds[0]


def test_an_improved_policy_is_never_worse(a_case: Case, heuristic: str) -> None:
    model, before = model_of(a_case.name), evaluated(a_case.name, heuristic)
    after = mc.evaluate(model, mc.improve(model, before))
    if a_case.rewards:
        assert after.bounds[1] >= before.bounds[0]
    else:
        assert after.bounds[0] <= before.bounds[1]


def test_improving_the_optimal_policy_keeps_its_gain(a_case: Case) -> None:
    model, solution = model_of(a_case.name), solved(a_case.name)
    improved = mc.evaluate(model, mc.improve(model, solution.policy))
    width = solution.bounds[1] - solution.bounds[0]
    assert improved.gain == pytest.approx(solution.gain, abs=2 * width + 1e-11)


@by_solver
def test_discounted_values_solve_their_equation(a_case: Case, solver: str | None) -> None:
    plain = read(a_case.name)
    sign = -1 if a_case.rewards else 1
    if a_case.arrays:
        criterion, scale, discount = mc.Discounted(factor=0.9), 0.9, 1 / 0.9 - 1
    else:
        criterion, scale, discount = mc.Discounted(rate=0.1), 1.0, 0.1
    solution = mc.solve(model_of(a_case.name), criterion, solver=solver, tolerance=1e-9)
    lower, upper = solution.bounds
    # In discrete time V = c + b P V is c / b + (P - I) V = (1 / b - 1) V.
    h = sign * scale * solution.values
    residual = interpreter.values(plain, h, discount)
    error = np.abs(residual).max() / discount / scale
    size = np.abs(solution.values).max()
    assert np.all(lower <= solution.values)
    assert np.all(solution.values <= upper)
    assert error <= 1.01 * (upper - lower).max() + 1e-11 * size
    assert (upper - lower).max() <= 1e-9 * size + 1e-11 * interpreter_scale(a_case.name) / discount


def test_a_solution_starts_the_next_solve(a_case: Case) -> None:
    solution = solved(a_case.name)
    again = mc.solve(
        model_of(a_case.name), solver="value_iteration", tolerance=1e-8, start=solution
    )
    assert again.bounds[0] <= solution.bounds[1]
    assert solution.bounds[0] <= again.bounds[1]
    assert again.iterations <= 50


def test_solutions_pickle_and_come_back_from_a_file(a_case: Case, tmp_path: Path) -> None:
    solution = solved(a_case.name)
    solution.save(tmp_path / "solution.npz")
    loaded: Any = mc.load_solution(tmp_path / "solution.npz")
    for copy in (pickle.loads(pickle.dumps(solution)), loaded):
        assert copy.bounds == solution.bounds
        assert copy.gain == solution.gain
        assert copy.status is solution.status
        assert copy.criterion == solution.criterion
        assert np.array_equal(copy.values, solution.values)
        assert set(copy.policy.actions) == set(solution.policy.actions)
        for decision, actions in solution.policy.actions.items():
            assert np.array_equal(copy.policy.actions[decision], actions)


def test_policies_pickle_and_can_be_given_back_as_arrays(a_case: Case, heuristic: str) -> None:
    model, policy = model_of(a_case.name), rules_of(a_case.name, heuristic)
    arrays: dict[str, Any] = {
        decision: actions
        if actions.ndim == 1
        else dict(zip(policy.names[decision], actions, strict=True))
        for decision, actions in policy.actions.items()
    }
    for copy in (pickle.loads(pickle.dumps(policy)), mc.policy(model, arrays)):
        assert set(copy.actions) == set(policy.actions)
        assert copy.names == policy.names
        for decision, actions in policy.actions.items():
            np.testing.assert_allclose(copy.actions[decision], actions, atol=1e-15)


def test_a_policy_is_what_its_rules_say(a_case: Case, heuristic: str) -> None:
    plain, policy = read(a_case.name), rules_of(a_case.name, heuristic)
    chances = interpreter.chances(plain, a_case.heuristics[heuristic].rules)
    for e, term in enumerate(plain.names):
        if term not in policy.actions:
            continue
        actions = policy.actions[term]
        for i, chance in enumerate(chances):
            if actions.ndim == 2:
                expected = [chance.get(e, {}).get(a, 0.0) for a in range(len(actions))]
                assert actions[:, i] == pytest.approx(expected, abs=1e-15)
            else:
                assert {int(actions[i])} == (set(chance[e]) if e in chance else {-1})
