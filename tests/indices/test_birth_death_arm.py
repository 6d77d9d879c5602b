"""Building birth-death arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.birth_death_arm import birth_death_arm


def test_numbers_functions_and_arrays_build_the_same_arm() -> None:
    up, down = np.array([2.0, 2.0, 0.0]), np.array([0.0, 1.0, 2.0])
    arrays = birth_death_arm(up, np.zeros(3), down, down, down, down, work1=2.0)
    mixed = birth_death_arm(
        *(2.0, 0.0, lambda i: i, lambda i: 1.0 * i, lambda i: i, lambda i: i),
        work1=lambda i: 2.0,
        room=2,
        unbounded=False,
    )
    for field in ("births", "deaths", "costs", "work"):
        np.testing.assert_array_equal(getattr(arrays, field), getattr(mixed, field))
    assert arrays.enlarged is None
    assert mixed.enlarged is None


def test_the_general_arm_has_the_same_rates() -> None:
    arm = birth_death_arm(1.0, 2.0, 3.0, lambda i: 4.0 * i, 0.0, 5.0, room=2).general()
    assert arm.is_sparse
    assert not arm.discrete
    np.testing.assert_array_equal(arm.moves[0].toarray(), [[-1, 1, 0], [3, -4, 1], [0, 3, -3]])
    np.testing.assert_array_equal(arm.moves[1].toarray(), [[-2, 2, 0], [4, -6, 2], [0, 8, -8]])
    np.testing.assert_array_equal(arm.costs, [[0, 0, 0], [5, 5, 5]])
    assert arm.enlarged is not None
    assert arm.enlarged().n == 5


def test_one_state_is_an_arm() -> None:
    arm = birth_death_arm(1.0, 1.0, 1.0, 1.0, rewards1=2.0, room=0)
    assert arm.n == 1
    assert arm.general().moves[0].toarray() == [[0.0]]
    assert arm.costs.tolist() == [[0.0], [-2.0]]


def test_a_cut_arm_is_built_again_with_twice_the_room() -> None:
    arm = birth_death_arm(1.0, 0.5, lambda i: i, lambda i: i + 1, rewards0=lambda i: i, room=10)
    assert arm.enlarged is not None
    larger = arm.enlarged()
    assert larger.n == 21
    np.testing.assert_array_equal(larger.births[:, :10], arm.births[:, :10])
    np.testing.assert_array_equal(larger.costs[:, :11], arm.costs)
    assert larger.costs[0, 20] == -20.0
    assert larger.enlarged is not None


def test_arrays_cannot_be_enlarged() -> None:
    assert birth_death_arm(1.0, 0.0, 1.0, 1.0, np.arange(4.0), 0.0, room=3).enlarged is None


def test_where_only_births_differed_the_last_state_of_a_cut_takes_the_fewer() -> None:
    refusing = birth_death_arm(1.0, 0.0, 1.0, 1.0, room=5)
    admitting = birth_death_arm(0.0, 1.0, 1.0, 1.0, room=5)
    assert (refusing.top, admitting.top) == (1, 0)
    assert refusing.work[:, -1].tolist() == [1.0, 1.0]
    general = refusing.general()
    assert general.free.tolist() == [True] * 5 + [False]
    assert general.forced.tolist() == [False] * 5 + [True]
    assert birth_death_arm(1.0, 1.0, 0.0, 1.0, room=5).top is None
    assert birth_death_arm(1.0, 0.0, 1.0, 1.0, room=5, unbounded=False).top is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"births0": [1.0, 1.0]}, "births0 of state 1 is 1; it must be 0"),
        ({"deaths1": [1.0, 1.0]}, "deaths1 of state 0 is 1; it must be 0"),
        ({"deaths0": -1.0}, "deaths0 of state 0 is -1; rates must be >= 0"),
        ({"births1": lambda i: 1.0 - 2.0 * i}, "births1 of state 1 is -1"),
        ({"births1": lambda i: np.ones(7)}, r"births1 has shape \(7,\)"),
        ({"births1": float("inf")}, "births1 of state 0 is not finite"),
        ({"costs0": [0.0, float("nan")], "costs1": 0.0}, "costs0 of state 1 is not finite"),
        ({"costs0": 1.0, "rewards1": 1.0}, "costs and rewards are both given"),
        ({"work1": [1.0, 1.0, 1.0]}, r"work1 has shape \(3,\)"),
        ({"rewards0": "many"}, "rewards0 is not an array of numbers"),
        ({"births0": lambda i: None}, "births0: the function .* returns None"),
        ({"deaths1": 1j}, "deaths1 is not an array of numbers"),
        ({"room": -1}, "room must be a whole number"),
        ({"room": None}, "room is needed"),
    ],
)
def test_wrong_input_is_named(changes: dict[str, Any], message: str) -> None:
    given = {"births0": 1.0, "births1": 0.0, "deaths0": 1.0, "deaths1": 1.0, "room": 1, **changes}
    with pytest.raises(InputError, match=message):
        birth_death_arm(**given)


def test_a_function_that_takes_single_states_only_is_named():
    with pytest.raises(InputError, match=r"deaths1: the function .*np\.where"):
        birth_death_arm(1.0, 0.0, 1.0, lambda i: 1.0 if i else 0.0, room=5)


def test_twice_no_room_is_some_room():
    assert birth_death_arm(1.0, 0.0, 1.0, 1.0, room=0).enlarged().n == 2
