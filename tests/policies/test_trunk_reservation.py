"""Trunk reservation: what must stay free, and the families that it lies between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Option, Parameter, Stream
from mdpcloud.policies.trunk_reservation import trunk_reservation
from tests.policies.links import Link, levels

FREE = np.arange(12)
LINK = Link()


def one(level: float) -> Any:
    """Answers of the rule of one class of size 3 to the capacity that is free."""
    option = Option("accept", lambda free: free >= 3, spare=lambda free: free - 3)
    family = trunk_reservation([Stream("arrival", (option,))], [Parameter("reserved", levels(9))])
    return family.member(level)["arrival"](FREE)


@given(st.integers(0, 9))
def test_a_job_is_taken_if_the_level_stays_free(level: int) -> None:
    assert (one(level) == "accept").tolist() == (level <= FREE - 3).tolist()


@given(st.integers(0, 8))
def test_a_higher_level_takes_fewer_jobs(level: int) -> None:
    assert not ((one(level + 1) == "accept") & (one(level) == "reject")).any()


def test_with_nothing_reserved_it_is_complete_sharing() -> None:
    model = LINK.model()
    sharing = mc.policy(model, complete_sharing(LINK.streams()).member())
    reserving = mc.policy(model, LINK.reservation().member(0))
    for decision, actions in sharing.actions.items():
        assert np.array_equal(actions, reserving.actions[decision])


def test_levels_go_to_the_options_that_look_at_them_in_order() -> None:
    """An option without spare capacity is not guarded, and takes no level."""
    first, second, third = (
        Option(name, lambda x: x >= 0, spare=spare)
        for name, spare in (("a", lambda x: x), ("b", None), ("c", lambda x: x))
    )
    family = trunk_reservation(
        [Stream("one", (first, second)), Stream("two", (third,), "later")],
        [Parameter("a", (0, 1)), Parameter("c", (0, 1))],
    )
    rules = family.member(2, 5)
    assert rules["one"](np.arange(4)).tolist() == ["b", "b", "a", "a"]
    assert rules["two"](np.array([4, 5])).tolist() == ["later", "c"]
    assert family.name == "trunk_reservation"
    assert not family.unimodal


def test_what_is_kept_from_one_class_helps_the_other() -> None:
    """Exact: more reserved against class 0, fewer of its jobs; no fewer of class 1."""
    model = LINK.model()
    means = [
        mc.evaluate(model, LINK.reservation().member(level)).measures
        for level in levels(LINK.capacity)
    ]
    first, second = ([sum(m[f"mean_jobs[{j}]"]) / 2 for m in means] for j in (0, 1))
    assert first == sorted(first, reverse=True)
    assert second == sorted(second)
    assert first[-1] == pytest.approx(0.0, abs=1e-12)
