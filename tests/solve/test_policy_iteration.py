"""Policy iteration on large models: inexact evaluations, Krylov iterations, likely states."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.chains import (
    DirectChain,
    SingularChainError,
    bicgstab,
    likely_state,
    solve_iteratively,
)
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration
from tests.admission import two_queues

FORMS = ("lattice", "indexed", "rows")


def compiled(form: str, caps: tuple[int, int] = (24, 30)) -> Any:
    problem: Any = compile_model(two_queues(caps), form=None if form == "rows" else form)
    return problem.listed() if form == "rows" else problem


def a_chain(form: str) -> Any:
    problem = compiled(form)
    rng = np.random.default_rng(3)
    return problem.under(problem.greedy(problem.pack(rng.uniform(size=problem.n)), 0.0))


@pytest.mark.parametrize("discount", [0.0, 0.3])
@pytest.mark.parametrize("form", FORMS)
def test_an_iterative_evaluation_agrees_with_a_direct_one(form: str, discount: float) -> None:
    chain = a_chain(form)
    generator, cost = chain.chain()
    exact = DirectChain(generator, discount).solve(cost)
    found, spread = solve_iteratively(chain, np.zeros(chain.n), 1e-9, 2000, discount, Monitor())
    assert spread <= 1e-9
    if not discount:
        exact, found = exact - exact[0], found - found[0]
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_an_iterative_evaluation_stops_at_its_most_products(form: str) -> None:
    chain, monitor = a_chain(form), Monitor()
    _, spread = solve_iteratively(chain, np.zeros(chain.n), 1e-12, 21, 0.0, monitor)
    assert spread > 1e-12
    assert monitor.iterations <= 24


def test_an_iterative_evaluation_stops_at_the_limit_of_the_solve() -> None:
    chain = a_chain("lattice")
    with pytest.raises(Stopped):
        solve_iteratively(chain, np.zeros(chain.n), 1e-12, 1000, 0.0, Monitor(max_iterations=10))


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_bicgstab_solves_what_is_diagonally_dominant(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (n, n)) + (1.0 + n) * np.eye(n)
    right = rng.uniform(-1, 1, n)

    def operator(vector: Any, out: Any) -> None:
        out[:] = matrix @ vector

    found, spread = bicgstab(operator, right, np.zeros(n), 1e-10, 500, True)
    assert spread <= 1e-10
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9)


def test_bicgstab_gives_up_where_nothing_improves() -> None:
    def rotation(vector: Any, out: Any) -> None:
        out[:] = vector[1], -vector[0]

    start = np.zeros(2)
    found, spread = bicgstab(rotation, np.array([1.0, 0.0]), start, 1e-12, 1000, True)
    assert spread <= 2.0
    assert np.isfinite(found).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_likely_state_is_likely_in_every_form(form: str) -> None:
    chain = a_chain(form)
    law = mc.stationary(mc.markov_chain(generator=chain.chain()[0]))
    assert law[likely_state(chain)] > 0.3 * law.max()


def test_a_state_that_is_never_left_is_likely_in_rows() -> None:
    model = mc.tabular([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]], costs=[1, 1, 0])
    problem: Any = compile_model(model)
    assert isinstance(problem, RowsProblem)
    assert likely_state(problem) == 2


def test_two_recurrent_classes_have_no_relative_values() -> None:
    with pytest.raises(SingularChainError):
        DirectChain(sparse.csr_array(np.zeros((2, 2))))


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.0, 0.05])
def test_inexact_policy_iteration_agrees_with_value_iteration(discount: float) -> None:
    problem = compiled("lattice", (69, 69))
    goal = Goal(1e-8, problem.cost_scale, discount)
    found = [
        solver.run(problem, goal, Monitor(), problem.pack(np.zeros(problem.n)))
        for solver in (PolicyIteration(direct=1000), ValueIteration())
    ]
    assert [outcome.status for outcome in found] == [Status.CONVERGED] * 2
    one, other = ((o.certificate.low, o.certificate.high) for o in found)
    if not discount:
        assert max(one[0], other[0]) <= min(one[1], other[1])
        return
    values = [
        problem.unpack(outcome.h) + 0.5 * sum(bounds) / discount
        for outcome, bounds in zip(found, (one, other), strict=True)
    ]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-8 * np.abs(values).max())
