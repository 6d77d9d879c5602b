"""Finite horizons in continuous time: closed forms, second methods, limits, refusals."""

import math
import re
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.solve.horizon import course as horizon_course
from mdpcloud.solve.horizon.horizon import evaluate_horizon, solve_horizon
from mdpcloud.solve.horizon.sweeps import Sweeps
from mdpcloud.solve.limits import Monitor, Status
from tests.admission import admission, two_queues
from tests.common.interpreter import chances, interpret, under, values


def solve(model, time, final=None, *, tolerance=1e-6, **limits):
    horizon = mc.FiniteHorizon(time, final)
    return solve_horizon(model, horizon, tolerance=tolerance, monitor=Monitor(**limits))


def evaluate(model, policy, time, final=None, *, tolerance=1e-10, **limits):
    horizon = mc.FiniteHorizon(time, final)
    return evaluate_horizon(model, policy, horizon, tolerance=tolerance, monitor=Monitor(**limits))


def encloses(result, exact, error=0.0):
    lower, upper = result.bounds
    return bool((lower <= exact + error).all() and (exact - error <= upper).all())


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def cost_of_two_states(rate, time):
    """Cost 1 per unit of time until an exponential clock of that rate rings."""
    return -math.expm1(-rate * time) / rate


def clock(rate):
    """The same as a model; its other state costs nothing."""
    leave = mc.Event("ring", lambda x: rate * (x.gone == 0), mc.step(gone=+1))
    return mc.Model(mc.Lattice({"gone": 1}), [leave], cost_rate=lambda x: 1.0 * (x.gone == 0))


def two_ways():
    """From state 0 on, A: three stages of rates 1, 7, 7 to state 4; B: two of rate 1, then a coin.

    State 4 is success, state 5 failure; the reduced form of a public report on wrong error bounds.
    """
    ways = [
        mc.Mode("A", 0.0, [mc.Flow(lambda x: 1.0 * (x.s == 0), mc.step(s=1))]),
        mc.Mode("B", 0.0, [mc.Flow(lambda x: 1.0 * (x.s == 0), mc.step(s=3))]),
    ]
    coin = [mc.Move(0.5, mc.step(s=+1)), mc.Move(0.5, mc.step(s=+2))]
    events = [
        mc.Control("way", ways),
        mc.Event("second stage", lambda x: 7.0 * (x.s == 1), mc.step(s=1)),
        mc.Event("third stage", lambda x: 7.0 * (x.s == 2), mc.step(s=2)),
        mc.Event("coin", lambda x: 1.0 * (x.s == 3), mc.Action("toss", coin)),
    ]
    return mc.Model(mc.Lattice({"s": 5}), events)


SUCCESS = 1.0 * (np.arange(6) == 4)
BY_A, BY_B = 0.50066835807513402, 0.13212055882855768  # quadrature; (1 - 2/e) / 2


@pytest.mark.parametrize("rate", [1e-6, 0.5, 6.0, 1e6])
@pytest.mark.parametrize("time", [1e-3, 0.1, 3.0])
def test_an_exponential_clock_costs_what_the_closed_form_says(rate, time):
    for result in (solve(clock(rate), time), evaluate(clock(rate), {}, time)):
        assert result.status is Status.CONVERGED
        assert encloses(result, np.array([cost_of_two_states(rate, time), 0.0]))


def test_a_reported_accumulated_reward_is_met_to_twelve_digits():
    result = solve(clock(6.0), 0.1, tolerance=1e-12)
    assert result.values[0] == pytest.approx(0.075198060650995595, rel=1e-12)


def test_either_way_has_its_known_probability_of_success():
    for way, exact in (("A", BY_A), ("B", BY_B)):
        result = evaluate(two_ways(), way, 1.0, SUCCESS)
        assert result.bounds[0][0] <= exact <= result.bounds[1][0]
        assert result.bounds[1][0] - result.bounds[0][0] <= 1e-10


