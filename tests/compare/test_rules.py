"""Policies of the user's own: rules, policies, mistakes."""

import dataclasses
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.compare import Comparison, Row, evaluate_policies, rows
from mdpcloud.engine import compiled
from mdpcloud.solve import Status
from mdpcloud.systems import CloudRouting, Node
from tests.compare.own import Arrays, Desk, Endless, Parted, Shop
from tests.systems.cases import systems

SYSTEM = CloudRouting((Node(1, 2.0, 0.5), Node(1, 1.0, 0.5)), 3.0, 0.4)


def by_name(x: Any) -> Any:
    return np.where(x.node[0] < 2, "node 0", "outside")


def by_number(x: Any) -> Any:
    return np.where(x.node[0] < 2, 1, 0)


def by_branches(x: Any) -> Any:
    if x.node[0] < 2:
        return "node 0"
    return "outside"


def by_branches_number(x: Any) -> Any:
    return 1 if x.node[0] < 2 else 0


def cost(system: Any, rule: Any, **settings: Any) -> Row:
    (row,) = evaluate_policies(system, {"mine": rule}, **settings)
    return row


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [by_name, by_number, by_branches, by_branches_number])
def test_a_rule_may_broadcast_or_branch_and_return_names_or_numbers(rule: Any) -> None:
    """An M/M/1+M queue with room for two: lambda 3, mu 2, theta 1/2."""
    row = cost(SYSTEM, rule)
    weights = np.array([1.0, 3.0 / 2.0, 9.0 / 5.0])
    exact = (0.5 * weights[2] + 0.4 * 3.0 * weights[2]) / weights.sum()
    assert row.cost == pytest.approx(exact, rel=1e-10)
    assert row.status == "exact"
    assert row.heuristic is None


@pytest.mark.parametrize("action", ["outside", 0])
def test_a_rule_may_be_constant(action: Any) -> None:
    assert cost(SYSTEM, lambda x: action).cost == pytest.approx(1.2)


def test_a_policy_object_of_the_exact_box_is_evaluated_there() -> None:
    policy = mc.policy(SYSTEM.model(), by_name)
    row = cost(SYSTEM, policy)
    assert row.states == 12
    assert row.cost == pytest.approx(cost(SYSTEM, by_name).cost, rel=1e-10)


def test_a_policy_object_brings_its_own_box() -> None:
    endless = CloudRouting(SYSTEM.nodes, 3.0, 1.2)
    policy = mc.policy(endless.model((4, 7)), by_name)
    assert cost(endless, policy).states == 40
    assert cost(SYSTEM, mc.policy(SYSTEM.model((6, 6)), by_name), caps=(2, 2)).states == 49


def test_a_policy_may_be_randomised() -> None:
    model = SYSTEM.model()
    share = {
        "outside": lambda x: np.where(x.node[0] < 3, 0.5, 1.0),
        "node 0": lambda x: np.where(x.node[0] < 3, 0.5, 0.0),
    }
    half, again = cost(SYSTEM, mc.policy(model, share)), cost(SYSTEM, share)
    assert half.cost == pytest.approx(again.cost, rel=1e-12)
    assert 0.4597 < half.cost < 1.2


def test_the_optimal_policy_costs_the_optimum() -> None:
    best = mc.solve(SYSTEM.model())
    assert cost(SYSTEM, best.policy).cost == pytest.approx(best.gain, rel=1e-8)


def test_names_of_the_system_and_rules_go_together() -> None:
    found = mc.compare(SYSTEM, {"PI": "policy_improvement", "mine": by_name})
    assert [(row.name, row.heuristic) for row in found.rows] == [
        ("PI", "policy_improvement"),
        ("mine", None),
    ]
    assert set(found.to_dict()["indices"]) == {"PI"}


def test_without_policies_there_is_the_optimum_alone() -> None:
    found = mc.compare(SYSTEM, {})
    assert found.rows == mc.compare(SYSTEM, []).rows == ()
    assert found.optimum.cost == pytest.approx(3546 / 7715)


