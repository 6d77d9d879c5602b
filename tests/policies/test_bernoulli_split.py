"""The optimal random split: reference numbers, second methods, duality, lack of convexity."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from mdpcloud.errors import InputError
from mdpcloud.indices import Node, rho_is_monotone
from mdpcloud.policies.bernoulli_split import bernoulli_split
from mdpcloud.queues import birth_death

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "routing.json").read_text(encoding="utf-8")
)
DEADLINE = {"DBS": "begin_service", "DES": "end_service"}

rates = st.floats(0.1, 10)
costs = st.floats(0, 2)
deadlines = st.sampled_from(["begin_service", "end_service"])
plain_nodes = st.builds(Node, st.integers(1, 12), rates, rates, deadline=deadlines)
rich_nodes = st.builds(
    Node, st.integers(1, 5), rates, rates, deadline=deadlines, fee=costs, holding_cost=costs
).filter(rho_is_monotone)
rooms = st.none() | st.integers(1, 12)


def name(case: dict[str, Any]) -> str:
    return f"{case['name']}-{case['kind']}"


def nodes_of(case: dict[str, Any]) -> list[Node]:
    deadline = DEADLINE[case["kind"]]
    return [Node(k["m"], k["mu"], k["theta"], deadline) for k in case["nodes"]]


def with_room(node: Node, room: int | None) -> Node:
    return Node(
        node.servers, node.service_rate, node.abandonment_rate, node.deadline, node.fee,
        node.holding_cost, room,
    )  # fmt: skip


def mean_cost(node: Node, rate: float, outside: float, charge: float) -> float:
    """Cost rate of one node by summing its stationary law."""
    last = node.room
    if last is None:
        last = 80 + node.servers + int(10 * rate / min(node.departure_slopes))
    states = np.arange(last + 1)
    law = birth_death(np.full(last, rate), node.departures(states[1:]))
    full = law[-1] if node.room is not None else 0.0
    routed = charge * rate * (1.0 - full) + outside * rate * full
    return float(law @ node.costs(states)) + float(routed)


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_every_split_of_the_reference_is_met(case: dict[str, Any]) -> None:
    split = bernoulli_split(nodes_of(case), case["lam"], case["C"])
    precise = case["BS_mp"]
    assert split.rates == pytest.approx([float(x) for x in precise["lam_k"]], abs=1e-12)
    assert split.outside_rate == pytest.approx(float(precise["lam0"]), abs=1e-12)
    assert split.shadow_price == pytest.approx(float(precise["alpha_star"]), rel=1e-14)
    assert split.cost == pytest.approx(float(precise["cost"]), rel=1e-14)
    assert split.notes == ()


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_without_a_useful_outside_the_price_is_that_of_the_nodes_alone(
    case: dict[str, Any],
) -> None:
    split = bernoulli_split(nodes_of(case), case["lam"], 1.5)
    assert split.outside_rate == pytest.approx(0, abs=1e-12)
    assert split.shadow_price == pytest.approx(case["BS"]["Cstar_lambda"], rel=1e-12)


@pytest.mark.parametrize("case", REFERENCE["sweeps"], ids=lambda c: f"{c['tag']}-{c['kind']}")
def test_every_split_of_the_reference_sweeps_is_met(case: dict[str, Any]) -> None:
    nodes = [Node(*node, deadline=DEADLINE[case["kind"]]) for node in case["nodes"]]
    split = bernoulli_split(nodes, case["lam"], case["C"])
    assert split.cost == pytest.approx(case["cost"]["BS"], rel=1e-9)
    assert split.shadow_price == pytest.approx(case["alpha"], rel=1e-9)


@settings(max_examples=20)
@given(
    st.lists(st.tuples(rich_nodes, rooms, st.floats(0, 0.3)), min_size=1, max_size=3),
    st.floats(0.2, 15),
    st.floats(0.05, 3),
)
def test_the_split_is_not_worse_than_a_general_solver_finds(
    parts: list[tuple[Node, int | None, float]], lam: float, outside: float
) -> None:
    """SLSQP on costs summed from the stationary laws; rooms, fees, holding costs and charges."""
    nodes = [with_room(node, room) for node, room, _ in parts]
    charges = [charge for *_, charge in parts]
    split = bernoulli_split(nodes, lam, outside, charges=charges)

    def cost(x: np.ndarray) -> float:
        x = np.clip(x, 0.0, lam)
        within = sum(
            mean_cost(node, max(rate, 1e-300), outside, r)
            for node, rate, r in zip(nodes, x, charges, strict=True)
        )
        return within + outside * max(lam - float(x.sum()), 0.0)

    assert split.cost == pytest.approx(cost(split.rates), rel=1e-9, abs=1e-12)
    assert split.cost == pytest.approx(split.node_costs.sum() + outside * split.outside_rate)
    assert split.rates.sum() + split.outside_rate == pytest.approx(lam, rel=1e-14)
    if split.notes:
        assert split.error_bound is None
        return
    n = len(nodes)
    found = minimize(
        cost,
        np.full(n, lam / (n + 1)),
        method="SLSQP",
        bounds=[(0.0, lam)] * n,
        constraints=LinearConstraint(np.ones((1, n)), ub=lam),
        options={"ftol": 1e-13},
    )
    assert split.error_bound is not None
    assert split.cost - split.error_bound <= found.fun + 1e-9 * lam


@settings(max_examples=25)
@given(st.lists(plain_nodes, min_size=1, max_size=3), rates, st.floats(0.02, 0.98))
def test_duality_bounds_the_error_of_the_cost(
    nodes: list[Node], lam: float, outside: float
) -> None:
    split = bernoulli_split(nodes, lam, outside)
    assert split.error_bound is not None
    assert 0 < split.error_bound <= 2e-12 * split.cost + 1e-13 * lam


@settings(max_examples=25)
@given(st.lists(plain_nodes, min_size=1, max_size=3), rates, st.floats(0.05, 0.95))
def test_the_shadow_price_is_the_slope_of_the_cost(
    nodes: list[Node], lam: float, outside: float
) -> None:
    step = 1e-4 * lam
    low, mid, high = (bernoulli_split(nodes, lam + s * step, outside) for s in (-1, 0, 1))
    assert low.shadow_price <= mid.shadow_price + 1e-12
    assert mid.shadow_price <= high.shadow_price + 1e-12
    slope = (high.cost - low.cost) / (2 * step)
    assert low.shadow_price - 1e-9 <= slope <= high.shadow_price + 1e-9


@settings(max_examples=25)
@given(st.lists(plain_nodes, min_size=1, max_size=3), rates, st.floats(0.05, 0.9))
def test_rates_rise_with_the_stream_and_with_the_outside_cost(
    nodes: list[Node], lam: float, outside: float
) -> None:
    """The first half of theorem T5."""
    base = bernoulli_split(nodes, lam, outside).rates
    assert (bernoulli_split(nodes, 1.1 * lam, outside).rates >= base * (1 - 1e-9) - 1e-9).all()
    assert (bernoulli_split(nodes, lam, 1.1 * outside).rates >= base * (1 - 1e-9) - 1e-9).all()


@settings(max_examples=25)
@given(st.permutations(range(3)), rates, st.floats(0.05, 0.9), st.floats(1e-3, 1e3))
def test_neither_the_order_of_nodes_nor_the_unit_of_time_matters(
    order: list[int], lam: float, outside: float, scale: float
) -> None:
    nodes = [Node(2, 1.0, 0.5), Node(3, 2.0, 0.1), Node(1, 0.5, 0.9, "end_service")]
    base = bernoulli_split(nodes, lam, outside)
    moved = [
        Node(k.servers, k.service_rate * scale, k.abandonment_rate * scale, k.deadline)
        for k in (nodes[j] for j in order)
    ]
    other = bernoulli_split(moved, lam * scale, outside)
    assert other.rates / scale == pytest.approx(base.rates[order], rel=1e-9, abs=1e-12)
    assert other.cost / scale == pytest.approx(base.cost, rel=1e-11)


def test_a_rate_just_above_its_breakpoint_keeps_its_digits() -> None:
    """With 11 servers a price 1e-14 above the breakpoint already means a rate of 0.05 and more."""
    fast, slow = Node(11, 1.0, 0.5, "end_service"), Node(1, 1.0, 0.5, "end_service")
    alone = bernoulli_split([fast], 0.2, 1.0)
    assert alone.rates[0] == 0.2
    both = bernoulli_split([fast, slow], 0.2, 1.0)
    assert both.rates.sum() == pytest.approx(0.2, rel=1e-15)
    assert 0 < both.rates[1] < 1e-8
    low, high = (
        bernoulli_split([fast, slow], lam, 1.0).rates[1] for lam in (0.2, 0.2 * (1 + 1e-9))
    )
    assert 0 <= high - low < 1e-8 * low * 1.1


def test_two_patient_servers_share_as_the_closed_form_says() -> None:
    """M/M/1 with holding cost w: f' = w mu / (mu - x)^2, hence x = mu - sqrt(w mu / a)."""
    nodes = [Node(1, 2.0, 0.0, holding_cost=1.0), Node(1, 3.0, 0.0, holding_cost=2.0)]
    split = bernoulli_split(nodes, 10.0, 4.0)
    assert split.shadow_price == 4.0
    assert split.rates == pytest.approx([2 - math.sqrt(2 / 4), 3 - math.sqrt(6 / 4)], rel=1e-12)
    light = bernoulli_split(nodes, 1.0, 4.0)
    roots = [mu - math.sqrt(w * mu / light.shadow_price) for mu, w in ((2, 1), (3, 2))]
    assert sum(roots) == pytest.approx(1, rel=1e-10)
    assert light.rates == pytest.approx(roots, rel=1e-10)


