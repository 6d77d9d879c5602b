"""Properties P1-P6 of the indices: the reference's worst examples, direct sums, and theorems."""

import ast
from dataclasses import replace
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.systems import CloudRouting, Node
from mdpcloud.systems.routing_properties import (
    INDICES,
    PROPERTIES,
    RATE_ERROR,
    IndexProperty,
    index_properties,
    index_tables,
)
from tests.systems.cases import DEADLINE, REFERENCE, SHORT, name, nodes, numbers, system_of

WORST = [row for row in REFERENCE["index_properties"] if row["violations"]]
FEW = 12  # systems drawn; each takes a tenth of a second
FAR = 240  # states in the sums by many digits


def system_of_worst(row: dict[str, Any]) -> CloudRouting:
    _, pools, rate, cost = ast.literal_eval(row["worst_example"])
    return CloudRouting(tuple(Node(*pool) for pool in pools), rate, cost, DEADLINE[row["kind"]])


def found_of(system: CloudRouting, index: str, wanted: str, **settings: Any) -> IndexProperty:
    rows = index_properties(system, [index], **settings)
    return next(row for row in rows if row.name == wanted)


def changed(system: CloudRouting, change: str) -> CloudRouting:
    """The system after a change as a result tells it."""
    path, sign, amount = change.split()
    where, _, field = path.rpartition(".")

    def larger(owner: Any) -> Any:
        old = getattr(owner, field)
        return replace(owner, **{field: old * float(amount) if sign == "*" else old + int(amount)})

    if not where:
        return larger(system)
    k = where.removeprefix("nodes[").removesuffix("]")
    pools = [larger(p) if k in ("*", str(j)) else p for j, p in enumerate(system.nodes)]
    return replace(system, nodes=tuple(pools))


# --- the indices by their definitions, in many digits ---------------------------------------------


