"""The large-scale limit of a ring of centres."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import NoLimitError
from mdpcloud.limits.offloading.boundary_value import full_centres
from mdpcloud.limits.offloading.regimes import pair_limit
from mdpcloud.limits.offloading.ring import ring_limit
from tests.models import reference

LIMITS = [r for r in reference("allocation")["S5_finite_mdp_ring"]["ring"] if "limit" in r]
RATES = st.floats(0.1, 3)
CHANCES = st.floats(0, 0.5)


@st.composite
def rings(draw: st.DrawFn, least: int = 3) -> Any:
    size = draw(st.integers(least, 6))
    values = [draw(st.tuples(*[what] * size)) for what in (RATES, RATES, CHANCES)]
    return tuple(values)


def limit_of(ring: Any) -> Any:
    """The limit; None where none is known."""
    try:
        return ring_limit(*ring)
    except NoLimitError:
        return None


@pytest.mark.parametrize("record", LIMITS)
def test_blocking_on_a_ring_of_three_is_known(record: Any) -> None:
    found = ring_limit(record["lam"], record["c"], record["p"])
    assert found.jobs.blocking == pytest.approx(record["limit"], abs=1e-13)
    if record["load_node3"]:
        assert found.saturated == (0, 1)
        assert found.jobs.loads[2] == pytest.approx(record["load_node3"], rel=1e-13)


def test_nobody_loses_a_job_where_no_centre_is_saturated() -> None:
    found = ring_limit((0.5, 0.6, 0.7, 0.8), (1, 1, 1, 1), (0.5, 0.5, 0.5, 0.5))
    assert found.saturated == ()
    assert found.jobs.blocking == (0, 0, 0, 0)
    assert found.served == (0.5, 0.6, 0.7, 0.8)


def test_full_centres_apart_from_each_other_are_each_as_if_alone() -> None:
    found = ring_limit((2.0, 0.1, 3.0, 0.2), (1.0, 2.0, 2.0, 2.0), (0.25, 0.5, 0.5, 0.5))
    assert found.saturated == (0, 2)
    assert found.jobs.blocking == pytest.approx((0.25, 0.0, 0.0, 0.0), abs=1e-15)
    assert found.jobs.forwarded == pytest.approx((0.25, 0.0, 1 / 3, 0.0), abs=1e-15)
    assert found.served == pytest.approx((1.0, 0.1 + 0.25 + 0.5, 2.0, 0.2 + 0.25 + 0.5))


def test_a_centre_that_its_neighbour_fills_up_makes_a_pair_with_it() -> None:
    arrivals, capacities, p = (3.0, 0.9, 0.1, 0.1), (1.0, 1.0, 9.0, 9.0), (0.4, 0.2, 0.5, 0.5)
    found = ring_limit(arrivals, capacities, p)
    pair = full_centres((3.0, 0.9), (1.0, 1.0), (0.4, 0.2))
    assert found.saturated == (0, 1)
    assert found.jobs.full[:2] == pytest.approx(pair.each)
    assert found.jobs.blocking[0] == pytest.approx(0.2 * pair.each[0] + 0.4 * pair.both)
    assert found.jobs.loads[3] == pytest.approx(0.1 + 0.4 * 3.0 * pair.each[0])
    assert found.jobs.loads[2] == pytest.approx(0.1 + 0.2 * 0.9 * pair.each[1])


@given(st.tuples(RATES, RATES), st.tuples(RATES, RATES), st.tuples(CHANCES, CHANCES))
def test_a_ring_of_two_is_a_pair_of_twice_the_probabilities(
    arrivals: Any, capacities: Any, p: Any
) -> None:
    ring, pair = (
        ring_limit(arrivals, capacities, p),
        pair_limit(arrivals, capacities, (2 * p[0], 2 * p[1])),
    )
    error = ring.jobs.error + pair.full.error + 1e-14
    assert ring.jobs.blocking == pytest.approx(pair.blocking, abs=error)
    assert ring.jobs.forwarded == pytest.approx(pair.forwarded, abs=error)
    assert ring.served == pytest.approx(pair.served, abs=10 * error)


@given(rings(least=2))
def test_what_is_not_lost_is_served(ring: Any) -> None:
    found = limit_of(ring)
    if found is not None:
        arrivals, capacities, _ = ring
        taken = sum(l * (1 - beta) for l, beta in zip(arrivals, found.jobs.blocking, strict=True))
        error = 10 * sum(arrivals) * (found.jobs.error + 1e-15)
        assert taken == pytest.approx(sum(found.served), abs=error)
        assert all(s <= a for s, a in zip(found.served, capacities, strict=True))


@given(rings(), st.integers(1, 5))
def test_the_ring_may_be_turned_and_reflected(ring: Any, turn: int) -> None:
    found = limit_of(ring)
    size = len(ring[0])
    order = [(turn - k) % size for k in range(size)]
    other = limit_of([[values[j] for j in order] for values in ring])
    assert (found is None) == (other is None)
    if found is not None:
        expected = [found.jobs.blocking[j] for j in order]
        assert other.jobs.blocking == pytest.approx(expected, abs=found.jobs.error + 1e-13)
        assert set(other.saturated) == {k for k in range(size) if order[k] in found.saturated}


@given(rings())
def test_the_saturated_centres_are_those_that_get_too_much(ring: Any) -> None:
    found = limit_of(ring)
    if found is not None:
        arrivals, capacities, _ = ring
        for j, capacity in enumerate(capacities):
            if j in found.saturated:
                assert found.jobs.full[j] > 0.0
            else:
                assert found.jobs.loads[j] <= capacity * (1 + 1e-12)
                assert found.jobs.full[j] == 0.0
            if arrivals[j] > capacity * (1 + 1e-12):
                assert j in found.saturated


def test_three_full_neighbours_are_refused_with_what_fills_them() -> None:
    with pytest.raises(NoLimitError) as raised:
        ring_limit((1.5, 0.9, 1.2, 0.1), (1.0, 1.0, 1.0, 1.0), (0.3, 0.4, 0.2, 0.0))
    assert "centres 0, 1, 2 are full together" in str(raised.value)
    assert "centre 1 gets 1.09, 0.09 more than the 1 that it can serve" in str(raised.value)


def test_three_full_neighbours_are_found_across_the_seam_of_the_ring() -> None:
    with pytest.raises(NoLimitError, match="centres 3, 0, 1 are full together"):
        ring_limit((1.5, 1.2, 0.1, 1.3), (1.0, 1.0, 9.0, 1.0), (0.3, 0.4, 0.2, 0.0))


def test_a_centre_that_gets_what_it_can_just_serve_is_noted() -> None:
    found = ring_limit((2.0, 0.5, 0.1), (1.0, 1.0, 3.0), (0.5, 0.5, 0.5))
    assert found.saturated == (0,)
    assert "centre 1 gets exactly the 1 that it can serve" in found.notes[0]


def test_a_small_centre_beside_a_large_one_is_not_taken_for_rounding() -> None:
    found = ring_limit((2e-8, 0.5e8, 1e-8), (1e-8, 1e8, 2e-8), (0.0, 0.0, 0.0))
    assert found.saturated == (0,)
    assert found.jobs.blocking == (0.5, 0.0, 0.0)
    assert found.jobs.error < 1e-15


@given(st.lists(st.integers(-30, 30), min_size=3, max_size=6), st.data())
def test_without_help_every_centre_is_as_if_alone(sizes: list[int], data: Any) -> None:
    arrivals = [data.draw(st.floats(1, 2)) * 2.0**size for size in sizes]
    factors = st.sampled_from([0.5, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 3.0])
    capacities = [rate * data.draw(factors) for rate in arrivals]
    nothing = (0.0,) * len(sizes)
    found = limit_of((arrivals, capacities, nothing))
    if found is not None:
        known = [max(1.0 - a / l, 0.0) for l, a in zip(arrivals, capacities, strict=True)]
        assert found.jobs.blocking == pytest.approx(known, abs=found.jobs.error + 1e-15)
        assert found.jobs.error < 1e-13


@given(rings(), st.sampled_from([1e-15, 1e-13, 1e-9]), st.data())
def test_the_error_covers_what_rounding_hides_where_a_centre_is_just_full(
    ring: Any, step: float, data: Any
) -> None:
    arrivals, capacities, p = ring
    before = limit_of(ring)
    if before is not None:
        j = data.draw(st.integers(0, len(arrivals) - 1))
        critical = [*capacities]
        critical[j] = before.jobs.loads[j] if j not in before.saturated else capacities[j]
        few = limit_of((arrivals, critical, p))
        many = limit_of(([rate * (1 + step) for rate in arrivals], critical, p))
        if few is not None and many is not None:
            slack = few.jobs.error + many.jobs.error + 1e-14
            rows = zip(few.jobs.blocking, many.jobs.blocking, strict=True)
            assert all(b >= a - slack for a, b in rows)
            assert step > 1e-14 or few.jobs.error < 1e-9 or all(x > 0.49 for x in p)


def test_a_ring_that_passes_on_all_that_a_just_full_centre_gets_has_no_known_accuracy() -> None:
    found = ring_limit((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.5, 0.5, 0.5))
    assert found.jobs.blocking == (0.0, 0.0, 0.0)
    assert found.jobs.error == 1.0
    assert ring_limit((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.5, 0.5, 0.4)).jobs.error < 1e-11
