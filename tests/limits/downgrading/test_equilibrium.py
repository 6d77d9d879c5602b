"""Where a link with downgrading settles: published points, laws of conservation, boundaries."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.downgrading.bound import fluid_bound
from mdpcloud.limits.downgrading.equilibrium import Link, equilibrium
from mdpcloud.limits.downgrading.wiener_hopf import walk_law
from tests.models import reference

SETS = reference("allocation")["S3"]["sets"]
PROGRAMS = reference("allocation")["extra_phiY_mp_S3LP_S3ode"]["S3_LP"]
USUAL = Link((0.3, 0.4), (1.0, 1.0), (1, 2), capacity=1.0, threshold=0.9)
BISTABLE = Link((0.3, 0.4), (1.0, 4.0), (1, 2), capacity=1.0, threshold=0.6)
OSCILLATING = Link((2.0, 0.1, 3.0), (6.0, 0.08, 20.0), (1, 8, 2), 30.0, 5.74)


def link_of(one):
    return Link(one["lam"], one["mu"], one["A"], one["c"], one["c0"])


positive = st.floats(0.05, 3.0)


@st.composite
def links(draw, fastest=0.98):
    """Links with mu_0 <= mu_j, as the source assumes, and mu_j <= fastest A_j mu_0."""
    units = (1, *draw(st.lists(st.integers(2, 6), min_size=1, max_size=3)))
    rates = tuple(draw(positive) for _ in units)
    least = draw(positive)
    services = (least, *(least * draw(st.floats(1.0, max(1.0, fastest * a))) for a in units[1:]))
    capacity = draw(positive) * sum(rates) / least
    return Link(rates, services, units, capacity, draw(st.floats(0.0, 0.98)) * capacity)


class TestPublishedSets:
    @pytest.mark.parametrize("one", SETS)
    def test_the_point_of_equilibrium(self, one):
        found = equilibrium(link_of(one))
        assert found.regime == "partial_downgrading"
        assert found.in_full[-1] == pytest.approx(one["pi_minus"], abs=found.error)
        assert found.jobs == pytest.approx(one["l_star"], abs=found.error)
        assert found.blocking[0] == 0.0

    def test_with_their_exact_values(self):
        exact = [(1 / 2, (0.5, 0.2)), (1 / 2, (0.4, 2 / 15)), (5 / 16, (0.475, 1 / 16, 1 / 16))]
        for one, (fraction, jobs) in zip(SETS[:3], exact, strict=True):
            found = equilibrium(link_of(one))
            assert found.in_full[-1] == pytest.approx(fraction, abs=found.error)
            assert found.jobs == pytest.approx(jobs, abs=found.error)
        assert equilibrium(link_of(SETS[3])).in_full[-1] == pytest.approx(7 / 11, abs=1e-14)

    @pytest.mark.parametrize("one", SETS)
    def test_the_mean_of_the_walk_is_the_first_correction_of_large_links(self, one):
        link = link_of(one)
        found = equilibrium(link)
        law = walk_law(one["lam"], np.multiply(found.jobs, one["mu"]), one["A"])
        for scale, predicted in one["first_order_pred"].items():
            shifted = replace(link, threshold=link.threshold + law.mean / int(scale))
            fraction = (shifted.threshold - link.low_load) / (link.full_load - link.low_load)
            assert fraction == pytest.approx(predicted, abs=1e-8)


class TestConservation:
    @given(links())
    def test_flows_of_every_class_balance(self, link):
        found = equilibrium(link)
        rates, services = np.array(link.arrival_rates), np.array(link.service_rates)
        gone = services * found.jobs
        assert gone[1:] == pytest.approx(rates[1:] * found.in_full[-1], abs=1e-12)
        taken = rates.sum() * (1 - found.blocking[0])
        assert gone.sum() == pytest.approx(taken, rel=1e-12)
        assert found.in_full[-1] + found.downgraded[-1] + found.blocking[0] == pytest.approx(
            1.0, abs=1e-13
        )

    @given(links())
    def test_the_load_is_where_the_regime_says(self, link):
        found = equilibrium(link)
        load = np.dot(found.jobs, link.requirements)
        expected = {
            "no_downgrading": link.full_load,
            "partial_downgrading": link.threshold,
            "all_downgraded": link.low_load,
            "overloaded": link.capacity,
        }[found.regime]
        assert load == pytest.approx(expected, rel=1e-11)
        assert load <= link.capacity * (1 + 1e-11)

    @given(links(), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
    def test_the_units_of_time_and_size_do_not_matter(self, link, time, size):
        scaled = Link(
            [time * size * rate for rate in link.arrival_rates],
            [time * rate for rate in link.service_rates],
            link.requirements,
            size * link.capacity,
            size * link.threshold,
        )
        one, other = equilibrium(link), equilibrium(scaled)
        assert other.regime == one.regime
        assert other.in_full[-1] == pytest.approx(one.in_full[-1], abs=one.error + other.error)
        assert np.divide(other.jobs, size) == pytest.approx(one.jobs, rel=1e-10, abs=1e-12)

    @given(links(), st.floats(0.0, 1.0))
    def test_a_higher_threshold_takes_more_jobs_in_full(self, link, share):
        higher = replace(
            link, threshold=link.threshold + share * (0.99 * link.capacity - link.threshold)
        )
        assume(higher.threshold >= link.threshold)
        one, other = equilibrium(link), equilibrium(higher)
        assert other.in_full[-1] >= one.in_full[-1] - 1e-12


class TestRegimes:
    @pytest.mark.parametrize(
        ("threshold", "capacity", "regime"),
        [
            (1.2, 1.3, "no_downgrading"),
            (0.9, 1.0, "partial_downgrading"),
            (0.9, 2.0, "partial_downgrading"),  # capacity beyond the load: not (R), same limit
            (0.6, 1.0, "all_downgraded"),
            (0.0, 1.0, "all_downgraded"),
            (0.5, 0.6, "overloaded"),
        ],
    )
    def test_follow_from_the_loads(self, threshold, capacity, regime):
        found = equilibrium(replace(USUAL, threshold=threshold, capacity=capacity))
        assert found.regime == regime
        assert found.notes == ()

    def test_an_overloaded_link_loses_what_exceeds_its_capacity(self):
        found = equilibrium(replace(USUAL, threshold=0.5, capacity=0.6))
        assert found.blocking[0] == pytest.approx(1 / 7, rel=1e-15)
        assert found.downgraded[-1] == pytest.approx(6 / 7, rel=1e-15)
        assert found.jobs == (pytest.approx(0.6, rel=1e-15), 0.0)

    def test_a_link_of_one_class_is_a_loss_system(self):
        one = Link((1.3,), (1.0,), (1,), capacity=1.0, threshold=1.0)
        found = equilibrium(one)
        assert (found.regime, found.blocking[0]) == ("overloaded", pytest.approx(3 / 13, rel=1e-15))
        (note,) = equilibrium(replace(one, arrival_rates=(1.0,))).notes
        assert note.startswith("the load is the capacity")
        idle = equilibrium(replace(one, arrival_rates=(0.3,), threshold=0.1))
        assert (idle.regime, idle.jobs) == ("no_downgrading", (0.3,))

    @pytest.mark.parametrize(
        ("threshold", "capacity", "words"),
        [
            (1.1, 1.3, "the load without downgrading is the threshold"),
            (0.7, 1.0, "the load with every job downgraded is the threshold"),
            (0.5, 0.7, "the load with every job downgraded is the capacity"),
        ],
    )
    def test_agree_on_their_boundaries_with_a_note(self, threshold, capacity, words):
        link = replace(USUAL, threshold=threshold, capacity=capacity)
        found = equilibrium(link)
        assert found.notes == (f"{words}: the boundary of two regimes, whose limits agree there",)
        for shift in (-1e-9, 1e-9):
            moved = replace(link, threshold=threshold + shift, capacity=capacity + shift)
            near = equilibrium(moved)
            assert near.notes == ()
            assert near.in_full[-1] == pytest.approx(found.in_full[-1], abs=1e-8)
            assert near.blocking[0] == pytest.approx(found.blocking[0], abs=1e-8)
            assert near.jobs == pytest.approx(found.jobs, abs=1e-8)


decades = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)


@st.composite
def wild_links(draw):
    """Links of rates and sizes any decades apart."""
    rates, services = [[draw(decades) for _ in range(2)] for _ in range(2)]
    units = (1, draw(st.integers(2, 6)))
    capacity = draw(decades) * rates[0] / services[0]
    share = draw(st.floats(0.0, 0.999999) | st.floats(-16.0, 0.0).map(lambda p: 0.9 * 10.0**p))
    return Link(rates, services, units, capacity, share * capacity)


def exact_regime(link):
    """Fractions taken in full and lost, and jobs, in exact rationals; None where there is none."""
    rates, services = map(Fraction, link.arrival_rates), map(Fraction, link.service_rates)
    rates, services = list(rates), list(services)
    rho = [a / b for a, b in zip(rates, services, strict=True)]
    full = sum(a * x for a, x in zip(link.requirements, rho, strict=True))
    low, c0, c = sum(rates) / services[0], Fraction(link.threshold), Fraction(link.capacity)
    below, lost = Fraction(0), max(1 - c / low, 0)
    if full <= c0:
        if low >= c0:
            return None
        below, lost = Fraction(1), 0
    elif low < c0:
        below, lost = (c0 - low) / (full - low), 0
    return below, lost, (rho[0] * below + (1 - below - lost) * low, rho[1] * below)


class TestFarApart:
    @given(wild_links())
    @settings(max_examples=300)
    @example(
        Link((1796273.66, 1568718.55), (538895302.78, 1160720952.62), (1, 3), 882267641, 0.0073615)
    )
    @example(Link((1e6, 1e6), (1.0, 1.0), (1, 2), 1.0, 0.999999))
    @example(Link((0.0, 0.5e-7), (1.0, 1.0), (1, 3), 1e6, 1e-7))
    def test_values_are_those_of_the_exact_formulas(self, link):
        exact = exact_regime(link)
        if exact is None:
            with pytest.raises(NoLimitError, match="higher, or more than"):
                equilibrium(link)
            return
        with suppress(NoLimitError):  # where the point is not stable
            self.check_values(equilibrium(link), *exact)

    def check_values(self, found, below, lost, jobs):
        assert abs(Fraction(found.blocking[1]) - lost) <= found.error
        assert abs(Fraction(found.downgraded[1]) - (1 - below - lost)) <= found.error
        for one, other in zip(found.jobs, jobs, strict=True):
            assert abs(Fraction(one) - other) <= found.error * other

    @given(decades, decades, st.integers(2, 6), st.sampled_from([1.0, 1.5]))
    def test_jobs_of_class_0_only_at_the_threshold_are_as_often_below_as_above(
        self, rate, service, units, room
    ):
        load = rate / service
        assume(Fraction(rate) / Fraction(service) == Fraction(load))
        found = equilibrium(Link((rate, 0.0), (service, 1.0), (1, units), room * load, load))
        assert (found.jobs, found.blocking) == ((load, 0.0), (0.0, 0.0))
        assert found.in_full == (1.0, 0.5 if room > 1.0 else 1.0)

    def test_jobs_of_class_0_only_at_the_threshold_have_a_limit(self):
        found = equilibrium(Link((0.9, 0.0), (1.0, 1.0), (1, 2), 1.0, 0.9))
        assert (found.jobs, found.blocking) == ((0.9, 0.0), (0.0, 0.0))
        (note,) = found.notes
        assert "whether jobs are downgraded or not" in note


class TestNoLimit:
    def test_where_the_threshold_is_the_capacity_of_an_overloaded_link(self):
        with pytest.raises(NoLimitError, match=r"the threshold must be below the capacity 1, "):
            equilibrium(replace(USUAL, threshold=1.0))

    def test_unless_the_load_does_not_come_there(self):
        found = equilibrium(replace(USUAL, threshold=1.2, capacity=1.2))
        assert found.regime == "no_downgrading"

    def test_where_downgrading_makes_the_load_larger_and_both_ends_hold_themselves(self):
        with pytest.raises(NoLimitError, match=r"the threshold must be more than 0\.1 higher"):
            equilibrium(BISTABLE)
        assert equilibrium(replace(BISTABLE, threshold=0.71)).regime == "no_downgrading"
        assert equilibrium(replace(BISTABLE, threshold=0.49)).regime == "all_downgraded"

    def test_where_the_point_between_is_not_stable(self):
        with pytest.raises(
            NoLimitError, match=r"not stable: a deviation from it grows at rate 0\.6"
        ):
            equilibrium(OSCILLATING)

    def test_cannot_be_excluded_where_class_0_is_not_the_slowest(self):
        (note,) = equilibrium(replace(USUAL, service_rates=(1.0, 0.9))).notes
        assert "only local stability" in note


class TestLimit:
    @given(links())
    def test_exists_for_every_link_that_downgrading_relieves(self, link):
        assert link.low_load < link.full_load
        assert "only local stability" not in " ".join(equilibrium(link).notes)


class TestBadInput:
    def test_loads_beyond_the_range_of_numbers_are_refused(self):
        with pytest.raises(InputError, match="loads must be finite"):
            replace(USUAL, arrival_rates=(1e308, 1e308))
        with pytest.raises(InputError, match="loads must be finite"):
            replace(USUAL, service_rates=(1.0, 1e-320))

    def test_lists_of_different_lengths_are_refused(self):
        with pytest.raises(InputError, match="one rate and requirement for each class"):
            Link((0.3, 0.4), (1.0,), (1, 2), 1.0, 0.5)


class TestFluidBound:
    @pytest.mark.parametrize("one", PROGRAMS)
    def test_is_the_published_value(self, one):
        found = fluid_bound(one["lam"], one["mu"], one["A"], one["C"], one["w_rej"], one["w_dg"])
        assert found == pytest.approx(one["LP"], rel=1e-12)
        assert found <= one["LP"]

    @given(links(), st.data())
    @settings(deadline=None)
    def test_is_the_value_of_the_linear_program(self, link, data):
        count = len(link.requirements)
        cost = st.sampled_from([0.0, 1.0]) | st.floats(0.01, 5.0)  # beyond the tolerance of linprog
        lost = [data.draw(cost) for _ in range(count)]
        lower = [0.0] + [data.draw(cost) for _ in range(count - 1)]
        found = fluid_bound(
            link.arrival_rates,
            link.service_rates,
            link.requirements,
            link.capacity,
            lost,
            lower,
        )
        value = linear_program(link, lost, lower)
        assert found == pytest.approx(value, rel=1e-8, abs=1e-9)


def linear_program(link, lost, lower):
    """Cost of the best rates in full, downgraded and rejected, class by class."""
    count = len(link.requirements)
    services = np.array(link.service_rates)
    costs = np.concatenate([np.zeros(count), lower, lost])
    loads = np.concatenate(
        [link.requirements / services, np.full(count, 1 / services[0]), np.zeros(count)]
    )
    bounds = [(0, None)] * (3 * count)
    bounds[count] = (0, 0)  # class 0 is not downgraded
    found = linprog(
        costs,
        loads[None, :],
        [link.capacity],
        np.tile(np.eye(count), 3),
        link.arrival_rates,
        bounds,
    )
    return found.fun
