"""The optimum of models with known answers, the arguments of `solve`, and how it stops."""

import json
import re
import threading
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve import Status, classes
from mdpcloud.solve.optimise import SOLVERS
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration
from tests.admission import admission, birth_death_law, threshold_cost, two_queues

from .exact_gains import exact_optimum

CASES = {
    case["id"]: case
    for line in (Path(__file__).parents[1] / "reference/cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))
}
by_solver = pytest.mark.parametrize("solver", [*SOLVERS, None], ids=str)


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def stopped(said):
    return pytest.raises(mc.SolveError, match=re.escape(said))


def holding(cap, rate, holding_cost, refusal):
    actions = [mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=refusal)]
    return admission(cap, rate=rate, actions=actions, cost_rate=lambda x: holding_cost * x.jobs)


# --- closed forms ---------------------------------------------------------------------------------


@by_solver
@pytest.mark.parametrize("cap", [1, 2, 5, 40])
def test_a_queue_that_takes_all_it_can_loses_what_the_closed_form_says(solver, cap):
    law = birth_death_law([Fraction(1, 2)] * cap, [1] * cap)
    lower, upper = mc.solve(admission(cap), solver=solver, tolerance=1e-10).bounds
    assert lower <= law[-1] / 2 <= upper


@by_solver
@pytest.mark.parametrize(("servers", "rate"), [(1, 0.5), (3, 2.5), (30, 28.0), (10, 20.0)])
def test_servers_without_room_to_wait_lose_what_erlang_says(solver, servers, rate):
    model = admission(servers, servers=servers, rate=rate)
    law = birth_death_law([rate] * servers, range(1, servers + 1))
    lower, upper = mc.solve(model, solver=solver).bounds
    assert lower <= Fraction(rate) * law[-1] <= upper
    assert lower <= rate * mc.queues.erlang_b(servers, rate) * (1 + 1e-12)


@by_solver
@settings(max_examples=15)
@given(st.integers(1, 16), st.integers(0, 8), st.integers(0, 40))
def test_the_best_threshold_is_found_among_all(solver, eighths, quarters, refusal):
    rate, hold = Fraction(eighths, 8), Fraction(quarters, 4)
    costs = [threshold_cost(limit, rate, hold, Fraction(refusal)) for limit in range(9)]
    solution = mc.solve(holding(8, float(rate), float(hold), float(refusal)), solver=solver)
    lower, upper = solution.bounds
    assert lower <= min(costs) <= upper
    takes = solution.policy.table() == 0
    limit = int(np.argmin(takes))
    assert float(costs[limit]) <= upper + 1e-12


@by_solver
def test_a_model_without_decisions_has_the_cost_of_its_chain(solver):
    model = admission(3, actions=[mc.Action("lost", cost=2.0)], cost_rate=lambda x: x.jobs)
    assert mc.solve(model, solver=solver).gain == pytest.approx(1.0, rel=1e-8)


def test_one_state_costs_what_its_cheapest_action_costs():
    tick = mc.Event("tick", 2.0, [mc.Action("dear", cost=3.0), mc.Action("cheap", cost=1.25)])
    solution = mc.solve(mc.Model(mc.Lattice({"a": 0}), tick, cost_rate=1.0))
    assert solution.gain == pytest.approx(3.5, rel=1e-12)
    assert solution.policy.table().tolist() == [1]


def test_a_control_weighs_the_cost_of_speed():
    """One job at a time; a fast server costs 1 per unit of time and 3 when it works at rate 4."""
    speed = mc.Control(
        "speed",
        [
            mc.Mode("slow", flows=mc.Flow(lambda x: 1.0 * (x.job > 0), mc.step(job=-1))),
            mc.Mode("fast", 3.0, mc.Flow(lambda x: 4.0 * (x.job > 0), mc.step(job=-1))),
        ],
    )
    arrival = mc.Event("arrival", lambda x: 1.0 * (x.job == 0), mc.step(job=+1))
    for cost, mode in ((2.0, 0), (20.0, 1)):
        model = mc.Model(
            mc.Lattice({"job": 1}), [arrival, speed], cost_rate=lambda x, c=cost: c * x.job
        )
        solution = mc.solve(model)
        best = min(Fraction(cost) / 2, (Fraction(cost) + 3) / 5)
        assert solution.bounds[0] <= best <= solution.bounds[1]
        assert solution.policy.table()[1] == mode
        assert solution.policy.table()[0] == 0


