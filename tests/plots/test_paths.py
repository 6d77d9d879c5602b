"""Pictures of simulations: what they draw, read back from the artists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import mdpcloud as mc
from mdpcloud.plots import style
from mdpcloud.plots.convergence import plot_convergence, running
from mdpcloud.plots.paths import CHANGES, draw_sample_path, occupation, plot_path
from mdpcloud.simulate.estimates import estimate, estimates
from mdpcloud.simulate.protocol import Record
from mdpcloud.simulate.result import SimulationResult

LAW = np.array([0.5, 0.3, 0.2])


def record(rng: np.random.Generator, segments: int, changes: int, values: int = 3) -> Record:
    times = np.append(0.0, np.sort(rng.uniform(0.0, 10.0, changes)))
    shares = rng.dirichlet(50.0 * np.resize(LAW, values), size=segments)
    return Record(times, np.arange(changes + 1) % values, shares)


def result(
    replications: int = 4, segments: int = 40, warm_up: float = 2.0, changes: int = 30
) -> SimulationResult:
    """A synthetic result with segments of 0.5, one measure and the variable ``jobs``."""
    rng = np.random.default_rng(1)
    series = 3.0 + rng.normal(size=(replications, segments, 2))
    first = round(warm_up / 0.5)
    series[:, :first] += 100.0
    found = estimates(series[:, first:], ["cost", "lost"])
    return SimulationResult(
        gain=found["cost"],
        measures={"lost": found["lost"]},
        status="done",
        notes=(),
        replications=replications,
        time=0.5 * segments,
        warm_up=warm_up,
        events=1000 * segments,
        elapsed=1.0,
        segment=0.5,
        series=series,
        seed=(1,),
        records={"jobs": tuple(record(rng, segments, changes) for _ in range(replications))},
    )


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def line(axes: Axes, label: str) -> Any:
    return next(drawn for drawn in axes.lines if drawn.get_label() == label)


def test_a_path_is_drawn_in_steps_up_to_the_end_and_its_warm_up_shaded():
    simulated = result()
    left, _ = plot_path(simulated, "jobs", time_unit="hour").axes
    (path,) = left.lines
    first = simulated.records["jobs"][0]
    assert path.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(path.get_xdata(), [*first.times, 20.0])
    np.testing.assert_array_equal(path.get_ydata(), [*first.values, first.values[-1]])
    assert (left.get_xlabel(), left.get_ylabel()) == ("time, hour", "jobs")
    (shade,) = left.patches
    assert shade.get_x() + shade.get_width() == 2.0
    assert texts(left) == ["warm-up"]


def test_a_path_of_many_changes_is_cut_where_it_can_no_longer_be_told_apart():
    simulated = result(changes=3 * CHANGES)
    one = simulated.records["jobs"][0]
    drawn = draw_sample_path(style.new_figure(3.0).subplots(), one, 20.0, 20.0)
    assert drawn.get_xlim() == (0.0, one.times[CHANGES])
    (shade,) = drawn.patches  # not beyond the end of the axis
    assert shade.get_x() + shade.get_width() == one.times[CHANGES]
    fewer = draw_sample_path(style.new_figure(3.0).subplots(), one, 0.0, 20.0, changes=5)
    assert fewer.get_xlim() == (0.0, one.times[5])
    assert not fewer.patches


def test_a_variable_that_never_changes_has_a_path():
    one = Record(np.zeros(1), np.zeros(1, np.int64), np.ones((40, 1)))
    drawn = draw_sample_path(style.new_figure(3.0).subplots(), one, 0.0, 20.0)
    assert drawn.get_xlim() == (0.0, 20.0)


def test_bars_are_the_mean_shares_of_time_after_the_warm_up_with_their_intervals():
    simulated = result()
    kept = np.stack([one.occupation[4:] for one in simulated.records["jobs"]])
    _, right = plot_path(simulated, "jobs").axes
    bars, whiskers = right.containers
    np.testing.assert_allclose([bar.get_width() for bar in bars], kept.mean(axis=(0, 1)))
    (segments,) = whiskers[2]
    exact = estimate(kept[:, :, 1])
    np.testing.assert_allclose(segments.get_segments()[1][:, 0], [exact.lower, exact.upper])


def test_dots_are_the_law_that_is_given_and_a_legend_names_all():
    figure = plot_path(result(), "jobs", law=[*LAW, 0.0])
    dots = line(figure.axes[1], "exact")
    np.testing.assert_array_equal(dots.get_xdata(), LAW)
    np.testing.assert_array_equal(dots.get_ydata(), [0, 1, 2])
    (legend,) = figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["simulated", "95 % interval", "exact"]


def test_both_panels_show_all_values_of_the_path_and_of_the_law():
    simulated = result()
    for law, most in ((None, 2), ([0.1] * 10, 9), ([1.0], 2)):
        for axes in plot_path(simulated, "jobs", law=law).axes:
            assert axes.get_ylim() == pytest.approx((-0.6, most + 0.6))


def test_values_hardly_ever_taken_get_no_bar_and_many_values_no_whiskers():
    rare = np.concatenate([LAW, np.full(5, 1e-5)])
    one = Record(np.zeros(1), np.zeros(1, np.int64), np.tile(rare, (40, 1)))
    simulated = result()
    object.__setattr__(simulated, "records", {"few": (one,) * 4})
    assert len(plot_path(simulated, "few").axes[1].containers[0]) == 3
    wide = Record(one.times, one.values, np.full((40, 100), 0.01))
    object.__setattr__(simulated, "records", {"many": (wide,) * 4})
    (bars,) = plot_path(simulated, "many", law=np.full(100, 0.01)).axes[1].containers
    assert len(bars) == 100


def test_replications_may_have_seen_different_values():
    rng = np.random.default_rng(2)
    shares = occupation([record(rng, 10, 5, 3), record(rng, 10, 5, 4)], 10, 0)
    assert len(shares) == 4
    assert sum(share.value for share in shares) == pytest.approx(1.0)


def test_shares_may_be_recorded_in_parts_of_segments():
    fine = record(np.random.default_rng(3), 40, 5)
    joined = Record(fine.times, fine.values, fine.occupation.reshape(10, 4, 3).mean(axis=1))
    assert occupation([fine], 10, 2) == occupation([joined], 10, 2)


def test_a_variable_that_was_not_recorded_is_named():
    with pytest.raises(mc.InputError, match=r"'job' was not recorded.*did you mean 'jobs'"):
        plot_path(result(), "job")
    simulated = result()
    object.__setattr__(simulated, "records", {})
    with pytest.raises(mc.InputError, match=r"'jobs' was not recorded; name what.*paths="):
        plot_path(simulated, "jobs")


def test_running_estimates_are_those_of_the_first_segments_and_end_with_the_last():
    kept = result().series_of("cost")[:, 4:]
    sizes, estimates = running(kept)
    assert (sizes[0], sizes[-1]) == (1, 36)
    assert estimates[-1].lower == pytest.approx(result().gain.lower)
    half = int(sizes[len(sizes) // 2])
    assert estimates[len(sizes) // 2] == estimate(kept[:, :half])


@pytest.mark.parametrize("name", ["cost", "lost"])
def test_the_convergence_is_drawn_against_events_without_the_warm_up(name):
    simulated = result()
    (axes,) = plot_convergence(simulated, name, reference=3.05, unit="euro per hour").axes
    drawn, final = line(axes, "estimate"), {"cost": simulated.gain, **simulated.measures}[name]
    assert drawn.get_xdata()[0] == 5000.0
    assert drawn.get_xdata()[-1] == 40_000.0
    assert drawn.get_ydata()[-1] == pytest.approx(final.value)
    assert drawn.get_ydata().max() < 50.0
    ends = [one.get_ydata()[0] for one in axes.lines[1:3]]
    assert ends == [final.lower, final.upper]
    assert line(axes, "reference").get_ydata()[0] == 3.05
    assert axes.get_xlabel() == "thousand events, in 4 replications"
    assert axes.get_ylabel() == f"{name}, euro per hour"
    assert axes.get_ylim()[0] < final.lower < final.upper < axes.get_ylim()[1]


def test_one_replication_has_no_interval_until_there_are_two_segments():
    (axes,) = plot_convergence(result(replications=1, warm_up=0.0)).axes
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 0].min() == 2000.0
    assert not texts(axes)
    assert axes.get_xlabel() == "thousand events, in 1 replication"


def test_a_run_of_one_segment_without_an_interval_is_drawn():
    (axes,) = plot_convergence(result(replications=1, warm_up=0.0, segments=1)).axes
    assert np.isfinite(axes.get_ylim()).all()
    assert not [one for one in axes.lines if one.get_label() == "interval at the end"]


def test_an_unknown_measure_is_named():
    with pytest.raises(mc.InputError, match="no measure 'costs'"):
        plot_convergence(result(), "costs")


def test_the_pictures_can_be_saved(tmp_path):
    simulated = result()
    for number, figure in enumerate(
        (plot_path(simulated, "jobs", law=LAW), plot_convergence(simulated, reference=3.0))
    ):
        assert style.save(figure, tmp_path / f"{number}.png").stat().st_size > 10_000