def test_the_best_way_depends_on_the_time_left():
    least, most = solve(two_ways(), 1.0, SUCCESS), solve(two_ways(), 1.0, -SUCCESS)
    assert least.bounds[1][0] < BY_B - 1e-5
    assert -most.bounds[1][0] > BY_A + 1e-5
    assert [way for _, way in most.policy.switches("way", 0)] == ["B"]
    assert [way for _, way in least.policy.switches("way", 0)] == ["A"]


def test_the_time_to_change_ways_is_where_both_have_the_same_chance():
    """From states 1 and 3: a chance of two stages of rate 7, of half a stage of rate 1."""

    def difference(left):
        return 1 - math.exp(-7 * left) * (1 + 7 * left) - 0.5 * (1 - math.exp(-left))

    low, high = 1e-3, 0.5
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if difference(middle) > 0 else (middle, high)
    ((time, _),) = solve(two_ways(), 1.0, -SUCCESS, tolerance=1e-8).policy.switches("way", 0)
    assert 1.0 - time == pytest.approx(low, abs=1e-3)


def reference(model, time, final):
    """V' = F(V), read state by state and integrated with an adaptive method."""
    problem = interpret(model)
    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13}
    solution = solve_ivp(lambda _, v: values(problem, v), (0.0, time), final, **options)
    return solution.y[:, -1]


@pytest.mark.parametrize("time", [0.05, 1.0, 6.0])
def test_routing_agrees_with_an_integrator(time):
    model, final = two_queues(), np.linspace(0.0, 3.0, 20)
    result = solve(model, time, final, tolerance=1e-7)
    assert result.status is Status.CONVERGED
    assert np.ptp(result.bounds, axis=0).max() <= 1e-7 * result.values.max()
    assert encloses(result, reference(model, time, final), error=1e-8)


def augmented(model, rules, time, final):
    """Cost of a policy from the exponential of its generator with the costs as one more state."""
    problem = interpret(model)
    generator, cost = under(problem, chances(problem, rules))
    n = cost.size
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n], matrix[:n, n] = generator, cost
    return (expm(time * matrix) @ np.append(final, 1.0))[:n]


@pytest.mark.parametrize("rule", ["node 0", "refuse", {"node 0": 0.25, "refuse": 0.75}])
@pytest.mark.parametrize("time", [0.3, 20.0])
def test_fixed_policies_agree_with_a_matrix_exponential(rule, time):
    model = two_queues((3, 2))
    if rule != "refuse":
        full = {
            "node 0": lambda x: 1.0 * (x.node[0] < 3),
            "refuse": lambda x: 1.0 * (x.node[0] == 3),
        }
        part = 1.0 if rule == "node 0" else 0.25
        rule = {
            "node 0": lambda x: part * full["node 0"](x),
            "refuse": lambda x: 1.0 - part * full["node 0"](x),
        }
    final = np.arange(12.0)
    result = evaluate(model, rule, time, final)
    assert result.status is Status.CONVERGED
    rules = {"arrival": rule if isinstance(rule, dict) else {"refuse": 1.0}}
    assert encloses(result, augmented(model, rules, time, final), error=1e-11)


@cache
def solved(time):
    return solve(two_queues(), time)


@pytest.mark.parametrize("time", [0.2, 2.0, 9.0])
def test_the_policy_found_costs_what_the_solution_says(time):
    solution = solved(time)
    again = evaluate(two_queues(), solution.policy, time)
    assert (again.bounds[0] <= solution.bounds[1]).all()
    assert (again.bounds[1] >= solution.bounds[0]).all()
    # The upper bound is the policy's own cost, but for rounding and the cut of series.
    slack = 0.1 * 1e-6 * solution.values.max()
    np.testing.assert_allclose(again.values, solution.bounds[1], rtol=0, atol=slack)


def test_no_policy_that_stays_the_same_costs_less():
    model, solution = two_queues(), solved(2.0)
    for time in (0.0, 1.0, 2.0):
        stationary = evaluate(model, solution.policy.at(time), 2.0)
        assert (stationary.bounds[1] >= solution.bounds[0]).all()


