"""The linear program of occupation measures against other methods, and its certificates."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.highs_conif import HIGHS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.constrained import occupation
from mdpcloud.solve.constrained.highs import Basis, Unsolved, linear_program
from mdpcloud.solve.constrained.occupation import Average, OccupationProgram
from mdpcloud.solve.limits import Goal, Monitor, Status
from mdpcloud.solve.linear_programming import LinearProgramming, likeliest_rows
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.stationary.stationary import stationary
from tests.admission import two_queues
from tests.common.exact import exact_optimum
from tests.common.interpreter import interpret
from tests.common.random_models import returning_models
from tests.models.routing import C6, routing

few = settings(max_examples=20)


def cost_of(rows: Rows) -> Average:
    return Average(rows.cost_rate, rows.cost)


def occupation_of(problem: Any, discount: float = 0.0) -> Any:
    rows = problem.rows()
    return OccupationProgram(rows, discount).minimise(cost_of(rows), monitor=Monitor())


# --- the program ----------------------------------------------------------------------------------


@few
@given(returning_models(decades=1.0))
def test_the_optimum_of_the_program_is_the_exact_optimal_gain(model: mc.Model) -> None:
    problem = compile_model(model)
    rows, found = problem.rows(), occupation_of(problem)
    exact = float(exact_optimum(interpret(model)))
    cost = rows.cost_rate @ found.law + rows.cost @ found.weight
    assert cost == pytest.approx(exact, rel=1e-7, abs=1e-7 * problem.cost_scale)


@few
@given(returning_models(decades=1.0))
def test_weights_of_every_term_sum_to_the_law_and_flows_balance(model: mc.Model) -> None:
    rows = compile_model(model).rows()
    found = OccupationProgram(rows).minimise(cost_of(rows), monitor=Monitor())
    assert found.law.sum() == pytest.approx(1.0, abs=1e-8)
    assert (found.law >= 0).all()
    assert (found.weight >= 0).all()
    if rows.state.size:
        total = np.add.reduceat(found.weight, rows.groups)
        np.testing.assert_allclose(total, found.law[rows.state[rows.groups]], atol=1e-8)
    out = np.asarray(rows.transitions.sum(axis=1)).ravel()
    inflow = rows.transitions.T @ found.weight
    outflow = np.bincount(rows.state, out * found.weight, minlength=rows.n)
    np.testing.assert_allclose(inflow, outflow, atol=1e-8 * max(out.max(initial=0.0), 1.0))


@few
@given(returning_models(decades=1.0), st.sampled_from([0.01, 1.0]))
def test_duals_of_a_discounted_program_are_the_values(model: mc.Model, rate: float) -> None:
    found = occupation_of(compile_model(model), discount=rate)
    exact = mc.solve(model, mc.Discounted(rate=rate), tolerance=1e-9, strict=False)
    size = np.abs(exact.values).max()
    np.testing.assert_allclose(found.values, exact.values, atol=1e-5 * max(size, 1.0))


def test_the_law_of_the_program_is_the_stationary_law_of_its_policy() -> None:
    problem: Any = compile_model(routing(C6, 4.0, 0.45, (2, 4, 4)))
    found = occupation_of(problem)
    explicit = problem.listed()
    fixed = explicit.under(explicit.choice_of(likeliest_rows(problem.rows(), found)))
    generator, _ = fixed.chain()
    np.testing.assert_allclose(found.law, stationary(generator), atol=1e-9)


def test_a_program_has_one_variable_per_row_of_the_largest_decision() -> None:
    problem: Any = compile_model(two_queues((3, 4)))
    rows = problem.rows()
    choices = np.add.reduceat(np.ones(rows.state.size), rows.groups)
    program = OccupationProgram(rows)
    matrix, _ = program._equations
    assert matrix.shape[1] <= rows.state.size
    assert matrix.shape[1] >= int(choices[choices > 1].sum())


def test_a_model_without_decisions_is_its_chain() -> None:
    model = mc.tabular([[[0.5, 0.5], [1.0, 0.0]]], costs=[3.0, 0.0])
    found = occupation_of(compile_model(model))
    np.testing.assert_allclose(found.law, [2 / 3, 1 / 3], atol=1e-9)


# --- the solver -----------------------------------------------------------------------------------


@few
@given(returning_models(decades=1.0))
def test_certified_bounds_enclose_the_exact_optimum(model: mc.Model) -> None:
    exact = exact_optimum(interpret(model))
    found = mc.solve(model, solver=LinearProgramming(), strict=False)
    assert found.status in (Status.CONVERGED, Status.PRECISION)
    assert Fraction(float(found.bounds[0])) <= exact <= Fraction(float(found.bounds[1]))


@few
@given(returning_models(decades=6.0))
def test_bounds_hold_with_rates_over_twelve_decades(model: mc.Model) -> None:
    exact = exact_optimum(interpret(model))
    found = mc.solve(model, solver=LinearProgramming(), strict=False)
    low, high = (np.min(found.bounds[0]), np.max(found.bounds[1]))
    assert Fraction(float(low)) <= exact <= Fraction(float(high))


@pytest.mark.parametrize("criterion", [mc.AverageCost(), mc.Discounted(rate=0.2)])
def test_it_agrees_with_policy_iteration_on_routing(criterion: Any) -> None:
    model = routing(C6, 4.0, 0.45, (2, 4, 4))
    other = mc.solve(model, criterion, solver=PolicyIteration())
    found = mc.solve(model, criterion, solver=LinearProgramming())
    assert (np.asarray(found.bounds[0]) <= np.asarray(other.bounds[1])).all()
    assert (np.asarray(other.bounds[0]) <= np.asarray(found.bounds[1])).all()
    assert found.solver == "linear_programming"


def test_a_periodic_chain_is_no_difficulty() -> None:
    model = mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0])
    assert mc.solve(model, solver=LinearProgramming()).gain == pytest.approx(0.5, abs=1e-12)


def test_rewards_are_reported_as_rewards() -> None:
    model = mc.tabular([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], rewards=[[1, 0.25], [0, 0.5]])
    found = mc.solve(model, solver=LinearProgramming())
    assert found.gain == pytest.approx(mc.solve(model).gain, abs=1e-12)


def test_a_multichain_model_gets_its_gain_per_state() -> None:
    stay = np.eye(2)
    found = mc.solve(mc.tabular([stay], costs=[1.0, 2.0]), solver=LinearProgramming())
    np.testing.assert_allclose(found.gains, [1.0, 2.0])


def test_too_many_rows_are_refused_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupation, "MOST_ROWS", 10)
    with pytest.raises(mc.InputError, match=r"has \d+ rows .*at most 10 are solved"):
        mc.solve(two_queues((4, 4)), solver=LinearProgramming())


@pytest.mark.parametrize("limit", [{"max_iterations": 5}, {"time_limit": 1e-6}])
def test_a_limit_leaves_certified_bounds_of_the_start(limit: Any) -> None:
    model = two_queues((8, 8))
    found = mc.solve(model, solver=LinearProgramming(), strict=False, **limit)
    assert found.status in (Status.ITERATIONS, Status.TIME)
    assert found.bounds[0] <= mc.solve(model).gain <= found.bounds[1]


def test_an_interrupt_leaves_certified_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OccupationProgram, "minimise", interrupted)
    found = mc.solve(two_queues((4, 4)), solver=LinearProgramming(), strict=False)
    assert found.status is Status.INTERRUPTED


def test_an_unsolved_program_is_not_called_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise Unsolved("unknown", False)

    monkeypatch.setattr(OccupationProgram, "minimise", refused)
    problem: Any = compile_model(two_queues((4, 4)))
    goal, start = Goal(1e-8, problem.cost_scale), problem.pack(np.zeros(problem.n))
    outcome = LinearProgramming().run(problem, goal, Monitor(), start)
    assert outcome.status is Status.STALLED


# --- HiGHS ----------------------------------------------------------------------------------------


def textbook(basis: Basis | None, monitor: Monitor) -> Any:
    """Maximise 3 x + 5 y with x <= 4, 2 y <= 12, 3 x + 2 y <= 18."""
    below = sparse.csr_array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [3.0, 2.0, 0.0]])
    equal = sparse.csr_array([[0.0, 0.0, 1.0]]), np.array([7.0])
    objective, bound = np.array([-3.0, -5.0, 1.0]), np.array([4.0, 12, 18])
    return linear_program(objective, equal, (below, bound), monitor, basis)


def test_a_linear_program_has_its_textbook_solution_and_duals() -> None:
    found = textbook(None, Monitor())
    np.testing.assert_allclose(found.x, [2, 6, 7], atol=1e-9)
    np.testing.assert_allclose(found.below, [0, 1.5, 1], atol=1e-9)
    np.testing.assert_allclose(found.equal, [-1], atol=1e-9)


def test_from_the_optimal_basis_there_is_nothing_to_do() -> None:
    basis = Basis(
        variables=np.array([True, True, True]),
        equal=np.array([False]),
        below=np.array([True, False, False]),
    )
    cold, warm = Monitor(), Monitor()
    np.testing.assert_allclose(textbook(basis, warm).x, textbook(None, cold).x, atol=1e-9)
    assert warm.iterations == 0


def test_without_a_way_to_give_the_basis_it_starts_without(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = HIGHS.solve_via_data

    def older(self: Any, data: Any, warm: Any, verbose: Any, options: Any, *rest: Any) -> Any:
        if "read_basis_file" in options["highs_options"]:
            raise ValueError("HIGHS returned status kError for option")
        return solve(self, data, warm, verbose, options, *rest)

    monkeypatch.setattr(HIGHS, "solve_via_data", older)
    basis = Basis(np.ones(3, np.bool_), np.zeros(1, np.bool_), np.array([True, False, False]))
    np.testing.assert_allclose(textbook(basis, Monitor()).x, [2, 6, 7], atol=1e-9)


def test_the_basis_of_the_best_policy_leaves_few_iterations() -> None:
    problem: Any = compile_model(two_queues((6, 6)))
    rows, explicit = problem.rows(), problem.listed()
    best = mc.solve(two_queues((6, 6))).policy.choice(problem)
    law = stationary(explicit.under(best).chain()[0])
    cold, warm = Monitor(), Monitor()
    one = OccupationProgram(rows).minimise(cost_of(rows), monitor=cold)
    program = OccupationProgram(rows, expected=law, start=explicit.chosen(best))
    other = program.minimise(cost_of(rows), monitor=warm)
    assert warm.iterations <= 3 < cold.iterations
    np.testing.assert_allclose(other.law, one.law, atol=1e-8)


def test_an_infeasible_program_is_called_so() -> None:
    one = sparse.csr_array([[1.0]])
    with pytest.raises(Unsolved) as caught:
        linear_program(np.ones(1), (one, np.ones(1)), (one, np.zeros(1)), monitor=Monitor())
    assert caught.value.infeasible


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    mc.solve(two_queues((3, 3)), solver=LinearProgramming())
    assert capfd.readouterr().out == ""


def test_rows_of_states_never_visited_come_first() -> None:
    model = mc.tabular([[[0, 1], [0, 1]], [[0, 1], [0, 1]]], costs=[[1, 2], [2, 1]])
    problem = compile_model(model)
    assert isinstance(problem, RowsProblem)
    rows = problem.rows()
    chosen = likeliest_rows(rows, occupation_of(problem))
    assert rows.action[chosen][rows.state[chosen] == 0].tolist() == [0]


def test_a_model_in_which_nothing_happens_has_no_program():
    idle = mc.Event("service", 0.0, mc.step(jobs=-1))
    model = mc.Model(mc.Lattice({"jobs": 0}), [idle], cost_rate=1.0)
    assert mc.solve(model, solver="linear_programming").gain == 1.0
