"""Policies and rules on slices of a state space."""

from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.engine.problem import TermInfo
from mdpcloud.plots.slices import Slice, free_axes, policy_on, rule_on, space_caps

TERM = TermInfo("arrival", ("outside", "node 0", "node 1"), True)


def model(space: Any) -> mc.Model:
    routes = [mc.Action("outside", cost=1.0)]
    routes += [mc.Action(f"node {k}", mc.step(node={k: +1})) for k in range(2)]
    leave = [
        mc.Event(
            f"departure {k}", lambda x, k=k: 1.0 * x.node[k], mc.Action("go", mc.step(node={k: -1}))
        )
        for k in range(2)
    ]
    switch = mc.Event("switch", 0.1, [mc.Action("flip", lambda x: mc.step(phase=1 - 2 * x.phase))])
    return mc.Model(space, [mc.Event("arrival", 1.0, routes), *leave, switch])


def rule(x: Any) -> Any:
    return np.where(x.node[0] + x.node[1] + x.phase < 3, 1 + (x.node[1] < x.node[0]), 0)


LATTICE = mc.Lattice({"phase": 1, "node": (4, 5)})
PART = mc.Lattice({"phase": 1, "node": (4, 5)}, where=lambda x: x.node[0] + x.node[1] <= 6)


def the_slice(space: Any, phase: int, shape: tuple[int, int] = (5, 6)) -> Slice:
    return Slice(space.axes, free_axes(space.axes), shape, (phase, 0, 0))


@pytest.mark.parametrize("phase", [0, 1])
@pytest.mark.parametrize("space", [LATTICE, PART])
def test_a_policy_and_its_rule_agree_on_a_slice(space: mc.Lattice, phase: int) -> None:
    policy = mc.policy(model(space), rule)
    part = the_slice(space, phase)
    shown = policy_on(part, policy, "arrival", model(space))
    inside = np.add.outer(np.arange(5), np.arange(6)) <= (9 if space is LATTICE else 6)
    np.testing.assert_array_equal(shown, np.where(inside, rule_on(part, TERM, rule), -1))


def test_a_slice_may_be_smaller_or_larger_than_the_space() -> None:
    policy = mc.policy(model(LATTICE), rule)
    small = policy_on(the_slice(LATTICE, 0, (2, 3)), policy, "arrival", model(LATTICE))
    large = policy_on(the_slice(LATTICE, 0, (7, 3)), policy, "arrival", model(LATTICE))
    np.testing.assert_array_equal(large[:2], small)
    assert (large[5:] == -1).all()


def test_a_space_that_is_reached_has_its_largest_coordinates_as_caps() -> None:
    assert space_caps(model(LATTICE)) == (1, 4, 5)
    capped = mc.Event(
        "arrival", 1.0, [mc.Action("no"), mc.Action("yes", mc.step(n=1), allowed=lambda x: x.n < 3)]
    )
    down = mc.Event("service", lambda x: 1.0 * (x.n > 0), mc.Action("go", mc.step(n=-1)))
    queue = mc.Model(mc.Reachable({"n": 0}), [capped, down])
    assert space_caps(queue) == (3,)
    part = Slice(queue.space.axes, (0,), (4,), (0,))
    policy = mc.policy(queue, lambda x: 1 * (x.n < 2))
    np.testing.assert_array_equal(policy_on(part, policy, "arrival", queue), [1, 1, 0, 0])


def test_a_rule_that_does_not_broadcast_is_asked_state_by_state() -> None:
    def names(x: Any) -> str:
        return "node 1" if x.node[0] > x.node[1] else "outside"

    shown = rule_on(the_slice(LATTICE, 0, (3, 3)), TERM, names)
    np.testing.assert_array_equal(shown, 2 * np.tri(3, k=-1, dtype=int))


def test_states_that_a_rule_does_not_know_stay_open() -> None:
    table = [[1, 2], [0, 7]]
    shown = rule_on(the_slice(LATTICE, 0, (2, 3)), TERM, lambda x: table[x.node[0]][x.node[1]])
    np.testing.assert_array_equal(shown, [[1, 2, -1], [0, -1, -1]])


def test_fixed_coordinates_are_named() -> None:
    part = Slice(LATTICE.axes, (1, 2), (5, 6), (1, 0, 0))
    assert (part.coordinate(0), part.coordinate(1)) == ("jobs at node 0", "jobs at node 1")
    assert part.where() == ", with phase 1"
    many = mc.Lattice({"node": (9,) * 8, "kind": (1, 1)}).axes
    wide = Slice(many, (8, 0), (2, 10), (0, 1, *range(2, 10)))
    assert wide.coordinate(0) == "kind 0"
    assert wide.where() == (
        ", with 1 job at node 1, 2 jobs at node 2, 3 jobs at node 3, 4 jobs at node 4, ..."
    )
    assert wide.label(1).startswith("x(node=(1, 1, 2,")
