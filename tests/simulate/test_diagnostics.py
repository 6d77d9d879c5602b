"""Short runs are doubted, long ones are not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.simulate.correlation import correlation_times
from mdpcloud.simulate.diagnostics import doubts, remarks
from mdpcloud.simulate.estimates import estimate
from mdpcloud.simulate.warm_up import mser
from tests.simulate.queues import queue_lengths, variance_constant


def is_doubted(series: np.ndarray) -> bool:
    return bool(doubts(series, mser(series)))


def excludes(series: np.ndarray, mean: float) -> bool:
    found = estimate(series[:, mser(series) :])
    return not found.lower <= mean <= found.upper


@pytest.mark.parametrize("replications", [1, 8])
@pytest.mark.parametrize("steps", [20, 200, 2000, 20_000])
def test_short_runs_from_empty_exclude_the_mean_only_with_a_doubt(
    replications: int, steps: int
) -> None:
    runs = 60
    segments = min(500, steps)
    series = queue_lengths(0.95, steps, segments, (runs, replications), steps + replications)
    wrong = [run for run in series if excludes(run, 19.0)]
    assert steps == 20_000 or len(wrong) > runs // 4  # the hard case is met
    assert all(is_doubted(run) for run in wrong)


@pytest.mark.parametrize("replications", [1, 8])
def test_long_runs_are_not_doubted(replications: int) -> None:
    series = queue_lengths(0.8, 180_000, 1000, (20, replications), replications)
    assert not any(is_doubted(run) for run in series)


@pytest.mark.slow
@pytest.mark.parametrize("replications", [1, 8])
@pytest.mark.parametrize("steps", [20, 60, 200, 500, 2000, 6000, 20_000, 60_000, 195_000])
def test_wrong_intervals_without_a_doubt_are_no_more_than_their_level(
    replications: int, steps: int
) -> None:
    runs = 400
    segments = min(500, steps)
    series = queue_lengths(0.95, steps, segments, (runs, replications), steps + replications)
    silent = sum(excludes(run, 19.0) and not is_doubted(run) for run in series)
    assert silent <= (0.03 if steps < 100_000 else 0.08) * runs


@pytest.mark.slow
@pytest.mark.parametrize("segments", [500, 1000])
@pytest.mark.parametrize("replications", [1, 8])
def test_hardly_any_long_run_is_doubted(replications: int, segments: int) -> None:
    runs = 200
    doubted = 0
    for seed in range(runs):
        series = queue_lengths(0.8, 180_000, segments, (replications,), seed)
        doubted += is_doubted(series)
    assert doubted <= 0.02 * runs


def test_correlation_times_of_a_queue_agree_with_its_variance_constant() -> None:
    load, steps = 0.5, 200_000
    series = queue_lengths(load, steps, 10_000, (20,), 5)
    time = correlation_times(series[:, :, None])[0]
    found = time * series.var() * steps / 10_000
    assert found == pytest.approx(variance_constant(load), rel=0.05)


def test_the_variance_constant_of_steps_is_that_of_the_chain() -> None:
    load, n = 0.5, 200
    p = np.zeros((n, n))
    up, down = load / (1 + load), 1 / (1 + load)
    p[np.arange(n - 1), np.arange(1, n)] = up
    p[np.arange(1, n), np.arange(n - 1)] = down
    p[0, 0], p[-1, -1] = down, up
    law = load ** np.arange(n) * (1 - load)
    f = np.arange(n) - load / (1 - load)
    h = np.linalg.solve(np.eye(n) - p + np.ones((n, 1)) * law, f)
    assert 2 * law @ (f * h) - law @ f**2 == pytest.approx(variance_constant(load), rel=1e-9)


@given(st.integers(1, 4), st.integers(1, 60), st.floats(-100, 100), st.integers(-300, 300))
def test_correlation_times_do_not_depend_on_units(
    replications: int, segments: int, origin: float, power: int
) -> None:
    noise = np.random.default_rng(segments).normal(size=(replications, segments, 2))
    times = correlation_times(noise)
    assert (times >= 1).all()
    assert correlation_times(2.0**power * noise) == pytest.approx(times, rel=1e-9)
    assert correlation_times(noise + origin) == pytest.approx(times, rel=1e-6)


def test_a_drift_is_doubted() -> None:
    noise = np.random.default_rng(1).normal(size=(8, 1000))
    assert not is_doubted(noise)
    assert is_doubted(noise + 0.01 * np.arange(1000))


def test_averages_that_are_slower_than_the_run_are_named() -> None:
    noise = np.random.default_rng(4).normal(size=(8, 1000, 3))
    noise[:, :, 1] = noise[:, :, 1].cumsum(axis=1)
    (sentence,) = remarks(noise, ["cost", "queue", "lost"])
    assert sentence.startswith("the run is too short: queue stays correlated")


def test_replications_that_disagree_are_doubted() -> None:
    noise = np.random.default_rng(2).normal(size=(8, 1000))
    assert is_doubted(noise + np.arange(8)[:, None])


@pytest.mark.parametrize("value", [0.1, -1.0, 1e300])
def test_a_cost_that_never_changes_is_doubted(value: float) -> None:
    for kept in (np.full((8, 500), value), value * (1 + 1e-15 * np.ones((8, 1)) * np.arange(500))):
        (sentence,) = doubts(kept, 0)
        assert f"the same all the time in this run: cost ({value:g})" in sentence


def test_a_cost_that_is_never_incurred_is_doubted() -> None:
    (sentence,) = doubts(np.zeros((8, 500)), 0)
    assert "the same all the time in this run: cost (0)" in sentence


def test_rare_things_are_named() -> None:
    kept = np.random.default_rng(3).exponential(size=(8, 500, 9))
    kept[:, :, 1:8] = 0
    kept[0, :3, 8] = 0
    kept[0, 3:, 8] = kept[1:, :, 8] = 1
    never, few = remarks(kept, [f"m{k}" for k in range(9)])
    assert "m1 (0), m2 (0), m3 (0), m4 (0), m5 (0) and 2 more" in never
    assert "fewer than 10 of 4000 segments: m8" in few
    assert remarks(kept[:, :, :1], ["m0"]) == ()