def test_costs_may_be_negative_and_gains_zero():
    flip = mc.Event("flip", 1.0, mc.Action("flip", lambda x: mc.step(a=1 - 2 * x.a)))
    model = mc.Model(mc.Lattice({"a": 1}), flip, cost_rate=lambda x: 1.0 - 2.0 * x.a)
    lower, upper = mc.solve(model).bounds
    assert lower <= 0 <= upper
    assert upper - lower <= 1e-12
    assert mc.solve(mc.Model(model.space, flip)).bounds == (0, 0)


# --- public reports -------------------------------------------------------------------------------


@by_solver
def test_values_are_close_and_not_only_the_policy(solver):
    """Value iteration stopped 240 units early (pymdptoolbox, issue 39)."""
    case = CASES["vi-early"]
    given_, answer = case["input"], case["right_answer"]
    model = mc.tabular(given_["P"], rewards=given_["R[s][a]"])
    solution = mc.solve(model, mc.Discounted(factor=0.99), solver=solver)
    np.testing.assert_allclose(solution.values, [float(v) for v in answer["V"]], rtol=1e-8)
    assert solution.policy.table().tolist() == answer["policy"]
    assert (solution.bounds[0] <= solution.values).all()
    assert (solution.values <= solution.bounds[1]).all()


@by_solver
def test_a_cycle_of_two_states_has_the_mean_of_their_costs(solver):
    """Bounds of plain value iteration never meet on a periodic chain."""
    case = CASES["vi-periodic"]["input"]
    solution = mc.solve(mc.tabular([case["P"]], costs=case["cost"]), solver=solver)
    assert solution.bounds[0] <= 0.5 <= solution.bounds[1]
    assert solution.converged


