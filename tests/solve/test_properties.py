"""Bounds enclose what exact rational arithmetic says, however early a solve ends."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.solve.optimise import SOLVERS
from tests.common.exact import better, evaluate, exact_optimum, solve_exactly
from tests.common.interpreter import Interpreted, Option, interpret
from tests.common.random_models import returning_models

some = settings(max_examples=30)
by_solver = pytest.mark.parametrize("solver", SOLVERS)
decades = st.floats(-6.0, 6.0).map(lambda x: 10.0**x)

Exact = list[Fraction]
Chosen = Sequence[dict[int, Option]]


def encloses(bounds: tuple[Any, Any], exact: Fraction) -> bool:
    """Whether bounds hold; those that differ by state hold if the extreme ones do."""
    return Fraction(float(np.min(bounds[0]))) <= exact <= Fraction(float(np.max(bounds[1])))


# --- discounting ----------------------------------------------------------------------------------


def discounted_values(problem: Interpreted, policy: Chosen, rate: Fraction) -> Exact:
    """Solve alpha h = c + Q h of a policy exactly."""
    n = len(problem.states)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    right = [-Fraction(c) for c in problem.cost]
    for i, alive in enumerate(problem.terms):
        matrix[i][i] -= rate
        for term in alive:
            option, speed = policy[i][term.term], Fraction(term.rate)
            right[i] -= speed * Fraction(option.cost)
            for w, y in option.moves:
                matrix[i][y] += speed * Fraction(w)
                matrix[i][i] -= speed * Fraction(w)
    return solve_exactly(matrix, right)


def discounted_optimum(problem: Interpreted, rate: Fraction) -> Exact:
    """Optimal discounted values, by policy iteration in fractions."""
    policy: Chosen = first_policy(problem)
    while True:
        h = discounted_values(problem, policy, rate)
        after = [
            {t.term: better(t, policy[i][t.term], h, i) for t in alive}
            for i, alive in enumerate(problem.terms)
        ]
        if after == policy:
            return h
        policy = after


def first_policy(problem: Interpreted) -> list[dict[int, Option]]:
    return [{t.term: t.options[0] for t in alive} for alive in problem.terms]


@by_solver
@some
@given(model=returning_models(decades=1.0), rate=st.sampled_from([1e-3, 0.1, 3.0]))
def test_discounted_bounds_enclose_the_exact_values(
    solver: str, model: mc.Model, rate: float
) -> None:
    exact = discounted_optimum(interpret(model), Fraction(rate))
    criterion = mc.Discounted(rate=rate)
    found = mc.solve(model, criterion, solver=solver, tolerance=1e-9, strict=False)
    for low, high, value in zip(*found.bounds, exact, strict=True):
        assert encloses((low, high), value)


@some
@given(model=returning_models(decades=6.0), rate=decades)
def test_discounted_bounds_hold_over_twelve_decades(model: mc.Model, rate: float) -> None:
    exact = discounted_optimum(interpret(model), Fraction(rate))
    criterion = mc.Discounted(rate=rate)
    found = mc.solve(model, criterion, max_iterations=300, strict=False)
    for low, high, value in zip(*found.bounds, exact, strict=True):
        assert encloses((low, high), value)


# --- policies -------------------------------------------------------------------------------------


@some
@given(model=returning_models(decades=6.0))
def test_the_cost_of_a_policy_lies_in_its_bounds(model: mc.Model) -> None:
    problem = interpret(model)
    chosen = first_policy(problem)
    exact, _ = evaluate(problem, chosen)
    found = mc.evaluate(model, as_rules(model, problem, chosen), strict=False)
    assert encloses(found.bounds, exact)


@some
@given(model=returning_models(decades=1.0), rate=st.sampled_from([1e-3, 0.1, 3.0]))
def test_the_discounted_cost_of_a_policy_lies_in_its_bounds(model: mc.Model, rate: float) -> None:
    problem = interpret(model)
    chosen = first_policy(problem)
    exact = discounted_values(problem, chosen, Fraction(rate))
    rules = as_rules(model, problem, chosen)
    found = mc.evaluate(model, rules, mc.Discounted(rate=rate), strict=False)
    for low, high, value in zip(*found.bounds, exact, strict=True):
        assert encloses((low, high), value)


def as_rules(model: mc.Model, problem: Interpreted, chosen: Chosen) -> dict[str, Any]:
    """The first allowed action of every term in every state, as arrays."""
    rules = {}
    for e, name in enumerate(problem.names):
        rules[name] = np.array([c[e].action if e in c else 0 for c in chosen])
    decided = mc.solve(model, max_iterations=1, strict=False).policy.names
    return {name: rule for name, rule in rules.items() if name in decided}


# --- tabular models -------------------------------------------------------------------------------


@st.composite
def stiff_tables(draw: Any) -> tuple[np.ndarray, np.ndarray]:
    """Transition probabilities (A, S, S) over twelve decades and costs (S, A); all communicate."""
    n, actions = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    P = 10.0 ** rng.uniform(-12, 0, (actions, n, n))
    P[:, np.arange(n), np.arange(n)] += rng.random((actions, n)) * (rng.random() < 0.5)
    P /= P.sum(axis=2, keepdims=True)
    return P, rng.normal(size=(n, actions))


def exact_table_gain(P: np.ndarray, costs: np.ndarray, actions: Sequence[int]) -> Fraction:
    """Gain of a policy; what a state does not send elsewhere, it keeps."""
    n = len(actions)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    for i, a in enumerate(actions):
        for j in range(n):
            if i != j:
                matrix[i][j] += Fraction(P[a, i, j])
                matrix[i][i] -= Fraction(P[a, i, j])
        matrix[i][0] = Fraction(-1)
    right = [-Fraction(costs[i, a]) for i, a in enumerate(actions)]
    return solve_exactly(matrix, right)[0]


@by_solver
@some
@given(table=stiff_tables())
def test_bounds_enclose_the_exact_optimum_of_stiff_tables(
    solver: str, table: tuple[np.ndarray, np.ndarray]
) -> None:
    P, costs = table
    policies = np.ndindex(*[P.shape[0]] * P.shape[1])
    exact = min(exact_table_gain(P, costs, policy) for policy in policies)
    model = mc.tabular(P, costs=costs)
    found = mc.solve(model, solver=solver, max_iterations=2000, strict=False)
    assert encloses(found.bounds, exact)
    rewarded = mc.solve(
        mc.tabular(P, rewards=-costs), solver=solver, max_iterations=2000, strict=False
    )
    assert encloses(rewarded.bounds, -exact)


@some
@given(table=stiff_tables(), factor=st.sampled_from([0.0, 0.5, 0.9, 0.999]))
def test_discounted_bounds_enclose_the_exact_values_of_stiff_tables(
    table: tuple[np.ndarray, np.ndarray], factor: float
) -> None:
    P, costs = table
    n, b = P.shape[1], Fraction(factor)
    exact: list[Fraction] = []
    for policy in np.ndindex(*[P.shape[0]] * n):
        matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
        for i, a in enumerate(policy):
            leaving = sum((Fraction(P[a, i, j]) for j in range(n) if j != i), Fraction(0))
            matrix[i][i] -= b * (1 - leaving)
            for j in range(n):
                if j != i:
                    matrix[i][j] -= b * Fraction(P[a, i, j])
        values = solve_exactly(matrix, [Fraction(costs[i, a]) for i, a in enumerate(policy)])
        exact = list(map(min, values, exact)) if exact else values
    found = mc.solve(mc.tabular(P, costs=costs), mc.Discounted(factor=factor), strict=False)
    for low, high, value in zip(*found.bounds, exact, strict=True):
        assert encloses((low, high), value)


# --- partial results ------------------------------------------------------------------------------


@by_solver
@some
@given(model=returning_models(decades=3.0), most=st.integers(1, 40))
def test_bounds_hold_however_few_iterations_there_are(
    solver: str, model: mc.Model, most: int
) -> None:
    exact = exact_optimum(interpret(model))
    found = mc.solve(model, solver=solver, max_iterations=most, strict=False)
    assert encloses(found.bounds, exact)
    assert np.isfinite(found.bounds).all()
    assert found.bounds[0] <= found.gain <= found.bounds[1]


def interrupting(after: int) -> Callable[..., None]:
    """A progress callback that behaves like Ctrl-C after some calls."""
    calls = 0

    def callback(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt

    return callback


@by_solver
@some
@given(model=returning_models(decades=3.0), after=st.integers(0, 5))
def test_an_interrupt_leaves_bounds_that_hold(solver: str, model: mc.Model, after: int) -> None:
    exact = exact_optimum(interpret(model))
    found = mc.solve(
        model, solver=solver, tolerance=1e-12, progress=interrupting(after), strict=False
    )
    assert found.status.name in ("INTERRUPTED", "CONVERGED", "PRECISION", "STALLED")
    assert encloses(found.bounds, exact)


@by_solver
def test_every_limit_raises_an_error_that_carries_the_bounds(solver: str) -> None:
    model = mc.systems.CloudRouting((mc.systems.Node(2, 1.0, 0.1),) * 2, 3.8, 0.6).model()
    best = mc.solve(model, tolerance=1e-11).bounds
    limits: list[dict[str, Any]] = [
        {"max_iterations": 2},
        {"time_limit": 1e-9},
        {"progress": interrupting(0)},
    ]
    for limit in limits:
        with pytest.raises(mc.SolveError) as caught:
            mc.solve(model, solver=solver, tolerance=1e-11, **limit)
        partial: Any = caught.value.partial
        assert partial.bounds[0] <= best[1]
        assert partial.bounds[1] >= best[0]
        assert not partial.converged


@some
@given(model=returning_models(decades=1.0))
def test_every_result_comes_back_from_its_file(
    model: mc.Model, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("results") / "found.npz"
    for found in (mc.solve(model, strict=False), mc.solve(model, mc.Discounted(rate=0.5))):
        found.save(path)
        again = mc.load_solution(path)
        assert type(again) is type(found)
        assert again.status is found.status
        assert again.criterion == found.criterion
        assert np.array_equal(again.bounds, found.bounds)
        assert np.array_equal(again.values, found.values)
        for name, actions in found.policy.actions.items():
            assert np.array_equal(again.policy.actions[name], actions)
        evaluation = mc.evaluate(model, again.policy, strict=False)
        evaluation.save(path)
        assert mc.load_solution(path).bounds == evaluation.bounds
