"""Links that fill up and downgrade only what does not fit: Kelly's limit, truncated walks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import NoLimitError, SolveError
from mdpcloud.limits.downgrading.equilibrium import Link
from mdpcloud.limits.downgrading.filled import (
    close_to_critical,
    is_filled,
    limit_when_filled,
    pure_loss,
)
from mdpcloud.limits.downgrading.filled_walk import with_downgrading
from mdpcloud.systems.downgrading import Downgrading
from tests.models import reference

SETS = [
    one for one in reference("allocation")["S3"]["sets"] if one["A_rho"] > one["c"] * (1 + 1e-9)
]


def link_of(one):
    return Link(one["lam"], one["mu"], one["A"], one["c"], one["c"])


@st.composite
def filled_links(draw):
    units = (1, *draw(st.lists(st.integers(2, 5), min_size=1, max_size=2)))
    rate = st.floats(0.1, 3.0)
    rates, services = [draw(rate) for _ in units], [draw(rate) for _ in units]
    capacity = draw(st.floats(0.1, 0.9)) * float(np.dot(units, np.divide(rates, services)))
    return Link(rates, services, units, capacity, capacity)


def truncated(link, jobs, size):
    """Law of the free units of a link with these jobs, kept below a size."""
    rows = np.arange(size)
    generator = np.zeros((size, size))
    freed = np.multiply(link.service_rates, jobs)
    for j, (rate, back, units) in enumerate(
        zip(link.arrival_rates, freed, link.requirements, strict=True)
    ):
        np.add.at(generator, (rows, np.minimum(rows + units, size - 1)), back)
        lower = np.where(rows >= units, units, np.minimum(rows, 1) if j else 0)
        np.add.at(generator, (rows, rows - lower), rate)
    np.fill_diagonal(generator, 0.0)
    return mc.stationary(generator - np.diag(generator.sum(axis=1)))


@pytest.mark.parametrize("one", SETS)
class TestPureLoss:
    def test_has_the_published_blocking(self, one):
        found = pure_loss(link_of(one))
        assert found.blocking == pytest.approx(one["pure_loss_blocking"], abs=found.error)
        assert np.dot(found.jobs, one["A"]) == pytest.approx(one["c"], rel=1e-14)

    def test_is_found_by_the_law_of_the_free_units_too(self, one):
        found, other = with_downgrading(link_of(one), downgrades=False), pure_loss(link_of(one))
        assert found.blocking == pytest.approx(other.blocking, abs=10 * found.error)
        assert found.jobs == pytest.approx(other.jobs, abs=10 * found.error)


class TestWithDowngrading:
    @given(filled_links())
    @settings(max_examples=15, deadline=None)
    def test_probabilities_are_those_of_a_truncated_walk(self, link):
        found = with_downgrading(link)
        free = truncated(link, found.jobs, 600)
        assume(free[-1] < 1e-17)
        fits = [free[units:].sum() for units in link.requirements]
        assert found.in_full == pytest.approx(fits, abs=1e-9)
        assert found.blocking == pytest.approx([free[0]] * len(fits), abs=1e-9)

    @given(filled_links())
    @settings(max_examples=15, deadline=None)
    def test_flows_of_every_class_balance_on_a_full_link(self, link):
        found = with_downgrading(link)
        gone = np.multiply(link.service_rates, found.jobs)
        taken = np.multiply(link.arrival_rates, found.in_full)
        assert gone[1:] == pytest.approx(taken[1:], rel=1e-9)
        lower = np.dot(link.arrival_rates, found.downgraded)
        assert gone[0] == pytest.approx(taken[0] + lower, rel=1e-8, abs=1e-9)
        assert np.dot(found.jobs, link.requirements) == pytest.approx(link.capacity, rel=1e-9)

    def test_no_number_is_returned_close_to_the_critical_load(self):
        with pytest.raises(SolveError, match=r"the load 1\.1 is close to the capacity"):
            with_downgrading(Link((0.3, 0.4), (1.0, 1.0), (1, 2), 1.1 - 1e-5, 1.1 - 1e-5))


class TestWithoutJobsOfClass0:
    @given(filled_links(), st.integers(2, 5))
    @settings(deadline=None)
    def test_jobs_that_all_need_the_same_are_never_downgraded(self, link, units):
        count = len(link.requirements)
        link = replace(
            link,
            arrival_rates=(0.0, *link.arrival_rates[1:]),
            requirements=(1,) + (units,) * (count - 1),
        )
        capacity = 0.7 * link.full_load
        found = limit_when_filled(
            replace(link, capacity=capacity, threshold=capacity), unfit="downgrade"
        )
        assert found.downgraded[1:] == pytest.approx([0.0] * (count - 1), abs=found.error)
        assert found.blocking == pytest.approx([0.3] * count, abs=found.error)
        assert found.jobs[0] == 0.0
        assert np.dot(found.jobs, link.requirements[:1] + (units,) * (count - 1)) == (
            pytest.approx(capacity, rel=1e-13)
        )

    def test_large_links_come_to_that(self):
        gaps = []
        for scale in (4, 12, 36):
            link = Downgrading((0.0, 0.5), (1.0, 1.0), (1, 3), 1.0, 1.0, scale=3 * scale)
            limit = link.limit()
            assert limit.regime == "filled"
            found = mc.asymptotics.exact_measures(link)
            gaps.append(abs(found.blocking[1] - limit.blocking[1]))
        assert gaps[0] > gaps[1] > gaps[2]

    @given(
        st.lists(st.integers(2, 6), min_size=2, max_size=3, unique=True),
        st.lists(st.floats(0.3, 3.0), min_size=6, max_size=6),
        st.floats(0.2, 0.9),
    )
    @settings(max_examples=25, deadline=None)
    def test_different_jobs_make_some_of_class_0(self, units, numbers, share):
        services = [numbers[3], *(min(x, 2.0 * numbers[3]) for x in numbers[4:])]
        classes = min(1 + len(units), len(services))
        link = Link((0.0, *numbers[: classes - 1]), services[:classes], (1, *units)[:classes], 1, 1)
        assume(classes > 2)
        link = replace(link, capacity=share * link.full_load, threshold=share * link.full_load)
        try:
            found = limit_when_filled(link, "downgrade")
        except SolveError as error:
            assume("estimated error" not in str(error) and "step" not in str(error))
            raise
        assert found.jobs[0] > 0.0
        free = truncated(link, found.jobs, 600)
        assume(free[-1] < 1e-17)
        fits = [free[size:].sum() for size in link.requirements]
        assert found.in_full[1:] == pytest.approx(fits[1:], abs=1e-9 + found.error)


class TestFarApart:
    """Kelly's root is far from where these links settle, or they settle at two places."""

    def test_a_link_that_downgrades_nearly_everything(self):
        link = Link((1.13, 1.57, 1.68), (3.9e-3, 0.92, 200.0), (1, 6, 3), 187.0, 187.0)
        found = with_downgrading(link)
        free = truncated(link, found.jobs, 300)
        fits = [free[size:].sum() for size in link.requirements]
        assert found.in_full == pytest.approx(fits, abs=1e-11)

    def test_fast_jobs_of_class_0_are_a_small_difference_and_the_error_says_so(self):
        rates = (0.3619537266, 0.9703624737, 1.4148358252)
        services = (68.37044274666, 0.02008113516, 99.16409052913)
        capacity = 52.696641274667826
        found = with_downgrading(Link(rates, services, (1, 5, 5), capacity, capacity))
        assert 1.28e-10 < 10 * found.error < 1e-8

    def test_two_places_are_refused(self):
        capacity = 0.10920807334132773
        link = Link(
            (0.001104372355748674, 1.0), (1.0, 45.9010203284868), (1, 5), capacity, capacity
        )
        with pytest.raises(NoLimitError, match="settles at two places"):
            limit_when_filled(link, "downgrade")
        assert limit_when_filled(link, "reject").regime == "filled"

    def test_a_link_that_leaves_its_unstable_place(self):
        rates, services = (1.027967315358626, 1.8569074546925142), (0.0013459445714982907, 9.55)
        link = Link(rates, services, (1, 4), 745.0, 745.0)
        found = with_downgrading(link)
        free = truncated(link, found.jobs, 400)
        assert found.in_full[1] == pytest.approx(free[4:].sum(), abs=1e-10)
        assert found.in_full[1] < 0.1

    @given(
        st.lists(st.floats(-3.0, 3.0), min_size=6, max_size=6),
        st.lists(st.integers(2, 7), min_size=2, max_size=2),
        st.floats(0.01, 10.0),
    )
    @settings(max_examples=12, deadline=None)
    @example([-9.0, 5.8455, 0.0, 3.0977, 9.2021, 0.0], [4, 4], 0.67)
    def test_numbers_are_right_or_refused(self, powers, sizes, excess):
        numbers = [10.0**power for power in powers]
        link = Link(numbers[:3], numbers[3:], (1, *sizes), 1.0, 1.0)
        capacity = link.full_load / (1.0 + excess)
        link = replace(link, capacity=capacity, threshold=capacity)
        try:
            found = limit_when_filled(link, "downgrade")
        except (SolveError, NoLimitError):
            return
        free = truncated(link, found.jobs, 600)
        assume(free[-1] < 1e-17)
        fits = [free[size:].sum() for size in link.requirements]
        rounding = 1e-15 * capacity * link.service_rates[0] / max(link.arrival_rates)
        assume(rounding < 1e-9)
        assert found.in_full == pytest.approx(fits, abs=1e-8 + 10 * found.error)


