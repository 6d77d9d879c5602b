"""Loss networks run by their own kernel, beside exact measures and the general simulation."""

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.simulate.loss import LossSimulation
from mdpcloud.systems import LossNetwork

TRIANGLE = LossNetwork(
    (2.0, 2.0, 1.5, 1.0),
    (1.0, 0.5, 2.0, 1.0),
    ((1, 0, 1, 1), (1, 1, 0, 0), (0, 1, 2, 0)),
    (6.0, 6.0, 6.0),
    (1.0, 2.0, 0.0, 3.0),
)


def test_intervals_hold_the_exact_measures() -> None:
    exact = TRIANGLE.exact()
    assert exact is not None
    found = mc.simulate(TRIANGLE, "complete_sharing", rng=5, events=2_000_000)
    assert abs(found.gain.value - exact.cost) < 2.0 * (found.gain.upper - found.gain.value)
    for j, rate in enumerate(TRIANGLE.arrival_rates):
        for name, truth in (
            (f"rejection_rate[{j}]", rate * exact.blocking[j]),
            (f"mean_jobs[{j}]", exact.mean_jobs[j]),
        ):
            one = found.measures[name]
            assert abs(one.value - truth) < 2.0 * (one.upper - one.value)
            assert one.upper - one.lower < 0.05 * truth


def test_intervals_hold_the_cost_as_often_as_they_say() -> None:
    exact = TRIANGLE.exact()
    assert exact is not None
    hits = 0
    for seed in range(60):
        gain = mc.simulate(TRIANGLE, "complete_sharing", rng=seed, events=40_000).gain
        hits += gain.lower <= exact.cost <= gain.upper
    assert hits >= 50


def test_the_general_simulation_agrees() -> None:
    rule = TRIANGLE.heuristic("complete_sharing").rule
    own = mc.simulate(TRIANGLE, "complete_sharing", rng=1, events=100_000)
    general = mc.simulate(TRIANGLE, rule, rng=1, events=100_000)
    assert list(own.measures) == list(general.measures)
    widths = own.gain.upper - own.gain.lower + general.gain.upper - general.gain.lower
    assert abs(own.gain.value - general.gain.value) < widths


def test_segments_are_the_same_however_they_are_asked_for() -> None:
    simulation = TRIANGLE.simulation("complete_sharing")
    assert isinstance(simulation, LossSimulation)
    seed = np.random.SeedSequence(3)
    one, other = simulation.path(seed), simulation.path(seed)
    together = one.advance(50, 200.0)
    apart = np.concatenate([other.advance(1, 200.0) for _ in range(50)])
    assert together == pytest.approx(apart, rel=1e-12)
    assert one.events == other.events
    assert one.absorbed is None


def test_states_that_no_table_holds_are_no_slower() -> None:
    rows = ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1))
    system = LossNetwork((0.8,) * 4, (1.0,) * 4, rows, (1.0,) * 3, scale=1000.0)
    assert system.exact() is None
    found = mc.simulate(system, "complete_sharing", rng=2, events=1_000_000)
    limit = system.limit()
    blocked = [found.measures[f"rejection_rate[{j}]"].value / 800.0 for j in range(4)]
    assert blocked == pytest.approx(limit.blocking, abs=0.03)
    jobs = [found.measures[f"mean_jobs[{j}]"].value / 1000.0 for j in range(4)]
    assert jobs == pytest.approx(limit.mean_jobs, abs=0.03)


def test_recorded_paths_and_other_starts_are_simulated_by_the_model() -> None:
    simulation = TRIANGLE.simulation("complete_sharing")
    path = simulation.path(np.random.SeedSequence(0), ["jobs[1]"])
    path.advance(2, 1.0)
    assert path.record("jobs[1]").values[0] == 0
    plain = simulation.path(np.random.SeedSequence(0))
    with pytest.raises(InputError, match="was not recorded"):
        plain.record("jobs[1]")
    started = TRIANGLE.simulation("complete_sharing", start={"jobs": (1, 0, 0, 2)})
    assert not isinstance(started, LossSimulation)


def test_losses_that_cost_nothing_cost_nothing() -> None:
    free = LossNetwork((3.0,), (1.0,), ((1,),), (2.0,), (0.0,))
    found = mc.simulate(free, "complete_sharing", rng=1, events=10_000)
    assert found.gain.value == 0.0
    assert found.measures["rejection_rate[0]"].value > 0.0


def test_without_arrivals_nothing_happens() -> None:
    with pytest.raises(InputError, match="nothing ever happens"):
        LossNetwork((0.0,), (1.0,), ((1,),), (2.0,)).simulation("complete_sharing")
