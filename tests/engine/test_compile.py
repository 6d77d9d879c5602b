"""Which form a model gets, and that a model of one's own functions gives the known numbers."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.engine.indexed import IndexedLayout
from mdpcloud.engine.lattice import LatticeLayout
from mdpcloud.engine.rows import RowsProblem
from tests.admission import LOST, admission, birth_death_law, two_queues

CASES = {
    case["id"]: case
    for line in (Path(__file__).parents[1] / "reference/cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))
}


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def where(condition):
    return two_queues_in(mc.Lattice({"node": (9, 9)}, where=condition))


def two_queues_in(space):
    return mc.Model(space, two_queues().events)


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        (admission(), LatticeLayout),
        (where(lambda x: x.node[0] + x.node[1] <= 12), LatticeLayout),
        (where(lambda x: x.node[0] + x.node[1] <= 3), IndexedLayout),
        (admission(actions=[mc.Action("j", lambda x: mc.step(jobs=x.jobs)), LOST]), IndexedLayout),
        (
            admission(space=mc.Reachable({"jobs": 0}), rate=lambda x: 0.5 * (x.jobs < 4)),
            IndexedLayout,
        ),
    ],
)
def test_boxes_that_are_well_filled_are_swept_as_boxes(model, layout):
    assert isinstance(compile_model(model).layout, layout)


def test_tabular_models_are_rows():
    assert isinstance(compile_model(mc.tabular([np.eye(2)])), RowsProblem)


def test_a_form_that_the_model_does_not_have_is_refused():
    with refused("a Reachable space has no lattice form"):
        compile_model(admission(space=mc.Reachable({"jobs": 0})), "lattice")
    by_state = admission(actions=[mc.Action("j", lambda x: mc.step(jobs=x.jobs)), LOST])
    with refused("a step depends on the state; such a model has only the indexed form"):
        compile_model(by_state, "lattice")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3))
@settings(max_examples=30)
def test_states_are_numbered_with_the_last_axis_fastest(caps):
    clock = mc.Event("tick", 1.0, mc.Action("stay"))
    problem = compile_model(mc.Model(mc.Lattice({"a": caps}), clock))
    expected = [tuple(map(int, index)) for index in np.ndindex(*(c + 1 for c in caps))]
    assert [problem.state(s).a for s in range(problem.n)] == expected
    assert problem.label(problem.n - 1) == f"(a={tuple(caps)})"


@pytest.mark.parametrize("form", ["lattice", "indexed"])
def test_states_of_a_region_keep_the_order_of_the_box(form):
    problem = compile_model(where(lambda x: x.node[0] + x.node[1] <= 2), form)
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    assert [problem.state(s).node for s in range(problem.n)] == expected


def test_a_region_bars_the_actions_that_leave_it():
    model = where(lambda x: x.node[0] + x.node[1] <= 2)
    allowed, active = compile_model(model).allowed(0)
    assert active.all()
    assert allowed[0].tolist() == allowed[1].tolist() == [True, True, False, True, False, False]
    assert allowed[2].all()


def test_what_decides_is_what_has_two_actions_somewhere():
    model = admission(
        extra=[
            mc.Event("never", 0.0, [mc.Action("a"), mc.Action("b")]),
            mc.Event("one", 1.0, [mc.Action("a"), mc.Action("b", mc.step(jobs=9))]),
            mc.Control("speed", [mc.Mode("slow"), mc.Mode("fast", 1.0)]),
        ]
    )
    decisions = [term.name for term in compile_model(model).terms if term.decision]
    assert decisions == ["arrival", "speed"]


def test_jobs_that_balk_at_a_rate_of_the_users_own_have_the_known_law():
    """Public report on state-dependent arrivals (Ciw, issue 147)."""
    answer = [float(p) for p in CASES["baulk"]["right_answer"]["P(n)"]]
    arrival = mc.Event(
        "arrival",
        lambda x: np.where(x.jobs < 2, 5.0, np.where(x.jobs < 6, 2.5, 0.0)),
        mc.step(jobs=+1),
    )
    service = mc.Event("service", lambda x: 10.0 * (x.jobs > 0), mc.step(jobs=-1))
    law = {f"P({n})": lambda x, n=n: 1.0 * (x.jobs == n) for n in range(7)}
    model = mc.Model(mc.Lattice({"jobs": 6}), [arrival, service], measures=law)
    exact = birth_death_law([5, 5, 2.5, 2.5, 2.5, 2.5], [10] * 6)
    found = mc.evaluate(model, {}).measures
    for n, (lower, upper) in enumerate(found.values()):
        assert lower <= exact[n] <= upper
        assert upper - lower < 1e-9
        assert float(exact[n]) == pytest.approx(answer[n], abs=1e-12)


@settings(max_examples=20)
@given(st.integers(-40, 40))
def test_the_unit_of_time_only_scales_the_gain(power):
    scale = 2.0**power
    plain, scaled = two_queues(), two_queues()
    events = [mc.Event(e.name, _times(scale, e.rate), e.actions) for e in scaled.events]
    costs = [_times(scale, c) for c in scaled.cost_rate]
    model = mc.Model(scaled.space, events, cost_rate=costs)
    one, other = mc.solve(plain), mc.solve(model)
    assert other.gain == pytest.approx(scale * one.gain, rel=2e-8)
    assert np.array_equal(one.policy.table(), other.policy.table())


def _times(scale, rate):
    return (lambda x: scale * rate(x)) if callable(rate) else scale * rate


def test_the_order_of_the_axes_does_not_matter():
    plain = two_queues((3, 4))
    flipped = mc.Model(
        mc.Lattice({"node": (4, 3)}),
        [
            mc.Event(
                "arrival",
                1.3,
                [
                    mc.Action("node 1", mc.step(node={1: +1})),
                    mc.Action("node 0", mc.step(node={0: +1})),
                    mc.Action("refuse", cost=6.0),
                ],
            ),
            mc.Event("service 0", lambda x: 1.0 * (x.node[1] > 0), mc.step(node={1: -1})),
            mc.Event("service 1", lambda x: 1.2 * (x.node[0] > 0), mc.step(node={0: -1})),
        ],
        cost_rate=lambda x: x.node[1] + 1.5 * x.node[0],
    )
    one, other = mc.solve(plain), mc.solve(flipped)
    assert max(one.bounds[0], other.bounds[0]) <= min(one.bounds[1], other.bounds[1])
    assert np.array_equal(one.policy.table(), other.policy.table().T)