def stationary(node: Node, kind: str, rate: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Probabilities, loss rates and departure rates of a node, by direct products."""
    mu, theta = mp.mpf(node.service_rate), mp.mpf(node.abandonment_rate)
    late = kind == "end_service"
    loss = [(i if late else max(i - node.servers, 0)) * theta for i in range(FAR)]
    leave = [min(i, node.servers) * mu + lost for i, lost in enumerate(loss)]
    weights = [mp.mpf(1)]
    for i in range(1, FAR):
        weights.append(weights[-1] * rate / leave[i])
    total = mp.fsum(weights)
    return [w / total for w in weights], loss, leave


def marginal_cost(node: Node, kind: str, rate: Any) -> Any:
    """Derivative of the mean loss rate by the arrival rate, Cov(L, X) / rate."""
    shares, loss, _ = stationary(node, kind, rate)
    jobs = mp.fsum(i * p for i, p in enumerate(shares))
    return (
        mp.fsum(lost * (i - jobs) * p for i, (lost, p) in enumerate(zip(loss, shares, strict=True)))
        / rate
    )


def improvement_by_sums(node: Node, kind: str, rate: Any, states: int) -> list[Any]:
    """PI(i) = sum_{j > i} pi_j (L_j - ell) / (rate pi_i)."""
    shares, loss, _ = stationary(node, kind, rate)
    mean = mp.fsum(lost * p for lost, p in zip(loss, shares, strict=True))
    found, tail = [mp.mpf(0)] * FAR, mp.mpf(0)
    for i in reversed(range(FAR)):
        found[i] = tail / (rate * shares[i])
        tail += shares[i] * (loss[i] - mean)
    return found[:states]


def whittle_by_ratios(node: Node, kind: str, rate: Any, states: int) -> list[Any]:
    """[F(i+1) - F(i)] / [G(i+1) - G(i)], loss and departure rates of the node cut at i."""
    shares, loss, leave = stationary(node, kind, rate)
    means = []
    weight = lost = left = mp.mpf(0)
    for i in range(states + 1):
        weight += shares[i]
        lost += shares[i] * loss[i]
        left += shares[i] * leave[i]
        means.append((lost / weight, left / weight))
    return [(after[0] - before[0]) / (after[1] - before[1]) for before, after in pairwise(means)]


def rates_by_roots(system: CloudRouting) -> list[Any]:
    """Rates at which all marginal costs are the same price, or more where the rate is 0."""
    kind, lam, cost = system.deadline, mp.mpf(system.arrival_rate), mp.mpf(system.outside_cost)
    used = [k for k, rate in enumerate(system.split.rates) if rate > 0.0]

    def excess(price: Any, *rates: Any) -> list[Any]:
        slopes = [marginal_cost(system.nodes[k], kind, x) for k, x in zip(used, rates, strict=True)]
        outside = system.split.outside_rate > 0.0
        return [price - cost if outside else mp.fsum(rates) - lam, *(s - price for s in slopes)]

    starts = [system.split.shadow_price, *system.split.rates[used]]
    price, *rates = mp.findroot(excess, tuple(map(float, starts)))
    idle = [node for k, node in enumerate(system.nodes) if k not in used]
    assert all(marginal_cost(node, kind, mp.mpf("1e-20")) >= price for node in idle)
    found = dict(zip(used, rates, strict=True))
    return [found.get(k, mp.mpf("1e-25")) for k in range(len(system.nodes))]


def table_by_sums(system: CloudRouting, index: str, k: int, states: int) -> list[Any]:
    node = system.nodes[k]
    if index == "restless_bandit":
        return whittle_by_ratios(node, system.deadline, mp.mpf(system.arrival_rate), states)
    return improvement_by_sums(node, system.deadline, rates_by_roots(system)[k], states)


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", WORST, ids=lambda r: f"{r['index']}-{r['prop'][:2]}-{r['kind']}")
def test_the_worst_example_of_the_reference_is_found_with_its_size(row: dict[str, Any]) -> None:
    system, index = system_of_worst(row), SHORT[row["index"]]
    found = found_of(system, index, row["prop"][:2])
    assert found.violated
    if row["prop"].startswith("P3"):
        assert found.violation == pytest.approx(row["max_violation"], abs=1e-12)
        return
    faster = replace(system.nodes[0], service_rate=1.1 * system.nodes[0].service_rate)
    other = replace(system, nodes=(faster, *system.nodes[1:]))
    before, after = (index_tables(one, index, 80)[0] for one in (system, other))
    assert np.max(after - before) == pytest.approx(row["max_violation"], abs=1e-12)
    assert found.violation > row["max_violation"]  # a faster second node does still worse
    assert found.node == 1


@pytest.mark.parametrize("row", WORST, ids=lambda r: f"{r['index']}-{r['prop'][:2]}-{r['kind']}")
def test_sums_of_forty_digits_show_the_same_violation(row: dict[str, Any]) -> None:
    system, index = system_of_worst(row), SHORT[row["index"]]
    found = found_of(system, index, row["prop"][:2])
    assert found.node is not None
    assert found.state is not None
    with mp.workdps(40):
        before, after = (
            table_by_sums(one, index, found.node, found.state + 1)[found.state]
            for one in (system, changed(system, found.change))
        )
        assert abs(after - before) == pytest.approx(found.violation, abs=1e-12)
        assert (after < before) == (found.name == "P3")


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        ("P3", 0.00129328692511546, 0.00129208390038820),
        ("P5", 0.00129328692511546, 0.00129453540501328),
    ],
)
def test_improvement_breaks_two_properties_with_deadlines_to_the_beginning_too(
    wanted: str, before: float, after: float
) -> None:
    """One node under load 2 with cheap outsourcing; no example of the reference has any."""
    system = CloudRouting((Node(10, 3.0, 1.4),), 60.0, 0.01)
    found = found_of(system, "policy_improvement", wanted)
    assert (found.node, found.state) == (0, 0)
    assert found.violation == pytest.approx(abs(after - before), abs=1e-14)
    with mp.workdps(40):
        values = [
            table_by_sums(one, "policy_improvement", 0, 1)[0]
            for one in (system, changed(system, found.change))
        ]
    assert [float(value) for value in values] == pytest.approx([before, after], abs=1e-14)


@pytest.mark.parametrize("case", REFERENCE["mdp"], ids=name)
def test_the_rates_of_the_split_are_as_exact_as_the_properties_need(case: dict[str, Any]) -> None:
    system = system_of(case)
    fine = [float(rate) for rate in case["BS_mp"]["lam_k"]]
    assert system.split.rates == pytest.approx(fine, rel=0, abs=RATE_ERROR * system.arrival_rate)


@given(nodes, numbers(0.2, 9.0), st.sampled_from(sorted(DEADLINE.values())))
def test_a_change_of_the_rate_moves_the_improvement_index_as_little_as_is_said(
    node: Node, rate: float, deadline: str
) -> None:
    from mdpcloud.indices import Node as OneNode
    from mdpcloud.indices import policy_improvement

    one = OneNode(node.servers, node.service_rate, node.abandonment_rate, deadline)
    more = 1e-4 * rate
    change = policy_improvement(one, rate + more, 40) - policy_improvement(one, rate, 40)
    assert np.abs(change).max() <= more / min(one.departure_slopes) + 1e-13


@settings(max_examples=FEW)
@given(st.data())
def test_no_index_breaks_what_is_proved(data: st.DataObject) -> None:
    system = data.draw(
        st.builds(
            CloudRouting,
            st.lists(nodes, min_size=1, max_size=3).map(tuple),
            numbers(0.2, 9.0),
            numbers(0.05, 0.8),
            st.sampled_from(sorted(DEADLINE.values())),
        )
    )
    proved = {
        "individually_optimal": set(PROPERTIES),
        "policy_improvement": {"P1", "P2", "P4"},
        "restless_bandit": {"P1", "P4"},
    }
    for row in index_properties(system):
        assert not (row.violated and row.name in proved[row.index]), row


@settings(max_examples=FEW)
@given(st.builds(CloudRouting, st.tuples(nodes, nodes), numbers(0.2, 9.0), numbers(0.05, 0.8)))
def test_the_unit_of_time_does_not_matter(system: CloudRouting) -> None:
    pools = tuple(
        replace(n, service_rate=8 * n.service_rate, abandonment_rate=8 * n.abandonment_rate)
        for n in system.nodes
    )
    other = replace(system, nodes=pools, arrival_rate=8 * system.arrival_rate)
    for one, two in zip(index_properties(system), index_properties(other), strict=True):
        assert two.violation == pytest.approx(one.violation, abs=1e-11)


@settings(max_examples=FEW)
@given(
    st.builds(
        CloudRouting,
        st.tuples(nodes, nodes),
        numbers(0.2, 9.0),
        numbers(0.05, 0.8),
        st.sampled_from(sorted(DEADLINE.values())),
    )
)
def test_a_violation_is_where_it_is_said_and_as_large(system: CloudRouting) -> None:
    for row in index_properties(system):
        if not row.violated:
            assert (row.node, row.state, row.change) == (None, None, "")
            continue
        other = changed(system, row.change)
        assert row.node is not None
        before, after = (index_tables(s, row.index, 100)[row.node] for s in (system, other))
        worse = after - before if row.name in ("P5", "P6") else before - after
        assert worse[row.state] == pytest.approx(row.violation, abs=1e-15)


def test_patience_is_to_be_longer_by_as_much_as_one_asks_for() -> None:
    system = system_of_worst(next(r for r in WORST if r["index"] == "RB" and r["kind"] == "DBS"))
    small, large = (
        found_of(system, "restless_bandit", "P3", change=change).violation for change in (0.01, 0.2)
    )
    assert 0.0 < small < large


def test_a_full_room_breaks_no_property() -> None:
    pools = (Node(2, 1.0, 0.5, room=4), Node(1, 1.0, 0.5))
    rows = index_properties(CloudRouting(pools, 2.0, 1.0), ["individually_optimal"])
    assert [row.name for row in rows] == list(PROPERTIES)
    assert not any(row.violated for row in rows)


@pytest.mark.parametrize(
    ("system", "settings", "message"),
    [
        (CloudRouting((Node(2, 1.0, 0.0),), 1.0, 0.5), {}, r"nodes\[0\].abandonment_rate is 0"),
        (CloudRouting((Node(1, 1.0, 0.1),), 40.0, 2.0), {}, "not known exactly"),
        (CloudRouting((Node(1, 1.0, 0.1),), 1.0, 0.5), {"change": 0.0}, "change must be > 0"),
        (CloudRouting((Node(1, 1.0, 0.1),), 1.0, 0.5), {"indices": ["x"]}, "'x' is unknown"),
        (CloudRouting((Node(1, 1.0, 0.1),), 1.0, 0.5), {"last": 0}, "last must be"),
        (CloudRouting((Node(1, 1.0, 0.1),), 1.0, 0.5), {"tolerance": 1e-15}, "larger tolerance"),
    ],
)
def test_what_cannot_be_told_is_an_error(
    system: CloudRouting, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        index_properties(system, **{"indices": INDICES, **settings})