def test_a_node_of_constant_marginal_cost_takes_what_is_left() -> None:
    """Without a fee and with w/mu = w/theta the cost is the line w x / mu."""
    line, curve = Node(2, 1.0, 1.0, fee=0.0, holding_cost=0.2), Node(2, 1.0, 0.5)
    split = bernoulli_split([line, curve], 5.0, 0.6)
    assert split.shadow_price == 0.2
    assert split.outside_rate == 0
    assert split.rates[0] > 3
    assert split.node_costs[0] == pytest.approx(0.2 * split.rates[0], rel=1e-12)


def test_nodes_dearer_than_the_outside_get_nothing() -> None:
    split = bernoulli_split([Node(2, 1.0, 0.5)], 3.0, 0.4, charges=[0.5])
    assert split.rates.tolist() == [0]
    assert split.cost == pytest.approx(1.2)


def test_a_rho_that_decreases_is_named_and_no_bound_is_claimed() -> None:
    odd = Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0)
    split = bernoulli_split([odd, Node(2, 1.0, 0.5)], 8.0, 0.6)
    assert split.error_bound is None
    assert split.notes[0].startswith("nodes[0]: fee + holding_cost / abandonment_rate = 0.5")
    grid = [
        mean_cost(odd, max(x, 1e-9), 0.6, 0.0)
        + bernoulli_split([Node(2, 1.0, 0.5)], 8.0 - x, 0.6).cost
        for x in np.linspace(0, 7.999, 100)
    ]
    assert split.cost <= min(grid) + 1e-6


