"""Bounds over finite horizons enclose what exact or far more precise arithmetic says."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.limits import Status
from tests.common.interpreter import interpret, values
from tests.common.random_models import returning_models
from tests.solve.test_horizon import BY_B, SUCCESS, encloses, evaluate, solve, two_ways

some = settings(max_examples=25)
few = settings(max_examples=6)
seeds = st.integers(0, 2**32 - 1)
times = st.floats(-2.0, 1.0).map(lambda x: 10.0**x)


def final_costs(model, seed):
    return np.random.default_rng(seed).normal(size=compile_model(model).n)


def random_policy(model, seed):
    """A policy with random actions, as the greedy one of random values."""
    problem = compile_model(model)
    h = np.random.default_rng(seed).normal(size=problem.n)
    choice = problem.greedy(problem.pack(100.0 * h), 0.0)
    return {term.name: choice[e] for e, term in enumerate(problem.terms) if term.decision}


def precise(model, choice, time, final):
    """Cost of a policy by uniformisation in thirty digits."""
    problem = compile_model(model)
    fixed = problem.under(choice) if len(choice) else problem
    generator, cost = fixed.listed().chain()
    moves = [[] for _ in range(problem.n)]
    listed = generator.tocoo()
    for x, y, rate in zip(listed.row, listed.col, listed.data, strict=True):
        if x != y:
            moves[x].append((int(y), mpmath.mpf(float(rate))))
    with mpmath.workdps(30):
        z, cost = ([mpmath.mpf(float(v)) for v in array] for array in (final, cost))
        rate = max(mpmath.fsum(r for _, r in out) for out in moves) or mpmath.mpf(1)
        mean, total = rate * mpmath.mpf(time), [mpmath.mpf(0)] * len(z)
        weight = mpmath.exp(-mean)
        for k in range(int(mean + 20 * mpmath.sqrt(mean) + 80)):
            total = [t + weight * v for t, v in zip(total, z, strict=True)]
            drift = [
                c + mpmath.fsum(r * (z[y] - z[x]) for y, r in out)
                for x, (c, out) in enumerate(zip(cost, moves, strict=True))
            ]
            z = [v + f / rate for v, f in zip(z, drift, strict=True)]
            weight *= mean / (k + 1)
        return total


@few
@given(returning_models(decades=1.0), seeds, times, st.sampled_from([1e-3, 1e-8, 1e-14]))
def test_bounds_of_a_policy_enclose_its_cost_in_thirty_digits(model, seed, time, tolerance):
    """But for the few roundings by which the list of a model's rates may differ from the model."""
    policy, final = random_policy(model, seed), final_costs(model, seed)
    problem = compile_model(model)
    choice = mc.policy(model, policy).choice(problem)
    result = evaluate(model, policy, time, final, tolerance=tolerance)
    exact = precise(model, choice, time, final)
    size = problem.cost_scale * time + np.abs(final).max()
    for low, value, high in zip(result.bounds[0], exact, result.bounds[1], strict=True):
        assert low - 1e-15 * size <= value <= high + 1e-15 * size
    if tolerance > 1e-10:
        assert result.status is Status.CONVERGED


@some
@given(returning_models(decades=0.3), seeds, times)
def test_bounds_of_the_optimum_enclose_an_integrated_solution(model, seed, time):
    final = final_costs(model, seed)
    problem = interpret(model)
    result = solve(model, time, final)
    assert result.status is Status.CONVERGED
    options = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12}
    ode = solve_ivp(lambda _, v: values(problem, v), (0.0, time), final, **options)
    assert encloses(result, ode.y[:, -1], error=1e-7 * (1.0 + np.abs(ode.y).max()))


@some
@given(returning_models(decades=2.0), seeds, times, st.sampled_from([1e-2, 1e-5]))
def test_the_policy_found_has_its_cost_between_the_bounds(model, seed, time, tolerance):
    final = final_costs(model, seed)
    solution = solve(model, time, final, tolerance=tolerance)
    again = evaluate(model, solution.policy, time, final)
    assert (again.bounds[0] <= solution.bounds[1]).all()
    assert (solution.bounds[0] <= again.bounds[1]).all()


@some
@given(returning_models(decades=1.0), seeds, times, st.integers(1, 60))
def test_bounds_hold_however_early_it_ends(model, seed, time, most):
    final = final_costs(model, seed)
    early = solve(model, time, final, max_iterations=most)
    late = solve(model, time, final)
    assert (early.bounds[0] <= late.bounds[1]).all()
    assert (late.bounds[0] <= early.bounds[1]).all()
    again = evaluate(model, early.policy, time, final)
    assert (again.bounds[0] <= early.bounds[1]).all()


@few
@given(returning_models(decades=1.0), seeds, times)
def test_a_longer_horizon_begins_with_a_shorter_one(model, seed, time):
    """V over 2 T is V over T with V over T as final cost."""
    final = final_costs(model, seed)
    half = solve(model, time, final, tolerance=1e-6)
    whole = solve(model, 2 * time, final, tolerance=1e-6)
    low, high = (solve(model, time, bound, tolerance=1e-6) for bound in half.bounds)
    assert (low.bounds[0] <= whole.bounds[1]).all()
    assert (high.bounds[1] >= whole.bounds[0]).all()
    size = np.abs(whole.values).max() + np.abs(half.values).max()
    np.testing.assert_allclose(low.values, whole.values, rtol=0, atol=4e-6 * size)


def best_chance(time, better):
    """Chance of success from state 0 of the two ways, each moment with the better of the ways."""

    def by_a(left):
        return 1 - mpmath.exp(-7 * left) * (1 + 7 * left)

    def by_b(left):
        return (1 - mpmath.exp(-left)) / 2

    with mpmath.workdps(30):
        root = mpmath.findroot(lambda left: by_a(left) - by_b(left), 0.02)
        places = [0, min(root, time), time]
        return root, mpmath.fsum(
            mpmath.quad(lambda s: mpmath.exp(s - time) * better(by_a(s), by_b(s)), piece)
            for piece in pairwise(places)
        )


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("time", [0.01, 1.0, 4.0])
def test_the_best_of_two_ways_is_enclosed(time, tolerance):
    """From state 0 the rate is 1 whatever the way: V' = better(V1, V3) - V0."""
    for sign, better in ((1.0, min), (-1.0, max)):
        root, exact = best_chance(time, better)
        result = solve(two_ways(), time, sign * SUCCESS, tolerance=tolerance)
        assert result.status is Status.CONVERGED
        assert result.bounds[0][0] <= sign * exact <= result.bounds[1][0]
        if time > root and tolerance < 1e-3:
            ((switch, _),) = result.policy.switches("way", 0)
            assert time - switch == pytest.approx(float(root), rel=0.1)


def test_the_best_of_two_ways_beats_both():
    assert best_chance(1.0, min)[1] < BY_B < best_chance(1.0, max)[1]