@by_solver
def test_a_reward_at_the_end_alone_is_carried_back(solver):
    """A wrong stopping test ended after one sweep when the goal alone paid (CoursIA, 14836)."""
    answer = CASES["vi-terminal"]["right_answer"]
    corridor = [[0.2, 0.8, 0, 0], [0, 0.2, 0.8, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    model = mc.tabular([corridor], rewards=[0, 0, 1, 0])
    solution = mc.solve(model, mc.Discounted(factor=0.9), solver=solver, tolerance=1e-12)
    expected = [float(answer["V0"]), float(answer["V1"]), 1.0, 0.0]
    np.testing.assert_allclose(solution.values, expected, atol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sparse_matrices_give_the_answer_of_dense_ones(form):
    """Sparse input failed or was made dense (pymdptoolbox, issues 7 and 10)."""
    answer = CASES["mdp-sparse"]["right_answer"]
    go = np.eye(5)
    go[0] = [0, 0.4, 0, 0, 0.6]
    reward = np.zeros((5, 5))
    reward[0, 4] = 1.0
    model = mc.tabular([form(np.eye(5)), form(go)], rewards=[form(np.zeros((5, 5))), form(reward)])
    solution = mc.solve(model, mc.Discounted(factor=0.9))
    assert solution.values[0] == pytest.approx(float(Fraction(answer["V0"])), rel=1e-8)
    assert solution.policy.table()[0] == answer["policy0"]


@pytest.mark.slow
def test_a_hundred_thousand_sparse_states_are_solved_below_a_gigabyte():
    n, entries = 100_000, 5
    rng = np.random.default_rng(3)
    matrices = [
        sparse.csr_array(
            (
                np.full(n * entries, 1 / entries),
                rng.integers(n, size=n * entries),
                np.arange(0, n * entries + 1, entries),
            ),
            (n, n),
        )
        for _ in range(2)
    ]
    model = mc.tabular(matrices, rewards=rng.random((n, 2)))
    tracemalloc.start()
    solution = mc.solve(model, mc.Discounted(factor=0.9), tolerance=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.converged
    assert peak < 1e9


# --- rewards and discounting ----------------------------------------------------------------------


@by_solver
def test_rewards_are_reported_as_rewards(solver):
    matrices, table = [[[0, 1], [1, 0]], np.eye(2)], np.array([[1.0, 5.0], [2.0, 3.0]])
    seen = []
    rewards = mc.solve(
        mc.tabular(matrices, rewards=table),
        solver=solver,
        progress=lambda iterations, lower, upper: seen.append((lower, upper)),
    )
    costs = mc.solve(mc.tabular(matrices, costs=-table), solver=solver)
    assert rewards.gains.tolist() == (-costs.gains).tolist()
    assert rewards.values.tolist() == (-costs.values).tolist()
    np.testing.assert_array_equal(rewards.bounds, [-costs.bounds[1], -costs.bounds[0]])
    assert all(lower <= upper for lower, upper in seen)
    assert 1 - 1e-9 <= seen[-1][0] <= seen[-1][1] <= 5 + 1e-9


def test_a_failed_solve_of_rewards_speaks_of_rewards():
    model = mc.tabular([[[0.5, 0.5], [0.1, 0.9]]], rewards=[1.0, 7.0])
    with pytest.raises(mc.SolveError) as caught:
        mc.solve(model, solver="value_iteration", max_iterations=1)
    lower, upper = caught.value.partial.bounds
    assert 1 <= lower <= 6 <= upper <= 7
    assert f"bounds [{lower:.12g}, {upper:.12g}]" in str(caught.value)


@by_solver
def test_discounted_costs_of_two_states_are_exact(solver):
    """(a + r) V0 = c0 + r V1 and (a + s) V1 = c1 + s V0."""
    up = mc.Event("up", lambda x: 0.5 * (x.a == 0), mc.step(a=+1))
    down = mc.Event("down", lambda x: 0.25 * (x.a == 1), mc.step(a=-1))
    model = mc.Model(mc.Lattice({"a": 1}), [up, down], cost_rate=lambda x: 3.0 - 2.0 * x.a)
    solution = mc.solve(model, mc.Discounted(rate=0.25), solver=solver)
    exact = np.linalg.solve([[0.75, -0.5], [-0.25, 0.5]], [3.0, 1.0])
    np.testing.assert_allclose(solution.values, exact, rtol=1e-8)
    assert (solution.bounds[0] <= exact).all()
    assert (exact <= solution.bounds[1]).all()


def test_a_lump_cost_is_discounted_from_when_it_is_paid():
    tick = mc.Event("tick", 2.0, mc.Action("pay", cost=3.0))
    solution = mc.solve(mc.Model(mc.Lattice({"a": 0}), tick), mc.Discounted(rate=0.1))
    assert solution.values == pytest.approx([60.0], rel=1e-8)


def test_a_discounted_solution_has_values_and_no_gain():
    solution = mc.solve(admission(), mc.Discounted(rate=0.1))
    with refused("Discounted has no gain; the answer is .values"):
        _ = solution.gain
    assert solution.gains.size == 0


def test_little_discounting_comes_close_to_the_average_cost():
    model, rate = two_queues(), 1e-6
    values = mc.solve(model, mc.Discounted(rate=rate)).values
    np.testing.assert_allclose(rate * values, mc.solve(model).gain, rtol=1e-4)


@by_solver
@pytest.mark.parametrize("criterion", [mc.AverageCost(), mc.Discounted(rate=0.2)])
def test_values_start_the_next_solve(solver, criterion):
    model = two_queues((9, 9))
    solution = mc.solve(model, criterion, tolerance=1e-10)
    again = mc.solve(model, criterion, solver="value_iteration", start=solution, tolerance=1e-8)
    cold = mc.solve(model, criterion, solver="value_iteration", tolerance=1e-8)
    assert again.iterations < cold.iterations / 3
    by_array = mc.solve(model, criterion, solver=solver, start=solution.values)
    np.testing.assert_allclose(by_array.bounds, solution.bounds, rtol=2e-8)


def test_values_of_rewards_start_the_next_solve_too():
    rng = np.random.default_rng(5)
    model = mc.tabular(rng.dirichlet(np.ones(20), size=(3, 20)), rewards=rng.random((20, 3)))
    for criterion in (mc.AverageCost(), mc.Discounted(factor=0.9)):
        solution = mc.solve(model, criterion, tolerance=1e-10)
        again = mc.solve(model, criterion, solver="value_iteration", start=solution)
        assert again.iterations <= 3


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"solver": "policy_iterations"}, "unknown; did you mean 'policy_iteration'?"),
        ({"solver": "simplex"}, "solver 'simplex' is unknown; there are ['policy_iteration', '"),
        ({"tolerance": 0.0}, "tolerance is 0.0; it must be in (0, 1)"),
        ({"tolerance": 1.0}, "tolerance is 1.0"),
        ({"tolerance": -1e-8}, "tolerance is -1e-08"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"tolerance": "1e-8"}, "tolerance is '1e-8'"),
        ({"max_iterations": 0}, "max_iterations is 0; it must be an integer >= 1 or None"),
        ({"max_iterations": 2.5}, "max_iterations is 2.5; it must be an integer"),
        ({"solver": 3}, "solver is 3; it must be a name or have a method run"),
        ({"progress": 3}, "progress is 3; it must be a function or None"),
        ({"time_limit": "1"}, "time_limit is '1' s; it must be > 0 or None"),
        ({"start": "a"}, "start is 'a'; it must hold one number per state"),
        ({"time_limit": 0.0}, "time_limit is 0.0 s; it must be > 0 or None"),
        ({"time_limit": float("nan")}, "time_limit is nan s"),
        ({"start": [1.0, 2.0]}, "start has shape (2,); it must have one value per state"),
        ({"start": [0, np.nan, 0, 0]}, "start is nan in state (jobs=1); it must be finite"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    with refused(said):
        mc.solve(admission(), **arguments)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0, float("nan"), "1e-8"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda **given: mc.solve(admission(), mc.TotalCost([0]), **given),
        lambda **given: mc.solve(admission(), mc.FiniteHorizon(1.0), **given),
        lambda **given: mc.solve(admission(), constraints={}, **given),
        lambda **given: mc.evaluate(admission(), "lost", **given),
        lambda **given: mc.evaluate(admission(), "lost", mc.TotalCost([0]), **given),
        lambda **given: mc.transient([[-1, 1], [1, -1]], 0, [1.0], **given),
        lambda **given: mc.first_passage([[-1, 1], [1, -1]], [0], **given),
    ],
)
def test_a_tolerance_is_a_number_between_0_and_1_everywhere(ask, tolerance):
    with refused(f"tolerance is {tolerance!r}; it must be in (0, 1)"):
        ask(tolerance=tolerance)