def test_a_small_room_with_cheap_blocking_is_named() -> None:
    """Room 2, m = mu = theta = 1, blocked jobs at 0.3: the cost is not convex."""
    split = bernoulli_split([Node(1, 1.0, 1.0, room=2)], 2.0, 0.3)
    assert split.error_bound is None
    assert "room full" in split.notes[0]
    assert (
        split.cost
        <= min(
            mean_cost(Node(1, 1.0, 1.0, room=2), x, 0.3, 0.0) + 0.3 * (2 - x)
            for x in np.linspace(1e-9, 2, 200)
        )
        + 1e-9
    )


@given(plain_nodes, st.integers(1, 20), rates, rates)
def test_a_room_whose_blocked_jobs_cost_most_is_convex(
    node: Node, room: int, low: float, high: float
) -> None:
    """T3 with a finite room: C - r >= sup rho = 1."""
    assume(abs(high - low) > 1e-3)
    limited = with_room(node, room)
    middle = mean_cost(limited, (low + high) / 2, 1.2, 0.1)
    ends = mean_cost(limited, low, 1.2, 0.1) + mean_cost(limited, high, 1.2, 0.1)
    assert middle <= ends / 2 * (1 + 1e-12)


def test_a_free_node_is_refused_by_place() -> None:
    with pytest.raises(InputError, match=r"nodes\[1\] has unlimited room and neither"):
        bernoulli_split([Node(1, 1.0, 0.5), Node(1, 1.0, 0.0)], 1.0, 0.5)


def test_large_nodes_in_light_load_do_not_underflow() -> None:
    nodes = [Node(10_000, 1.0, 0.3), Node(10_000, 1.1, 0.3)]
    split = bernoulli_split(nodes, 2000.0, 0.5)
    assert split.cost == 0
    assert split.rates.sum() == pytest.approx(2000)
    assert split.rates[0] < split.rates[1]


