"""Piecewise smooth differential equations against closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.trajectory import Mode, Trajectory, integrate

EDGE = 1e-6  # within which a surface counts as hit


def relaxing(rates: Any, limits: Any, **gaps: Any) -> Mode:
    """x' = rates (limits - x)."""
    rates, limits = np.asarray(rates), np.asarray(limits)
    return Mode(lambda x: rates * (limits - x), gaps)


def dam(level: float = 1.0) -> dict[str, Mode]:
    """Clock x0; x1 rises by 2 - x0 up to a level, where it flows over until the inflow ends."""
    inflow = lambda x: 2.0 - x[0]  # noqa: E731
    return {
        "rising": Mode(lambda x: np.array([1.0, inflow(x)]), {"full": lambda x: level - x[1]}),
        "full": Mode(
            lambda x: np.array([1.0, 0.0]), {"dry": inflow}, lambda x: np.array([x[0], level])
        ),
    }


def dam_mode(x: Any) -> str:
    return "full" if x[1] > 1.0 - EDGE and x[0] < 2.0 - EDGE else "rising"


def dam_level(t: float) -> float:
    """Height in the dam of level 1: it is hit at 2 - sqrt(2) and left at 2."""
    if t < 2.0 - math.sqrt(2.0):
        return 2.0 * t - 0.5 * t * t
    return 1.0 if t < 2.0 else 1.0 - 0.5 * (t - 2.0) ** 2


def test_a_trajectory_slides_along_a_surface_and_leaves_it_where_the_drift_turns() -> None:
    found = integrate(dam(), dam_mode, [0.0, 0.0], 4.0)
    assert [what for _, what in found.changes] == ["full", "dry"]
    assert found.changes[0][0] == pytest.approx(2.0 - math.sqrt(2.0), abs=1e-11)
    assert found.changes[1][0] == pytest.approx(2.0, abs=1e-11)
    exact = np.array([dam_level(t) for t in found.times])
    assert np.abs(found.states[:, 1] - exact).max() <= found.error <= 1e-7


