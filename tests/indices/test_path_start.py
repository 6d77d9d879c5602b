from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from mdpcloud.errors import InputError
from mdpcloud.indices.path.equations import equations_of
from mdpcloud.indices.path.path import MultichainPolicy, price_path
from mdpcloud.indices.path.start import check_chain, first_policy
from mdpcloud.indices.restless.arm import arm
from tests.indices.arms import TestArm, arms, make_arm


@given(arms(("laborious", "idle")))
def test_the_first_policy_is_optimal_below_all_prices(given_arm: TestArm) -> None:
    policy, _ = first_policy(equations_of(given_arm.built(), float(given_arm.alpha)))
    signs = given_arm.exact().pieces[0].signs
    assert all(on or sign <= 0 for on, sign in zip(policy, signs, strict=True))
    assert all(not on or sign >= 0 for on, sign in zip(policy, signs, strict=True))


def test_a_state_with_one_action_never_changes() -> None:
    built = make_arm("dense", 2, 6).built()
    free = np.array([True, False, True, True, False, True])
    forced = np.array([False, True, False, False, False, False])
    passive, active = (moves.copy() for moves in built.moves)
    passive[1], active[4] = active[1], passive[4]
    costs, work = built.costs.copy(), built.work.copy()
    for table in (costs, work):
        table[0, 1], table[1, 4] = table[1, 1], table[0, 4]
    one = type(built)((passive, active), costs, work, True, free, forced)
    path = price_path(one, 0.0)
    assert sorted(path.states) == [0, 2, 3, 5]
    assert path.first.tolist() == [True, True, True, True, False, True]


def test_an_arm_without_a_choice_has_an_empty_path() -> None:
    built = make_arm("dense", 2, 3).built()
    none = np.zeros(3, np.bool_)
    moves, costs = (built.moves[0],) * 2, np.stack([built.costs[0]] * 2)
    path = price_path(type(built)(moves, costs, np.zeros((2, 3)), True, none, none), 0.0)
    assert path.complete
    assert path.prices.size == 0
    assert path.costs.shape == (1,)


def test_two_blocks_are_two_recurrent_classes() -> None:
    blocks = np.kron(np.eye(2), np.full((2, 2), 0.5))
    equations = equations_of(arm(blocks, blocks), 0.0)
    with pytest.raises(MultichainPolicy, match="state 0 and one around state 2") as caught:
        check_chain(equations, np.ones(4, np.bool_))
    assert [part.tolist() for part in caught.value.classes] == [[0, 1], [2, 3]]
    check_chain(equations_of(arm(blocks, blocks), 0.1), np.ones(4, np.bool_))


def test_a_change_to_a_multichain_policy_is_reported() -> None:
    mixing = np.full((2, 2), 0.5)
    with pytest.raises(MultichainPolicy) as caught:
        price_path(arm(np.eye(2), mixing, rewards1=[1.0, 2.0]), 0.0)
    assert caught.value.policy.tolist() == [False, False]


def test_a_start_is_a_state_or_probabilities() -> None:
    built = make_arm("dense", 2, 3).built()
    uniform = price_path(built, 0.5)
    each = [price_path(built, 0.5, start=state) for state in range(3)]
    np.testing.assert_allclose(uniform.costs, np.mean([path.costs for path in each], axis=0))
    given_start = price_path(built, 0.5, start=np.full(3, 1 / 3))
    np.testing.assert_allclose(uniform.work, given_start.work)
    with pytest.raises(InputError, match=r"start has shape \(2,\); \(3,\) is needed"):
        price_path(built, 0.5, start=[0.5, 0.5])
