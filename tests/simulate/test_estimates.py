"""Intervals against closed forms: independent and autoregressive segments, and M/M/1."""

import numpy as np
import pytest
from scipy.special import stdtrit

from mdpcloud import InputError
from mdpcloud.simulate.estimates import difference, estimate, estimates
from mdpcloud.simulate.result import Estimate
from mdpcloud.simulate.warm_up import mser
from tests.simulate.queues import queue_lengths, variance_constant


def test_replications_of_one_segment_give_the_interval_of_student() -> None:
    kept = np.random.default_rng(1).normal(size=(30, 1))
    found = estimate(kept)
    error = kept.std(ddof=1) / np.sqrt(30)
    assert found.value == pytest.approx(kept.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-12)
    assert found.half_width == pytest.approx(stdtrit(29, 0.975) * error, rel=1e-9)
    assert found.effective_samples == pytest.approx(30)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1e300])
@pytest.mark.parametrize("shape", [(1, 1000), (8, 500), (3, 7)])
def test_a_constant_has_an_interval_of_rounding(value: float, shape: tuple[int, int]) -> None:
    found = estimate(np.full(shape, value))
    assert found.value == value
    assert found.standard_error == 0
    assert found.lower <= value <= found.upper
    assert found.half_width <= 1e-11 * abs(value)
    assert found.effective_samples == shape[0] * shape[1]


def test_one_observation_gives_no_interval() -> None:
    found = estimate(np.ones((1, 1)))
    assert (found.lower, found.value, found.upper) == (-np.inf, 1.0, np.inf)
    assert found.standard_error == np.inf
    assert difference(np.ones((1, 1)), np.ones((8, 1)), paired=False).upper == np.inf


def test_no_segment_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="at least one segment"):
        estimates(np.empty((8, 0, 2)), ["cost", "jobs"])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_averages_that_are_not_finite_are_refused(value: float) -> None:
    kept = np.ones((2, 3, 2))
    kept[1, 2, 1] = value
    with pytest.raises(InputError, match="not finite: jobs"):
        estimates(kept, ["cost", "jobs"])


def test_pairs_of_different_shape_are_refused() -> None:
    with pytest.raises(InputError, match="equal shapes"):
        difference(np.ones((2, 3)), np.ones((2, 4)), paired=True)


def test_common_random_numbers_narrow_the_interval_of_a_difference() -> None:
    generator = np.random.default_rng(2)
    common = generator.normal(size=(8, 500))
    a, b = common + 1, common + 0.1 * generator.normal(size=(8, 500))
    paired, welch = difference(a, b, paired=True), difference(a, b, paired=False)
    assert paired.value == pytest.approx(welch.value, rel=1e-12)
    assert abs(paired.value - 1) < 6 * paired.standard_error  # of 8 differences
    assert paired.half_width < 0.3 * welch.half_width
    whole = estimate((a - b).mean(axis=1, keepdims=True))
    assert (paired.lower, paired.upper) == (whole.lower, whole.upper)
    few = difference(a[:2], b[:2], paired=True)
    assert few == estimate(a[:2] - b[:2])


def test_what_is_late_in_one_replication_does_not_widen_a_difference() -> None:
    """Differences that come back: shorter batches than a replication think them independent."""
    steps = np.random.default_rng(4).normal(size=(8, 1000))
    returning = np.diff(steps.cumsum(axis=1) * np.linspace(1, 0, 1000), axis=1, prepend=0.0)
    found = difference(returning, np.zeros(returning.shape), paired=True)
    assert found.standard_error < 0.2 * estimate(returning).standard_error


def test_unpaired_means_of_single_segments_give_the_interval_of_welch() -> None:
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(20, 1)), 3 * generator.normal(size=(50, 1))
    u, v = a.var(ddof=1) / 20, b.var(ddof=1) / 50
    freedom = (u + v) ** 2 / (u**2 / 19 + v**2 / 49)
    found = difference(a, b, paired=False)
    assert found.standard_error == pytest.approx(np.sqrt(u + v), rel=1e-12)
    half = stdtrit(freedom, 0.975) * np.sqrt(u + v)
    assert found.half_width == pytest.approx(half, rel=1e-9)


def test_a_difference_from_a_constant_has_the_interval_of_the_other() -> None:
    kept = np.random.default_rng(4).normal(size=(8, 1))
    found = difference(kept, np.ones((8, 1)), paired=False)
    assert found.half_width == pytest.approx(estimate(kept).half_width, rel=1e-9)
    assert difference(np.ones((8, 1)), np.ones((8, 5)), paired=False).half_width < 1e-11