@pytest.mark.parametrize(
    ("nodes", "lam", "outside", "message"),
    [
        ([], 1.0, 0.5, "nodes is empty"),
        ([Node(1, 1.0, 1.0)], 0.0, 0.5, "arrival_rate must be"),
        ([Node(1, 1.0, 1.0)], 1.0, 0.0, "outside_cost must be"),
        ([Node(1, 1.0, 1.0)], 1.0, math.inf, "outside_cost must be"),
    ],
)
def test_wrong_arguments_are_refused(
    nodes: list[Node], lam: float, outside: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        bernoulli_split(nodes, lam, outside)


# Overload of unlimited rooms: nodes, charges, arrival rate, outside cost, best cost.
OVERLOADED = [
    ([Node(20, 0.5, 3.0, fee=2.0), Node(5, 0.5, 0.5, fee=0.3)],
     [0.0, 0.0], 100.0, 1.2, 27.4017469847),
    ([Node(20, 0.5, 3.3915260616482734, fee=2.0), Node(5, 0.5, 0.48456540431336276, fee=0.3)],
     [0.3, 0.3], 100.0, 1.2, 57.4112),
    ([Node(5, 3.0, 5.679507458884876, fee=2.0, holding_cost=0.02),
      Node(20, 0.5, 0.8633272862897655, fee=0.3, holding_cost=0.02)],
     [0.3, 0.0], 200.0, 5.0, 61.758),
    ([Node(2, 0.5, 0.26361112942452175), Node(1, 3.0, 0.29102467292500334, holding_cost=0.02)],
     [0.3, 0.3], 32.0, 5.0, 37.8051),
    ([Node(1, 1.0, 0.17360334810119454, fee=0.3), Node(2, 0.5, 4.630973914600609, fee=0.3)],
     [0.0, 0.05], 12.0, 0.9, 3.1506996),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "charges", "lam", "outside", "best"), OVERLOADED)
def test_saturated_nodes_take_what_the_others_leave(
    nodes: list[Node], charges: list[float], lam: float, outside: float, best: float
) -> None:
    split = bernoulli_split(nodes, lam, outside, charges=charges)
    digits = len(str(best).split(".")[1])
    assert split.cost <= best + 0.6 * 10.0**-digits
    assert split.error_bound is not None
    assert split.error_bound <= 3e-12 * split.cost
    assert split.rates.sum() == pytest.approx(lam, rel=1e-14)
    assert split.notes == ()


def test_an_outside_dearer_than_saturation_changes_nothing() -> None:
    """The price is at most r + U = 0.3, so the other node keeps its rate at that price."""
    nodes, charges, lam, outside, _ = OVERLOADED[0]
    dear = bernoulli_split(nodes, lam, outside, charges=charges)
    equal = bernoulli_split(nodes, lam, 0.3, charges=charges)
    assert dear.rates[0] == pytest.approx(equal.rates[0], rel=1e-9)
    assert dear.cost == pytest.approx(equal.cost, rel=1e-12)
    assert dear.shadow_price == pytest.approx(0.3, rel=1e-14)


def test_equal_saturated_nodes_share_equally() -> None:
    split = bernoulli_split([Node(2, 1.0, 0.5, fee=0.3)] * 3, 90.0, 2.0)
    assert split.rates == pytest.approx([30.0] * 3, rel=1e-12)
    assert split.error_bound is not None
    assert split.error_bound <= 3e-12 * split.cost


loaded_nodes = st.builds(
    Node, st.integers(1, 8), st.floats(0.5, 3), st.floats(0.2, 5), deadline=deadlines,
    fee=st.floats(0.2, 2), holding_cost=st.sampled_from([0.0, 0.02]),
).filter(rho_is_monotone)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(loaded_nodes, st.sampled_from([0.0, 0.05, 0.3])), min_size=2, max_size=3),
    st.floats(1.5, 8),
    st.floats(0.2, 5),
)
def test_in_overload_no_general_solver_does_better(
    parts: list[tuple[Node, float]], load: float, outside: float
) -> None:
    """Duality bounds the error, and SLSQP from the split and from an even start gains nothing."""
    nodes, charges = [node for node, _ in parts], [charge for _, charge in parts]
    lam = load * sum(node.servers * node.service_rate for node in nodes)
    split = bernoulli_split(nodes, lam, outside, charges=charges)
    assert split.error_bound is not None
    assert split.error_bound <= 1e-11 * split.cost
    n = len(nodes)

    def cost(x: np.ndarray) -> float:
        x = np.clip(x, 0.0, lam) * min(1.0, lam / max(float(x.sum()), 1e-300))
        within = sum(
            mean_cost(node, max(rate, 1e-300), outside, r)
            for node, rate, r in zip(nodes, x, charges, strict=True)
        )
        return within + outside * max(lam - float(x.sum()), 0.0)

    for start in (split.rates, np.full(n, lam / (n + 1))):
        found = minimize(
            cost, start, method="SLSQP", bounds=[(0.0, lam)] * n,
            constraints=LinearConstraint(np.ones((1, n)), ub=lam), options={"maxiter": 60},
        )  # fmt: skip
        assert split.cost <= min(found.fun, cost(found.x)) * (1 + 1e-9)