@settings(max_examples=15)
@given(systems(states=60), st.integers(0, 3), st.integers(0, 3))
def test_a_rule_costs_the_same_on_every_box_that_it_stays_in(
    system: CloudRouting, limit: int, more: int
) -> None:
    def rule(x: Any) -> Any:
        return np.where(x.node[0] < limit, 1, 0)

    small = (limit, *[0] * (len(system.nodes) - 1))
    row, other = cost(system, rule), cost(system, rule, caps=[cap + more for cap in small])
    assert row.lower <= other.upper
    assert other.lower <= row.upper


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda x: "node 2", r"'mine'.*returns 'node 2' in state \(node=\(0, 0\)\).*did you mean"),
        (lambda x: 9, r"'mine'.*returns action number 9 in state \(node=\(0, 0\)\)"),
        (lambda x: -1, r"'mine'.*returns action number -1 in state"),
        (
            lambda x: 0.5,
            r"'mine'.*returns 0.5 in state \(node=\(0, 0\)\); it must return the name or number",
        ),
        (lambda x: 3 + 0 * x.node[0], r"'mine'.*'node 0 at its cap'.*where it is not allowed"),
        (lambda x: None, r"'mine'.*returns None in state"),
    ],
)
def test_a_rule_that_returns_no_action_is_refused(rule: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        mc.compare(SYSTEM, {"mine": rule})


def test_a_rule_that_returns_a_forbidden_action_is_told_the_state() -> None:
    room = CloudRouting((Node(1, 2.0, 0.5, room=3), Node(1, 1.0, 0.5)), 3.0, 0.4)
    message = r"policy 'mine'.*takes action 'node 0' in state \(node=\(3, 0\)\), where it is not"
    with pytest.raises(mc.InputError, match=message):
        mc.compare(room, {"mine": lambda x: "node 0"})
    with pytest.raises(
        mc.InputError, match=r"'join' in state \(queue=5\).*allowed are \['refuse'\]"
    ):
        mc.compare(Desk(), {"mine": lambda x: "join"})


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (["restles_bandit"], "did you mean 'restless_bandit'"),
        ("bernouli_split", "did you mean 'bernoulli_split'"),
        (["something else"], "there are bernoulli_split, individually_optimal"),
        ({"mine": "outside"}, "policy 'outside' is unknown"),
        ([by_name], "give rules as {name: rule}"),
    ],
)
def test_an_unknown_policy_is_refused(policies: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        mc.compare(SYSTEM, policies)


def test_a_system_without_policies_says_so() -> None:
    with pytest.raises(mc.InputError, match="there are none"):
        mc.compare(Desk(), ["greedy"])


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"ties": "random"}, "ties is 'random'; it must be one of first, last, fastest, slowest"),
        ({"tolerance": 0.0}, r"tolerance is 0.0; it must be in \(0, 1\)"),
        ({"tolerance": 2.0}, r"tolerance is 2.0; it must be in \(0, 1\)"),
        ({"threads": 0}, "threads"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
        ({"solver": "simplex"}, "solver 'simplex' is unknown"),
        ({"caps": (3,)}, "caps has 1 numbers for 2 nodes"),
    ],
)
def test_a_wrong_setting_is_refused(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        mc.compare(SYSTEM, **given_)


@pytest.mark.parametrize("system", [None, 5, CloudRouting, SYSTEM.model(), {"nodes": []}])
def test_what_is_no_system_is_refused(system: Any) -> None:
    with pytest.raises(mc.InputError, match="must be an instance of a dataclass with a method"):
        mc.compare(system)


def test_a_policy_of_another_model_is_refused() -> None:
    other = CloudRouting((Node(1, 2.0, 0.5),), 1.0, 0.4)
    policy = mc.policy(other.model(), lambda x: "outside")
    with pytest.raises(mc.InputError, match="policy 'mine'"):
        mc.compare(SYSTEM, {"mine": policy})


# --- ties and symmetry ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "first"), [("first", 1), ("last", 2), ("fastest", 2), ("slowest", 1)]
)
def test_ties_go_where_they_are_told_to(ties: str, first: int) -> None:
    system = CloudRouting((Node(1, 1.0, 0.5), Node(1, 2.0, 0.5)), 3.0, 0.4)
    found = mc.compare(system, ["restless_bandit"], ties=ties)
    rule: Any = found.rows[0].rule
    state = system.model().space.axes.state([0, 0])
    assert int(rule(state)) == first
    assert found.to_dict()["ties"] == ties


@settings(max_examples=10)
@given(systems(states=150, most=2))
def test_the_order_of_the_nodes_does_not_matter(system: CloudRouting) -> None:
    turned = CloudRouting(
        system.nodes[::-1], system.arrival_rate, system.outside_cost, system.deadline
    )
    one, other = mc.compare(system, ties="first"), mc.compare(turned, ties="last")
    assert one.optimum.cost == pytest.approx(other.optimum.cost, rel=1e-8)
    for row, again in zip(one.rows, other.rows, strict=True):
        assert row.cost == pytest.approx(again.cost, rel=1e-8, abs=1e-13)


