"""Finite horizons in discrete time, against backward induction in fractions."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.solve.horizon.sweeps import Sweeps
from mdpcloud.solve.limits import Status
from tests.solve.test_horizon import evaluate, solve

some = settings(max_examples=60)
seeds = st.integers(0, 2**32 - 1)
steps = st.integers(1, 12)


def arrays(seed, states=4, actions=3):
    """Probabilities (A, S, S), multiples of 1/1024 of which a third are 0; whole costs (S, A)."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 100, (actions, states, states)) * (rng.random(states) < 0.67)
    weights[..., rng.integers(states)] += 1
    counts = np.floor(1024 * weights / weights.sum(-1, keepdims=True))
    counts[..., 0] += 1024 - counts.sum(-1)
    return counts / 1024, rng.integers(-5, 6, (states, actions)).astype(float)


def exact_optimum(transitions, costs, final, count):
    """Backward induction in fractions: values, and the best actions of each step from the last."""
    chances = [[[Fraction(p) for p in row] for row in matrix] for matrix in transitions]
    v, best = [Fraction(int(x)) for x in final], []
    for _ in range(count):
        q = [
            [
                Fraction(costs[x][a]) + sum(p * y for p, y in zip(chances[a][x], v, strict=True))
                for a in range(len(chances))
            ]
            for x in range(len(v))
        ]
        v = [min(row) for row in q]
        best.append([{a for a, value in enumerate(row) if value == min(row)} for row in q])
    return v, best


def exact_cost(transitions, costs, final, choices):
    """Cost of the choices (steps, states), the last one first."""
    v = [Fraction(int(x)) for x in final]
    for choice in choices:
        v = [
            Fraction(costs[x][a])
            + sum(Fraction(p) * y for p, y in zip(transitions[a][x], v, strict=True))
            for x, a in enumerate(choice)
        ]
    return v


def holds(bounds, exact):
    return all(low <= x <= high for low, x, high in zip(bounds[0], exact, bounds[1], strict=True))


@some
@given(seeds, steps)
def test_bounds_enclose_backward_induction_in_fractions(seed, count):
    transitions, costs = arrays(seed)
    final = np.random.default_rng(seed).integers(-9, 9, 4)
    solution = solve(mc.tabular(transitions, costs=costs), count, final)
    exact, best = exact_optimum(transitions, costs, final, count)
    assert solution.status is Status.CONVERGED
    assert holds(solution.bounds, exact)
    for step, allowed in enumerate(reversed(best)):
        taken = solution.policy.at(step).table()
        assert all(a in some_best for a, some_best in zip(taken, allowed, strict=True))


@some
@given(seeds, steps)
def test_rewards_are_costs_with_the_other_sign(seed, count):
    transitions, costs = arrays(seed)
    final = np.arange(4.0)
    costly = solve(mc.tabular(transitions, costs=costs), count, final)
    rewarding = solve(mc.tabular(transitions, rewards=-costs), count, -final)
    np.testing.assert_array_equal(rewarding.values, -costly.values)
    np.testing.assert_array_equal(rewarding.bounds[0], -costly.bounds[1])
    assert rewarding.policy.times.tolist() == costly.policy.times.tolist()


@some
@given(seeds, steps)
def test_a_policy_that_changes_costs_what_fractions_say(seed, count):
    transitions, costs = arrays(seed)
    model, rng = mc.tabular(transitions, costs=costs), np.random.default_rng(seed)
    tables = rng.integers(0, 3, (count, 4))
    first = mc.policy(model, tables[0])
    rows = [(t, x, tables[t, x]) for t in range(1, count) for x in range(4)]
    changes = {"step": tuple(np.array(part) for part in zip(*rows, strict=True))} if rows else {}
    policy = TimedPolicy(first, changes, count)
    result = evaluate(model, policy, count)
    assert result.status is Status.CONVERGED
    assert holds(result.bounds, exact_cost(transitions, costs, [0] * 4, tables[::-1].tolist()))


@some
@given(seeds, steps)
def test_the_policy_found_costs_what_the_solution_says(seed, count):
    transitions, costs = arrays(seed)
    model = mc.tabular(transitions, costs=costs)
    solution = solve(model, count)
    again = evaluate(model, solution.policy, count)
    assert (again.bounds[0] <= solution.bounds[1]).all()
    assert (solution.bounds[0] <= again.bounds[1]).all()
    choices = [solution.policy.at(t).table().tolist() for t in reversed(range(count))]
    exact = exact_cost(transitions, costs, [0] * 4, choices)
    assert all(x <= high for x, high in zip(exact, solution.bounds[1], strict=True))


