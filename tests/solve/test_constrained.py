"""Optima within limits against enumeration, prices, differences and scaling."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.model.limit import Limit
from mdpcloud.solve.constrained import constrained, occupation
from mdpcloud.solve.constrained import dual as constrained_dual
from mdpcloud.solve.constrained import program as constrained_program
from mdpcloud.solve.constrained.constrained import ConstrainedSolution, solve_constrained
from mdpcloud.solve.constrained.highs import Unsolved
from mdpcloud.solve.constrained.occupation import OccupationProgram
from mdpcloud.solve.constrained.report import Infeasibility, InfeasibleError
from mdpcloud.solve.limits import Monitor, Status
from mdpcloud.solve.policy_iteration import PolicyIteration
from tests.admission import admission, two_queues
from tests.models.routing import C6, routing
from tests.solve.constrained_models import best_mixture, points_of, small_models

few = settings(max_examples=10)
parts = st.floats(0.05, 0.95)


def between(points: Any, part: float) -> float:
    """A limit between the least measure and that of the cheapest policy."""
    least, free = min(p[1] for p in points), min(points)[1]
    return float(least) + part * float(free - least)


def encloses(found: ConstrainedSolution, exact: Fraction) -> bool:
    lower, upper = map(Fraction, found.bounds)
    return lower <= exact and (exact <= upper or min(found.slack.values()) < 0)


# --- against enumeration --------------------------------------------------------------------------


@few
@given(small_models(), parts, st.sampled_from(["jobs", "stays", "fast", "steps"]))
def test_the_optimum_is_the_convex_hull_of_deterministic_policies(
    model: mc.Model, part: float, name: str
) -> None:
    points = points_of(model, name)
    bound = between(points, part)
    if bound < min(p[1] for p in points):
        return
    found = solve_constrained(model, {name: bound})
    exact = best_mixture(points, Fraction(bound))
    assert found.converged
    assert encloses(found, exact)
    assert found.gain == pytest.approx(float(exact), rel=1e-6, abs=1e-9)


@few
@given(small_models(), parts, parts)
def test_two_limits_agree_with_a_program_over_deterministic_policies(
    model: mc.Model, one: float, two: float
) -> None:
    points = np.array(points_of(model, "jobs", "fast"), np.float64)
    jobs = points[:, 1].min() + one * np.ptp(points[:, 1])
    fast = points[:, 2].min() + two * np.ptp(points[:, 2])
    weights = linprog(points[:, 0], points[:, 1:].T, [jobs, fast], np.ones((1, len(points))), [1.0])
    if weights.status == 2:
        with pytest.raises(InfeasibleError):
            solve_constrained(model, {"jobs": jobs, "fast": fast})
        return
    found = solve_constrained(model, {"jobs": jobs, "fast": fast})
    assert found.gain == pytest.approx(weights.fun, rel=1e-5, abs=1e-7)
    assert len(found.randomised) <= 2


@few
@given(small_models(), parts)
def test_a_ratio_is_the_ratio_of_the_averages(model: mc.Model, part: float) -> None:
    points = points_of(model, "stays", "jobs")
    ratios = [p[1] / p[2] for p in points if p[2] > 0]
    bound = Fraction(float(min(ratios) + Fraction(part) * (max(ratios) - min(ratios))))
    forms = [(p[0], p[1] - bound * p[2]) for p in points]
    exact = best_mixture(forms, Fraction(0))
    found = solve_constrained(model, {"stays / jobs": float(bound)})
    assert encloses(found, exact)
    low, high = found.measures["stays / jobs"]
    assert low <= high <= float(bound) * (1 + 1e-6)


@few
@given(small_models(), parts)
def test_at_least_is_at_most_of_the_negative(model: mc.Model, part: float) -> None:
    points = [(cost, -jobs) for cost, jobs in points_of(model, "jobs")]
    bound = between(points, part)
    found = solve_constrained(model, {"jobs": Limit(at_least=-bound)})
    assert encloses(found, best_mixture(points, Fraction(bound)))


# --- what a solution says -------------------------------------------------------------------------


@few
@given(small_models(), parts, st.sampled_from(["jobs", "fast"]))
def test_a_basic_solution_randomises_in_one_state_per_limit(
    model: mc.Model, part: float, name: str
) -> None:
    found = solve_constrained(model, {name: between(points_of(model, name), part)})
    assert len(found.randomised) <= 1
    for state in found.randomised:
        assert sum(state.probabilities.values()) == pytest.approx(1.0)
        table = found.policy.actions[state.decision]
        names = found.policy.names[state.decision]
        for action, probability in state.probabilities.items():
            assert table[names.index(action), state.state] == probability


@few
@given(small_models(), parts)
def test_measures_cost_and_slack_are_those_of_the_policy(model: mc.Model, part: float) -> None:
    bound = between(points_of(model, "jobs"), part)
    found = solve_constrained(model, {"jobs": bound})
    other = mc.evaluate(model, found.policy)
    assert other.bounds[0] <= found.bounds[1]
    assert other.measures["jobs"][0] <= found.measures["jobs"][1]
    assert found.measures["jobs"][0] <= other.measures["jobs"][1]
    assert found.slack["jobs"] <= bound - found.measures["jobs"][1] + 1e-12


def test_a_limit_that_does_not_bind_has_no_price_and_changes_nothing() -> None:
    model = two_queues()
    free = mc.solve(model)
    found = solve_constrained(model, {"jobs": 7.0})
    assert found.multipliers == {"jobs": 0.0}
    assert found.randomised == ()
    assert not found.policy.randomised
    assert found.gain == pytest.approx(free.gain, rel=1e-8)


def test_either_the_price_or_the_slack_is_zero() -> None:
    found = solve_constrained(two_queues(), {"jobs": 0.9, "refusals": 1.2})
    for name, price in found.multipliers.items():
        assert price * found.slack[name] == pytest.approx(0.0, abs=1e-8)
    assert found.multipliers["jobs"] > 0.1


@pytest.mark.parametrize("key", ["jobs", "jobs / refusals"])
def test_a_multiplier_is_the_slope_of_the_optimum_in_the_limit(key: str) -> None:
    model, bound, step = two_queues(), 0.93, 1e-4
    below, here, above = (
        solve_constrained(model, {key: bound + d}, tolerance=1e-9) for d in (-step, 0.0, step)
    )
    slope = (below.gain - above.gain) / (2 * step)
    assert here.multipliers[key] == pytest.approx(slope, rel=1e-3)


def test_a_range_and_an_equality_are_kept() -> None:
    model = two_queues()
    inside = solve_constrained(model, {"jobs": Limit(at_most=0.95, at_least=0.9)})
    assert inside.measures["jobs"][1] <= 0.95
    equal = solve_constrained(model, {"jobs": Limit(at_most=0.9, at_least=0.9)})
    assert equal.measures["jobs"][0] == pytest.approx(0.9, abs=1e-7)
    assert equal.converged


def test_the_price_of_a_limit_found_by_bisection_is_the_multiplier() -> None:
    plain = routing(C6, 4.0, 0.45, (2, 4, 4))
    bound = 0.12

    def priced(price: float) -> tuple[float, float]:
        costs = [lambda x, c=c: (1 + price) * c(x) for c in plain.cost_rate]
        model = mc.Model(plain.space, plain.events, cost_rate=costs, measures=plain.measures)
        best = mc.solve(model, tolerance=1e-10)
        lost = mc.evaluate(model, best.policy).measures["abandoned"][1]
        return best.gain - price * bound, lost

    low, high = 0.0, 30.0
    for _ in range(28):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if priced(middle)[1] > bound else (low, middle)
    found = solve_constrained(plain, {"abandoned": bound})
    assert found.multipliers["abandoned"] == pytest.approx(high, rel=1e-6)
    assert found.gain == pytest.approx(priced(high)[0], rel=1e-7)
    assert found.bounds[1] >= priced(high)[0] * (1 - 1e-10)


@pytest.mark.parametrize("speed", [1e-4, 1e5])
def test_other_units_of_time_change_rates_alone(speed: float) -> None:
    def system(rate: float) -> mc.systems.CloudRouting:
        nodes = (mc.systems.Node(2, 1.0 * rate, 0.3 * rate), mc.systems.Node(1, 2.0 * rate, rate))
        return mc.systems.CloudRouting(nodes, 4.0 * rate, 0.4)

    limits = {f"abandonment_rate[{k}] / routing_rate[{k}]": 0.03 for k in range(2)}
    one = solve_constrained(system(1.0).model(caps=(5, 4)), limits)
    other = solve_constrained(system(speed).model(caps=(5, 4)), limits)
    assert other.gain == pytest.approx(speed * one.gain, rel=1e-6)
    for key, multiplier in one.multipliers.items():
        assert other.multipliers[key] == pytest.approx(speed * multiplier, rel=1e-5)
        assert other.measures[key][1] <= 0.03


def test_limits_can_be_given_to_solve() -> None:
    found: Any = mc.solve(two_queues(), constraints={"jobs": 0.9})
    assert isinstance(found, ConstrainedSolution)
    assert found.bounds[1] - found.bounds[0] <= 1e-6 * found.gain


# --- what cannot be met ---------------------------------------------------------------------------


@few
@given(small_models(), st.sampled_from(["jobs", "fast"]))
def test_a_report_has_the_least_value_of_each_measure(model: mc.Model, name: str) -> None:
    least = min(p[1] for p in points_of(model, name))
    bound = float(least) - 0.125
    with pytest.raises(InfeasibleError) as caught:
        solve_constrained(model, {name: bound})
    report = caught.value.partial
    assert isinstance(report, Infeasibility)
    ((low, high),) = report.alone.values()
    assert Fraction(low) <= least <= Fraction(high)
    assert high - low <= 1e-6
    exact = (least - Fraction(bound)) / Fraction(abs(bound))
    if bound:
        assert Fraction(report.violation[0]) <= exact
        assert report.violation[0] == pytest.approx(float(exact), rel=1e-6)


def test_only_the_limits_in_conflict_are_named() -> None:
    limits = {"refusals": 0.05, "jobs": 0.5, "refusals / jobs": Limit(at_least=0.0)}
    with pytest.raises(
        InfeasibleError, match=r"in conflict: refusals <= 0\.05, jobs <= 0\.5"
    ) as error:
        solve_constrained(two_queues(), limits)
    report: Any = error.value.partial
    assert report.conflict == ("refusals <= 0.05", "jobs <= 0.5")
    assert report.violation[0] > 0.1
    assert report.violation[1] == pytest.approx(report.violation[0], rel=1e-6)


def test_a_limit_that_can_only_just_be_met_is_met() -> None:
    model = two_queues()
    costs = model.measures["jobs"]
    least = mc.solve(mc.Model(model.space, model.events[1:], cost_rate=costs)).gain
    assert least == pytest.approx(0.0, abs=1e-12)
    found = solve_constrained(model, {"jobs": 0.0})
    assert found.measures["jobs"][1] == pytest.approx(0.0, abs=1e-12)
    assert found.gain == pytest.approx(1.3 * 6.0)


def test_a_limit_missed_by_less_than_the_tolerance_is_no_conflict() -> None:
    model = two_queues()
    with pytest.raises(InfeasibleError) as caught:
        solve_constrained(model, {"refusals": 0.0})
    report: Any = caught.value.partial
    (least, _) = report.alone["refusals <= 0"]
    bound = least * (1 - 1e-8)
    found = solve_constrained(model, {"refusals": bound})
    assert found.converged
    assert -3e-8 * bound <= found.slack["refusals"] < 0
    assert found.measures["refusals"][0] == pytest.approx(least, rel=3e-8)
    with pytest.raises(InfeasibleError):
        solve_constrained(model, {"refusals": bound}, tolerance=1e-9)


# --- what is refused ------------------------------------------------------------------------------


def test_several_end_components_are_refused_by_name() -> None:
    stay = mc.Event("e", 1.0, [mc.Action("stay"), mc.Action("up", mc.step(i=+1))])
    model = mc.Model(mc.Lattice({"i": 2}), stay, measures={"i": lambda x: x.i})
    with pytest.raises(mc.MultichainError, match=r"3 end components .* states \(i=0\) and \(i=1\)"):
        solve_constrained(model, {"i": 1.0})


def two_wells(cost: float = 1.0) -> mc.Model:
    """Two states that a policy may stay in, with a way between them: measure 1 and 0."""
    move = mc.Event(
        "move",
        1.0,
        [
            mc.Action("stay"),
            mc.Action("right", mc.step(i=+1), cost=1.0),
            mc.Action("left", mc.step(i=-1), cost=1.0),
        ],
    )
    measures = {"left": lambda x: 1.0 * (x.i == 0)}
    space = mc.Lattice({"i": 1})
    return mc.Model(space, move, cost_rate=lambda x: cost * (x.i == 1), measures=measures)


def test_an_occupation_of_two_classes_is_refused_by_name() -> None:
    with pytest.raises(mc.MultichainError, match="spread over 2 recurrent classes"):
        solve_constrained(two_wells(), {"left": 0.5})


def test_states_never_visited_lead_back() -> None:
    found = solve_constrained(two_wells(), {"left": 1.0})
    assert found.gain == pytest.approx(0.0, abs=1e-9)
    assert found.policy.table()[1] == 2


def test_a_best_policy_with_several_classes_is_no_obstacle() -> None:
    found = solve_constrained(two_wells(cost=0.0), {"left": 1.0})
    assert found.gain == pytest.approx(0.0, abs=1e-9)


def test_too_large_a_model_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupation, "MOST_ROWS", 10)
    with pytest.raises(mc.InputError, match=r"has \d+ rows"):
        solve_constrained(two_queues(), {"jobs": 1.0})


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"job": 1.0}, r"no measure 'job'.*did you mean 'jobs'"),
        ({"jobs / refusal": 1.0}, r"no measure 'refusal'.*did you mean 'refusals'"),
        ({"nothing": 1.0}, r"no measure 'nothing'; there are refusals, jobs"),
        ({3: 1.0}, "must be the name of a measure"),
        ({"jobs": "few"}, r"limit of 'jobs' is 'few'; it must be a number or a Limit"),
        ({"jobs": True}, r"limit of 'jobs' is True"),
        ({"jobs": float("nan")}, r"limit of 'jobs': at_most is nan; it must be a finite number"),
        ({}, "not empty"),
        (("jobs",), "must be a mapping"),
    ],
)
def test_wrong_limits_are_refused_with_what_is_wrong(limits: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        solve_constrained(two_queues(), limits)


def test_a_model_without_measures_is_refused() -> None:
    for model in (admission(), mc.tabular([[[1.0]]])):
        with pytest.raises(mc.InputError, match="named measures, and this one has none"):
            solve_constrained(model, {"jobs": 1.0})


def test_a_divisor_that_can_be_negative_is_refused() -> None:
    model = admission(measures={"a": 1.0, "b": lambda x: x.jobs - 1.0})
    with pytest.raises(mc.InputError, match="'b' is negative in some state"):
        solve_constrained(model, {"a / b": 1.0})


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({}, "needs at_most, at_least, or both"),
        ({"at_most": 1.0, "at_least": 2.0}, "at_least must be <= at_most"),
        ({"at_least": float("inf")}, "must be a finite number"),
    ],
)
def test_a_limit_that_is_none_is_refused(settings_: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        Limit(**settings_)


@pytest.mark.parametrize("limit", [{"max_iterations": 3}, {"time_limit": 1e-9}])
def test_a_limit_before_the_program_is_solved_is_an_error(limit: Any) -> None:
    with pytest.raises(mc.SolveError, match="linear program is not solved"):
        solve_constrained(two_queues((8, 8)), {"jobs": 0.9}, monitor=Monitor(**limit))


def test_a_policy_far_from_optimal_is_not_called_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    optimum = solve_constrained(two_queues(), {"jobs": 0.9}).gain
    monkeypatch.setattr(occupation, "NOISE", 2.0)
    found = solve_constrained(two_queues(), {"jobs": 0.9})
    assert found.status is Status.STALLED
    assert found.bounds[0] <= optimum * (1 + 1e-6)
    assert found.bounds[1] >= optimum
    with pytest.raises(mc.SolveError, match="bounds stopped closing"):
        mc.solve(two_queues(), constraints={"jobs": 0.9})


def test_a_policy_that_misses_a_limit_bounds_nothing_from_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = two_queues()
    best = mc.solve(model)
    choice = best.policy.choice(compile_model(model))

    def free(problem: Any, *_: Any) -> Any:
        share = np.zeros(problem.table.state.size)
        share[problem.chosen(choice)] = 1.0
        return share

    monkeypatch.setattr(constrained, "shares_of", free)
    found = solve_constrained(model, {"jobs": 0.9})
    assert found.status is Status.STALLED
    assert found.slack["jobs"] < -0.1
    assert found.bounds[1] == np.inf
    assert found.gain == pytest.approx(best.gain)


def unsolved(*_: Any, **__: Any) -> None:
    raise Unsolved("kUnknown", False)


def test_a_program_that_cannot_be_solved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OccupationProgram, "minimise", unsolved)
    with pytest.raises(mc.SolveError, match="in any scaling"):
        solve_constrained(two_queues(), {"jobs": 0.9})


def test_the_solution_of_another_scaling_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    minimise = OccupationProgram.minimise

    def unscaled(self: Any, *arguments: Any, **settings_: Any) -> Any:
        return (minimise if self.expected is None else unsolved)(self, *arguments, **settings_)

    expected = solve_constrained(two_queues(), {"jobs": 0.9})
    monkeypatch.setattr(OccupationProgram, "minimise", unscaled)
    found = solve_constrained(two_queues(), {"jobs": 0.9})
    assert found.gain == pytest.approx(expected.gain, rel=1e-6)


@pytest.mark.parametrize("where", ["constrained_program", "constrained_dual"])
def test_an_interrupt_ends_the_solve(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    run = PolicyIteration.run

    def interrupted(self: Any, *arguments: Any) -> Any:
        outcome = run(self, *arguments)
        loose = replace(outcome.certificate, low=outcome.certificate.low - 1.0)
        return replace(outcome, certificate=loose, status=Status.INTERRUPTED)

    module = constrained_program if where == "constrained_program" else constrained_dual

    class Interrupted(PolicyIteration):
        run = interrupted

    monkeypatch.setattr(module, "PolicyIteration", Interrupted)
    if module is constrained_program:
        with pytest.raises(KeyboardInterrupt):
            solve_constrained(two_queues(), {"jobs": 0.9})
    else:
        found = solve_constrained(two_queues(), {"jobs": 0.9})
        assert found.status is Status.INTERRUPTED


def test_an_interrupted_report_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(PolicyIteration):
        def run(self, *arguments: Any) -> Any:
            return replace(super().run(*arguments), status=Status.TIME)

    monkeypatch.setattr(constrained_dual, "PolicyIteration", Interrupted)
    with pytest.raises(mc.SolveError, match="time limit"):
        solve_constrained(two_queues(), {"jobs": -1.0})
