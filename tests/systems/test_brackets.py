"""Systems without a finite box, or with too large a one: brackets, estimates of rules."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.compare import rows
from mdpcloud.compare.optimum import SMALL, Settings, find_optimum
from mdpcloud.indices.bounds import lower_bound
from mdpcloud.systems import CloudRouting, Node
from tests.systems.cases import nodes, numbers

TWO = (Node(3, 4.0, 0.3), Node(8, 1.5, 0.3))


def bounds(
    system: CloudRouting, caps: tuple[int, ...], edge: str = "closed"
) -> tuple[float, float]:
    lower, upper = mc.solve(system.model(caps, edge), tolerance=1e-9).bounds
    return float(lower), float(upper)


@pytest.mark.parametrize(
    ("caps", "low", "high"), [((19, 24), 1.478, 1.5777), ((35, 40), 1.57697, 1.57749)]
)
def test_the_bracket_on_small_boxes_is_the_known_one(
    caps: tuple[int, int], low: float, high: float
) -> None:
    system = CloudRouting(TWO, 24.0, 0.9)
    assert system.exact_caps() == (363, 368)
    assert bounds(system, caps, "lower")[0] == pytest.approx(low, abs=6e-4 if low < 1.5 else 6e-6)
    assert bounds(system, caps)[1] == pytest.approx(high, abs=6e-5 if low < 1.5 else 6e-6)


def test_a_box_that_is_too_large_is_replaced_by_a_bracket() -> None:
    system = CloudRouting(TWO, 24.0, 0.9)
    comparison = mc.compare(system, ["individually_optimal"])
    found, (row,) = comparison.optimum, comparison.rows
    assert SMALL < (363 + 1) * (368 + 1)
    assert row.status == "estimated"
    assert row.states < SMALL
    assert row.cost == pytest.approx(1.57748938247, abs=1e-10)
    assert found.kind == "bracketed"
    assert found.states < SMALL
    assert found.lower <= 1.5774893793874 <= found.upper
    assert 0 <= (found.error or 0.0) == found.upper - found.lower <= 1e-8 * found.cost


@pytest.mark.parametrize("outside", [1.0, 1.2])
def test_the_bracket_encloses_the_optimum_of_a_far_larger_box(outside: float) -> None:
    system = CloudRouting(TWO, 24.0, outside)
    assert system.exact_caps() == (None, None)
    found = mc.compare(system, []).optimum
    lower, upper = bounds(system, (140, 140))
    assert found.kind == "bracketed"
    assert found.upper - found.lower <= 1e-8 * found.cost
    assert found.lower <= upper
    assert lower <= found.upper + 1e-9 * found.cost


@settings(max_examples=12)
@given(
    st.builds(
        CloudRouting,
        st.lists(nodes, min_size=1, max_size=2).map(tuple),
        numbers(0.2, 9.0),
        numbers(0.95, 2.0),
        st.sampled_from(["begin_service", "end_service"]),
    )
)
def test_brackets_of_all_boxes_are_nested_and_hold(system: CloudRouting) -> None:
    found = find_optimum(system, Settings(tolerance=1e-7))
    assert found.status == "converged"
    for cap in (4, 9):
        caps = (cap,) * len(system.nodes)
        assert bounds(system, caps, "lower")[0] <= found.upper
        assert bounds(system, caps)[1] >= found.lower
        assert bounds(system, caps, "upper")[1] >= found.lower


@pytest.mark.parametrize("caps", [(6, 9), (12, 14)])
def test_the_bracket_is_at_most_as_wide_as_the_theorem_says(caps: tuple[int, int]) -> None:
    system = CloudRouting(TWO, 24.0, 0.7)
    least = [float(lower_bound(n, cap)) for n, cap in zip(system._theory, caps, strict=True)]
    widest = 24.0 * max(max(0.7 - v, 0.0) for v in least)
    width = bounds(system, caps)[1] - bounds(system, caps, "lower")[0]
    assert 0 <= width <= widest


def test_a_fee_below_the_outside_cost_makes_the_node_endless() -> None:
    """With n = 1 and F < C the optimal chain is unbounded; nothing is ever outsourced."""
    found = mc.compare(CloudRouting((Node(2, 1.0, 0.5, fee=0.3),), 4.0, 0.4))
    law = mc.queues.abandonment(servers=2, service_rate=1.0, abandonment_rate=0.5, arrival_rate=4.0)
    never_outside = 0.3 * float(law.loss_rate)
    assert found.optimum.lower <= never_outside * (1 + 1e-12)
    assert found.optimum.upper >= never_outside * (1 - 1e-12)
    for row in found.rows[1:]:
        assert row.status == "estimated"
        assert row.cost == pytest.approx(never_outside, rel=1e-9)
        assert row.lower <= never_outside <= row.upper
        assert "estimated" in row.notes[-1]


def test_index_rules_are_followed_far_into_an_endless_queue() -> None:
    """A mean queue of 500 jobs, far beyond the states whose indices are listed."""
    found = mc.compare(CloudRouting((Node(4, 5.0, 0.01),), 25.0, 1.2))
    law = mc.queues.abandonment(
        servers=4, service_rate=5.0, abandonment_rate=0.01, arrival_rate=25.0
    )
    for row in found.rows:
        assert row.cost == pytest.approx(float(law.loss_rate), rel=1e-9)
        assert sum(row.measures["mean_jobs"]) / 2 == pytest.approx(float(law.mean_jobs), rel=1e-7)
    assert len(found.rows[1].indices[0]) < 100  # type: ignore[index]


def test_bounded_and_endless_nodes_go_together() -> None:
    system = CloudRouting((Node(1, 1.0, 0.5, fee=0.3), Node(1, 1.0, 0.5)), 3.0, 0.4)
    endless, bounded = system.exact_caps()
    assert endless is None
    assert bounded is not None
    found = mc.compare(system)
    lower, upper = bounds(system, (120, bounded + 3))
    assert found.optimum.lower <= upper
    assert lower <= found.optimum.upper
    assert (found.optimum.caps or ())[1] <= bounded


def test_patient_free_nodes_cost_nothing_below_their_capacity() -> None:
    """The bracket stops at the finest width, since there is no relative one."""
    system = CloudRouting((Node(2, 1.0, 0.0), Node(1, 1.0, 0.5)), 1.5, 0.6)
    found = mc.compare(system, {"first": lambda x: "node 0"})
    assert abs(found.optimum.cost) < 1e-10
    assert found.to_dict()["policies"][0]["gap"] is None
    with pytest.raises(mc.InputError, match=r"'bernoulli_split'.*free up to its capacity"):
        mc.compare(system, ["bernoulli_split"])
    default = mc.compare(system)
    assert [row.name for row in default.rows] == ["individually_optimal", "restless_bandit"]
    assert sum("left out" in note for note in default.notes) == 2


def test_a_bracket_keeps_the_best_of_all_boxes_when_it_is_cut_short() -> None:
    system = CloudRouting(TWO, 24.0, 1.2)
    rounds = 0

    def stop(*_: object) -> None:
        nonlocal rounds
        rounds += 1
        if rounds > 3:
            raise KeyboardInterrupt

    with pytest.raises(mc.SolveError) as caught:
        mc.compare(system, progress=stop, tolerance=1e-9)
    partial: Any = caught.value.partial
    assert partial.rows == ()
    best = partial.optimum
    assert best.status == "interrupted"
    assert best.lower <= 1.57748938 <= best.upper
    assert math.isfinite(best.upper - best.lower)


# --- rules that leave every box -------------------------------------------------------------------


def always(node: int) -> object:
    return lambda x: f"node {node}"


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        (CloudRouting(TWO, 24.0, 0.25), lambda x: np.where(x.node[0] <= x.node[1], 1, 2)),
        (CloudRouting(TWO, 14.0, 0.25), lambda x: np.where(x.node[1] < 8, 2, 1)),
        (CloudRouting((Node(1, 1.0, 0.3), Node(2, 1.0, 2.0)), 4.0, 0.4), always(0)),
        (CloudRouting((Node(2, 1.0, 0.05),), 3.0, 0.4), always(0)),
    ],
)
def test_the_estimated_error_holds_against_a_far_larger_box(
    system: CloudRouting, rule: object
) -> None:
    (row,) = mc.compare(system, {"mine": rule}).rows
    assert row.status == "estimated"
    model = system.model(tuple([150] if len(system.nodes) == 1 else [75, 75]), "lower")
    assert row.states < np.prod(model.space.shape) or len(system.nodes) == 1
    numbers_ = closed_rule(model, rule)
    lower, upper = mc.evaluate(model, numbers_).bounds
    assert row.lower <= upper
    assert lower <= row.upper
    assert row.upper - row.lower <= 2e-9 * row.cost


def closed_rule(model: mc.Model, rule: object) -> np.ndarray:
    """The rule on a box; at a cap the job pays, of which there is next to no chance."""
    from mdpcloud.engine import compile_model
    from mdpcloud.engine.rules import action_numbers

    problem = compile_model(model)
    term = problem.terms[0]
    chosen = np.array(action_numbers(problem, term, rule))
    allowed, _ = problem.allowed(0)
    n = len(term.actions) // 2
    for k in range(n):
        stopped = (chosen == k + 1) & ~allowed[k + 1]
        chosen[stopped] = n + 1 + k
    return chosen


def test_an_estimate_on_small_boxes_admits_how_little_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In overload with great patience, nearly all cost lies beyond any box that is tried."""
    monkeypatch.setattr(rows, "LARGEST_ESTIMATE", 1000)
    system = CloudRouting((Node(1, 20.0, 1e-7), Node(1, 1.0, 1.0)), 25.0, 1.2)
    row = mc.compare(system, {"mine": always(0)}, caps=(30, 2), tolerance=1e-3).rows[0]
    assert row.status == "estimated"
    assert row.lower <= 5.0 <= row.upper


def test_a_rule_that_stays_in_a_box_beyond_the_first_one_is_evaluated_exactly() -> None:
    system = CloudRouting(TWO, 24.0, 0.25)
    far = system.start_caps()[0] + 20
    (row,) = mc.compare(system, {"mine": lambda x: np.where(x.node[0] < far, 1, 0)}).rows
    assert row.status == "exact"
    model = system.model((far, 0))
    again = mc.evaluate(model, lambda x: np.where(x.node[0] < far, 1, 0))
    assert row.cost == pytest.approx(again.gain, rel=1e-9)


def test_patience_and_holding_costs_leave_an_estimate_without_a_largest_cost() -> None:
    """M/M/1 with holding cost, always joined: w rho / (1 - rho)."""
    system = CloudRouting((Node(1, 2.0, 0.0, holding_cost=0.3),), 1.0, 0.9)
    (row,) = mc.compare(system, {"mine": always(0)}).rows
    assert row.status == "estimated"
    assert row.lower <= 0.3 <= row.upper
    assert row.upper - row.lower < 1e-8
