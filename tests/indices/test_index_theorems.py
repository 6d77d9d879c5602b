"""What is proved about the indices: definitions, order, monotonicity, single-node optimality."""

from fractions import Fraction
from itertools import accumulate
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.indices import (
    Node,
    accepts,
    condition_note,
    individually_optimal,
    policy_improvement,
    restless_bandit,
    rho_is_monotone,
)
from mdpcloud.queues import abandonment, birth_death

rates = st.floats(0.05, 20)
costs = st.floats(0, 3)
deadlines = st.sampled_from(["begin_service", "end_service"])
any_nodes = st.builds(
    Node, st.integers(1, 8), rates, rates, deadline=deadlines, fee=costs, holding_cost=costs
)
monotone_nodes = any_nodes.filter(rho_is_monotone)
plain_nodes = st.builds(Node, st.integers(1, 8), rates, rates, deadline=deadlines)


class Exact:
    """The same node in exact rational arithmetic: E_i f = mean of f with room i."""

    def __init__(self, node: Node, lam: float, last: int) -> None:
        low, high = (Fraction(x) for x in node.departure_slopes)
        cost_low, cost_high = (Fraction(x) for x in node.cost_slopes)
        m = node.servers
        self.lam = Fraction(lam)
        self.deaths = [min(i, m) * low + max(i - m, 0) * high for i in range(last + 2)]
        self.costs = [min(i, m) * cost_low + max(i - m, 0) * cost_high for i in range(last + 2)]
        weights = [Fraction(1)]
        for deaths in self.deaths[1:]:
            weights.append(weights[-1] * self.lam / deaths)
        self.weights = weights
        totals = list(accumulate(weights))
        self.blocked = [w / total for w, total in zip(weights, totals, strict=True)]
        self.cost = self._means(self.costs, totals)
        self.departures = self._means(self.deaths, totals)

    def _means(self, f: list[Fraction], totals: list[Fraction]) -> list[Fraction]:
        sums = accumulate(w * x for w, x in zip(self.weights, f, strict=True))
        return [s / total for s, total in zip(sums, totals, strict=True)]

    def whittle(self, i: int) -> Fraction:
        """The definition: added cost over added departures of admitting in state i too."""
        rise = self.departures[i + 1] - self.departures[i]
        return (self.cost[i + 1] - self.cost[i]) / rise


@given(any_nodes, rates)
def test_the_whittle_index_is_its_defining_ratio_exactly(node: Node, lam: float) -> None:
    exact = Exact(node, lam, 14)
    expected = [float(exact.whittle(i)) for i in range(14)]
    assert restless_bandit(node, lam, 13) == pytest.approx(expected, rel=1e-13, abs=1e-300)


@given(any_nodes, rates, st.integers(1, 12), costs)
def test_the_improvement_index_with_a_room_solves_howards_equation_exactly(
    node: Node, lam: float, room: int, blocked: float
) -> None:
    """Lam PI(i) = D(i) PI(i-1) + g - c(i), with g = E c + lam C pi_room and PI(room) = C."""
    node = Node(
        node.servers, node.service_rate, node.abandonment_rate, node.deadline, node.fee,
        node.holding_cost, room,
    )  # fmt: skip
    exact = Exact(node, lam, room)
    g = exact.cost[room] + exact.lam * Fraction(blocked) * exact.blocked[room]
    index, expected = Fraction(0), []
    for i in range(room):
        index = (exact.deaths[i] * index + g - exact.costs[i]) / exact.lam
        expected.append(float(index))
    computed = policy_improvement(node, lam, room + 2, blocked_cost=blocked)
    assert computed[:room] == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert np.isinf(computed[room:]).all()


@settings(max_examples=20)
@given(any_nodes, st.floats(0.05, 10))
def test_the_improvement_index_solves_howards_equation_at_three_hundred_digits(
    node: Node, lam: float
) -> None:
    top = 40 + node.servers + int(6 * lam / min(node.departure_slopes))
    assume(top < 300)
    with mpmath.workdps(300):
        low, high = map(mpmath.mpf, node.departure_slopes)
        cost_low, cost_high = map(mpmath.mpf, node.cost_slopes)
        m = node.servers
        deaths = [min(i, m) * low + max(i - m, 0) * high for i in range(6 * top)]
        cost = [min(i, m) * cost_low + max(i - m, 0) * cost_high for i in range(6 * top)]
        weights = [mpmath.mpf(1)]
        for d in deaths[1:]:
            weights.append(weights[-1] * lam / d)
            if weights[-1] < mpmath.mpf(10) ** -280 * sum(weights[-2:-1]) and d > 2 * lam:
                break
        g = mpmath.fdot(weights, cost[: len(weights)]) / mpmath.fsum(weights)
        index, expected = mpmath.mpf(0), []
        for i in range(12):
            index = (deaths[i] * index + g - cost[i]) / lam
            expected.append(float(index))
    assert policy_improvement(node, lam, 11) == pytest.approx(expected, rel=1e-11, abs=1e-300)


