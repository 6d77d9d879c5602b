"""Finite horizons on every model of ``tests/models``, against a plain integrator."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.limits import Status
from tests.models import case, cases
from tests.solve.test_horizon import encloses, evaluate, solve

EVENTS = 20.0  # transitions over the horizon, at most, in the mean
TOLERANCE = 1e-5

by_case = pytest.mark.parametrize("name", [one.name for one in cases()])


@cache
def solved(name):
    """Model, compiled problem, horizon and solution of a case."""
    model = case(name).build()
    problem = compile_model(model)
    horizon = EVENTS if problem.discrete else EVENTS / problem.rate_bound
    return model, problem, horizon, solve(model, horizon, tolerance=TOLERANCE)


def right_side(problem):
    """F from the list of rows, by numpy."""
    rows = problem.rows()
    out = np.asarray(rows.transitions.sum(axis=1)).ravel()

    def f(v):
        worth = rows.cost + rows.transitions @ v - out * v[rows.state]
        best = np.minimum.reduceat(worth, rows.groups)
        return rows.cost_rate + np.bincount(rows.state[rows.groups], best, minlength=rows.n)

    return f


@by_case
def test_bounds_enclose_an_integrated_solution(name):
    model, problem, horizon, solution = solved(name)
    f, exact = right_side(problem), np.zeros(problem.n)
    if problem.discrete:
        for _ in range(int(horizon)):
            exact = exact + f(exact)
    else:
        options = {"method": "DOP853", "rtol": 1e-8, "atol": 1e-10}
        exact = solve_ivp(lambda _, v: f(v), (0.0, horizon), exact, **options).y[:, -1]
    if getattr(model, "sense", 1) < 0:
        exact = -exact
    assert solution.status is Status.CONVERGED
    assert np.ptp(solution.bounds, axis=0).max() <= TOLERANCE * np.abs(solution.values).max()
    assert encloses(solution, exact, error=1e-6 * np.abs(exact).max())


@by_case
def test_no_heuristic_is_better_and_the_policy_found_is_as_good(name):
    model, _, horizon, solution = solved(name)
    policies = [
        solution.policy,
        *(mc.policy(model, h.rules) for h in case(name).heuristics.values()),
    ]
    sense = getattr(model, "sense", 1)
    for number, policy in enumerate(policies):
        costs = [sense * bound for bound in evaluate(model, policy, horizon).bounds]
        least, most = np.min(costs, axis=0), np.max(costs, axis=0)
        optimum = [sense * bound for bound in solution.bounds]
        assert (most >= np.min(optimum, axis=0)).all()
        if number == 0:
            assert (least <= np.max(optimum, axis=0)).all()