def test_several_averages_are_estimated_as_each_alone() -> None:
    kept = np.random.default_rng(5).normal(size=(3, 101, 4)) * [1.0, 1e-200, 1e150, 0.0]
    found = estimates(kept, ["a", "b", "c", "d"])
    for column, name in enumerate("abcd"):
        alone = estimate(kept[:, :, column])
        assert found[name].value == pytest.approx(alone.value, rel=1e-12)
        assert found[name].half_width == pytest.approx(alone.half_width, rel=1e-9)
        assert found[name].effective_samples == pytest.approx(alone.effective_samples, rel=1e-9)


@pytest.mark.parametrize("power", [-300, 7, 900])
def test_units_scale_the_interval(power: int) -> None:
    kept = np.random.default_rng(6).exponential(size=(8, 100))
    one, other = estimate(kept), estimate(2.0**power * kept)
    assert other.lower == pytest.approx(2.0**power * one.lower, rel=1e-9)
    assert other.upper == pytest.approx(2.0**power * one.upper, rel=1e-9)
    assert other.effective_samples == pytest.approx(one.effective_samples, rel=1e-9)


def test_effective_samples_of_repeated_segments_count_them_once() -> None:
    blocks = np.random.default_rng(7).normal(size=(8, 50))
    found = estimate(blocks.repeat(10, axis=1))
    assert 100 < found.effective_samples < 600
    assert found.standard_error == pytest.approx(1 / np.sqrt(400), rel=0.4)


def test_replications_that_disagree_widen_the_interval() -> None:
    noise = np.random.default_rng(8).normal(size=(8, 500))
    apart = noise + 10 * np.arange(8)[:, None]
    assert estimate(apart).half_width > 100 * estimate(noise).half_width
    assert estimate(apart).effective_samples < 10


def of_runs(kept: np.ndarray) -> list[Estimate]:
    """Estimates of (runs, R, S), all at once."""
    names = [str(run) for run in range(len(kept))]
    return list(estimates(np.moveaxis(kept, 0, 2), names).values())


def coverage(kept: np.ndarray, mean: float) -> float:
    """Share of (runs, R, S) whose interval contains the mean."""
    return float(np.mean([e.lower <= mean <= e.upper for e in of_runs(kept)]))


def autoregressive(share: float, shape: tuple[int, int, int], seed: int) -> np.ndarray:
    """x_{k+1} = share x_k + e_k with stationary variance 1."""
    noise = np.random.default_rng(seed).normal(size=shape)
    found = np.empty(shape)
    found[:, :, 0] = noise[:, :, 0]
    for k in range(1, shape[2]):
        found[:, :, k] = share * found[:, :, k - 1] + np.sqrt(1 - share**2) * noise[:, :, k]
    return found


def test_independent_normal_replications_are_covered_as_student_says() -> None:
    kept = np.random.default_rng(9).normal(size=(20_000, 16, 1))
    # three standard errors of the share of 20000 runs
    assert coverage(kept, 0.0) == pytest.approx(0.95, abs=3 * np.sqrt(0.05 * 0.95 / 20_000))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_standard_errors_of_autoregressive_series_agree_with_theirs(share: float) -> None:
    runs = autoregressive(share, (60, 8, 500), 10)
    exact = np.sqrt((1 + share) / (1 - share) / 4000)  # the asymptotic variance over R S
    found = [e.standard_error for e in of_runs(runs)]
    # The larger of two estimates; that of eight batches has a relative error of 1 / sqrt(14).
    assert 0.98 < np.mean(found) / exact < 1.25
    assert min(found) / exact > 0.7
    assert coverage(runs, 0.0) > 0.9


def queue_runs(load: float, replications: int, steps: int, runs: int) -> list[Estimate]:
    """Estimates of the number in M/M/1, from empty, without the warm-up that is found."""
    found = []
    for seed in range(runs):
        series = queue_lengths(load, steps, 1000, (replications,), seed)
        found.append(estimate(series[:, mser(series) :]))
    return found


def test_the_number_in_a_queue_has_the_standard_error_of_its_closed_form() -> None:
    load, steps = 0.5, 100_000
    exact = np.sqrt(variance_constant(load) / (8 * steps))
    found = queue_runs(load, 8, steps, 10)
    # The larger of two estimates; that of sixteen batches has a relative error of 1 / sqrt(30).
    assert 0.95 < np.mean([e.standard_error for e in found]) / exact < 1.3
    assert all(abs(e.value - 1.0) < 5 * exact for e in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "replications", "steps"),
    [(0.8, 8, 18_000), (0.8, 8, 54_000), (0.8, 30, 18_000), (0.8, 1, 180_000), (0.5, 8, 15_000)],
)
def test_intervals_cover_the_number_in_a_queue(load: float, replications: int, steps: int) -> None:
    found = queue_runs(load, replications, steps, 400)
    mean = load / (1 - load)
    share = np.mean([e.lower <= mean <= e.upper for e in found])
    assert 0.93 <= share <= 0.975