@settings(max_examples=10)
@given(systems(states=150), st.sampled_from([1e-6, 0.01, 60.0, 1e5]))
def test_the_unit_of_time_does_not_matter(system: CloudRouting, unit: float) -> None:
    nodes = tuple(
        Node(n.servers, n.service_rate * unit, n.abandonment_rate * unit) for n in system.nodes
    )
    scaled = CloudRouting(nodes, system.arrival_rate * unit, system.outside_cost, system.deadline)
    one, other = mc.compare(system), mc.compare(scaled)
    assert other.optimum.cost == pytest.approx(unit * one.optimum.cost, rel=1e-7)
    for row, again in zip(one.rows, other.rows, strict=True):
        assert again.cost == pytest.approx(unit * row.cost, rel=1e-7, abs=1e-12 * unit)


def test_a_comparison_compiles_the_model_of_a_box_once(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = []
    compile_events = compiled.compile_events

    def counting(model: Any, *arguments: Any) -> Any:
        boxes.append(tuple(model.space.axes.sizes))
        return compile_events(model, *arguments)

    monkeypatch.setattr(compiled, "compile_events", counting)
    mc.compare(SYSTEM)
    assert boxes
    assert len(boxes) == len(set(boxes))


# --- systems of the user's own --------------------------------------------------------------------


def test_a_system_needs_a_model_only() -> None:
    found = mc.compare(Desk(), {"short": lambda x: np.where(x.queue < 1, "join", "refuse")})
    assert found.optimum.states == 6
    assert found.optimum.kind == "exact"
    weights = np.array([1.0, 1.5])
    busy = weights[1] / weights.sum()
    assert found.rows[0].cost == pytest.approx(busy * (0.5 + 1.5 * 2.0))
    assert found.rows[0].measures == {}
    assert mc.compare(Desk()).rows == ()


def test_caps_reach_a_users_own_model() -> None:
    found = mc.compare(Desk(), caps=(2,))
    assert found.optimum.states == 3
    assert found.optimum.kind == "restricted"


def test_a_users_own_policies_are_compared() -> None:
    found = mc.compare(Shop())
    assert [row.name for row in found.rows] == ["greedy", "half"]
    assert found.rows[0].cost > found.optimum.cost
    assert found.to_dict()["indices"] == {"greedy": [[0.25] * 5], "half": [[0.25] * 2]}


def test_a_users_own_endless_system_is_cut() -> None:
    """M/M/1 with holding cost 1/2, always joined at load 1/2: one customer on average."""
    rules = {"three": lambda x: np.where(x.queue < 3, "join", "refuse"), "all": lambda x: "join"}
    found = mc.compare(Endless(arrival_rate=0.5), rules)
    assert found.optimum.caps == (4,)
    assert [row.status for row in found.rows] == ["exact", "estimated"]
    assert found.rows[1].lower <= 0.5 <= found.rows[1].upper
    assert found.rows[1].cost == pytest.approx(0.5, rel=1e-9)


def test_the_estimate_of_an_unstable_rule_is_as_wide_as_its_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "LARGEST_ESTIMATE", 1000)
    row = cost(Endless(arrival_rate=1.5), lambda x: "join")
    assert row.status == "estimated"
    assert row.upper - row.lower > row.cost


def test_a_gain_that_depends_on_the_state_is_an_error_that_says_so() -> None:
    with pytest.raises(mc.MultichainError, match="depends on the initial state"):
        mc.compare(Parted())


def test_a_tabular_model_is_a_system_too() -> None:
    found = mc.compare(Arrays(), {"mix": [0, 0], "move": lambda s: 1})
    assert found.optimum.cost == pytest.approx(min(row.cost for row in found.rows), abs=1.0)
    assert [row.cost for row in found.rows] == pytest.approx([1.5, 2.25])


# --- limits and pickling --------------------------------------------------------------------------


def test_a_time_limit_gives_what_there_is() -> None:
    with pytest.raises(mc.SolveError, match="did not converge") as caught:
        mc.compare(CloudRouting((Node(9, 1.0, 0.01),) * 2, 17.0, 0.9), [], time_limit=1e-9)
    partial: Any = caught.value.partial
    assert isinstance(partial, Comparison)
    assert partial.optimum.status == "time"
    assert partial.optimum.lower <= partial.optimum.upper
    assert partial.to_dict()["optimum"]["status"] == "time"


