"""Fluid limits of a link with downgrading: published trajectories, exponentials, equilibria."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.downgrading.equilibrium import Link, equilibrium
from mdpcloud.limits.downgrading.fluid import fluid_trajectory
from tests.limits.downgrading.test_equilibrium import BISTABLE, OSCILLATING, USUAL, links
from tests.models import reference

PUBLISHED = reference("allocation")["extra_phiY_mp_S3LP_S3ode"]["S3_ode"]
REACHED, FILLED = "the threshold is reached", "the capacity is reached"


def load(link, states):
    return states @ np.array(link.requirements)


@pytest.mark.parametrize("one", PUBLISHED)
def test_published_trajectories(one):
    link = Link(one["lam"], one["mu"], one["A"], capacity=2.0, threshold=one["c0"])
    times = [float(t) for t in one["traj"]]
    path = fluid_trajectory(link, max(times), one["x0"], times)
    assert path.states == pytest.approx(np.array(list(one["traj"].values())), abs=1e-10)
    ((hit, _, state, _),) = one["events"]
    ((when, what),) = path.changes
    assert (when, what) == (pytest.approx(hit, abs=1e-9), REACHED)
    at = fluid_trajectory(link, max(times), one["x0"], [when])
    assert at.states[0] == pytest.approx(state, abs=1e-9)


class TestClosedForms:
    def test_below_the_threshold(self):
        path = fluid_trajectory(USUAL, 1.5, times=[0.5, 1.5])
        expected = [(0.3 * (1 - math.exp(-t)), 0.4 * (1 - math.exp(-t))) for t in (0.5, 1.5)]
        assert path.states == pytest.approx(np.array(expected), abs=1e-10)
        assert path.changes == ()

    def test_above_the_threshold_and_the_time_it_is_reached(self):
        path = fluid_trajectory(USUAL, 1.0, (1.0, 0.0))
        assert path.changes == ((pytest.approx(math.log(0.3 / 0.2), abs=1e-10), REACHED),)

    def test_on_the_threshold_with_equal_service_rates(self):
        # s(x) = mu c0 there, so that p = (0.9 - 0.7)/0.4 is constant and x_1' = 0.4 p - x_1
        path = fluid_trajectory(USUAL, 3.0, (0.9, 0.0), times=[1.0, 3.0])
        second = 0.2 * (1 - np.exp(-np.array([1.0, 3.0])))
        assert path.states[:, 1] == pytest.approx(second, abs=1e-10)
        assert load(USUAL, path.states) == pytest.approx(0.9, abs=1e-12)

    def test_at_the_capacity_of_an_overloaded_link(self):
        link = Link((0.5, 0.9), (1.0, 1.0), (1, 2), capacity=1.0, threshold=0.5)
        path = fluid_trajectory(link, 3.0, (0.0, 0.5), times=[1.0, 3.0])
        second = 0.5 * np.exp(-np.array([1.0, 3.0]))
        assert path.states[:, 1] == pytest.approx(second, abs=1e-9)
        assert load(link, path.states) == pytest.approx(1.0, abs=1e-12)
        start = fluid_trajectory(link, 3.0)
        assert start.changes == (
            (pytest.approx(-math.log(1 - 0.5 / 2.3), abs=1e-9), REACHED),
            (pytest.approx(-math.log(1 - 0.5 / 2.3) + math.log(0.9 / 0.4), abs=1e-9), FILLED),
        )

    def test_one_class_fills_and_stays_full(self):
        link = Link((1.3,), (1.0,), (1,), capacity=1.0, threshold=0.2)
        path = fluid_trajectory(link, 3.0, times=[1.0, 3.0])
        assert path.states[:, 0] == pytest.approx([1.3 * (1 - math.exp(-1.0)), 1.0], abs=1e-9)
        assert path.changes == ((pytest.approx(math.log(13 / 3), abs=1e-9), FILLED),)


class TestInTheLongRun:
    @given(links(fastest=3.0), st.data())
    @settings(max_examples=25, deadline=None)
    def test_a_link_with_class_0_the_slowest_comes_to_its_equilibrium(self, link, data):
        try:
            found = equilibrium(link)
        except NoLimitError:
            assume(False)
        shares = np.array([data.draw(st.floats(0.0, 1.0)) for _ in link.requirements])
        assume(shares.sum() > 0.1)
        start = 0.999 * data.draw(st.floats(0.0, 1.0)) * link.capacity * shares
        start /= load(link, shares)
        slowest = decay_rate(link, found)
        assume(slowest > 0.02)
        path = fluid_trajectory(link, 20.0 / slowest, start, times=[20.0 / slowest])
        size = max(link.capacity, link.full_load)
        assert path.states[0] == pytest.approx(found.jobs, abs=1e-5 * size)

    @given(links(), st.floats(0.0, 1.0))
    @settings(max_examples=20, deadline=None)
    def test_a_link_at_its_equilibrium_stays_there(self, link, horizon):
        found = equilibrium(link)
        path = fluid_trajectory(link, 1.0 + horizon, found.jobs)
        assert path.states[-1] == pytest.approx(found.jobs, rel=1e-9, abs=1e-9)
        assert len(path.changes) <= 2

    @given(links())
    @settings(max_examples=20, deadline=None)
    def test_the_load_stays_within_the_link(self, link):
        path = fluid_trajectory(link, 10.0)
        loads = load(link, path.states)
        assert (path.states >= -1e-9 * link.capacity).all()
        assert (loads <= link.capacity * (1 + 1e-9) + path.error).all()

    def test_two_ends_hold_themselves_where_downgrading_makes_the_load_larger(self):
        low = fluid_trajectory(BISTABLE, 60.0, (0.3, 0.0), times=[60.0])
        high = fluid_trajectory(BISTABLE, 60.0, (0.65, 0.0), times=[60.0])
        assert low.states[0] == pytest.approx([0.3, 0.1], abs=1e-8)
        assert high.states[0] == pytest.approx([0.7, 0.0], abs=1e-8)

    def test_an_unstable_point_is_left_for_a_cycle(self):
        path = fluid_trajectory(OSCILLATING, 20.0, times=np.linspace(10.0, 20.0, 200))
        assert np.ptp(path.states[:, 0]) > 0.3
        assert len(path.changes) > 20
        assert path.error < 1e-4


class TestFastRates:
    @pytest.mark.parametrize("fast", [1e3, 1e5, 1e7])
    def test_small_times_are_those_of_the_fast_class_and_the_link_fills(self, fast):
        link = Link((3.0, 4.0 * fast), (1.0, fast), (1, 2), 10.0, 8.0)
        path = fluid_trajectory(link, 1.0, times=[1.0])
        assert path.states[0] == pytest.approx([10.0, 0.0], abs=1e-6)
        assert [what for _, what in path.changes] == [REACHED, "every job is downgraded", FILLED]

    @pytest.mark.parametrize("fast", [1e3, 1e5, 1e7])
    def test_below_the_threshold(self, fast):
        link = Link((2.0, 3.0 * fast), (1.0, fast), (1, 2), 10.0, 8.0)
        path = fluid_trajectory(link, 1.0, times=[0.5, 1.0])
        exact = [[2.0 * (1.0 - math.exp(-t)), 3.0] for t in (0.5, 1.0)]
        assert path.states == pytest.approx(np.array(exact), abs=path.error)

    @given(links(), st.lists(st.floats(0.0, 5.0), min_size=4, max_size=4))
    @settings(max_examples=5, deadline=None)
    def test_a_link_with_rates_far_apart_comes_to_its_equilibrium(self, link, powers):
        speeds = np.array([10.0**power for power in powers])[: len(link.requirements)]
        speeds[0] = 1.0  # class 0 the slowest, as before, so that the point is stable
        link = replace(
            link,
            arrival_rates=tuple(np.multiply(link.arrival_rates, speeds)),
            service_rates=tuple(np.multiply(link.service_rates, speeds)),
        )
        try:
            found = equilibrium(link)
        except NoLimitError:
            assume(False)
        slowest = decay_rate(link, found)
        assume(slowest > 0.02)
        path = fluid_trajectory(link, 20.0 / slowest, times=[20.0 / slowest])
        size = max(link.capacity, link.full_load)
        assert path.states[0] == pytest.approx(found.jobs, abs=1e-5 * size + path.error)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("what", "words"),
        [
            ({"horizon": "x"}, "horizon must be"),
            ({"horizon": None}, "horizon must be"),
            ({"start": ("a", 1)}, "start must be a list of numbers"),
            ({"start": (None, 1)}, "start must be a list of numbers"),
            ({"times": ["a"]}, "times must be a list of numbers"),
        ],
    )
    def test_text_for_numbers(self, what, words):
        with pytest.raises(InputError, match=words):
            fluid_trajectory(USUAL, **{"horizon": 1.0, **what})

    def test_a_load_that_comes_to_a_threshold_at_the_capacity(self):
        with pytest.raises(NoLimitError, match=r"the threshold is 1 as well"):
            fluid_trajectory(replace(USUAL, threshold=1.0), 5.0)
        path = fluid_trajectory(replace(USUAL, threshold=1.2, capacity=1.2), 40.0)
        assert path.states[-1] == pytest.approx([0.3, 0.4], abs=1e-8)

    @pytest.mark.parametrize(
        ("start", "words"),
        [((0.1,), "start has 1 entries"), ((-0.1, 0.0), "must be >= 0"), ((0.5, 0.3), "at most")],
    )
    def test_a_start_that_does_not_fit(self, start, words):
        with pytest.raises(InputError, match=words):
            fluid_trajectory(USUAL, 1.0, start)


def decay_rate(link, found):
    """How fast the last mode of a link decays."""
    services = np.array(link.service_rates)
    if found.regime != "partial_downgrading":
        return float(services.min())
    rates, units = np.array(link.arrival_rates[1:]), np.array(link.requirements[1:])
    pull = np.outer(rates, units * (services[1:] - services[0])) / (rates @ (units - 1))
    return float(-np.linalg.eigvals(pull - np.diag(services[1:])).real.max())
