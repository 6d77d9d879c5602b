"""The bounds on one more job's cost, and the exact box."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices import (
    Node,
    accepts,
    critical_cost,
    exact_cap,
    individually_optimal,
    lower_bound,
    upper_bound,
)

rates = st.floats(0.05, 20)
costs = st.floats(0, 3)
deadlines = st.sampled_from(["begin_service", "end_service"])
nodes = st.builds(
    Node, st.integers(1, 5), rates, rates, deadline=deadlines, fee=costs, holding_cost=costs
)
moderate = st.floats(0.3, 5)
rich = st.builds(
    Node, st.integers(1, 3), moderate, moderate, deadline=deadlines, fee=costs, holding_cost=costs
)


def optimal_values(
    node: Node, lam: float, outside: float, charge: float, size: int, sweeps: int = 400
) -> NDArray[np.float64]:
    """Relative values of the single node on 0..size-1, by policy iteration; full means outside."""
    states = np.arange(size)
    deaths, cost = node.departures(states), node.costs(states)
    accept = np.zeros(size, dtype=bool)
    for _ in range(sweeps):
        up = np.where(accept, lam, 0.0)
        generator = np.zeros((size, size))
        generator[states[:-1], states[1:]] = up[:-1]
        generator[states[1:], states[:-1]] = deaths[1:]
        generator -= np.diag(generator.sum(axis=1))
        rate = cost + np.where(accept, lam * charge, lam * outside)
        system = generator.copy()
        system[:, 0] = -1.0  # h(0) = 0, its column carries the gain
        values = np.linalg.solve(system, -rate)
        values[0] = 0.0
        better = np.append(np.diff(values) + charge < outside - 1e-12, False)
        if (better == accept).all():
            return values
        accept = better
    raise AssertionError("policy iteration did not end")


@given(nodes, rates, st.floats(0.05, 3), st.floats(0, 0.5))
def test_one_more_job_costs_at_least_the_lower_bound_under_the_optimal_policy(
    node: Node, lam: float, outside: float, charge: float
) -> None:
    """T4 for one node, with the room limited to 30 so that the truth is finite."""
    node = Node(
        node.servers, node.service_rate, node.abandonment_rate, node.deadline, node.fee,
        node.holding_cost, 30,
    )  # fmt: skip
    rises = np.diff(optimal_values(node, lam, outside, charge, 31))
    largest = max(upper_bound(node), outside - charge)
    allowance = 1e-7 * (1 + np.abs(rises))
    assert (rises >= lower_bound(node, np.arange(30)) - allowance).all()
    assert (rises <= largest + allowance).all()


def two_node_values(
    pair: list[Node], lam: float, outside: float, charges: list[float], room: int
) -> NDArray[np.float64]:
    """Relative values h(i, j) of two nodes of that room, by relative value iteration to 1e-10."""
    i = np.arange(room + 1)
    deaths = [pair[0].departures(i)[:, None], pair[1].departures(i)[None, :]]
    cost = pair[0].costs(i)[:, None] + pair[1].costs(i)[None, :]
    step = 1 / (1.1 * (lam + deaths[0].max() + deaths[1].max()))
    h = np.zeros((room + 1, room + 1))
    while True:
        padded = np.pad(h, 1, constant_values=np.inf)
        rises = [padded[2:, 1:-1] - h, padded[1:-1, 2:] - h]
        falls = [np.append(np.zeros((1, room + 1)), h[:-1] - h[1:], axis=0),
                 np.append(np.zeros((room + 1, 1)), h[:, :-1] - h[:, 1:], axis=1)]  # fmt: skip
        best = np.minimum(outside, np.minimum(charges[0] + rises[0], charges[1] + rises[1]))
        v = cost + lam * best + deaths[0] * falls[0] + deaths[1] * falls[1]
        if np.ptp(v) < 1e-10:
            return h
        h = h + step * (v - v[0, 0])


@settings(max_examples=20)
@given(
    st.lists(rich, min_size=2, max_size=2),
    st.floats(0.2, 8),
    st.floats(0.1, 2),
    st.lists(st.floats(0, 0.4), min_size=2, max_size=2),
)
def test_the_bounds_hold_in_systems_of_two_nodes(
    pair: list[Node], lam: float, outside: float, charges: list[float]
) -> None:
    """T4 with rooms of 5; h rises by between v and max(U, C - r) along both axes."""
    values = two_node_values(pair, lam, outside, charges, 5)
    for axis, node in enumerate(pair):
        rises = np.moveaxis(np.diff(values, axis=axis), axis, 0)
        least = lower_bound(node, np.arange(5))[:, None]
        assert (rises >= least - 1e-7).all()
        assert (rises <= max(upper_bound(node), outside - charges[axis]) + 1e-7).all()


@given(nodes, st.floats(0.01, 3), st.floats(0, 1))
def test_the_cap_is_the_first_state_whose_bound_exceeds_the_price(
    node: Node, critical: float, charge: float
) -> None:
    cap = exact_cap(node, critical, charge)
    refused = ~accepts(lower_bound(node, np.arange(3000)), critical, charge)
    if cap is None or cap >= 3000:
        assert not refused.any()
    else:
        assert int(np.argmax(refused)) == cap
        assert refused.any()


@given(
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 99),
    st.sampled_from(["begin_service", "end_service"]),
)
def test_the_cap_agrees_with_exact_rational_arithmetic(
    m: int, mu: int, theta: int, percent: int, deadline: str
) -> None:
    """Ties included: a job whose own loss probability equals the price is still routed."""
    price = Fraction(percent, 100)

    def loss(i: int) -> Fraction:
        lost = Fraction(i + 1 if deadline == "end_service" else max(i + 1 - m, 0)) * theta
        return lost / (lost + min(i + 1, m) * mu)

    expected = next(i for i in range(10**6) if loss(i) > price)
    assert exact_cap(Node(m, mu, theta, deadline), float(price)) == expected


def test_the_box_counts_the_fee() -> None:
    """Without it the box would be 0, and its optimum 2.8 times too dear."""
    node = Node(2, 1.0, 0.5, "end_service", fee=0.3)
    critical = critical_cost([node], 0.28)
    assert exact_cap(node, critical) == 56
    assert exact_cap(Node(2, 1.0, 0.5, "end_service"), 0.28) == 0
    law = np.cumprod([1.0, *(0.1 / node.departures(np.arange(1, 57)))])
    gain = float(law @ node.costs(np.arange(57))) / law.sum()
    assert gain == pytest.approx(0.010006, abs=5e-7)


def test_a_fee_that_the_outside_cost_exceeds_leaves_the_node_unbounded() -> None:
    assert exact_cap(Node(2, 1.0, 0.5), 1.0) is None
    assert exact_cap(Node(2, 1.0, 0.5, room=7), 1.0) == 7
    assert exact_cap(Node(2, 1.0, 0.5, room=3), 0.9) == 3


def test_the_cap_of_nearly_equal_costs_is_not_counted_up() -> None:
    """K = m + floor(C m mu / ((1-C) theta)), and a tie counts as accepted."""
    cap = exact_cap(Node(3, 4.0, 1e-6), 0.999999)
    assert cap == pytest.approx(12e12, rel=1e-4)
    assert exact_cap(Node(3, 4.0, 1e-12), 0.999999) is None  # beyond 2^53


def test_patient_jobs_with_a_holding_cost_have_a_finite_box() -> None:
    node = Node(2, 1.0, 0.0, holding_cost=1.0)
    assert upper_bound(node) == np.inf
    assert exact_cap(node, 5.0) == 10  # (i+1) / 2 > 5


def test_patient_jobs_without_costs_are_never_refused() -> None:
    node = Node(2, 1.0, 0.0)
    assert upper_bound(node) == 0
    assert exact_cap(node, 0.5) is None


def test_where_rho_decreases_the_bound_is_its_limit() -> None:
    node = Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0)
    assert lower_bound(node, [0, 5]).tolist() == [0.5, 0.5]
    assert upper_bound(node) == 1.0
    assert exact_cap(node, 0.4) == 0
    assert exact_cap(node, 0.6) is None


@given(nodes)
def test_with_a_monotone_node_the_bound_is_the_own_cost(node: Node) -> None:
    if node.ratios[0] <= node.ratios[1]:
        assert lower_bound(node, np.arange(20)).tolist() == individually_optimal(node, 19).tolist()


def test_the_critical_cost_is_the_cheapest_safe_alternative() -> None:
    cheap, limited = Node(1, 1.0, 1.0, fee=0.4), Node(1, 1.0, 1.0, fee=0.1, room=5)
    assert critical_cost([cheap, limited], 0.9, [0.2, 0.0]) == pytest.approx(0.6)
    assert critical_cost([limited], 0.9) == 0.9


@pytest.mark.parametrize(
    ("charges", "message"),
    [([0.1, 0.2], "2 charges for 1 nodes"), ([-0.1], r"charges\[0\] must be"), ([True], "charges")],
)
def test_wrong_charges_are_refused_by_place(charges: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        critical_cost([Node(1, 1.0, 1.0)], 0.5, charges)
