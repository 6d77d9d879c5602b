"""Relative value iteration as a solver by itself, and its start on smaller boxes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.choice import default_solvers
from mdpcloud.solve.limits import Goal, Monitor, Status
from mdpcloud.solve.nested import continued, smaller_box, start_values
from mdpcloud.solve.value_iteration import Sweeper, ValueIteration
from tests.admission import admission, two_queues
from tests.models.routing import Node, routing

GOAL = Goal(1e-8, 10.0)


def run(model: Any, start: Any = None, **settings: Any) -> tuple[Any, Monitor]:
    problem: Any = compile_model(model)
    monitor = Monitor()
    h = problem.pack(np.zeros(problem.n) if start is None else start)
    return ValueIteration(**settings).run(problem, GOAL, monitor, h), monitor


def test_it_hands_over_after_its_most_sweeps() -> None:
    outcome, monitor = run(two_queues((12, 12)), most=20)
    assert outcome.handed_over
    assert outcome.status is Status.STALLED
    assert 20 <= monitor.iterations < 40


def test_it_does_not_hand_over_what_is_solved() -> None:
    outcome, _ = run(two_queues((12, 12)), most=100_000)
    assert not outcome.handed_over
    assert outcome.status is Status.CONVERGED


def test_bounds_that_stop_closing_are_no_handing_over() -> None:
    islands = mc.tabular([np.eye(2)], costs=[0.0, 1.0])
    outcome, monitor = run(islands, stall=50, most=10_000)
    assert outcome.status is Status.STALLED
    assert not outcome.handed_over
    assert monitor.iterations < 200


def test_the_solution_is_a_fixed_point_that_takes_one_sweep() -> None:
    model = two_queues((12, 12))
    outcome, _ = run(model)
    problem: Any = compile_model(model)
    _, monitor = run(model, problem.unpack(outcome.h))
    assert monitor.iterations <= 2


@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
)
def test_linear_values_are_continued_exactly(slopes: list[float], more: tuple[int, ...]) -> None:
    def plane(shape: tuple[int, ...]) -> Any:
        return sum(s * x for s, x in zip(slopes, np.indices(shape), strict=True)) + 1.0

    shape = (3, 2, 4)
    larger = tuple(n + k for n, k in zip(shape, more, strict=True))
    np.testing.assert_allclose(continued(plane(shape), larger), plane(larger), atol=1e-12)


def test_a_smaller_box_has_about_a_third_of_the_states_and_keeps_short_axes() -> None:
    phase = mc.Event("turn", 1.0, mc.step(phase=+1))
    model = mc.Model(mc.Lattice({"node": (99, 199), "phase": 1}), [phase])
    smaller = smaller_box(model)
    assert smaller is not None
    assert smaller.space.caps == {"node": (59, 119), "phase": 1}


@pytest.mark.parametrize(
    "model",
    [
        two_queues((20, 20)),
        mc.Model(mc.Lattice({"i": 99, "j": 99}, where=lambda x: x.i <= x.j), admission(3).events),
        mc.Model(mc.Lattice({"i": (6,) * 5}), [mc.Event("none", 1.0, mc.Action("stay"))]),
        mc.tabular([np.eye(2)], costs=[0.0, 1.0]),
    ],
    ids=["few states", "condition", "short axes", "arrays"],
)
def test_some_models_have_no_smaller_box(model: Any) -> None:
    assert smaller_box(model) is None
    assert start_values(model, GOAL) is None


def test_an_event_that_leaves_the_smaller_box_is_no_mistake() -> None:
    cap = 9999
    birth = mc.Event("birth", lambda x: 1.0 * (x.jobs < cap), mc.step(jobs=+1))
    death = mc.Event("death", lambda x: 1.5 * (x.jobs > 0), mc.step(jobs=-1))
    model = mc.Model(mc.Lattice({"jobs": cap}), [birth, death], cost_rate=lambda x: 1.0 * x.jobs)
    assert smaller_box(model) is not None
    assert start_values(model, GOAL) is None


@pytest.mark.slow
def test_a_start_on_smaller_boxes_saves_most_sweeps() -> None:
    nodes = Node(20, 1.0, 0.3), Node(10, 2.0, 0.3)
    model = routing(nodes, 38.0, 0.5, (150, 150))
    start = start_values(model, GOAL)
    assert start is not None
    cold, without = run(model)
    warm, with_start = run(model, start)
    assert with_start.iterations < 0.25 * without.iterations
    assert warm.certificate.low <= cold.certificate.high
    assert cold.certificate.low <= warm.certificate.high


def test_an_interrupt_on_a_smaller_box_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweeper, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start_values(two_queues((99, 99)), GOAL)


def test_small_models_are_solved_by_policies_and_large_ones_by_sweeps_first() -> None:
    small, large = (compile_model(admission(cap)) for cap in (20, 5000))
    assert default_solvers(small)[0].name == "policy_iteration"
    assert [s.name for s in default_solvers(large)[:2]] == ["value_iteration", "policy_iteration"]
    assert default_solvers(large)[-1] == ValueIteration()