def test_costs_grow_with_the_horizon():
    shorter, longer = solved(2.0), solved(2.1)
    assert (shorter.bounds[0] <= longer.bounds[1]).all()
    assert (shorter.values < longer.values).all()


def test_scaling_time_changes_nothing():
    def model(speed):
        return admission(rate=0.5 * speed, extra=[], cost_rate=lambda x: speed * 0.3 * x.jobs)

    def sped_up(speed):
        return mc.Model(
            mc.Lattice({"jobs": 3}),
            [
                mc.Event("arrival", 0.5 * speed, model(1.0).events[0].actions),
                mc.Event("service", lambda x: speed * (x.jobs > 0), mc.step(jobs=-1)),
            ],
            cost_rate=lambda x: speed * 0.3 * x.jobs,
        )

    one, thousand = solve(sped_up(1.0), 5.0), solve(sped_up(1024.0), 5.0 / 1024)
    np.testing.assert_allclose(one.values, thousand.values, rtol=1e-12)
    assert one.iterations == thousand.iterations


def test_far_from_the_end_each_unit_of_time_costs_the_gain():
    model = two_queues()
    gain = mc.solve(model).gain
    for long in (300.0, 3e5):
        later, sooner = solve(model, long + 1, tolerance=1e-9), solve(model, long, tolerance=1e-9)
        error = 2e-9 * sooner.values.max()
        np.testing.assert_allclose(later.values - sooner.values, gain, rtol=0, atol=error)


def test_long_horizons_end_where_the_average_cost_is_known():
    assert solve(two_queues(), 1e9).iterations < 3 * solve(two_queues(), 300.0).iterations
    assert evaluate(two_queues(), "refuse", 1e12).status is Status.CONVERGED


def test_the_policy_of_a_long_horizon_is_that_of_the_average_cost_but_near_the_end():
    model = two_queues()
    policy = solve(model, 300.0).policy
    best = mc.evaluate(model, policy.at(0.0))
    assert best.gain == pytest.approx(mc.solve(model).gain, rel=1e-6)
    assert policy.times.min() > 200.0


def test_a_final_cost_may_be_a_number_or_a_function():
    model = two_queues((2, 2))
    by_number, by_array = solve(model, 1.0, 2.5), solve(model, 1.0, np.full(9, 2.5))
    np.testing.assert_array_equal(by_number.values, by_array.values)
    np.testing.assert_allclose(by_number.values, solve(model, 1.0).values + 2.5, rtol=1e-6)
    by_function = solve(model, 1.0, lambda x: x.node[0] + 0.0 * x.node[1])
    np.testing.assert_array_equal(
        by_function.values, solve(model, 1.0, np.repeat([0.0, 1.0, 2.0], 3)).values
    )


def test_a_model_without_decisions_has_a_policy_without_decisions():
    solution = solve(clock(2.0), 1.0)
    assert dict(solution.policy.changes) == {}
    again = evaluate(clock(2.0), solution.policy, 1.0)
    assert encloses(again, np.array([cost_of_two_states(2.0, 1.0), 0.0]))


def test_no_costs_at_all_are_worth_nothing():
    solution = solve(two_ways(), 1.0)
    assert solution.status is Status.CONVERGED
    assert encloses(solution, np.zeros(6))


def test_a_finer_tolerance_gives_narrower_bounds_within_the_rougher():
    rough, fine = (solve(two_queues(), 2.0, tolerance=tolerance) for tolerance in (1e-4, 1e-9))
    assert np.ptp(fine.bounds, axis=0).max() <= 1e-9 * fine.values.max()
    assert (rough.bounds[0] <= fine.bounds[1]).all()
    assert (fine.bounds[0] <= rough.bounds[1]).all()


def test_the_finest_tolerance_is_a_part_of_the_largest_costs():
    solution = solve(two_queues((2, 2)), 50.0, tolerance=1e-15)
    assert solution.status is Status.CONVERGED
    largest = (1.3 * 6 + 2 * 1.0 + 2 * 1.5) * 50.0
    assert np.ptp(solution.bounds, axis=0).max() <= 1e-12 * largest