class TestCloseToTheCapacity:
    @given(filled_links(), st.floats(-16.0, -2.5), st.sampled_from(["downgrade", "reject"]))
    @settings(max_examples=40, deadline=None)
    def test_there_is_a_limit_at_every_distance(self, link, power, unfit):
        least = link.service_rates[0]
        services = [min(x, 0.9 * a * least) for x, a in
                    zip(link.service_rates, link.requirements, strict=True)]  # fmt: skip
        link = replace(link, service_rates=[least, *services[1:]])
        capacity = link.full_load / (1.0 + 10.0**power)
        link = replace(link, capacity=capacity, threshold=capacity)
        assume(is_filled(link))
        with suppress(*[SolveError] if power > -6.0 else []):
            self.check_balances(link, limit_when_filled(link, unfit), unfit)

    def check_balances(self, link, found, unfit):
        capacity, least = link.capacity, link.service_rates[0]
        most = (link.full_load - capacity) + 1e-15 * capacity
        weights = [
            rate * (a / service - 1 / least)
            for a, rate, service in zip(
                link.requirements, link.arrival_rates, link.service_rates, strict=True
            )
        ]
        if unfit == "downgrade":
            lack = np.dot(weights[1:], 1.0 - np.array(found.in_full[1:]))
            assert lack <= most + found.error * sum(weights)
        assert max(found.blocking) <= 1e3 * most + found.error

    def test_the_bound_holds_where_the_walk_is_still_accurate(self):
        for excess in (1e-2, 1e-3, 3e-4):
            rate = 0.2 * (1.0 + 5.0 * excess)
            link = Link((0.6, rate), (1.0, 1.0), (1, 2), 1.0, 1.0)
            found, near = with_downgrading(link), close_to_critical(link)
            if near is None:
                assert excess > 1e-4
                continue
            assert found.blocking[0] <= near.error
            assert 1.0 - found.in_full[1] <= near.error
            assert found.jobs == pytest.approx(near.jobs, abs=near.error)


@pytest.mark.parametrize(
    ("threshold", "capacity", "filled"),
    [(1.0, 1.0, True), (0.9, 1.0, False), (1.1, 1.1, False), (1.2, 1.2, False)],
)
def test_a_link_is_filled_where_the_threshold_is_the_capacity_below_the_load(
    threshold, capacity, filled
):
    assert is_filled(Link((0.3, 0.4), (1.0, 1.0), (1, 2), capacity, threshold)) == filled
