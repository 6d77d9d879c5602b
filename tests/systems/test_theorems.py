"""Theorems of parallel M/M/m+M nodes, on random systems.

The exact box and the bounds on h(i + e_k) - h(i), monotonicity of costs and indices, the best
threshold of a single node, and the improvement step from the optimal split.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.compare import evaluate_policies
from mdpcloud.indices import rho_is_monotone
from mdpcloud.indices.bounds import lower_bound, upper_bound
from mdpcloud.systems import CloudRouting, Node
from tests.systems.brute import Brute, plain_optimum
from tests.systems.cases import general_nodes, nodes, numbers, systems

few = settings(max_examples=25)
MARGIN = 3


def beyond(system: CloudRouting, more: int = MARGIN) -> tuple[int, ...]:
    """The exact box and a margin, within the rooms."""
    found = [cap + more for cap in system.exact_caps() if cap is not None]
    rooms = [found[k] if n.room is None else n.room for k, n in enumerate(system.nodes)]
    return tuple(map(min, found, rooms))


def bounds(system: CloudRouting) -> tuple[float, float]:
    lower, upper = mc.solve(system.model(), tolerance=1e-10).bounds
    return float(lower), float(upper)


def row_costs(system: CloudRouting, *names: str) -> list[float]:
    return [row.cost for row in evaluate_policies(system, names, tolerance=1e-10)]


# --- the exact box --------------------------------------------------------------------------------


@few
@given(systems(general_nodes, states=150))
def test_a_larger_box_has_the_same_optimum(system: CloudRouting) -> None:
    lower, upper = bounds(system)
    larger = mc.solve(system.model(beyond(system)), tolerance=1e-10).bounds
    assert lower <= larger[1]
    assert upper >= larger[0]


@few
@given(systems(general_nodes, states=60))
def test_the_optimum_agrees_with_the_equation_written_again(system: CloudRouting) -> None:
    lower, upper = bounds(system)
    again = plain_optimum(system, beyond(system, 1))
    rounding = 1e-11 * max(1.0, again)
    assert lower - rounding <= again <= upper + rounding


@few
@given(systems(general_nodes, states=150))
def test_the_optimum_never_routes_beyond_the_exact_box(system: CloudRouting) -> None:
    caps = beyond(system)
    table = mc.solve(system.model(caps), tolerance=1e-11).policy.table()
    jobs = np.indices(table.shape)
    for k, cap in enumerate(system.exact_caps()):
        assert cap is not None
        assert not ((table == k + 1) & (jobs[k] >= cap)).any()


@few
@given(systems(general_nodes, states=80))
def test_one_more_job_costs_between_the_bounds(system: CloudRouting) -> None:
    caps = beyond(system)
    _, values, _ = Brute(system, caps).optimum()
    h = np.array(list(values.values())).reshape([cap + 1 for cap in caps])
    for k, node in enumerate(system._theory):
        rises = np.moveaxis(np.diff(h, axis=k), k, 0)
        least = lower_bound(node, np.arange(caps[k]))
        most = upper_bound(node)
        if any(n.room is not None for n in system.nodes):
            most = max(most, system.outside_cost - system.nodes[k].routing_charge)
        assert (rises >= least.reshape(-1, *[1] * (h.ndim - 1)) - 1e-9).all()
        assert (rises <= most + 1e-9).all()


# --- one node -------------------------------------------------------------------------------------


@few
@given(systems(general_nodes, most=1), st.sampled_from(["first", "last", "fastest", "slowest"]))
def test_the_restless_bandit_policy_is_optimal_for_one_node(
    system: CloudRouting, ties: str
) -> None:
    assume(all(map(rho_is_monotone, system._theory)))
    (row,) = evaluate_policies(system, ["restless_bandit"], ties=ties, tolerance=1e-10)
    optimum = mc.solve(system.model(), tolerance=1e-10)
    assert row.cost == pytest.approx(optimum.gain, rel=1e-9, abs=1e-11)


@few
@given(systems(most=1))
def test_the_best_threshold_of_one_node_is_the_number_of_its_low_indices(
    system: CloudRouting,
) -> None:
    limits = system.heuristic("restless_bandit").caps
    assert limits is not None
    model = system.model(beyond(system, 1))
    taken = np.arange(model.space.shape[0])
    costs = [mc.evaluate(model, (taken < limit).astype(int)).gain for limit in range(taken.size)]
    assert min(costs) == pytest.approx(costs[limits[0]], rel=1e-9, abs=1e-12)


def test_the_restless_bandit_policy_fails_where_waiting_is_cheaper_than_service() -> None:
    system = CloudRouting((Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0),), 8.0, 0.6)
    found = mc.compare(system)
    costs = {row.name: row.cost for row in found.rows}
    assert costs["restless_bandit"] == pytest.approx(4.8, rel=1e-9)
    assert found.optimum.cost == pytest.approx(4.48896, abs=1e-5)
    assert "index rules and the optimal split are heuristics" in found.to_dict()["notes"][0]
    assert all(any("indices decrease" in note for note in row.notes) for row in found.rows)


# --- monotonicity ---------------------------------------------------------------------------------


@few
@given(systems(general_nodes, states=200))
def test_the_indices_do_not_decrease_in_the_jobs_present(system: CloudRouting) -> None:
    assume(all(map(rho_is_monotone, system._theory)))
    for name, columns in system.index_table().policies.items():
        for k, column in enumerate(columns):
            finite = system.nodes[k].room is None or name != "policy_improvement"
            assert not finite or (np.diff(column.index) >= -1e-12).all()


@few
@given(systems(nodes, states=200), numbers(1.01, 2.0), numbers(1.01, 1.5))
def test_cost_and_policy_improvement_indices_rise_with_the_load_and_the_outside_cost(
    system: CloudRouting, load: float, price: float
) -> None:
    busier = dataclasses.replace(system, arrival_rate=load * system.arrival_rate)
    dearer = dataclasses.replace(system, outside_cost=min(0.95, price * system.outside_cost))
    for other in (busier, dearer):
        assert bounds(other)[1] >= bounds(system)[0]
        for k in range(len(system.nodes)):
            pair = [s._index("policy_improvement", k)(30) for s in (system, other)]
            assert (pair[1] >= pair[0] - 1e-9).all()


@few
@given(systems(nodes, states=200), numbers(1.01, 2.0))
def test_scaling_time_scales_every_cost(system: CloudRouting, speed: float) -> None:
    faster = dataclasses.replace(
        system,
        arrival_rate=speed * system.arrival_rate,
        nodes=tuple(
            Node(n.servers, speed * n.service_rate, speed * n.abandonment_rate)
            for n in system.nodes
        ),
    )
    names = ["bernoulli_split", "policy_improvement"]
    one, other = bounds(system), bounds(faster)
    assert other[0] <= speed * one[1]
    assert speed * one[0] <= other[1]
    slow, fast = row_costs(system, *names), row_costs(faster, *names)
    assert fast == pytest.approx([speed * c for c in slow], rel=1e-8, abs=1e-10)


# --- the improvement step -------------------------------------------------------------------------


def node_values(system: CloudRouting, k: int, states: int) -> np.ndarray:
    """Cost h(i+1) - h(i) of one more job at a node under the split, from Poisson's equation."""
    node, rate = system._theory[k], float(system.split.rates[k])
    room = system.nodes[k].room
    cap = 4 * states + 60 if room is None else room
    blocked = system.outside_cost - system.nodes[k].routing_charge
    queue = mc.Model(
        mc.Lattice({"jobs": cap}),
        [
            mc.Event("in", lambda x: rate * (x.jobs < cap), mc.step(jobs=+1)),
            mc.Event("out", lambda x: node.departures(x.jobs), mc.step(jobs=-1)),
        ],
        cost_rate=lambda x: node.costs(x.jobs) + rate * blocked * (x.jobs == cap) * (room == cap),
    )
    return np.diff(mc.evaluate(queue, {}).values)[:states]