def test_a_policy_that_changes_with_time_needs_a_horizon():
    policy = mc.solve(admission(), mc.FiniteHorizon(1.0)).policy
    for ask in (mc.evaluate, mc.stationary, mc.improve):
        with refused("the policy changes with time, which needs a finite horizon"):
            ask(admission(), policy)


def test_a_policy_is_no_start():
    with refused("start takes values, not a policy; give evaluate(model, policy)"):
        mc.solve(admission(), start=mc.policy(admission(), "lost"))


def test_an_evaluation_is_a_start():
    model = two_queues()
    start = mc.evaluate(model, "refuse")
    assert mc.solve(model, start=start).gain == pytest.approx(mc.solve(model).gain, rel=2e-8)


def test_a_solver_with_settings_of_its_own_can_be_given():
    solution = mc.solve(admission(), solver=ValueIteration(stall=100))
    assert solution.solver == "value_iteration"
    assert solution.converged


@by_solver
def test_the_bounds_that_are_reported_on_the_way_enclose_the_gain(solver):
    model, seen = two_queues((30, 30)), []
    solution = mc.solve(model, solver=solver, progress=lambda *report: seen.append(report))
    gain, slack = solution.gain, 1e-9
    assert seen
    for _, lower, upper in seen:
        assert lower - slack <= gain <= upper + slack
    counts = [iterations for iterations, _, _ in seen]
    assert counts == sorted(counts)
    assert counts[-1] <= solution.iterations
    assert seen[-1][2] - seen[-1][1] <= 2e-8 * gain