def test_beyond_rounding_the_bounds_reached_are_returned():
    rough = solve(stiff(1e4), 2.0)
    for result in (
        solve(stiff(1e4), 2.0, tolerance=1e-13),
        evaluate(stiff(1e4), "leave", 2.0, tolerance=1e-13),
    ):
        assert result.status is Status.PRECISION
        assert np.ptp(result.bounds, axis=0).max() <= 1e-9
        assert (result.bounds[0] <= rough.bounds[1]).all()
        assert (rough.bounds[0] <= result.bounds[1]).all()


@pytest.mark.parametrize("most", [1, 3, 10, 50, 200, 1000])
def test_a_limit_leaves_bounds_that_hold(most):
    model, exact = two_queues(), solved(2.0)
    result = solve(model, 2.0, max_iterations=most)
    if result.status is not Status.CONVERGED:
        assert result.status is Status.ITERATIONS
    assert (result.bounds[0] <= exact.bounds[1]).all()
    assert (result.bounds[1] >= exact.bounds[0]).all()
    again = evaluate(model, result.policy, 2.0)
    assert (again.bounds[0] <= result.bounds[1]).all()


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_limit_in_any_attempt_is_told(part):
    whole = solve(two_ways(), 1.0, SUCCESS, tolerance=1e-8)
    result = solve(
        two_ways(), 1.0, SUCCESS, tolerance=1e-8, max_iterations=int(part * whole.iterations)
    )
    assert result.status is Status.ITERATIONS
    assert (result.bounds[0] <= whole.bounds[1]).all()
    assert (whole.bounds[0] <= result.bounds[1]).all()


@pytest.mark.parametrize("most", [1, 5, 40, 100])
def test_a_limit_leaves_bounds_of_a_policy_that_hold(most):
    model, policy = two_queues(), solved(9.0).policy
    exact = evaluate(model, policy, 9.0)
    result = evaluate(model, policy, 9.0, max_iterations=most)
    assert result.status is Status.ITERATIONS
    assert (result.bounds[0] <= exact.bounds[1]).all()
    assert (result.bounds[1] >= exact.bounds[0]).all()


@pytest.mark.parametrize("after", [1, 30, 300])
def test_an_interrupt_leaves_bounds_that_hold(after):
    calls = []

    def interrupt(iterations, lower, upper):
        calls.append(iterations)
        if len(calls) == after:
            raise KeyboardInterrupt

    for time in (2.0, 300.0):
        calls.clear()
        result = solve(two_queues(), time, progress=interrupt)
        if len(calls) >= after:
            assert result.status is Status.INTERRUPTED
        assert (result.bounds[0] <= solved(time).bounds[1]).all()
        assert (result.bounds[1] >= solved(time).bounds[0]).all()


def stiff(fast):
    """A choice between a fast pair of states that never rests and a slow way out."""
    swap = [
        mc.Event("up", lambda x: fast * (x.s == 0), mc.step(s=1)),
        mc.Event("down", lambda x: fast * (x.s == 1), mc.step(s=-1)),
        mc.Event(
            "offer",
            lambda x: 1e-6 * (x.s == 1),
            [mc.Action("stay"), mc.Action("leave", mc.step(s=1))],
        ),
    ]
    return mc.Model(mc.Lattice({"s": 2}), swap, cost_rate=lambda x: 1.0 * (x.s < 2))


def test_stiff_models_are_solved():
    """Half of the time in state 1, so that leaving has the rate 5e-7."""
    time = 2.0
    result = solve(stiff(1e4), time, tolerance=1e-9)
    assert result.status is Status.CONVERGED
    assert result.values[:2] == pytest.approx(cost_of_two_states(5e-7, time), rel=1e-9)


