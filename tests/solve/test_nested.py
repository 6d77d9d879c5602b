"""Values to start from, found on smaller boxes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.limits import Goal, Monitor
from mdpcloud.solve.nested import boxed, continued, first_box, next_box, start_values
from mdpcloud.solve.value_iteration import Sweeper, ValueIteration
from tests.admission import admission, two_queues
from tests.models.routing import Node, routing

GOAL = Goal(1e-8, 10.0)
NODES = Node(20, 1.0, 0.3), Node(10, 2.0, 0.3)


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


def test_the_first_box_is_small_and_keeps_short_axes() -> None:
    phase = mc.Event("turn", 1.0, mc.step(phase=+1))
    model = mc.Model(mc.Lattice({"node": (99, 199), "phase": 1}), [phase])
    shape = first_box(model)
    assert shape == (32, 63, 2)
    assert boxed(model, shape).space.caps == {"node": (31, 62), "phase": 1}


@given(st.lists(st.tuples(st.integers(4, 60), st.integers(0, 60)), min_size=1, max_size=4))
def test_boxes_grow_to_the_whole_one(axes: list[tuple[int, int]]) -> None:
    shape, whole = tuple(k for k, _ in axes), tuple(k + more for k, more in axes)
    steps = 0
    while shape != whole:
        grown = next_box(shape, whole)
        assert all(k <= n <= most for k, n, most in zip(shape, grown, whole, strict=True))
        assert 1.0 < np.prod(grown) / np.prod(shape) < 4.0
        shape, steps = grown, steps + 1
    assert steps <= 20


@pytest.mark.parametrize(
    "model",
    [
        two_queues((20, 20)),
        mc.Model(mc.Lattice({"i": 199, "j": 199}, where=lambda x: x.i <= x.j), admission(3).events),
        mc.Model(mc.Lattice({"i": (6,) * 6}), [mc.Event("none", 1.0, mc.Action("stay"))]),
        mc.tabular([np.eye(2)], costs=[0.0, 1.0]),
    ],
    ids=["few states", "condition", "short axes", "arrays"],
)
def test_some_models_have_no_smaller_box(model: Any) -> None:
    assert first_box(model) is None
    assert start_values(model, GOAL) is None


def test_an_event_that_leaves_the_smaller_box_is_no_mistake() -> None:
    cap = 29_999
    birth = mc.Event("birth", lambda x: 1.0 * (x.jobs < cap), mc.step(jobs=+1))
    death = mc.Event("death", lambda x: 1.5 * (x.jobs > 0), mc.step(jobs=-1))
    model = mc.Model(mc.Lattice({"jobs": cap}), [birth, death], cost_rate=lambda x: 1.0 * x.jobs)
    assert first_box(model) is not None
    assert start_values(model, GOAL) is None


def sweeps(model: Any, start: Any = None) -> tuple[Any, int]:
    problem: Any = compile_model(model)
    monitor = Monitor()
    h = problem.pack(np.zeros(problem.n) if start is None else start)
    return ValueIteration().run(problem, GOAL, monitor, h).certificate, monitor.iterations


@pytest.mark.slow
def test_a_start_on_smaller_boxes_saves_most_sweeps() -> None:
    model = routing(NODES, 38.0, 0.5, (150, 150))
    start = start_values(model, GOAL)
    assert start is not None
    cold, without = sweeps(model)
    warm, with_start = sweeps(model, start)
    assert with_start < 0.5 * without
    assert warm.low <= cold.high
    assert cold.low <= warm.high


@pytest.mark.slow
def test_a_neighbouring_instance_saves_sweeps() -> None:
    caps = (60, 60)
    neighbour = mc.solve(routing(NODES, 37.9, 0.5, caps), solver="value_iteration")
    model = routing(NODES, 38.0, 0.5, caps)
    cold = mc.solve(model, solver="value_iteration")
    warm = mc.solve(model, solver="value_iteration", start=neighbour)
    assert warm.iterations < 0.8 * cold.iterations
    assert warm.bounds[0] <= cold.bounds[1]
    assert cold.bounds[0] <= warm.bounds[1]


def test_a_time_limit_leaves_values_all_the_same() -> None:
    start = start_values(two_queues((149, 149)), GOAL, time_limit=1e-9)
    assert start is not None
    assert start.shape == (150 * 150,)
    assert np.isfinite(start).all()


def test_an_interrupt_on_a_smaller_box_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweeper, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start_values(two_queues((149, 149)), GOAL)