@by_solver
def test_a_solve_stops_at_its_most_iterations_with_the_bounds_so_far(solver):
    model = two_queues((30, 30))
    best = mc.solve(model).gain
    with stopped("stopped at the iteration limit before the tolerance was met") as caught:
        mc.solve(model, solver=solver, max_iterations=1)
    partial = caught.value.partial
    assert partial.status is Status.ITERATIONS
    assert not partial.converged
    assert partial.bounds[0] <= best <= partial.bounds[1]
    policy_gain = mc.evaluate(model, partial.policy).gain
    assert best - 1e-7 <= policy_gain <= partial.bounds[1]


@by_solver
def test_a_solve_stops_at_its_time_limit(solver):
    with stopped("stopped at the time limit before the tolerance was met") as caught:
        mc.solve(two_queues((30, 30)), solver=solver, time_limit=1e-9)
    assert caught.value.partial.status is Status.TIME


@by_solver
def test_an_interrupt_leaves_the_bounds_so_far(solver):
    model = two_queues((30, 30))

    def interrupt(iterations, lower, upper):
        raise KeyboardInterrupt

    with stopped("interrupted before the tolerance was met") as caught:
        mc.solve(model, solver=solver, progress=interrupt)
    partial = caught.value.partial
    assert partial.bounds[0] <= mc.solve(model).gain <= partial.bounds[1]


@by_solver
def test_a_solve_without_memory_leaves_the_bounds_so_far(solver):
    model = two_queues((30, 30))

    def allocate(iterations, lower, upper):
        raise MemoryError

    with stopped("out of memory before the tolerance was met") as caught:
        mc.solve(model, solver=solver, progress=allocate)
    partial = caught.value.partial
    assert partial.bounds[0] <= mc.solve(model).gain <= partial.bounds[1]


def test_a_solution_says_why_its_solver_was_chosen():
    assert mc.solve(two_queues()).reason == "20 states are few: policies are evaluated directly"
    assert "cost less than evaluating policies" in mc.solve(two_queues((60, 60))).reason
    assert mc.solve(two_queues(), solver="value_iteration").reason == "as asked"


def test_a_solver_that_needs_less_memory_takes_over(monkeypatch):
    def run(self, problem, goal, monitor, start):
        raise MemoryError

    monkeypatch.setattr(PolicyIteration, "run", run)
    assert mc.solve(two_queues((3, 3))).solver == "value_iteration"


def test_an_interrupt_while_a_kernel_is_loaded_is_an_interrupt(monkeypatch):
    def run(self, problem, goal, monitor, start):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(PolicyIteration, "run", run)
    assert mc.solve(two_queues((3, 3)), strict=False).status is Status.INTERRUPTED


def test_without_strictness_a_partial_solution_is_returned():
    solution = mc.solve(two_queues(), solver="value_iteration", max_iterations=2, strict=False)
    assert solution.status is Status.ITERATIONS
    assert solution.bounds[1] > solution.bounds[0]


def fast_and_slow():
    """A queue beside a switch that is thrown a hundred million times as often."""
    switch = mc.Event("switch", 1e8, mc.Action("throw", lambda x: mc.step(on=1 - 2 * x.on)))
    return admission(
        space=mc.Lattice({"jobs": 20, "on": 1}), extra=[switch], cost_rate=lambda x: 0.1 * x.jobs
    )


@pytest.mark.parametrize("solver", ["policy_iteration", None])
def test_a_tolerance_below_float64_is_refused_with_what_was_reached(solver):
    with stopped("tolerance 1e-12 asked, about") as caught:
        mc.solve(fast_and_slow(), solver=solver, tolerance=1e-12)
    assert caught.value.partial.status in (Status.PRECISION, Status.STALLED)
    reached = float(re.search(r"about (\S+) reached", str(caught.value))[1])
    assert 1e-12 < reached < 1e-4
    assert mc.solve(fast_and_slow(), solver=solver, tolerance=2 * reached).converged


