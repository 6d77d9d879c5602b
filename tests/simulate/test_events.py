"""The event simulation against itself in other forms, and against exact laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mdpcloud as mc
from mdpcloud.simulate import columns, remembered
from mdpcloud.simulate import events as module
from mdpcloud.simulate.events import EventSimulation, event_simulation
from mdpcloud.simulate.events_program import Answer
from tests.models import case

Floats = NDArray[np.float64]


def queue(cap: int = 1000, arrival: float = 0.8, **kinds: Any) -> mc.Model:
    """M/M/1 whose jobs beyond the cap are lost at a cost."""
    join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=1.0)
    return mc.Model(
        mc.Lattice({"jobs": cap}),
        [
            mc.Event("arrival", arrival, [join, lost]),
            mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1)),
        ],
        cost_rate=lambda x: x.jobs,
        measures={"jobs": lambda x: x.jobs, "lost": ("arrival", "lost"), "both": _jobs_twice()},
        **kinds,
    )


def _jobs_twice() -> list[Any]:
    return [lambda x: x.jobs, lambda x: x.jobs]


def join(x: Any) -> Any:
    return np.where(x.jobs < 1000, "join", "lost")


def path_of(simulation: EventSimulation, seed: int = 0, recorded: tuple[str, ...] = ()) -> Any:
    return simulation.path(np.random.SeedSequence(seed), recorded)


def series(model: mc.Model, policy: Any, segments: int = 40, length: float = 25.0) -> Floats:
    return np.asarray(path_of(event_simulation(model, policy)).advance(segments, length))


EVERY = (
    ("routing B6", "individually optimal"),
    ("downgrading (1, 2)", "from 8"),
    ("retrial", "accept all"),
    ("retrial with given chances", "half join"),
    ("jsq", "shorter"),
    ("jiq 2 dispatchers", "uniform"),
    ("closed phase-type network", "uncontrolled"),
    ("restless arm", "whittle"),
    ("service-rate control", "best"),
    ("two centres asym 8", "best levels"),
)


@pytest.mark.parametrize(("name", "rule"), EVERY)
def test_remembered_rows_and_tables_give_the_same_path_bit_by_bit(
    name: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = case(name)
    model, policy = one.build(), one.heuristics[rule].rules
    simulation = event_simulation(model, policy)
    tabulated = path_of(simulation)
    expected = tabulated.advance(30, 8.0)
    monkeypatch.setattr(columns, "MOST_CELLS", 1)
    remembered = event_simulation(model, policy)
    path = path_of(remembered)
    assert path.tables.remembered[1:].all()
    assert not tabulated.tables.remembered.all()
    np.testing.assert_array_equal(path.advance(30, 8.0), expected)
    assert path.events == tabulated.events > 50


@pytest.mark.parametrize(("name", "rule"), EVERY)
def test_cutting_a_run_into_calls_changes_nothing(name: str, rule: str) -> None:
    one = case(name)
    simulation = event_simulation(one.build(), one.heuristics[rule].rules)
    whole = path_of(simulation).advance(12, 3.0)
    path = path_of(simulation)
    parts = [path.advance(count, 3.0) for count in (1, 4, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_tables_that_grow_give_the_same_path(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = series(queue(), join)
    monkeypatch.setattr(module, "FIRST_SIZE", size)
    np.testing.assert_array_equal(series(queue(), join), expected)


def test_a_rule_of_prices_gives_the_same_path_as_its_table() -> None:
    system = mc.systems.CloudRouting.example()
    model, rule = system.model(), system.heuristic("restless_bandit").rule
    table = event_simulation(model, lambda x: rule(x))
    prices = event_simulation(model, rule)
    assert (table.plan.clocks[0].answer, prices.plan.clocks[0].answer) == (
        Answer.COLUMN,
        Answer.CHEAPEST,
    )
    expected = path_of(table).advance(50, 2.0)
    np.testing.assert_array_equal(path_of(prices).advance(50, 2.0), expected)


def test_a_solution_and_its_table_give_the_same_path_as_a_rule() -> None:
    model = queue(cap=6)
    best = mc.solve(model)
    numbers = best.policy.table()
    expected = series(model, lambda x: numbers[x.jobs])
    np.testing.assert_array_equal(series(model, best), expected)
    np.testing.assert_array_equal(series(model, best.policy), expected)
    np.testing.assert_array_equal(series(model, numbers), expected)


def plain(x: Any) -> str:
    """Works on one state at a time."""
    return "join" if x.jobs < 5 else "lost"


def test_a_rule_with_plain_ifs_gives_the_same_path_as_with_arrays() -> None:
    expected = series(queue(), lambda x: np.where(x.jobs < 5, 0, 1))
    np.testing.assert_array_equal(series(queue(), plain), expected)


def test_a_rule_that_arrays_mislead_is_asked_state_by_state() -> None:
    def misled(x: Any) -> Any:
        return np.full(np.shape(x.jobs), int(np.max(x.jobs) >= 5))

    expected = series(queue(), plain)
    np.testing.assert_array_equal(series(queue(), misled), expected)


def test_arrays_over_the_lattice_are_functions_of_the_coordinates() -> None:
    def model(rate: Any, cost: Any) -> mc.Model:
        arrival = mc.Event("arrival", lambda x: 1.0 * (x.a + x.b < 4), mc.step(a=+1))
        move = mc.Event("move", lambda x: 1.0 * (x.a > 0) * (x.b < 3), mc.step(a=-1, b=+1))
        leave = mc.Event("leave", rate, mc.step(b=-1))
        return mc.Model(mc.Lattice({"a": 4, "b": 3}), [arrival, move, leave], cost_rate=cost)

    by_function = series(model(lambda x: 1.5 * x.b, lambda x: x.a + 10.0 * x.b), None)
    b = np.arange(4.0)
    a = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(series(model(1.5 * b, a + 10 * b), None), by_function)


def test_steps_that_depend_on_the_state_are_taken_as_they_are() -> None:
    """Batches that fill the room: from i jobs to 9 at once."""
    arrival = mc.Event("batch", 0.5, mc.Action("fill", lambda x: mc.step(jobs=9 - x.jobs)))
    service = mc.Event("service", lambda x: 2.0 * (x.jobs > 0), mc.step(jobs=-1))
    model = mc.Model(mc.Lattice({"jobs": 9}), [arrival, service], cost_rate=lambda x: x.jobs)
    found = mc.simulate(model, rng=3, events=200_000)
    exact = mc.evaluate(model, {}).gain
    assert abs(found.gain.value - exact) <= 5 * found.gain.standard_error


def test_a_space_without_end_is_simulated_by_tables_that_grow() -> None:
    """M/M/1 at load .9 from 500 jobs, far beyond the first tables; N reaches its mean 9."""
    model = mc.Model(
        mc.Reachable({"jobs": 500}),
        [
            mc.Event("arrival", 0.9, mc.step(jobs=+1)),
            mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1)),
        ],
        cost_rate=lambda x: x.jobs,
    )
    found = mc.simulate(model, rng=0, events=4_000_000, warm_up=10_000.0)
    assert abs(found.gain.value - 9.0) <= 4 * found.gain.standard_error
    assert found.gain.standard_error < 0.5


@pytest.mark.filterwarnings("ignore:the same all the time")
def test_functions_of_a_hundred_coordinates_are_remembered() -> None:
    """A closed ring of 100 places: joint functions of all coordinates, no space to enumerate."""
    n, jobs = 100, 30

    def leave(k: int) -> mc.Event:
        there = (k + 1) % n
        return mc.Event(f"leave {k}", lambda x: 1.0 * (x.at[k] > 0), mc.step(at={k: -1, there: +1}))

    model = mc.Model(
        mc.Reachable({"at": (1,) * jobs + (0,) * (n - jobs)}),
        [leave(k) for k in range(n)],
        cost_rate=lambda x: sum(x.at),
        measures={"at 0": lambda x: x.at[0]},
    )
    found = mc.simulate(model, rng=0, time=20.0, replications=2, warm_up=0.0, n_jobs=1)
    assert found.gain.value == pytest.approx(jobs, rel=1e-12)
    assert 0 < found.measures["at 0"].value < jobs


def test_a_path_stays_in_its_region_and_its_occupation_is_its_law() -> None:
    one = case("jiq 2 dispatchers")
    model, rule = one.build(), one.heuristics["uniform"].rules
    path = path_of(event_simulation(model, rule), recorded=("token[0]",))
    path.advance(200, 50.0)
    record = path.record("token[0]")
    np.testing.assert_allclose(record.occupation.sum(axis=1), 1.0, atol=1e-9)
    assert record.times[0] == 0.0
    assert (np.diff(record.times) > 0).all()
    assert (np.abs(np.diff(record.values)) == 1).all()
    assert record.occupation.shape[1] >= record.values.max() + 1


def test_the_occupation_is_that_of_the_recorded_path() -> None:
    path = path_of(event_simulation(queue(), join), recorded=("jobs",))
    path.advance(3, 20.0)
    path.advance(2, 20.0)
    record = path.record("jobs")
    shares = np.zeros(record.occupation.shape)
    ends = np.append(record.times[1:], 100.0)
    for begin, end, value in zip(record.times, ends, record.values, strict=True):
        for s in range(5):
            shares[s, value] += max(0.0, min(end, 20.0 * (s + 1)) - max(begin, 20.0 * s)) / 20.0
    np.testing.assert_allclose(record.occupation, shares, atol=1e-12)


def test_equal_seeds_give_all_policies_the_same_arrivals() -> None:
    def times(policy: Any) -> Floats:
        model = queue()
        measures = {"arrivals": ("arrival", "join"), "lost": ("arrival", "lost")}
        model = mc.Model(model.space, model.events, measures=measures)
        found = path_of(event_simulation(model, policy)).advance(100, 1.0)
        return np.asarray(found[:, 1] + found[:, 2])

    some = times(lambda x: np.where(x.jobs < 3, "join", "lost"))
    np.testing.assert_array_equal(times(lambda x: "lost"), some)


def test_long_paths_keep_the_digits_of_fast_clocks() -> None:
    """A fast and a slow server, twelve decades apart; shares of busy time stay right."""
    fast = mc.Event("fast", lambda x: np.where(x.f == 1, 3e6, 1e6), _toggle("f"))
    slow = mc.Event("slow", lambda x: np.where(x.s == 1, 3e-6, 1e-6), _toggle("s"))
    model = mc.Model(
        mc.Lattice({"f": 1, "s": 1}),
        [fast, slow],
        measures={"f": lambda x: x.f, "s": lambda x: x.s},
    )
    found = path_of(event_simulation(model)).advance(50, 0.01)
    assert found[:, 1].mean() == pytest.approx(0.25, abs=0.005)
    assert set(found[:, 2]) == {0.0}


def _toggle(axis: str) -> mc.Action:
    return mc.Action("toggle", lambda x: mc.step(**{axis: 1 - 2 * getattr(x, axis)}))


def test_functions_may_fail_in_states_that_are_not_met() -> None:
    """Look-ups that end with the states that can be reached."""
    rates = np.array([0.0, 1.0, 2.0, 3.0, 3.5])

    def rule(x: Any) -> Any:
        assert np.all(x.jobs <= 4)
        return np.where(x.jobs < 4, "join", "lost")

    arrival = mc.Event("arrival", 0.8, [mc.Action("join", mc.step(jobs=+1)), mc.Action("lost")])
    service = mc.Event("service", lambda x: rates[x.jobs], mc.step(jobs=-1))
    model = mc.Model(mc.Reachable({"jobs": 0}), [arrival, service], cost_rate=lambda x: x.jobs)
    found = series(model, rule)
    closed = mc.Model(mc.Lattice({"jobs": 4}), [arrival, service], cost_rate=lambda x: x.jobs)
    np.testing.assert_array_equal(found, series(closed, rule))


def test_a_function_that_fails_in_a_state_that_is_met_is_told_with_it() -> None:
    table = {0: "join", 1: "join"}
    with pytest.raises(mc.InputError, match=r"'arrival' fails in state \(jobs=2\): KeyError\(2\)"):
        series(queue(), lambda x: table[int(x.jobs)])
    rates = np.array([0.0, 1.0])
    model = mc.Model(
        mc.Lattice({"jobs": 9}),
        [
            mc.Event("arrival", lambda x: 1.0 * (x.jobs < 9), mc.step(jobs=+1)),
            mc.Event("service", lambda x: rates[x.jobs], mc.step(jobs=-1)),
        ],
    )
    with pytest.raises(mc.InputError, match=r"'service': rate cannot be computed in state \(jobs"):
        series(model, None)


def late(x: Any) -> Any:
    """Reads node 4 only where the others are long."""
    busy = x.n[0] + x.n[1] + x.n[2] + x.n[3] > 8
    if not np.any(busy):
        return 0.0 * x.n[0]
    return busy * (x.n[4] * 1.0)


@pytest.mark.filterwarnings("ignore::mdpcloud.simulate.result.SimulationWarning")
def test_a_function_that_reads_more_later_starts_the_paths_anew() -> None:
    def model(cost: Any) -> mc.Model:
        def at(k: int) -> list[mc.Event]:
            return [
                mc.Event(f"arrival {k}", 0.7, mc.step(n={k: +1})),
                mc.Event(f"service {k}", lambda x: 1.0 * (x.n[k] > 0), mc.step(n={k: -1})),
            ]

        events = [event for k in range(5) for event in at(k)]
        return mc.Model(mc.Reachable({"n": (0,) * 5}), events, cost_rate=cost)

    def plain(x: Any) -> Any:
        return (x.n[0] + x.n[1] + x.n[2] + x.n[3] > 8) * (x.n[4] * 1.0)

    arguments = {"rng": 1, "time": 30.0, "replications": 2, "warm_up": 0.0}
    expected = mc.simulate(model(plain), **arguments)
    for jobs in (1, 2):
        found = mc.simulate(model(late), n_jobs=jobs, **arguments)
        np.testing.assert_array_equal(found.series, expected.series)
    assert expected.gain.value > 0


def test_states_that_do_not_come_back_are_computed_alone() -> None:
    n = 40

    def at(k: int) -> mc.Event:
        return mc.Event(f"arrival {k}", 1.0, mc.step(n={k: +1}))

    model = mc.Model(
        mc.Reachable({"n": (0,) * n}), [at(k) for k in range(n)], cost_rate=lambda x: sum(x.n)
    )
    path = path_of(event_simulation(model))
    found = path.advance(10, 1.0)
    assert path.events > 300
    assert path.remembered.entries < 64 * 257 + path.events
    assert found[-1, 0] == pytest.approx(40 * 9.5, rel=0.2)


def test_weights_and_flows_may_be_arrays_where_no_rule_decides() -> None:
    """Up with the weights of an array, or lost at the border; a mode with an array of rates."""
    up = np.array([[0.25, 0.5, 1.0, 0.0]])

    def model(weights: Any, rest: Any, rates: Any) -> mc.Model:
        moves = [mc.Move(weights, mc.step(b=+1)), mc.Move(rest)]
        arrival = mc.Event("arrival", 1.0, [mc.Action("up", moves)])
        mode = mc.Mode("on", 1.0, mc.Flow(rates, mc.step(b=-1)))
        off = mc.Mode("off", allowed=lambda x: x.b > 9)
        flip = mc.Event("flip", 0.5, mc.Action("flip", lambda x: mc.step(a=1 - 2 * x.a)))
        return mc.Model(
            mc.Lattice({"a": 1, "b": 3}),
            [arrival, flip, mc.Control("server", [mode, off])],
            cost_rate=lambda x: x.b,
        )

    rates = np.array([0.0, 1.0, 1.0, 2.0])
    by_array = series(model(up, 1 - up, rates), None)
    table = up[0]
    by_function = series(
        model(lambda x: table[x.b], lambda x: 1 - table[x.b], lambda x: rates[x.b]), None
    )
    np.testing.assert_array_equal(by_array, by_function)


def test_forgetting_what_was_remembered_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = case("jsq")
    model, rule = one.build(), one.heuristics["shorter"].rules
    expected = path_of(event_simulation(model, rule)).advance(30, 8.0)
    monkeypatch.setattr(columns, "MOST_CELLS", 1)
    monkeypatch.setattr(remembered, "MOST_NUMBERS", 400)
    path = path_of(event_simulation(model, rule))
    forgotten: list[int] = []
    forget = path.remembered.forget
    monkeypatch.setattr(path.remembered, "forget", lambda: (forgotten.append(1), forget()))
    np.testing.assert_array_equal(path.advance(30, 8.0), expected)
    assert forgotten


@pytest.mark.parametrize("decades", [9, 12, 15, 18])
def test_rates_many_decades_apart_keep_their_shares(decades: int) -> None:
    """A breakdown lasts 200 / fast on average; a fast toggle is on for half of that time."""
    fast = 10.0**decades
    broken = mc.Event("break", lambda x: 1.0 * (x.down == 0), mc.step(down=+1))
    toggle = mc.Event("toggle", lambda x: fast * (x.down > 0) * (x.side == 0), mc.step(side=+1))
    back = mc.Event("back", lambda x: fast * (x.side == 1), mc.step(side=-1))
    repair = mc.Event(
        "repair", lambda x: fast / 100 * (x.down == 1) * (x.side == 0), mc.step(down=-1)
    )
    model = mc.Model(
        mc.Lattice({"down": 1, "side": 1}),
        [broken, toggle, back, repair],
        measures={"down": lambda x: 1.0 * (x.down == 1), "side": lambda x: x.side},
    )
    found = mc.simulate(model, rng=1, events=400_000, warm_up=0.0)
    down, side = found.measures["down"], found.measures["side"]
    assert down.value == pytest.approx(200 / fast, rel=0.2)
    assert side.value == pytest.approx(down.value / 2, rel=0.05)
