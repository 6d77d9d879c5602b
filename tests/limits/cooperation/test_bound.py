"""The lower bound of the cost of cooperating centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.limits.cooperation.bound import least_cost
from mdpcloud.systems import Cooperation

NEEDS = ((2, 1), (1, 2))
rates = st.floats(0.1, 3.0)


@given(
    st.tuples(*[rates] * 4),
    st.tuples(rates, rates),
    st.tuples(*[st.integers(2, 5)] * 4),
    st.just(0.0) | st.floats(1e-3, 1.5),
)
@settings(deadline=None, max_examples=15)
def test_the_bound_is_below_the_optimum(arrivals: Any, services: Any, room: Any, sent: Any) -> None:
    system = Cooperation(
        (arrivals[:2], arrivals[2:]), services, NEEDS, (room[:2], room[2:]), (1, 1),
        forwarding_cost=sent,
    )  # fmt: skip
    bound = system.fluid_bound()
    assert 0.0 <= bound <= mc.solve(system.model()).bounds[1]


def test_the_optimum_per_unit_comes_down_to_the_bound() -> None:
    """Own jobs use 1.1 of 1 unit: 0.1 of each type go, for 2 units less and 1 unit more each."""
    costs = []
    for scale in (5.0, 10.0, 20.0):
        system = Cooperation(
            ((0.5, 0.1), (0.1, 0.5)), (1.0, 1.0), NEEDS, ((1.0, 2.0), (2.0, 1.0)), (0.9, 0.9),
            forwarding_cost=0.5, scale=scale,
        )  # fmt: skip
        assert system.fluid_bound() / scale == pytest.approx(2 * 0.5 * 0.1)
        costs.append(mc.solve(system.model(), tolerance=1e-6).gain / scale)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] > system.fluid_bound() / scale


def test_what_all_centres_together_cannot_hold_is_lost() -> None:
    """The load of each resource is 3.6 of 2; a job of either type uses 3 units in all."""
    bound = least_cost(
        [[1.0, 0.2], [0.2, 1.0]], [1.0, 1.0], NEEDS, np.ones((2, 2)), (1.0, 0.0), (1, 0)
    )
    assert bound == pytest.approx(2.4 - 4.0 / 3.0, rel=1e-12)


def test_in_a_ring_jobs_go_one_centre_on() -> None:
    """The first of three centres gets all jobs, and the third helps nobody."""
    arguments = ([[3.0, 0.0, 0.0]], [1.0], [[1]], [[1.0], [1.0], [5.0]])
    assert least_cost(*arguments, (1.0, 0.25), (1, 2, 0)) == pytest.approx(1.25, rel=1e-12)


def test_without_load_the_bound_is_zero() -> None:
    assert least_cost([[0.1, 0.1]], [1.0], [[1]], [[1.0], [1.0]], (1.0, 0.5), (1, 0)) == 0.0
