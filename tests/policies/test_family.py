"""Families of policies: their grids, their names, the rule that takes what fits first."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.policies.family import (
    BEST,
    Family,
    Parameter,
    best_members,
    families_of,
    first_fit,
    in_words,
)


def family(*lengths: int, name: str = "some") -> Family:
    """A family on a grid, without rules."""
    grid = (Parameter(f"p{k}", tuple(range(length))) for k, length in enumerate(lengths))
    return Family(name, tuple(grid), lambda *values: {})


@given(st.lists(st.integers(0, 4), max_size=3))
def test_the_members_are_all_points_of_the_grid_in_the_order_of_their_vectors(
    lengths: list[int],
) -> None:
    one = family(*lengths)
    members = list(one.members())
    assert members == sorted(itertools.product(*map(range, lengths)))
    assert one.size == len(members)


def test_a_family_without_parameters_has_one_member() -> None:
    assert list(family().members()) == [()]
    assert family().size == 1


@given(st.lists(st.sampled_from("abc"), max_size=3, unique=True), st.integers(0, 7))
def test_the_first_action_whose_condition_holds_is_taken(names: list[str], held: int) -> None:
    def holds(k: int) -> bool:
        return bool(held >> k & 1)

    rule = first_fit([(name, lambda x, k=k: holds(k) & (x >= 0)) for k, name in enumerate(names)])
    expected = next((name for k, name in enumerate(names) if holds(k)), "reject")
    assert [str(action) for action in np.broadcast_to(rule(np.zeros(3)), 3)] == [expected] * 3
    assert str(rule(0)) == expected


def test_best_members_have_names_of_their_own() -> None:
    system = SimpleNamespace(
        policy_names=("some", "other"), families=lambda: (family(3), family(name="other"))
    )
    assert list(families_of(system)) == [f"{BEST}some", f"{BEST}other"]
    assert list(best_members(system)) == [f"{BEST}some"]


def test_a_family_of_one_that_is_no_policy_of_the_system_is_searched() -> None:
    system = SimpleNamespace(families=lambda: (family(name="other"),))
    assert list(best_members(system)) == [f"{BEST}other"]


def test_a_system_without_families_has_none() -> None:
    assert families_of(SimpleNamespace()) == {}
    assert best_members(SimpleNamespace()) == {}


@pytest.mark.parametrize(
    ("parameter", "width", "words"),
    [
        ({}, 80, ""),
        ({"level": 3.0}, 80, "level 3"),
        ({"p[0]": 0.05, "p[1]": 1}, 80, "p[0] 0.05, p[1] 1"),
        ({"p[0]": 0.05, "p[1]": 1}, 10, "0.05, 1"),
        (dict.fromkeys(map(str, range(4)), 2), 80, "2, 2, 2, 2"),
    ],
)
def test_parameters_are_named_where_there_is_room(
    parameter: dict[str, float], width: int, words: str
) -> None:
    assert in_words(parameter, width) == words


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((Parameter("a", (1.0,)), Parameter("a", (2.0,))), "must differ in name"),
        ((Parameter("a", (1.0, math.inf)),), "must be finite"),
        ((Parameter("a", (math.nan,)),), "must be finite"),
    ],
)
def test_a_grid_that_cannot_be_searched_or_told_is_refused(
    parameters: tuple[Parameter, ...], message: str
) -> None:
    class Odd:
        def families(self) -> tuple[Family, ...]:
            return (Family("odd", parameters, lambda *values: {}),)

    with pytest.raises(mc.InputError, match=message):
        families_of(Odd())


def test_two_families_of_a_system_have_different_names() -> None:
    class Twins:
        def families(self) -> tuple[Family, ...]:
            return (Family("one", (), dict), Family("one", (), dict))

    with pytest.raises(mc.InputError, match="two families 'one'"):
        families_of(Twins())