@given(st.integers(1, 6), st.floats(0.1, 0.95), st.floats(0.1, 3))
def test_the_improvement_index_of_patient_jobs_solves_howards_equation(
    m: int, rho: float, holding: float
) -> None:
    node, lam = Node(m, 1.0, 0.0, holding_cost=holding), rho * m
    index = policy_improvement(node, lam, 30)
    law = birth_death(np.full(3000, lam), np.minimum(np.arange(1, 3001), m).astype(float))
    g = holding * float(law @ np.arange(3001))
    states = np.arange(1, 31)
    right = node.departures(states) * index[:-1] + g - node.costs(states)
    assert lam * index[0] == pytest.approx(g, rel=1e-10)
    assert lam * index[1:] == pytest.approx(right, rel=1e-9)


@given(monotone_nodes, rates)
def test_the_three_indices_rise_with_the_state_and_are_ordered(node: Node, lam: float) -> None:
    """T2: IO <= RB <= PI at equal rates, and P1: all nondecreasing."""
    own = individually_optimal(node, 40)
    whittle = restless_bandit(node, lam, 40)
    improvement = policy_improvement(node, lam, 40)
    slack = 1e-12 * (1 + improvement)
    assert (own <= whittle + slack).all()
    assert (whittle <= improvement + slack).all()
    for index in (own, whittle, improvement):
        assert (np.diff(index) >= -slack[1:]).all()


@given(plain_nodes, rates, st.floats(1, 2))
def test_more_arrivals_never_lower_an_index(node: Node, lam: float, factor: float) -> None:
    """P2 for Whittle's index and theorem T5 for policy improvement."""
    for index in (restless_bandit, policy_improvement):
        assert (index(node, lam * factor, 30) >= index(node, lam, 30) - 1e-12).all()


@given(plain_nodes, rates)
def test_one_more_server_never_raises_an_index(node: Node, lam: float) -> None:
    """P6."""
    mu, theta = node.service_rate, node.abandonment_rate
    more = Node(node.servers + 1, mu, theta, node.deadline)
    assert (individually_optimal(more, 30) <= individually_optimal(node, 30) + 1e-12).all()
    for index in (restless_bandit, policy_improvement):
        assert (index(more, lam, 30) <= index(node, lam, 30) + 1e-12).all()


@given(plain_nodes, rates, st.floats(1, 2))
def test_faster_servers_never_raise_the_own_or_whittle_index(
    node: Node, lam: float, factor: float
) -> None:
    """P5; the improvement index violates it for deadlines to the end of service."""
    faster = Node(node.servers, node.service_rate * factor, node.abandonment_rate, node.deadline)
    assert (individually_optimal(faster, 30) <= individually_optimal(node, 30) + 1e-12).all()
    assert (restless_bandit(faster, lam, 30) <= restless_bandit(node, lam, 30) + 1e-12).all()


@given(plain_nodes, st.floats(1, 2))
def test_less_patience_never_lowers_the_own_index(node: Node, factor: float) -> None:
    """P3; the other two violate it."""
    hasty = Node(node.servers, node.service_rate, node.abandonment_rate * factor, node.deadline)
    assert (individually_optimal(hasty, 30) >= individually_optimal(node, 30) - 1e-12).all()


@settings(max_examples=30)
@given(plain_nodes, rates)
def test_the_mean_improvement_index_is_the_marginal_loss(node: Node, lam: float) -> None:
    last = 60 + node.servers + int(6 * lam / min(node.departure_slopes))
    assume(last < 20_000)
    law = birth_death(np.full(last, lam), node.departures(np.arange(1, last + 1)))
    marginal = abandonment(
        servers=node.servers,
        service_rate=node.service_rate,
        abandonment_rate=node.abandonment_rate,
        arrival_rate=lam,
        deadline=node.deadline,
    ).loss_rate_derivative
    mean = law @ policy_improvement(node, lam, last)
    assert mean == pytest.approx(marginal, rel=1e-10)


@given(monotone_nodes, rates, st.fractions(0, 4, max_denominator=97))
def test_the_best_single_threshold_is_the_number_of_accepted_states(
    node: Node, lam: float, price: Fraction
) -> None:
    """T1: a threshold i costs F(i) + C lam B_i, least at i = #{j: RB(j) <= C}."""
    exact = Exact(node, lam, 20)
    values = [exact.cost[i] + price * exact.lam * exact.blocked[i] for i in range(21)]
    index = restless_bandit(node, lam, 19)
    count = int(accepts(index, float(price)).sum())
    assert float(values[count]) <= float(min(values)) * (1 + 1e-12)


def test_the_first_reference_system_costs_28_over_225() -> None:
    exact = Exact(Node(1, 1.0, 0.5), 0.8, 3)
    price, lam = Fraction(7, 20), Fraction(4, 5)
    exact.lam = lam
    blocked = lam / (1 + lam)
    assert accepts(restless_bandit(Node(1, 1.0, 0.5), 0.8, 3), 0.35).sum() == 1
    assert price * lam * blocked == Fraction(28, 225)