@some
@given(seeds, st.sampled_from([30, 400]), st.integers(1, 40))
def test_bounds_hold_however_early_it_ends(seed, count, most):
    model = mc.tabular(arrays(seed)[0], costs=arrays(seed)[1])
    early = solve(model, count, max_iterations=most)
    late = solve(model, count, tolerance=1e-9)
    assert (early.bounds[0] <= late.bounds[1]).all()
    assert (late.bounds[0] <= early.bounds[1]).all()
    again = evaluate(model, early.policy, count)
    assert (again.bounds[0] <= early.bounds[1]).all()


def test_all_policies_of_three_steps_cost_at_least_the_optimum():
    transitions, costs = arrays(7, states=2, actions=2)
    solution = solve(mc.tabular(transitions, costs=costs), 3)
    tables = list(itertools.product(range(2), repeat=2))
    all_costs = [
        exact_cost(transitions, costs, [0, 0], choices)
        for choices in itertools.product(tables, repeat=3)
    ]
    exact = [min(c[x] for c in all_costs) for x in range(2)]
    assert holds(solution.bounds, exact)


def test_a_cycle_is_followed_to_the_end():
    model = mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0])
    for count in (1, 2, 999, 1000):
        result = solve(model, count)
        assert holds(result.bounds, [Fraction(count + 1) // 2, Fraction(count) // 2])


def test_long_horizons_end_where_the_average_cost_is_known():
    transitions, costs = arrays(11)
    model = mc.tabular(0.5 * transitions + 0.125, costs=costs)
    solution = solve(model, 10**12)
    assert solution.status is Status.CONVERGED
    assert solution.iterations < 200
    assert solution.values[0] / 1e12 == pytest.approx(mc.solve(model).gain, rel=1e-6)
    again = evaluate(model, solution.policy, 10**12)
    np.testing.assert_allclose(again.values, solution.values, rtol=2e-6)


def test_hopeless_horizons_are_refused_at_once():
    lazy = mc.tabular([[[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]]], costs=[1, 0])
    choosing = mc.tabular([[[0, 1], [1, 0]], [[0, 1], [1, 0]]], costs=[[1, 2], [0, 1]])
    for model in (lazy, choosing):
        with pytest.raises(mc.SolveError, match=r"a horizon of 1e\+09 needs 1e\+09 sweeps"):
            solve(model, 10**9)


def test_half_steps_are_refused():
    model = mc.tabular(arrays(0)[0], costs=arrays(0)[1])
    with pytest.raises(mc.InputError, match="whole number of steps"):
        solve(model, 2.5)
    policy = TimedPolicy(mc.policy(model, 0), {"step": ([0.5], [0], [1])}, 3)
    with pytest.raises(mc.InputError, match=re.escape("at whole numbers of steps")):
        evaluate(model, policy, 3)


def test_a_randomised_policy_mixes_the_costs():
    transitions, costs = arrays(3)
    model = mc.tabular(transitions, costs=costs)
    result = evaluate(model, {0: 0.25, 1: 0.75}, 5)
    mixed = 0.25 * transitions[0] + 0.75 * transitions[1]
    expected = np.zeros(4)
    for _ in range(5):
        expected = costs[:, :2] @ [0.25, 0.75] + mixed @ expected
    np.testing.assert_allclose(result.values, expected, rtol=1e-12)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("part", [1, 3, 7])
def test_what_ends_an_induction_leaves_bounds_that_hold(failure, part, monkeypatch):
    calls, sweeps = [], Sweeps.sweep

    def failing(self, *arguments):
        calls.append(None)
        if len(calls) == part:
            raise failure
        sweeps(self, *arguments)

    transitions, costs = arrays(5)
    exact, _ = exact_optimum(transitions, costs, [0] * 4, 50)
    monkeypatch.setattr(Sweeps, "sweep", failing)
    result = solve(mc.tabular(transitions, costs=costs), 50, tolerance=1e-15)
    assert result.status in (Status.MEMORY, Status.INTERRUPTED)
    assert holds(result.bounds, exact)


@pytest.mark.parametrize("dear", [1e5, 1e8, 1e12])
def test_a_dear_action_that_is_not_taken_costs_accuracy_by_rounding_alone(dear):
    model = mc.tabular(
        [[[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]]], costs=[[1.0, dear], [2.0, dear]]
    )
    solution = mc.solve(model, mc.FiniteHorizon(16))
    lower, upper = solution.bounds
    assert (lower <= [23.5, 24.5]).all()
    assert (upper >= [23.5, 24.5]).all()
    assert (upper - lower <= 1e-13 * dear + 1e-12).all()