def test_no_tolerance_is_finer_than_a_part_of_the_largest_cost_rate():
    lower, upper = mc.solve(admission(cost_rate=lambda x: x.jobs), tolerance=1e-300).bounds
    assert upper - lower <= 1e-12 * 3.5


def test_results_do_not_depend_on_the_run():
    one, other = (mc.solve(two_queues((20, 20))) for _ in range(2))
    assert one.bounds == other.bounds
    assert one.values.tolist() == other.values.tolist()


def test_two_python_threads_solve_side_by_side():
    found, model = [], two_queues((20, 20))
    threads = [
        threading.Thread(target=lambda: found.append(mc.solve(model).bounds)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [mc.solve(model).bounds] * 2


# --- gains that depend on the state ---------------------------------------------------------------


def three_ways():
    """From 0 a coin, or staying at cost 4; states 1 and 2 absorb at costs 1 and 5."""
    coin = [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]
    return mc.tabular([np.eye(3), coin], costs=[[4, 0], [1, 1], [5, 5]])


@by_solver
def test_gains_by_state_have_bounds_by_state(solver):
    solution = mc.solve(three_ways(), solver=solver)
    lower, upper = solution.bounds
    np.testing.assert_allclose(solution.gains, [3, 1, 5], rtol=1e-8)
    assert (lower <= [3, 1, 5]).all()
    assert (upper >= [3, 1, 5]).all()
    assert solution.policy.table()[0] == 1
    assert solution.converged


@by_solver
def test_a_gain_that_depends_on_the_state_is_no_number(solver):
    solution = mc.solve(three_ways(), solver=solver)
    with pytest.raises(mc.MultichainError, match=r"1 from state 1, 5 from state 2; see \.gains"):
        _ = solution.gain


def test_two_classes_of_equal_gain_have_one_gain():
    model = mc.tabular([np.eye(2)], costs=[2.0, 2.0])
    assert mc.solve(model).gain == pytest.approx(2.0, rel=1e-8)


@st.composite
def tabular_models(draw):
    """A few states with few moves, and thirds as probabilities, so that nothing is exact."""
    n = draw(st.integers(2, 4))
    rows = []
    for _ in range(2 * n):
        targets = draw(st.lists(st.integers(0, n - 1), min_size=3, max_size=3))
        rows.append(np.bincount(targets, minlength=n) / 3)
    costs = draw(st.lists(st.integers(0, 9), min_size=2 * n, max_size=2 * n))
    pairs = [(s, a) for a in range(2) for s in range(n)]
    state, action = np.array(pairs).T
    return mc.tabular(np.array(rows), costs=np.array(costs) / 7, s_indices=state, a_indices=action)


@pytest.mark.slow
@by_solver
@settings(max_examples=60)
@given(tabular_models())
def test_the_optimum_is_the_best_of_all_policies_from_every_state(solver, model):
    best, _ = exact_optimum(compile_model(model))
    solution = mc.solve(model, solver=solver)
    lower, upper = (np.broadcast_to(bound, len(best)) for bound in solution.bounds)
    assert solution.converged
    for k, value in enumerate(best):
        assert Fraction(lower[k]) <= value <= Fraction(upper[k])


def islands(seed, count=4):
    """Closed groups of states with random moves inside, and transient states between them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    island = rng.integers(0, count + 1, n)
    matrices = np.zeros((2, n, n))
    for a in range(2):
        for s in range(n):
            own = np.flatnonzero(island == island[s]) if island[s] < count else np.arange(n)
            targets = rng.choice(own, size=min(own.size, 3), replace=False)
            matrices[a, s, targets] = rng.dirichlet(np.ones(targets.size))
    return mc.tabular(matrices, costs=rng.random((n, 2)), normalise=True)


@pytest.mark.parametrize("seed", range(20))
def test_islands_are_solved_one_by_one_and_their_policy_costs_what_is_said(seed):
    model = islands(seed)
    solution = mc.solve(model)
    evaluation = mc.evaluate(model, solution.policy)
    assert solution.solver == evaluation.solver == "end_components"
    assert (evaluation.bounds[0] <= solution.bounds[1]).all()
    assert (evaluation.bounds[1] >= solution.bounds[0]).all()
    np.testing.assert_allclose(evaluation.gains, solution.gains, rtol=1e-7)


def test_islands_that_are_not_finished_leave_bounds_by_state():
    model = islands(1)
    finished = mc.solve(model, tolerance=1e-10)
    best = finished.gains
    limits = np.unique(np.linspace(31, finished.iterations, 30).astype(int))
    partial = [mc.solve(model, max_iterations=int(limit), strict=False) for limit in limits]
    for solution in partial:
        lower, upper = (np.broadcast_to(bound, best.shape) for bound in solution.bounds)
        assert (lower <= best + 1e-9).all()
        assert (best - 1e-9 <= upper).all()
    unfinished = [s for s in partial if s.solver == "end_components" and not s.converged]
    assert unfinished
    assert all(s.status is Status.ITERATIONS for s in unfinished)


def test_an_interrupt_ends_all_islands():
    calls = []
    mc.solve(islands(1), progress=lambda *report: calls.append(report))
    late = calls[-4]

    def interrupt(*report):
        if report == late:
            raise KeyboardInterrupt

    solution = mc.solve(islands(1), progress=interrupt, strict=False)
    assert solution.solver == "end_components"
    assert solution.status is Status.INTERRUPTED
    best = mc.solve(islands(1)).gains
    assert (solution.bounds[0] <= best + 1e-8).all()
    assert (best - 1e-8 <= solution.bounds[1]).all()


def test_an_unfinished_island_is_an_error_that_names_a_state(monkeypatch):
    monkeypatch.setattr(classes, "COMPONENT_TOLERANCE", 1e3)
    with stopped("] in state") as caught:
        mc.solve(islands(1))
    assert np.ndim(caught.value.partial.bounds[0]) == 1


def test_a_policy_with_several_classes_does_not_stop_a_model_with_one_gain():
    """Two rooms with doors: the policy that stays has two classes, every best one has one."""
    rng = np.random.default_rng(8)
    inside = np.zeros((8, 8))
    inside[:4, :4], inside[4:, 4:] = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), 4)
    doors = np.roll(np.eye(8), 1, axis=1)
    costs = np.column_stack([rng.random(8), rng.random(8) + 0.5])
    model = mc.tabular([inside, doors], costs=costs, normalise=True)
    found = [mc.solve(model, solver=name) for name in [*SOLVERS, None]]
    assert max(s.bounds[0] for s in found) <= min(s.bounds[1] for s in found)
    assert all(np.ndim(s.bounds[0]) == 0 for s in found if s.solver != "end_components")


@pytest.mark.parametrize("dear", [1e2, 1e8, 1e12])
def test_an_action_that_is_far_too_dear_takes_no_digits_away(dear):
    up = mc.Event("up", lambda x: 1.0 * (x.i == 0), mc.step(i=+1))
    down = mc.Event("down", lambda x: 1.0 * (x.i == 1), mc.step(i=-1))
    pay = mc.Event("offer", 1.0, [mc.Action("pay", cost=dear), mc.Action("decline")])
    model = mc.Model(mc.Lattice({"i": 1}), [up, down, pay], cost_rate=lambda x: 1.0 + x.i)
    for solver in (*SOLVERS, None):
        lower, upper = mc.solve(model, solver=solver).bounds
        assert lower <= 1.5 <= upper
        assert upper - lower <= 1.5e-8


@pytest.mark.parametrize("where", [None, lambda x: x.jobs < 1])
def test_a_model_of_one_state_is_solved(where):
    cheap, dear = mc.Action("cheap", cost=1.0), mc.Action("dear", cost=2.0)
    space = mc.Lattice({"jobs": 0 if where is None else 3}, where=where)
    solution = mc.solve(mc.Model(space, [mc.Event("job", 0.5, [cheap, dear])]))
    assert solution.gain == pytest.approx(0.5)
    assert solution.policy.table().tolist() == [0]
