"""Fees, deadlines per node, routing charges, holding costs and rooms, against exact fractions.

And the extensions of the exact box that look right and are wrong.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.systems import CloudRouting, Node
from tests.systems.brute import Brute, exact_optimum, plain_optimum
from tests.systems.cases import general_nodes, systems


def best(system: CloudRouting, caps: tuple[int, ...] | None = None) -> float:
    return mc.solve(system.model(caps), tolerance=1e-10).gain


@settings(max_examples=20)
@given(systems(general_nodes, states=14))
def test_the_bounds_enclose_the_exact_optimum(system: CloudRouting) -> None:
    lower, upper = mc.solve(system.model(), tolerance=1e-11).bounds
    exact = exact_optimum(system, system.model().space.axes.sizes)
    assert Fraction(lower) <= exact <= Fraction(upper)


@settings(max_examples=20)
@given(systems(general_nodes, states=14), st.sampled_from(["closed", "lower", "upper"]))
def test_a_box_with_paid_edges_encloses_the_exact_optimum(system: CloudRouting, edge: str) -> None:
    exact = exact_optimum(system, system.model().space.axes.sizes)
    smaller = [max(0, cap - 1) for cap in system.model().space.axes.sizes]
    lower, upper = mc.solve(system.model(smaller, edge), tolerance=1e-11).bounds
    if edge == "lower":
        assert Fraction(lower) <= exact
    else:
        assert exact <= Fraction(upper)


@settings(max_examples=20)
@given(systems(general_nodes, states=12))
def test_the_rows_of_a_comparison_enclose_exact_costs(system: CloudRouting) -> None:
    found = mc.compare(system, ["individually_optimal", "restless_bandit"])
    for row in found.rows:
        heuristic = system.heuristic(row.name)
        assert heuristic.caps is not None
        plain = Brute(system, heuristic.caps, Fraction)
        x = [np.array(column) for column in zip(*plain.states, strict=True)]
        point = system.model(heuristic.caps).space.axes.state(x)
        taken = np.broadcast_to(heuristic.rule(point), len(plain.states))
        exact, _ = plain.evaluate(dict(zip(plain.states, map(int, taken), strict=True)))
        assert Fraction(row.lower) <= exact <= Fraction(row.upper)


# --- each extension by itself ---------------------------------------------------------------------


def test_deadlines_may_differ_by_node() -> None:
    system = CloudRouting((Node(1, 1.0, 0.2), Node(1, 1.0, 3.0)), 1.5, 0.4)
    assert system.exact_caps() == (4, 1)
    assert best(system) == pytest.approx(plain_optimum(system, (6, 3)), rel=1e-9)


def test_a_free_node_that_loses_jobs_costs_nothing() -> None:
    found = mc.compare(CloudRouting((Node(1, 1.0, 0.5, fee=0.0),), 4.0, 0.4))
    assert found.optimum.upper <= 1e-9
    assert found.optimum.kind == "bracketed"
    assert all(found.gaps(row)["gap"] is None for row in found.rows)


def test_a_node_whose_charge_exceeds_the_outside_cost_is_never_used() -> None:
    system = CloudRouting((Node(1, 1.0, 0.5, routing_charge=0.5), Node(1, 1.0, 0.5)), 2.0, 0.4)
    alone = CloudRouting((Node(1, 1.0, 0.5),), 2.0, 0.4)
    assert system.exact_caps()[0] == 0
    assert best(system) == pytest.approx(best(alone), rel=1e-9)
    found, without = mc.compare(system), mc.compare(alone)
    for row, other in zip(found.rows, without.rows, strict=True):
        assert row.cost == pytest.approx(other.cost, rel=1e-9)


def test_a_charge_on_every_node_is_a_cheaper_outside_and_a_constant() -> None:
    """Charging r everywhere costs lambda r more than outsourcing at C - r."""
    nodes, r = (Node(2, 1.0, 0.4), Node(1, 2.0, 0.7)), 0.15
    charged = tuple(
        Node(n.servers, n.service_rate, n.abandonment_rate, routing_charge=r) for n in nodes
    )
    plain, dear = CloudRouting(nodes, 4.0, 0.35), CloudRouting(charged, 4.0, 0.5)
    assert plain.exact_caps() == dear.exact_caps()
    for row, other in zip(mc.compare(plain).rows, mc.compare(dear).rows, strict=True):
        assert other.cost == pytest.approx(row.cost + 4.0 * r, rel=1e-9)


def test_fees_are_units_of_cost() -> None:
    """Fees and outside cost times F is cost times F."""
    nodes = (Node(2, 1.0, 0.4), Node(1, 2.0, 0.7))
    dear = tuple(Node(n.servers, n.service_rate, n.abandonment_rate, fee=3.0) for n in nodes)
    one, three = mc.compare(CloudRouting(nodes, 4.0, 0.3)), mc.compare(CloudRouting(dear, 4.0, 0.9))
    assert one.optimum.caps == three.optimum.caps
    for row, other in zip(one.rows, three.rows, strict=True):
        assert other.cost == pytest.approx(3.0 * row.cost, rel=1e-9)


@pytest.mark.parametrize("deadline", ["begin_service", "end_service"])
def test_holding_costs_are_paid_for_the_mean_number_of_jobs(deadline: str) -> None:
    nodes = (Node(2, 1.0, 1.0, holding_cost=0.05), Node(1, 2.0, 0.7, fee=2.0))
    system = CloudRouting(nodes, 3.0, 0.6, deadline)
    for row in mc.compare(system).rows:
        means = {name: sum(pair) / 2 for name, pair in row.measures.items()}
        parts = 0.05 * means["mean_jobs[0]"] + means["abandonment_rate[0]"]
        parts += 2.0 * means["abandonment_rate[1]"] + 0.6 * means["outsourcing_rate"]
        assert row.cost == pytest.approx(parts, rel=1e-9)


def test_patient_jobs_with_a_holding_cost_have_an_exact_box() -> None:
    system = CloudRouting((Node(2, 1.0, 0.0, holding_cost=0.2),), 3.0, 0.7)
    (cap,) = system.exact_caps()
    assert cap == 7  # w (i + 1) / (m mu) exceeds C for the first time
    assert best(system) == pytest.approx(plain_optimum(system, (cap + 5,)), rel=1e-9)


def test_a_room_of_one_makes_a_loss_system() -> None:
    """Without waiting, one node takes what Erlang's formula says, the rest goes outside."""
    system = CloudRouting((Node(1, 2.0, 0.5, room=1),), 3.0, 0.4)
    blocked = mc.queues.erlang_b(1, 1.5)
    for row in mc.compare(system).rows[1:]:
        assert row.cost == pytest.approx(0.4 * 3.0 * float(blocked), rel=1e-9)
    assert system.exact_caps() == (1,)