def interrupting(after: int) -> Callable[..., None]:
    """A progress callback that behaves like Ctrl-C after some calls."""
    calls = 0

    def callback(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_ends_the_comparison_with_what_there_is() -> None:
    with pytest.raises(mc.SolveError, match="interrupted") as caught:
        mc.compare(SYSTEM, progress=interrupting(0))
    partial: Any = caught.value.partial
    assert partial.rows == ()
    assert partial.optimum.lower <= 3546 / 7715 <= partial.optimum.upper


def test_progress_is_reported() -> None:
    seen: list[tuple[int, float, float]] = []
    mc.compare(SYSTEM, [], progress=lambda *args: seen.append(args))
    assert seen
    assert all(low <= high for _, low, high in seen)


def test_a_comparison_pickles() -> None:
    found = mc.compare(SYSTEM, {"PI": "policy_improvement", "named": by_name, "lost": lambda x: 0})
    again: Comparison = pickle.loads(pickle.dumps(found))
    assert again.to_dict() == found.to_dict()
    assert np.array_equal(again.optimum.policy.table(), found.optimum.policy.table())
    assert [row.rule is not None for row in again.rows] == [True, True, False]
    x = SYSTEM.model().space.axes.state(np.indices((4, 3)))
    assert found.rows[0].rule is not None
    assert again.rows[0].rule is not None
    assert np.array_equal(again.rows[0].rule(x), found.rows[0].rule(x))
    assert again.optimum.model.space.axes.sizes == (3, 2)
    assert found.rows[2].rule is not None


def test_policies_without_theory_are_left_out_with_the_reason_unless_asked_for() -> None:
    system = mc.systems.CloudRouting((mc.systems.Node(2, 1.0, 0.0),), 1.0, 0.9)
    found = mc.compare(system)
    assert [row.name for row in found.rows] == ["individually_optimal", "restless_bandit"]
    assert sum("the split is not determined" in note for note in found.notes) == 2
    with pytest.raises(mc.InputError, match="the split is not determined"):
        mc.compare(system, ["bernoulli_split"])


# --- rules of large boxes -------------------------------------------------------------------------


LARGE = CloudRouting((Node(2, 10.0, 0.3), Node(5, 4.0, 0.3)), 42.0, 0.4)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits at which a box of two thousand states is a large one."""
    for name, states in (("LARGEST", 100), ("LARGEST_ESTIMATE", 900), ("LARGEST_EXACT", 2500)):
        monkeypatch.setattr(rows, name, states)


@pytest.mark.usefixtures("small_limits")
def test_where_estimates_are_too_coarse_the_known_box_of_a_rule_is_taken_after_all() -> None:
    heuristic = LARGE.heuristic("individually_optimal")
    assert heuristic.caps is not None
    (row,) = evaluate_policies(LARGE, ["individually_optimal"])
    assert row.status == "exact"
    assert row.states == np.prod(np.array(heuristic.caps) + 1)
    exact = mc.evaluate(LARGE.model(heuristic.caps), heuristic.rule)
    assert row.lower <= exact.bounds[1]
    assert exact.bounds[0] <= row.upper


@pytest.mark.usefixtures("small_limits")
def test_a_known_box_that_is_too_large_leaves_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = evaluate_policies(LARGE, ["individually_optimal"])[0]
    monkeypatch.setattr(rows, "LARGEST_EXACT", 1000)
    (row,) = evaluate_policies(LARGE, ["individually_optimal"])
    assert row.status == "estimated"
    assert row.states <= 900
    assert row.lower <= exact.cost <= row.upper


@pytest.mark.usefixtures("small_limits")
def test_an_evaluation_of_a_large_box_that_stalls_leaves_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluate = rows.evaluate_policy

    def stalling(model: Any, *arguments: Any) -> Any:
        found = evaluate(model, *arguments)
        large = found.values.size > 900
        return dataclasses.replace(found, status=Status.STALLED) if large else found

    monkeypatch.setattr(rows, "evaluate_policy", stalling)
    (row,) = evaluate_policies(LARGE, ["individually_optimal"])
    assert row.status == "estimated"
    assert row.states <= 900


def test_the_bounds_of_a_relative_gap_are_rounded_outwards() -> None:
    for price in np.linspace(0.1, 0.9, 9).tolist():
        found = mc.compare(dataclasses.replace(SYSTEM, outside_cost=price))
        best: Any = found.optimum
        for row in found.rows:
            gaps: Any = found.gaps(row)
            least = Fraction(row.lower) / Fraction(best.upper) - 1
            largest = Fraction(row.upper) / Fraction(best.lower) - 1
            assert gaps["gap_lower"] <= least <= largest <= gaps["gap_upper"]
            assert gaps["gap_upper"] - gaps["gap_lower"] <= 1.001 * float(largest - least) + 1e-15
