"""Links that fill up and downgrade only what does not fit: Kelly's limit, truncated walks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import SolveError
from mdpcloud.limits.downgrading import Link
from mdpcloud.limits.downgrading_filled import is_filled, pure_loss, with_downgrading
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


@pytest.mark.parametrize(
    ("threshold", "capacity", "filled"),
    [(1.0, 1.0, True), (0.9, 1.0, False), (1.1, 1.1, False), (1.2, 1.2, False)],
)
def test_a_link_is_filled_where_the_threshold_is_the_capacity_below_the_load(
    threshold, capacity, filled
):
    assert is_filled(Link((0.3, 0.4), (1.0, 1.0), (1, 2), capacity, threshold)) == filled
