"""The entry: arguments, errors, ends of runs, differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.simulate import events_kernels, run
from mdpcloud.systems.registry import find_system

pytestmark = pytest.mark.filterwarnings("ignore::mdpcloud.simulate.result.SimulationWarning")
SMALL = {"rng": 1, "events": 20_000}


def mm1(load: float = 0.5, cap: int = 10**6, **more: Any) -> mc.Model:
    """M/M/1 with cost 1 per job and unit of time."""
    return mc.Model(
        mc.Lattice({"jobs": cap}),
        [
            mc.Event("arrival", load, [mc.Action("join", mc.step(jobs=+1)), mc.Action("lost")]),
            mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1)),
        ],
        cost_rate=lambda x: x.jobs,
        measures={"busy": lambda x: 1.0 * (x.jobs > 0), "lost": ("arrival", "lost")},
        **more,
    )


def threshold(level: int) -> Any:
    return lambda x: np.where(x.jobs < level, "join", "lost")


def fall(start: int) -> mc.Model:
    """A pure death process: it ends in 0, which costs 7."""
    return mc.Model(
        mc.Reachable({"jobs": start}),
        [mc.Event("death", lambda x: 1.0 * x.jobs, mc.step(jobs=-1))],
        cost_rate=lambda x: np.where(x.jobs == 0, 7.0, 2.0),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"events": 0}, "events is 0; it must be a whole number >= 1"),
        ({"events": 1.5}, "events is 1.5; it must be a whole number >= 1"),
        ({"time": -3.0}, "time is -3.0; it must be a finite number > 0"),
        ({"time": np.inf}, "time is inf"),
        ({"time": np.nan}, "time is nan"),
        ({"events": 10, "time": 1.0}, "events and time are both given"),
        ({"half_width": 0.0}, "half_width is 0.0"),
        ({"warm_up": "msr"}, "warm_up is 'msr'; it must be 'mser' or a time >= 0"),
        ({"warm_up": -1.0}, "warm_up is -1.0"),
        ({"warm_up": 5.0, "time": 5.0}, "warm_up is 5; nothing is left of the time 5"),
        ({"warm_up": 1e9, "events": 1000}, "nothing is left; give more events"),
        ({"replications": 0}, "replications is 0"),
        ({"replications": True}, "replications is True"),
        ({"n_jobs": -1}, "n_jobs is -1"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"rng": -1}, "rng is -1; it must be a whole number >= 0"),
        ({"rng": "seed"}, "rng is 'seed'"),
        ({"rng": 1.0}, "rng is 1.0"),
        ({"paths": ("job",)}, "there is no state variable 'job'; did you mean 'jobs'?"),
        ({"start": {"job": 3}}, "start has the coordinates ['job']; the model has ['jobs']"),
        ({"start": {"jobs": 2 * 10**6}}, "the start (jobs=2000000) is no state of the space"),
        ({"ties": "firts"}, "ties is 'firts'"),
        ({"start": 3}, "start is 3; give the coordinates of a state"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError, match=re.escape(message)):
        mc.simulate(mm1(), threshold(3), **{"rng": 1, **arguments})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (None, "no rule for decision 'arrival': several of its actions"),
        (lambda x: "jion", "returns 'jion' in state (jobs=0), which is no action; did you mean"),
        (lambda x: np.where(x.jobs < 2, "join", "gone"), "in state (jobs=2)"),
        (lambda x: np.where(x.jobs < 2, 0, 5), "actions are ['join', 'lost'], or their numbers"),
        ("jion", "which is no action"),
        ({"join": 0.5, "lost": 0.4}, "do not sum to 1 in state (jobs=0)"),
        ({"join": 0.5, "lsot": 0.5}, "'arrival' has no action 'lsot'; did you mean 'lost'?"),
        ({"arival": "join"}, "the model has no event 'arival'; did you mean 'arrival'?"),
        (lambda x: np.where(x.job < 2, 0, 1), "axis 'job'"),
        (lambda: 0, "must be a function of one argument"),
        (lambda x: x.jobs.total, "fails in state (jobs=0): AttributeError"),
        (np.zeros(3, int), "gives 3 actions for 1000001 states"),
    ],
)
def test_rules_that_do_not_fit_are_told(policy: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=re.escape(message)):
        mc.simulate(mm1(), policy, **SMALL)


def test_an_action_that_is_not_allowed_is_told_with_its_state() -> None:
    model = mm1(cap=2)
    with pytest.raises(mc.InputError, match=r"'join'.*leaves the space.*\(jobs=2\)"):
        mc.simulate(model, lambda x: "join", **SMALL)
    barred = mc.Action("join", mc.step(jobs=+1), allowed=lambda x: x.jobs < 1)
    model = mc.Model(
        mc.Lattice({"jobs": 5}), [mc.Event("arrival", 1.0, [barred, mc.Action("lost")])]
    )
    with pytest.raises(mc.InputError, match=r"'join' in state \(jobs=1\), where it is not allowed"):
        mc.simulate(model, lambda x: "join", **SMALL)


def test_events_that_leave_or_have_bad_rates_are_told_with_their_state() -> None:
    space = mc.Lattice({"jobs": 3})
    leaving = mc.Model(space, [mc.Event("arrival", 1.0, mc.step(jobs=+1))])
    with pytest.raises(mc.InputError, match=r"'arrival'.*leaves the space.*\(jobs=3\)"):
        mc.simulate(leaving, **SMALL)
    for bad in (-1.0, np.nan, np.inf):
        rate = mc.Event("arrival", lambda x, r=bad: np.where(x.jobs < 2, 1.0, r), mc.step(jobs=+1))
        with pytest.raises(mc.InputError, match=r"'arrival'.*\(jobs=2\)"):
            mc.simulate(mc.Model(space, [rate]), **SMALL)


def test_a_cost_that_is_not_finite_is_told() -> None:
    model = mm1()
    model = mc.Model(model.space, model.events, cost_rate=lambda x: 1.0 / (x.jobs - 1.0))
    with pytest.raises(mc.InputError, match=r"cost rate is not finite in state \(jobs=1\)"):
        mc.simulate(model, threshold(3), **SMALL)
    join = mc.Action("join", mc.step(jobs=+1), cost=lambda x: 1.0 / (x.jobs - 2.0))
    arrival = mc.Event("arrival", 0.5, [join, mc.Action("lost")])
    model = mc.Model(model.space, [arrival, model.events[1]])
    with pytest.raises(mc.InputError, match=r"'join': cost is not finite in state \(jobs=2\)"):
        mc.simulate(model, threshold(3), **SMALL)


def test_a_model_in_which_nothing_happens_is_told() -> None:
    with pytest.raises(mc.InputError, match=r"nothing ever happens.*\(jobs=0\)"):
        mc.simulate(fall(0), **SMALL)


def test_a_policy_that_changes_with_time_is_told() -> None:
    model = mm1(cap=3)
    timed = mc.solve(model, mc.FiniteHorizon(3.0)).policy
    with pytest.raises(mc.InputError, match="changes with time"):
        mc.simulate(model, timed, **SMALL)


def test_something_else_than_a_model_is_told() -> None:
    with pytest.raises(mc.InputError, match="no model and no system"):
        mc.simulate(3, **SMALL)


# --- ends of runs ---------------------------------------------------------------------------------


def test_a_run_that_is_absorbed_ends_there_and_says_so() -> None:
    """From 5 jobs: time to 0 is H_5 on average, at cost rate 2; after that 7."""
    found = mc.simulate(fall(5), rng=1, time=1000.0, replications=400)
    assert found.status == "absorbed"
    assert "all replications ended in states that nothing leaves ((jobs=0))" in found.notes[0]
    mean = sum(1 / k for k in range(1, 6))
    time = found.absorption["time"]
    assert time.lower < mean < time.upper
    assert found.absorption["cost"].value == pytest.approx(2.0 * time.value, rel=1e-9)
    assert found.gain.value == pytest.approx(7.0, rel=1e-12)
    assert found.gain.half_width < 1e-9
    assert found.events == 400 * 5


def test_runs_of_which_some_are_absorbed_say_so() -> None:
    """A job dies, or becomes one that lives for ever and works."""
    model = mc.Model(
        mc.Lattice({"fate": 3}),
        [
            mc.Event("die", lambda x: 1.0 * (x.fate == 0), mc.step(fate=+1)),
            mc.Event("live", lambda x: 1.0 * (x.fate == 0), mc.step(fate=+2)),
            mc.Event("up", lambda x: 1.0 * (x.fate == 2), mc.step(fate=+1)),
            mc.Event("down", lambda x: 1.0 * (x.fate == 3), mc.step(fate=-1)),
        ],
    )
    found = mc.simulate(model, rng=3, time=50.0)
    assert found.status == "absorbed"
    assert re.search(r"[1-7] of 8 replications ended", found.notes[0])
    assert not found.absorption


def test_a_half_width_is_reached_and_holds_the_gain() -> None:
    found = mc.simulate(mm1(0.5), threshold(10**6), rng=2, half_width=0.01)
    assert found.status == "done"
    assert found.gain.half_width <= 0.01
    assert found.gain.lower < 1.0 < found.gain.upper


def test_a_half_width_that_is_not_reached_raises_with_what_was_found() -> None:
    with pytest.raises(mc.SolveError, match="the half width asked is 1e-06") as missed:
        mc.simulate(mm1(), threshold(9), rng=2, half_width=1e-6, events=50_000)
    partial: Any = missed.value.partial
    assert partial.status == "half_width"
    assert 30_000 < partial.events < 70_000
    lenient = mc.simulate(mm1(), threshold(9), rng=2, half_width=1e-6, events=50_000, strict=False)
    assert lenient.gain == partial.gain


def test_a_time_limit_ends_a_run_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = mc.simulate(mm1(), threshold(9), rng=2, events=10**9, time_limit=0.2)
    assert found.status == "time_limit"
    assert found.elapsed < 20
    assert found.time > 0


def test_an_interrupt_returns_what_has_been_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []

    def progress(events: int, lower: float, upper: float) -> None:
        rounds.append(events)
        if len(rounds) == 5:
            raise KeyboardInterrupt

    whole = mc.simulate(mm1(), threshold(9), rng=2, events=200_000)
    found = mc.simulate(mm1(), threshold(9), rng=2, events=200_000, progress=progress)
    assert found.status == "interrupted"
    assert found.events == rounds[-1] < whole.events
    count = found.series.shape[1]
    np.testing.assert_array_equal(found.series, whole.series[:, :count])


def test_an_interrupt_inside_a_round_returns_the_rounds_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    kernel = events_kernels.run

    def interrupted(*arguments: Any) -> int:
        calls.append(1)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return int(kernel(*arguments))

    monkeypatch.setattr(events_kernels, "run", interrupted)
    found = mc.simulate(mm1(), threshold(9), rng=2, time=1000.0)
    assert found.status == "interrupted"
    monkeypatch.undo()
    whole = mc.simulate(mm1(), threshold(9), rng=2, time=1000.0)
    np.testing.assert_array_equal(found.series, whole.series[:, : found.series.shape[1]])


def test_an_interrupt_before_anything_is_known_is_passed_on() -> None:
    def progress(events: int, lower: float, upper: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mc.simulate(mm1(), threshold(9), rng=2, events=200_000, progress=progress)


# --- results --------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_jobs_or_on_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = mc.simulate(mm1(), threshold(9), rng=5, events=100_000)
    second = mc.simulate(mm1(), threshold(9), rng=5, events=100_000, n_jobs=3)
    monkeypatch.setattr(run, "ROUND", 0.1)
    third = mc.simulate(mm1(), threshold(9), rng=5, events=100_000, n_jobs=2)
    for other in (second, third):
        np.testing.assert_array_equal(first.series, other.series)
        assert first.gain == other.gain
        assert first.measures == other.measures


def test_seeds_may_be_numbers_sequences_or_generators() -> None:
    by_number = mc.simulate(mm1(), threshold(9), rng=7, events=20_000)
    by_sequence = mc.simulate(mm1(), threshold(9), rng=np.random.SeedSequence(7), events=20_000)
    np.testing.assert_array_equal(by_number.series, by_sequence.series)
    generator = np.random.default_rng(7)
    one = mc.simulate(mm1(), threshold(9), rng=generator, events=20_000)
    two = mc.simulate(mm1(), threshold(9), rng=generator, events=20_000)
    assert one.gain != two.gain
    again = mc.simulate(mm1(), threshold(9), rng=np.random.default_rng(7), events=20_000)
    assert one.gain == again.gain


def test_common_random_numbers_narrow_the_interval_of_a_difference() -> None:
    model = mm1(0.8)
    a = mc.simulate(model, threshold(12), rng=4, time=20_000.0)
    b = mc.simulate(model, threshold(10), rng=4, time=20_000.0)
    c = mc.simulate(model, threshold(10), rng=5, time=20_000.0)
    exact = mc.evaluate(mm1(0.8, 40), threshold(12)).gain
    exact -= mc.evaluate(mm1(0.8, 40), threshold(10)).gain
    paired, apart = a.difference(b), a.difference(c)
    assert a.is_coupled_with(b)
    assert not a.is_coupled_with(c)
    assert paired.half_width < 0.5 * apart.half_width
    assert abs(paired.value - exact) <= 4 * paired.standard_error
    assert abs(apart.value - exact) <= 4 * apart.standard_error
    assert a.difference(b, "lost").value < 0


def test_unknown_measures_are_told() -> None:
    found = mc.simulate(mm1(), threshold(3), **SMALL)
    with pytest.raises(mc.InputError, match="no measure 'bsy'; did you mean 'busy'"):
        found.series_of("bsy")


def test_a_start_and_a_stated_warm_up_are_kept() -> None:
    found = mc.simulate(
        mm1(), threshold(50), rng=3, time=100.0, warm_up=20.0, start={"jobs": 40}, paths=["jobs"]
    )
    assert found.warm_up == pytest.approx(20.0)
    assert all(record.values[0] == 40 for record in found.records["jobs"])
    assert len(found.records["jobs"]) == 8


def test_rewards_are_reported_as_rewards() -> None:
    model = mc.tabular([[[0.5, 0.5], [0.25, 0.75]]], rewards=[[3.0], [6.0]])
    found = mc.simulate(model, rng=1, events=200_000)
    assert found.gain.lower < 5.0 < found.gain.upper


def test_progress_tells_events_and_the_interval() -> None:
    seen: list[tuple[int, float, float]] = []
    mc.simulate(mm1(), threshold(9), rng=1, time=3000.0, progress=lambda *a: seen.append(a))
    assert [events for events, _, _ in seen] == sorted(events for events, _, _ in seen)
    assert all(lower <= upper for _, lower, upper in seen[1:])


def test_a_short_run_from_an_empty_queue_is_doubted() -> None:
    with pytest.warns(mc.SimulationWarning, match="too short"):
        found = mc.simulate(mm1(0.95), threshold(10**6), rng=1, time=200.0)
    assert any("too short" in note for note in found.notes)


# --- controls -------------------------------------------------------------------------------------


def speeds(**off: Any) -> mc.Model:
    """A server with two speeds and a heater without flows."""
    slow = mc.Mode("slow", 1.0, mc.Flow(lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1)))
    fast = mc.Mode("fast", 3.0, mc.Flow(lambda x: 2.0 * (x.jobs > 0), mc.step(jobs=-1)))
    return mc.Model(
        mc.Lattice({"jobs": 10}),
        [
            mc.Event("arrival", lambda x: 0.8 * (x.jobs < 10), mc.step(jobs=+1)),
            mc.Control("server", [slow, fast]),
            mc.Control("heater", [mc.Mode("off", 0.0, **off), mc.Mode("on", 1.0)]),
        ],
        cost_rate=lambda x: x.jobs,
        measures={"fast": ("server", "fast"), "heated": ("heater", "on")},
    )


def singly(x: Any) -> str:
    return "fast" if x.jobs > 2 else "slow"


@pytest.mark.parametrize(
    "rule", [singly, lambda x: np.where(x.jobs > 2, "fast", "slow"), {"slow": 0.25, "fast": 0.75}]
)
def test_controls_follow_rules_of_any_kind(rule: Any) -> None:
    policy = {"server": rule, "heater": {"off": 0.5, "on": lambda x: 0.5 + 0.0 * x.jobs}}
    found = mc.simulate(speeds(), policy, rng=2, events=800_000)
    exact = mc.evaluate(speeds(), policy)
    assert abs(found.gain.value - exact.gain) <= 4.5 * found.gain.standard_error
    low, _ = exact.measures["fast"]
    fast = found.measures["fast"]
    assert abs(fast.value - low) <= 4.5 * fast.standard_error + 1e-9
    assert found.measures["heated"].value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"server": "slow"}, "no rule for decision 'heater'"),
        (
            {"server": "slow", "heater": lambda x: "onn"},
            "'onn' in state (jobs=0), which is no mode",
        ),
        ({"server": lambda x: "slwo", "heater": "on"}, "did you mean 'slow'"),
        ({"server": {"slow": 0.5, "fast": 0.7}, "heater": "on"}, "do not sum to 1"),
        ({"server": {"slow": -0.5, "fast": 1.5}, "heater": "on"}, "are negative"),
        ({"server": "slow", "heater": {"on": 0.5, "off": 0.6}}, "'heater' are not allowed, or"),
        ({"server": "slow", "heater": "off"}, "not allowed"),
        ({"server": "slow", "heater": lambda x: "off"}, "'off' in state (jobs=1)"),
    ],
)
def test_modes_that_do_not_fit_are_told_with_their_state(policy: Any, message: str) -> None:
    model = speeds(allowed=lambda x: x.jobs == 0)
    with pytest.raises(mc.InputError, match=re.escape(message)):
        mc.simulate(model, policy, **SMALL)


def test_one_function_may_be_a_rate_and_a_condition() -> None:
    def busy(x: Any) -> Any:
        return x.jobs

    model = mc.Model(
        mc.Lattice({"jobs": 4}, where=lambda x: x.jobs >= 0),
        [
            mc.Event("arrival", lambda x: 1.0 * (x.jobs < 4), mc.step(jobs=+1)),
            mc.Event(
                "service",
                busy,
                [mc.Action("serve", mc.step(jobs=-1), allowed=busy), mc.Action("idle")],
            ),
        ],
        cost_rate=busy,
    )
    found = mc.simulate(model, "serve", rng=1, events=400_000)
    exact = mc.evaluate(model, "serve").gain
    assert abs(found.gain.value - exact) <= 4.5 * found.gain.standard_error


def test_a_single_move_may_have_a_weight_that_is_a_function() -> None:
    leave = mc.Action("leave", [mc.Move(lambda x: 1.0 + 0 * x.jobs, mc.step(jobs=-1))])
    model = mm1(0.5)
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), leave)
    model = mc.Model(model.space, [model.events[0], service], cost_rate=lambda x: x.jobs)
    found = mc.simulate(model, threshold(3), rng=1, events=100_000)
    plain = mc.simulate(mm1(0.5), threshold(3), rng=1, events=100_000)
    np.testing.assert_array_equal(found.series[:, :, 0], plain.series[:, :, 0])


# --- averages that do not vary --------------------------------------------------------------------


def test_a_cost_that_was_constant_by_chance_is_doubted() -> None:
    seldom = [[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]]
    model = mc.tabular([seldom], costs=[[1.0], [2.0]])
    with pytest.warns(mc.SimulationWarning, match=r"the same all the time in this run: cost \(1\)"):
        mc.simulate(model, rng=2, events=1_000)


@pytest.mark.filterwarnings("error")
def test_averages_that_must_be_constant_are_not_doubted() -> None:
    model = mm1(0.5)
    free = mc.Model(model.space, model.events, measures={"one": 1.0, "jobs": lambda x: x.jobs})
    found = mc.simulate(free, threshold(5), rng=1, events=200_000)
    assert found.notes == ()
    assert found.gain.value == found.gain.half_width == 0
    assert found.measures["one"].value == pytest.approx(1.0)
    paid = mc.Model(model.space, model.events, cost_rate=[2.0, 1.0])
    assert mc.simulate(paid, threshold(5), rng=1, events=200_000).notes == ()


def test_a_start_that_nothing_leaves_is_told() -> None:
    model = mc.tabular([[[1.0, 0.0], [0.5, 0.5]]], costs=[1.0, 2.0])
    with pytest.raises(mc.InputError, match="nothing leaves the start state 0"):
        mc.simulate(model, rng=1)
    assert mc.simulate(model, rng=1, start=np.int64(1)).status == "absorbed"


def test_costs_too_large_for_estimates_are_told() -> None:
    model = mc.tabular([[[0.5, 0.5], [0.5, 0.5]]], costs=[1e308, -1e308])
    with pytest.raises(mc.InputError, match="cannot be estimated"):
        mc.simulate(model, rng=1, time=100.0)


# --- long horizons, large coordinates, seeds ------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"events": 10**12}, {"time": 1e15}])
def test_a_time_limit_holds_however_long_the_horizon_is(arguments: dict[str, Any]) -> None:
    found = mc.simulate(mm1(), threshold(9), rng=1, time_limit=0.2, **arguments)
    assert found.status == "time_limit"
    assert found.elapsed < 20
    assert found.series.shape[1] > 100


def test_a_variable_is_recorded_whatever_the_others_do() -> None:
    wander = mc.Event("wander", 1.0, mc.Action("go", lambda x: mc.step(a=1 + x.a)))
    toggle = mc.Event("toggle", 1.0, mc.Action("flip", lambda x: mc.step(b=1 - 2 * x.b)))
    model = mc.Model(mc.Reachable({"a": 10**6, "b": 0}), [wander, toggle])
    found = mc.simulate(model, rng=1, time=5.0, replications=2, paths=["b"], warm_up=0.0)
    assert found.records["b"][0].occupation.shape[1] <= 64
    with pytest.raises(mc.InputError, match="recorded up to 4095"):
        mc.simulate(model, rng=1, time=5.0, paths=["a"])


def test_equal_seeds_are_equal_however_they_are_written() -> None:
    def result(rng: Any) -> Any:
        return mc.simulate(mm1(), threshold(9), rng=rng, time=300.0)

    array = np.random.SeedSequence(np.array([1, 2, 3]))
    assert result(array).is_coupled_with(result(np.random.SeedSequence([1, 2, 3])))
    assert result(5).is_coupled_with(result(np.random.SeedSequence([5])))
    child = np.random.SeedSequence(5).spawn(2)
    assert not result(child[0]).is_coupled_with(result(child[1]))
    with pytest.raises(mc.InputError, match="no result of a simulation"):
        result(5).difference(3)


def test_a_half_width_that_is_met_but_doubted_says_so() -> None:
    with pytest.raises(mc.SolveError, match="as narrow as asked, but the run is too short"):
        mc.simulate(mm1(0.95), threshold(10**6), rng=2, half_width=100.0, time=50.0)


def test_progress_must_be_a_function() -> None:
    with pytest.raises(mc.InputError, match="progress is 3"):
        mc.simulate(mm1(), threshold(9), progress=3, **SMALL)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["offloading", "trunk_reservation", "downgrading", "cooperation"])
def test_a_systems_own_policies_are_simulated_by_their_names(name: str) -> None:
    system = find_system(name).example()
    found = mc.simulate(system, system.own_policy, rng=3, events=200_000)
    exact = mc.evaluate(system.model(), system.heuristic(system.own_policy, "first").rule).gain
    assert found.gain.value == pytest.approx(exact, abs=2 * found.gain.half_width)
