"""Segments: how runs are cut, and joined as they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.simulate import run, segments
from mdpcloud.simulate.segments import Shares, cut, joined
from tests.simulate.test_simulate import mm1, threshold

pytestmark = pytest.mark.filterwarnings("ignore::mdpcloud.simulate.result.SimulationWarning")


@given(st.floats(1e-3, 1e9), st.integers(1, 2000), st.floats(1, 1e12))
def test_a_run_is_cut_into_equal_pieces(time: float, wanted: int, events: float) -> None:
    found = cut(time, wanted, events, 3, discrete=False)
    assert found.count % wanted == 0
    assert found.length * found.count == pytest.approx(time, rel=1e-12)


@given(st.floats(1, 1e6), st.integers(1, 2000), st.floats(1, 1e9))
def test_pieces_in_discrete_time_are_whole_steps(time: float, wanted: int, events: float) -> None:
    found = cut(time, wanted, events, 3, discrete=True)
    assert found.length == round(found.length) >= 1
    assert abs(found.length * found.count - time) <= found.length


def test_shares_are_joined_as_the_segments_are() -> None:
    rows = np.random.default_rng(1).random((12, 3))
    shares = Shares()
    shares.add(rows[:4, :2])
    shares.join(2)
    shares.add(rows[4:8])
    shares.join(2)
    shares.add(rows[8:])
    whole = rows.copy()
    whole[:4, 2] = 0.0
    np.testing.assert_allclose(shares.all(), joined(whole, 4))


def test_a_long_run_ends_with_as_many_segments_as_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = mc.simulate(mm1(), threshold(9), rng=3, time=5000.0, paths="jobs")
    monkeypatch.setattr(segments, "FIRST_EVENTS", 5000)
    monkeypatch.setattr(segments, "EVENTS_PER_AVERAGE", 0)
    fine = mc.simulate(mm1(), threshold(9), rng=3, time=5000.0, paths=["jobs"])
    assert fine.segment == whole.segment
    np.testing.assert_allclose(fine.series, whole.series, atol=1e-9)
    for one, other in zip(fine.records["jobs"], whole.records["jobs"], strict=True):
        wide = min(one.occupation.shape[1], other.occupation.shape[1])
        np.testing.assert_allclose(one.occupation[:, :wide], other.occupation[:, :wide], atol=1e-9)


def test_a_run_that_is_interrupted_early_has_many_segments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "FIRST_EVENTS", 5000)
    monkeypatch.setattr(segments, "EVENTS_PER_AVERAGE", 0)

    def progress(events: int, lower: float, upper: float) -> None:
        if events > 20_000:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "ROUND", 0.01)
    found = mc.simulate(mm1(), threshold(9), rng=3, time=50_000.0, progress=progress)
    assert found.status == "interrupted"
    assert found.series.shape[1] > 300


def test_runs_for_a_half_width_do_not_depend_on_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def result() -> Any:
        return mc.simulate(mm1(), threshold(9), rng=3, half_width=0.01, paths=["jobs"])

    monkeypatch.setattr(segments, "FIRST_EVENTS", 20_000)
    monkeypatch.setattr(segments, "EVENTS_PER_AVERAGE", 0)
    expected = result()
    monkeypatch.setattr(run, "ROUND", 0.003)
    found = result()
    np.testing.assert_array_equal(found.series, expected.series)
    assert found.gain == expected.gain
    shares = found.records["jobs"][0].occupation
    assert len(shares) == found.series.shape[1]