def test_whittles_rule_fails_where_waiting_jobs_cost_less_than_served_ones() -> None:
    """Deadline to the beginning, F + w/theta < w/mu: accept all costs 4.48896, refuse all 4.8."""
    node = Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0)
    assert not rho_is_monotone(node)
    assert "are heuristics without their guarantees" in str(condition_note(node))
    assert not accepts(restless_bandit(node, 8.0, 0), 0.6)[0]
    exact = Exact(node, 8.0, 120)
    assert float(exact.cost[-1]) == pytest.approx(4.48896, abs=5e-6)


def test_a_regular_node_needs_no_note() -> None:
    assert condition_note(Node(2, 1.0, 0.5, holding_cost=1.0)) is None


@given(plain_nodes, rates)
def test_indices_below_the_number_of_servers_are_equal_to_the_last_bit(
    node: Node, lam: float
) -> None:
    for index in (individually_optimal(node, 9), restless_bandit(node, lam, 9)):
        assert set(index[: node.servers]) == {node.ratios[0]}


@given(any_nodes)
def test_departures_are_services_and_losses_and_costs_are_fees_and_holding(node: Node) -> None:
    states = np.arange(20)
    departures = node.services(states) + node.losses(states)
    assert node.departures(states) == pytest.approx(departures, rel=1e-14)
    expected = node.fee * node.losses(states) + node.holding_cost * states
    assert node.costs(states) == pytest.approx(expected, rel=1e-14)


@given(any_nodes)
def test_without_arrivals_all_indices_are_the_own_cost(node: Node) -> None:
    own = individually_optimal(node, 20)
    assert policy_improvement(node, 0.0, 20).tolist() == own.tolist()
    assert restless_bandit(node, 0.0, 20) == pytest.approx(own, rel=1e-13)


def test_the_improvement_index_survives_where_the_forward_recursion_explodes() -> None:
    node = Node(5, 4.0, 0.3)
    index = policy_improvement(node, 10.0, 400)
    assert (np.diff(index) > 0).all()
    assert index[-1] < 1
    assert (1 - index[-1]) * 396 * 0.3 == pytest.approx(20 - 10, rel=0.1)


@pytest.mark.parametrize("theta", [1e-8, 1e-3])
def test_heavy_overload_ends_quickly(theta: float) -> None:
    index = policy_improvement(Node(1000, 1.0, theta), 1e4, 1100)
    assert index[1100] == pytest.approx(1, abs=1e-12)
    assert (np.diff(index) >= -1e-15).all()


@pytest.mark.parametrize(
    "node", [Node(2, 1.0, 0.5, fee=0.0), Node(2, 1.0, 0.0), Node(1, 1.0, 0.0, room=3)]
)
def test_a_node_without_costs_has_no_price(node: Node) -> None:
    for index in (
        individually_optimal(node, 5),
        restless_bandit(node, 0.5, 5),
        policy_improvement(node, 0.5, 5, blocked_cost=0.0),
    ):
        assert (index[np.isfinite(index)] == 0).all()


def test_patient_jobs_in_overload_have_an_unbounded_whittle_index_but_no_nan() -> None:
    index = restless_bandit(Node(1, 1.0, 0.0, holding_cost=1.0), 1e6, 400)
    assert not np.isnan(index).any()
    assert (index[:-1] <= index[1:]).all()


def test_patient_jobs_in_overload_have_no_improvement_index() -> None:
    with pytest.raises(InputError, match=r"rho = 1\.5 >= 1"):
        policy_improvement(Node(2, 1.0, 0.0, holding_cost=1.0), 3.0, 5)


def test_an_index_that_depends_on_too_many_states_is_refused() -> None:
    with pytest.raises(InputError, match="depends on more than 20000000 states"):
        policy_improvement(Node(1, 1.0, 1e-16), 1.0, 5)


def test_a_finite_room_needs_the_cost_of_a_blocked_job() -> None:
    with pytest.raises(InputError, match="blocked_cost is needed for a node with room for 4 jobs"):
        policy_improvement(Node(2, 1.0, 0.5, room=4), 1.0, 5)


@pytest.mark.parametrize("last", [-1, 2.0, True, None])
def test_the_last_state_must_be_a_whole_number(last: Any) -> None:
    with pytest.raises(InputError, match="last must be a whole number from 0"):
        individually_optimal(Node(1, 1.0, 1.0), last)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("servers", 0),
        ("service_rate", 0.0),
        ("abandonment_rate", -1.0),
        ("deadline", "begin"),
        ("fee", float("nan")),
        ("holding_cost", float("inf")),
        ("room", 0),
    ],
)
def test_a_wrong_node_is_refused_by_field(field: str, value: Any) -> None:
    good: dict[str, Any] = {"servers": 1, "service_rate": 1.0, "abandonment_rate": 1.0}
    with pytest.raises(InputError, match=f"^{field} must be"):
        Node(**{**good, field: value})
