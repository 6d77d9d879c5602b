"""Thresholds: below which use an option is taken."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Parameter
from mdpcloud.policies.thresholds import thresholds
from tests.policies.links import Link, levels

LINK = Link(arrival_rates=(2.0, 1.0, 1.0), sizes=(1, 2, 2), costs=(1.0, 1.0, 2.0))
GRID = levels(LINK.capacity)


def families(guarded: tuple[int, ...]) -> tuple[Family, Family]:
    """With a level for each guarded class, and with a common one."""
    streams = LINK.streams(guarded)
    each = thresholds(streams, [Parameter(f"level[{j}]", GRID) for j in guarded])
    return each, thresholds(streams, [Parameter("level", GRID)], "common", common=True)


@given(st.sampled_from(GRID), st.sampled_from([(0,), (0, 1), (0, 1, 2), (2,)]))
def test_a_common_level_is_that_of_every_guarded_class(
    level: int, guarded: tuple[int, ...]
) -> None:
    each, common = families(guarded)
    model = LINK.model()
    one, other = (
        mc.policy(model, rules)
        for rules in (each.member(*[level] * len(guarded)), common.member(level))
    )
    for decision, actions in one.actions.items():
        assert np.array_equal(actions, other.actions[decision])


def test_at_the_capacity_a_level_holds_nothing_back() -> None:
    model = LINK.model()
    sharing = mc.policy(model, complete_sharing(LINK.streams()).member())
    highest = mc.policy(model, families((0, 1, 2))[1].member(LINK.capacity))
    for decision, actions in sharing.actions.items():
        assert np.array_equal(actions, highest.actions[decision])


@given(st.lists(st.sampled_from(GRID), min_size=2, max_size=2))
def test_each_class_is_taken_below_its_own_level(given_levels: list[int]) -> None:
    model = LINK.model()
    each, _ = families((0, 2))
    policy = mc.policy(model, each.member(*given_levels))
    x = np.array([(i, j, k) for i in range(7) for j in range(4) for k in range(4)])
    used = x @ np.array(LINK.sizes)
    x, used = x[used <= LINK.capacity], used[used <= LINK.capacity]
    for j, level in zip((0, 2), given_levels, strict=True):
        taken = (used < level) & (used + LINK.sizes[j] <= LINK.capacity)
        assert np.array_equal(policy.actions[f"arrival {j}"] == 0, taken)
    free = used + LINK.sizes[1] <= LINK.capacity
    assert np.array_equal(policy.actions["arrival 1"] == 0, free)