@few
@given(systems(general_nodes, states=200))
def test_the_policy_improvement_rule_is_one_improvement_step_from_the_split(
    system: CloudRouting,
) -> None:
    """The split's relative values are sums over nodes, each computed here by itself."""
    assume(
        all(
            0 < rate < 20 * n.servers * n.service_rate
            for rate, n in zip(system.split.rates, system.nodes, strict=True)
        )
    )
    caps = [cap for cap in system.exact_caps() if cap is not None]
    x = system.model(caps).space.mesh()
    worth = [np.full([cap + 1 for cap in caps], system.outside_cost)]
    for k, node in enumerate(system.nodes):
        rise = np.full(caps[k] + 1, np.inf)
        found = node_values(system, k, caps[k] + 1)
        rise[: found.size] = found
        worth.append(np.broadcast_to(node.routing_charge + rise[x.node[k]], worth[0].shape))
    taken = np.broadcast_to(system.heuristic("policy_improvement").rule(x), worth[0].shape)
    chosen = np.choose(taken, worth)
    assert (chosen <= np.min(worth, axis=0) + 1e-7).all()


@few
@given(systems(general_nodes, states=200))
def test_policy_improvement_never_costs_more_than_the_split(system: CloudRouting) -> None:
    split, improved = row_costs(system, "bernoulli_split", "policy_improvement")
    assert improved <= split * (1 + 1e-9) + 1e-12


@few
@given(systems(general_nodes, states=200))
def test_no_policy_costs_less_than_the_optimum(system: CloudRouting) -> None:
    found = mc.compare(system, tolerance=1e-9)
    for row in found.rows:
        assert row.upper >= found.optimum.lower
        highest = found.gaps(row)["gap_upper"]
        assert highest is None or highest >= 0


def test_no_order_holds_between_the_restless_bandit_and_the_improvement_index() -> None:
    from mdpcloud import indices

    node = indices.Node(2, 1.0, 0.5)
    assert indices.restless_bandit(node, 10.0, 2)[2] == pytest.approx(0.718, abs=5e-4)
    assert indices.policy_improvement(node, 1.0, 2)[2] == pytest.approx(0.373, abs=5e-4)