def test_rooms_beyond_the_exact_box_change_nothing() -> None:
    nodes = (Node(1, 2.0, 0.5), Node(1, 1.0, 0.5))
    roomy = tuple(Node(n.servers, n.service_rate, n.abandonment_rate, room=40) for n in nodes)
    assert CloudRouting(roomy, 3.0, 0.4).exact_caps() == (3, 2)
    assert best(CloudRouting(roomy, 3.0, 0.4)) == pytest.approx(3546 / 7715, rel=1e-9)


def test_the_split_of_a_finite_room_pays_outside_for_blocked_jobs() -> None:
    system = CloudRouting((Node(1, 1.0, 0.5, room=1),), 2.0, 0.4)
    (row,) = mc.compare(system, ["bernoulli_split"]).rows
    rate = float(system.split.rates[0])
    full = rate / (1.0 + rate)
    assert row.cost == pytest.approx(0.4 * (2.0 - rate + rate * full), rel=1e-9)
    outside = sum(row.measures["outsourcing_rate"]) / 2
    assert outside == pytest.approx(2.0 - rate + rate * full, rel=1e-9)


# --- naive extensions that are wrong --------------------------------------------------------------


def test_the_box_takes_the_fee_into_account() -> None:
    """Without the fee the box of this node would be empty, and the cost 0.0280."""
    system = CloudRouting((Node(2, 1.0, 0.5, fee=0.3),), 0.1, 0.28, "end_service")
    assert system.exact_caps() == (56,)
    assert best(system) == pytest.approx(0.010006, abs=1e-6)
    assert best(system, (0,)) == pytest.approx(0.0280, abs=1e-9)


def test_a_holding_cost_under_impatience_needs_the_constant_bound() -> None:
    """With F + w / theta < w / mu the average cost of a job is no lower bound of its true cost."""
    node = Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0)
    naive = [(0.25 * 4.0 * max(i - 1, 0) + i) / (1.0 + 4.0 * max(i - 1, 0)) for i in range(1, 9)]
    assert naive[0] > 0.6
    system = CloudRouting((node,), 8.0, 0.6)
    assert system.exact_caps() == (None,)
    caps = (40,)
    _, values, _ = Brute(system, caps).optimum()
    h = np.array(list(values.values()))
    assert h[1] - h[0] < naive[0]
    assert np.all(np.diff(h)[:30] >= 0.5 - 1e-9)


def test_a_finite_room_with_a_small_blocking_cost_is_reported_as_not_convex() -> None:
    for outside in (0.3, 0.5):
        system = CloudRouting((Node(1, 1.0, 1.0, room=2),), 2.0, outside)
        assert "need not be convex" in system.split.notes[0]
        (row,) = mc.compare(system, ["bernoulli_split"]).rows
        assert "need not be convex" in row.notes[0]
        rates = np.linspace(0.0, 2.0, 41)
        costs = [room_cost(rate) + outside * (2.0 - rate) for rate in rates]
        costs = [
            c + outside * rate * p
            for c, rate, p in zip(costs, rates, map(full, rates), strict=True)
        ]
        assert row.cost <= min(costs) + 1e-9


def law(rate: float) -> tuple[float, float, float]:
    """Stationary law of a node with one server, mu = theta = 1 and room for two."""
    weights = (1.0, rate, rate * rate / 2.0)
    total = math.fsum(weights)
    return tuple(w / total for w in weights)  # type: ignore[return-value]


def full(rate: float) -> float:
    return law(rate)[2]


def room_cost(rate: float) -> float:
    """One job waits where the room is full, and loses patience at rate 1."""
    return law(rate)[2]


def test_a_node_cheaper_than_outside_has_no_finite_box() -> None:
    system = CloudRouting((Node(1, 1.0, 0.5, fee=0.3), Node(1, 1.0, 0.5)), 3.0, 0.4)
    assert system.exact_caps()[0] is None
    assert "never refuses" in system.notes[0]
    with pytest.raises(mc.InputError, match=r"nodes\[0\] never refuses.*give caps"):
        system.model()
