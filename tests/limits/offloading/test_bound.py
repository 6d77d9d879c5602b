"""The lower bound of the cost of loss."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.limits.offloading.bound import least_loss
from tests.models import reference

BOTH = ((0, 1), (0, 1))
RATES = st.floats(0.1, 10)
TRIPLES = st.tuples(*[st.tuples(RATES, RATES, RATES)] * 3)


@pytest.mark.parametrize("record", reference("allocation")["S5_finite_mdp_ring"]["mdp"])
def test_the_cheaper_class_loses_what_cannot_be_served(record: Any) -> None:
    arrivals = record["lambda1"], record["lambda2"]
    capacities = record["mu1"] * record["C1"], record["mu2"] * record["C2"]
    found = least_loss(arrivals, capacities, (record["w1"], record["w2"]), BOTH)
    assert found == pytest.approx(record["fluid_lower_bound"], rel=1e-13)


@given(st.tuples(RATES, RATES), st.tuples(RATES, RATES), st.tuples(RATES, RATES))
def test_two_classes_have_a_closed_form(arrivals: Any, capacities: Any, costs: Any) -> None:
    excess = max(sum(arrivals) - sum(capacities), 0.0)
    cheap, dear = sorted(zip(costs, arrivals, strict=True))
    first = min(excess, cheap[1])
    expected = cheap[0] * first + dear[0] * (excess - first)
    assert least_loss(arrivals, capacities, costs, BOTH) == pytest.approx(expected, abs=1e-12)


@given(TRIPLES)
def test_classes_that_reach_one_centre_only_lose_their_excess(triple: Any) -> None:
    arrivals, capacities, costs = triple
    expected = sum(w * max(l - a, 0.0) for l, a, w in zip(arrivals, capacities, costs, strict=True))
    found = least_loss(arrivals, capacities, costs, [(0,), (1,), (2,)])
    assert found == pytest.approx(expected, abs=1e-12)


@given(TRIPLES)
def test_a_longer_reach_bounds_less(triple: Any) -> None:
    near = least_loss(*triple, [(0, 1), (1, 2), (2,)])
    assert least_loss(*triple, [(0, 1, 2)] * 3) <= near + 1e-12
