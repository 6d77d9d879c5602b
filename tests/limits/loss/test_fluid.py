"""Fluid limit of a link: published trajectories, solved pieces, leaving the boundary."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.limits.loss.fluid import link_fluid
from tests.limits.loss.test_free_capacity import FLUID, SETS

CASES = [(name, start) for name in SETS for start in FLUID[name]["traj"]]


def starting(text: str) -> list[float]:
    return [float(part) for part in text.strip("()").split(",")]


@pytest.mark.parametrize(("name", "start"), CASES)
def test_published_trajectories_within_their_accuracy(name: str, start: str) -> None:
    arrivals, services, sizes = SETS[name]
    known = FLUID[name]["traj"][start]
    times = [float(t) for t in known["ode"]]
    path = link_fluid(arrivals, services, sizes, 1.0, times[-1], starting(start), times)
    assert path.states == pytest.approx(np.array(list(known["ode"].values())), abs=1e-9)
    assert path.error < 1e-8
    assert [t for t, _ in path.changes] == pytest.approx([t for t, *_ in known["events"]], abs=1e-9)


@pytest.mark.parametrize(("name", "start"), CASES)
def test_the_chain_of_120_units_stays_near(name: str, start: str) -> None:
    arrivals, services, sizes = SETS[name]
    known = FLUID[name]["traj"][start]["CTMC_N120"]
    times = [float(t) for t in known]
    path = link_fluid(arrivals, services, sizes, 1.0, times[-1], starting(start), times)
    assert path.states == pytest.approx(np.array(list(known.values())), abs=0.02)


def test_the_link_fills_at_a_time_in_closed_form() -> None:
    path = link_fluid([0.8, 0.4], [1.0, 1.0], [1, 2], 1.0, 2.0)
    assert path.changes == ((pytest.approx(math.log(1.6 / 0.6), abs=1e-9), "the link fills"),)


def test_one_class_fills_and_stays_full() -> None:
    path = link_fluid([3.0], [1.0], [1], 1.0, 3.0, times=[0.1, 1.0, 3.0])
    assert path.states.ravel() == pytest.approx([3 * (1 - math.exp(-0.1)), 1.0, 1.0], abs=1e-8)


def test_a_boundary_that_slow_jobs_hold_is_left_once_they_are_gone() -> None:
    arguments: tuple[Any, ...] = ([0.6, 0.0], [1.0, 0.1], [1, 2], 1.0, 40.0, [0.0, 0.5])
    path = link_fluid(*arguments)
    assert [what for _, what in path.changes] == ["the link drains"]
    t = path.changes[0][0]
    # on the boundary x[0] = 1 - 2 x[1], x[1] = e^{-t/10} / 2; drained where 0.6 = x[0] + 0.2 x[1]
    assert math.exp(-0.1 * t) == pytest.approx(0.4 / 0.9, abs=1e-7)
    assert path.states[-1] == pytest.approx([0.6, 0.5 * math.exp(-4.0)], abs=1e-6)


def test_a_class_of_hardly_any_jobs_leaves_the_path_of_the_others() -> None:
    path = link_fluid([1e-6, 1000.0], [1.0, 1.0], [7, 4], 1.0, 5.0, times=[5.0])
    assert path.states[0, 1] == pytest.approx(0.25, abs=1e-8)
    assert 0.0 <= path.states[0, 0] < 1e-6


@settings(max_examples=5)
@given(
    st.lists(st.floats(0.1, 2.0), min_size=2, max_size=2),
    st.lists(st.floats(0.3, 2.0), min_size=2, max_size=2),
    st.floats(0.0, 1.0),
)
def test_jobs_stay_within_the_capacity_and_never_become_negative(
    arrivals: list[float], services: list[float], share: float
) -> None:
    start = [share, (1.0 - share) / 3.0]
    path = link_fluid(arrivals, services, [1, 3], 1.0, 3.0, start, times=[0.0, 0.5, 1.0, 3.0])
    assert path.states[0] == pytest.approx(start, abs=1e-12)
    assert (path.states >= -1e-9).all()
    assert (path.states @ [1.0, 3.0] <= 1.0 + 1e-7).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rates": [1.0]}, "one each per class"),
        ({"arrival_rates": [1.0, -1.0]}, r"arrival_rates\[1\] must be"),
        ({"service_rates": [1.0, 0.0]}, r"service_rates\[1\] must be"),
        ({"capacity": 0.0}, "capacity must be"),
        ({"start": [1.0]}, "start has 1 numbers for 2 classes"),
        ({"start": [1.0, 0.3]}, "start uses 1.6, more than the capacity 1"),
        ({"horizon": 0.0}, "horizon must be"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {
        "arrival_rates": [1.0, 1.0],
        "service_rates": [1.0, 1.0],
        "sizes": [1, 2],
        "capacity": 1.0,
        "horizon": 1.0,
    }
    with pytest.raises(InputError, match=message):
        link_fluid(**(values | changes))