def test_steps_are_not_small_near_a_surface() -> None:
    calls = 0

    def drift(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return 1.0 - x

    modes = {"below": Mode(drift, {"hit": lambda x: 0.5 - x[0]}), "above": Mode(lambda x: 0.0 * x)}
    found = integrate(modes, lambda x: "above" if x[0] > 0.5 - EDGE else "below", [0.0], 1.0)
    assert found.changes[0][0] == pytest.approx(math.log(2.0), abs=1e-11)
    assert calls < 500


def test_both_of_two_gaps_that_fall_at_once_are_reported() -> None:
    inside = relaxing([1.0, 1.0], [2.0, 2.0], a=lambda x: 1.0 - x[0], b=lambda x: 1.0 - x[1])
    seen: list[Any] = []

    def mode_at(x: Any) -> str:
        seen.append(x)
        return "held" if (x > 1.0 - EDGE).all() else "inside"

    modes = {"inside": inside, "held": Mode(lambda x: 0.0 * x)}
    found = integrate(modes, mode_at, [0.0, 0.0], 1.0, times=[1.0])
    assert found.changes == ((pytest.approx(math.log(2.0), abs=1e-11), "a"),
                             (pytest.approx(math.log(2.0), abs=1e-11), "b"))  # fmt: skip
    assert found.states == pytest.approx(np.ones((1, 2)), abs=1e-11)


@given(st.floats(0.1, 80.0), st.floats(0.001, 0.3))
@settings(deadline=None, max_examples=30)
def test_a_surface_that_is_crossed_twice_within_a_step_is_seen(place: float, half: float) -> None:
    beyond = Mode(lambda x: 0.0 * x)
    clock = Mode(lambda x: 1.0 + 0.0 * x, {"dip": lambda x: (x[0] - place) ** 2 - half**2})
    at = lambda x: "clock" if x[0] < place - 1.01 * half else "beyond"  # noqa: E731
    first = place - half
    if first <= 0.05:
        return
    found = integrate(
        {"clock": clock, "beyond": beyond},
        lambda x: "beyond" if abs(x[0] - first) < EDGE else at(x),
        [0.0],
        100.0,
        times=[100.0],
    )
    assert found.changes[0][0] == pytest.approx(first, abs=1e-9)
    assert found.states[0, 0] == pytest.approx(first, abs=1e-9)


rates = st.floats(0.05, 20.0)


@given(rates, rates, st.floats(0.05, 0.95), st.floats(0.0, 3.0))
@settings(deadline=None, max_examples=40)
def test_the_estimated_error_is_no_smaller_than_the_true_one(
    up: float, down: float, level: float, limit: float
) -> None:
    modes = {
        "below": relaxing([up], [1.0], level=lambda x: level - x[0]),
        "above": relaxing([down], [limit], back=lambda x: x[0] - 0.5 * level),
        "end": Mode(lambda x: 0.0 * x),
    }
    hits = []

    def mode_at(x: Any) -> str:
        if x[0] <= 0.0:
            hits.clear()
        hits.append(x)
        return ("below", "above", "end")[len(hits) - 1]

    found = integrate(modes, mode_at, [0.0], 5.0)
    hit = -math.log(1.0 - level) / up
    left = math.inf
    if limit < 0.5 * level:
        left = hit + math.log((level - limit) / (0.5 * level - limit)) / down

    def exact(t: float) -> float:
        if t < hit:
            return -math.expm1(-up * t)
        return limit + (level - limit) * math.exp(-down * (min(t, left) - hit))

    truth = np.array([exact(t) for t in found.times])
    assert np.abs(found.states[:, 0] - truth).max() <= found.error <= 1e-7


@given(st.floats(3.0, 9.0), st.floats(0.2, 0.8))
@settings(deadline=None, max_examples=3)
def test_fast_rates_take_no_more_steps_and_lose_no_accuracy(power: float, level: float) -> None:
    calls = 0
    fast = 10.0**power

    def drift(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.array([1.0 - x[0], fast * (x[0] - x[1])])

    modes = {
        "below": Mode(drift, {"hit": lambda x: level - x[0]}),
        "above": Mode(lambda x: np.array([0.0, fast * (x[0] - x[1])])),
    }
    found = integrate(modes, lambda x: "above" if x[0] > level - EDGE else "below", [0.0, 0.0], 2.0)
    hit = -math.log(1.0 - level)
    assert found.changes == ((pytest.approx(hit, abs=1e-9), "hit"),)
    before = found.times < hit
    t = found.times[before]
    first = -np.expm1(-t)
    second = 1.0 - (fast * np.exp(-t) - np.exp(-fast * t)) / (fast - 1.0)
    exact = np.stack([first, second], axis=1)
    assert np.abs(found.states[before] - exact).max() <= found.error <= 1e-6
    assert np.abs(found.states[-1] - level).max() <= found.error
    assert calls < 80_000


def test_a_finer_tolerance_is_more_accurate() -> None:
    errors = []
    for tolerance in (1e-4, 1e-7, 1e-10):
        found = integrate(dam(), dam_mode, [0.0, 0.0], 3.0, times=[3.0], tolerance=tolerance)
        errors.append(found.error)
        assert abs(found.states[0, 1] - 0.5) <= found.error
    assert errors[0] <= 1e-3
    assert errors[-1] <= 1e-9


def test_a_gap_that_stays_at_zero_is_not_left() -> None:
    modes = {"along": relaxing([1.0, 1.0], [1.0, 1.0], same=lambda x: x[0] - x[1])}
    found = integrate(modes, lambda x: "along", [0.0, 0.0], 30.0)
    assert found.changes == ()


def test_a_gap_that_falls_at_the_horizon_ends_the_trajectory_there() -> None:
    modes = {"clock": Mode(lambda x: 1.0 + 0.0 * x, {"end": lambda x: 1.0 - x[0]})}
    found = integrate(modes, lambda x: "clock", [0.0], 1.0, times=[0.0, 1.0])
    assert found.states[-1, 0] == pytest.approx(1.0, abs=1e-12)


def test_by_default_there_are_equally_spaced_times_and_numbered_labels() -> None:
    found = integrate({"rest": Mode(lambda x: 0.0 * x)}, lambda x: "rest", [1.0, 2.0], 4.0)
    assert isinstance(found, Trajectory)
    assert found.labels == ("x[0]", "x[1]")
    assert (found.times[0], found.times[-1]) == (0.0, 4.0)
    assert (found.states == [1.0, 2.0]).all()
    assert integrate({"rest": Mode(lambda x: 0.0 * x)}, lambda x: "rest", [1.0], 4.0, times=[]
                     ).states.shape == (0, 1)  # fmt: skip


def test_modes_without_end_are_refused() -> None:
    modes = {"out": Mode(lambda x: 1.0 + 0.0 * x, {"edge": lambda x: 1.0 - x[0]})}
    with pytest.raises(SolveError, match="changed 1000 times before time 1"):
        integrate(modes, lambda x: "out", [0.0], 2.0)


def test_a_drift_that_is_no_number_is_refused() -> None:
    modes = {"root": Mode(lambda x: np.array([np.nan if x[0] > 0.5 else 1.0]))}
    with pytest.raises(SolveError, match="the drift is"):
        integrate(modes, lambda x: "root", [0.0], 2.0)


def test_an_explosion_is_refused() -> None:
    with pytest.raises(SolveError, match="the integration stopped at time 1: "):
        integrate({"up": Mode(lambda x: x**2)}, lambda x: "up", [1.0], 2.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 0.0}, "horizon must be a finite number > 0, got 0.0"),
        ({"horizon": "x"}, "horizon must be a finite number > 0, got 'x'"),
        ({"horizon": None}, "horizon must be a finite number > 0, got None"),
        ({"start": ["a"]}, "start must be a list of numbers"),
        ({"start": [None]}, "start must be a list of numbers"),
        ({"start": ["0.5"]}, "start must be a list of numbers"),
        ({"start": "x"}, "start must be a list of numbers"),
        ({"start": [True]}, "start must be a list of numbers"),
        ({"start": [[0.0], [0.0, 1.0]]}, "start must be a list of numbers"),
        ({"start": 0.5}, "start must be a list of at least one"),
        ({"start": [10**400]}, "start must be a list of numbers"),
        ({"times": ["a"]}, "times must be a list of numbers"),
        ({"times": [None]}, "times must be a list of numbers"),
        ({"times": "x"}, "times must be a list of numbers"),
        ({"horizon": math.inf}, "horizon"),
        ({"times": [0.5, 0.2]}, "times must be increasing numbers in"),
        ({"times": [0.5, math.nan]}, "times"),
        ({"times": [-0.1]}, "times"),
        ({"times": [1.1]}, "times"),
        ({"times": [[0.1]]}, "times"),
        ({"start": [math.nan]}, "start must be a list"),
        ({"start": []}, "start"),
        ({"labels": ["a", "b"]}, "there are 2 labels for 1 coordinates"),
        ({"tolerance": 1e-15}, "tolerance must be in"),
        ({"tolerance": math.nan}, "tolerance"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"start": [0.0], "horizon": 1.0, **given}
    with pytest.raises(InputError, match=message):
        integrate({"rest": Mode(lambda x: 0.0 * x)}, lambda x: "rest", **arguments)
