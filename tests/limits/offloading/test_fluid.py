"""Fluid trajectories of offloading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.offloading.fluid import fluid_path
from mdpcloud.limits.offloading.ring import ring_limit

RATES = st.floats(0.3, 3)
CHANCES = st.floats(0, 0.5)


@st.composite
def systems(draw: st.DrawFn) -> Any:
    size = draw(st.integers(2, 4))
    return tuple(draw(st.tuples(*[what] * size)) for what in (RATES, RATES, RATES, CHANCES))


@settings(max_examples=25, deadline=None)
@given(systems(), st.floats(0, 1))
def test_every_path_ends_in_the_stationary_limit(system: Any, part: float) -> None:
    arrivals, rates, servers, p = system
    capacities = [mu * c for mu, c in zip(rates, servers, strict=True)]
    start = [part * c for c in servers]
    try:
        limit = ring_limit(arrivals, capacities, p)
        path = fluid_path(arrivals, rates, servers, p, 150.0, start=start, times=[0.0, 150.0])
    except NoLimitError:
        return
    expected = [served / mu for served, mu in zip(limit.served, rates, strict=True)]
    assert path.states[0] == pytest.approx(start)
    assert path.states[-1] == pytest.approx(expected, abs=1e-6)


def test_exponentials_change_where_a_centre_fills_up() -> None:
    times = np.array([0.2, np.log(2.0), 1.0, 2.0])
    path = fluid_path((2.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.25, 0.0), 3.0, times=times)
    hit = np.log(2.0)
    first = np.minimum(2.0 * (1.0 - np.exp(-times)), 1.0)
    after = 1.5 - np.exp(-(times - hit))
    second = np.where(times < hit, 1.0 - np.exp(-times), after)
    assert path.states == pytest.approx(np.stack([first, second], axis=1), abs=1e-9)
    assert path.changes == ((pytest.approx(hit, abs=1e-9), "centre 0 fills up"),)


def test_a_centre_that_is_full_to_begin_with_leaves_if_it_can_serve_all() -> None:
    path = fluid_path(
        (2.0, 0.5), (1.0, 1.0), (1.0, 1.0), (0.2, 0.0), 40.0, start=[1.0, 1.0], times=[1.0, 40.0]
    )
    assert path.states[:, 0] == pytest.approx([1.0, 1.0])
    assert path.states[:, 1] == pytest.approx([0.9 + 0.1 * np.exp(-1.0), 0.9])
    assert path.changes == ()


def test_both_centres_stay_full_where_each_is_saturated_with_the_other() -> None:
    path = fluid_path((3.0, 0.9), (1.0, 1.0), (1.0, 1.0), (0.5, 0.0), 9.0, start=[1.0, 1.0])
    assert path.states == pytest.approx(np.ones_like(path.states))


def test_a_centre_that_gets_what_it_can_just_serve_stays_full() -> None:
    path = fluid_path((1.0, 0.5), (1.0, 1.0), (1.0, 1.0), (0.5, 0.5), 5.0, start=[1.0, 0.0])
    assert path.states[:, 0] == pytest.approx(1.0)


def test_a_path_into_three_full_neighbours_is_refused() -> None:
    with pytest.raises(NoLimitError, match="full together"):
        fluid_path((2.0, 2.0, 2.0), (1.0,) * 3, (1.0,) * 3, (0.1,) * 3, 5.0)


@pytest.mark.parametrize(
    ("start", "message"),
    [([1.0], "1 numbers for 2"), ([2.0, 0.0], r"start\[0\]"), ([0.0, -1.0], r"start\[1\]")],
)
def test_starts_beyond_the_servers_are_refused(start: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fluid_path((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (0.1, 0.1), 1.0, start=start)