def test_hopeless_horizons_are_refused_at_once():
    with pytest.raises(mc.SolveError, match=r"a horizon of 1e\+06 needs 1.05e\+12 sweeps"):
        solve(stiff(1e6), 1e6)
    with pytest.raises(mc.SolveError, match="take a shorter horizon"):
        evaluate(stiff(1e6), "leave", 1e6)


def test_progress_is_told():
    said = []
    solve(two_queues(), 2.0, progress=lambda *numbers: said.append(numbers))
    assert len(said) > 5
    assert all(low <= high for _, low, high in said)


def test_an_evaluation_counts_no_measures():
    assert dict(evaluate(two_queues(), "refuse", 1.0).measures) == {}


def test_what_does_not_fit_is_refused():
    model = two_queues()
    policy = solved(2.0).policy
    with refused("made for the horizon 2; it is 3 here"):
        evaluate(model, policy, 3.0)
    with refused("it must be mdpcloud.FiniteHorizon"):
        solve_horizon(model, mc.AverageCost(), tolerance=1e-6, monitor=Monitor())
    with refused("tolerance is 0"):
        solve(model, 1.0, tolerance=0)
    with refused("the final cost"):
        solve(model, 1.0, np.zeros(3))
    with refused("the final cost is nan in state"):
        solve(model, 1.0, np.full(20, np.nan))
    with refused("too large"):
        solve(model, 1e250)


def test_an_action_that_is_not_allowed_is_refused_with_its_time():
    first = solved(2.0).policy.at(0.0)
    full = compile_model(two_queues()).n - 1
    policy = TimedPolicy(first, {"arrival": ([0.5], [full], [0])}, 2.0)
    with refused("takes action 'node 0' of 'arrival' at time 0.5 in state"):
        evaluate(two_queues(), policy, 2.0)


@pytest.mark.parametrize("time", [1e-310, 1e-200, 1e-12])
def test_no_horizon_is_too_short(time):
    final = np.arange(20.0)
    for result in (solve(two_queues(), time, final), evaluate(two_queues(), "refuse", time, final)):
        assert result.status is Status.CONVERGED
        assert encloses(result, final, error=100.0 * time)


@pytest.mark.parametrize("part", [3, 30, 100])
def test_out_of_memory_leaves_bounds_that_hold(part, monkeypatch):
    calls, sweeps = [], Sweeps.sweep

    def failing(self, *arguments):
        calls.append(None)
        if len(calls) == part:
            raise MemoryError
        sweeps(self, *arguments)

    exact = solved(2.0)
    monkeypatch.setattr(Sweeps, "sweep", failing)
    result = solve(two_queues(), 2.0)
    assert result.status is Status.MEMORY
    assert (result.bounds[0] <= exact.bounds[1]).all()
    assert (result.bounds[1] >= exact.bounds[0]).all()


def test_after_too_many_intervals_the_rest_is_done_in_one(monkeypatch):
    monkeypatch.setattr(horizon_course, "INTERVALS", 3)
    result = solve(two_queues(), 9.0, tolerance=1e-9)
    assert result.status is Status.STALLED
    assert (result.bounds[0] <= solved(9.0).bounds[1]).all()
    assert (result.bounds[1] >= solved(9.0).bounds[0]).all()
    assert np.ptp(result.bounds, axis=0).max() < 0.1 * result.values.max()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("time", [2.0, 300.0])
def test_what_ends_an_evaluation_leaves_bounds_that_hold(failure, time, monkeypatch):
    calls, sweeps = [], Sweeps.sweep

    def failing(self, *arguments):
        calls.append(None)
        if len(calls) == 5:
            raise failure
        sweeps(self, *arguments)

    exact = evaluate(two_queues(), "refuse", time)
    monkeypatch.setattr(Sweeps, "sweep", failing)
    result = evaluate(two_queues(), "refuse", time)
    assert result.status in (Status.MEMORY, Status.INTERRUPTED)
    assert (result.bounds[0] <= exact.bounds[1]).all()
    assert (result.bounds[1] >= exact.bounds[0]).all()
