"""Arms from models."""

import numpy as np
import pytest

import mdpcloud as mc
from tests.models.restless_arm import A3, NODE, WEAR, arm, drift


def node_arm(cap=30, work=(0.0, 1.0)):
    model = arm(NODE, A3["lam"], 0.0, cap)
    return mc.indices.model_arm(model, active="active", work0=work[0], work1=work[1])


def test_both_actions_of_a_control_become_rows_and_costs():
    found = mc.indices.model_arm(drift(WEAR))
    assert not found.discrete
    np.testing.assert_array_equal(found.costs, [[3.0] * len(WEAR), WEAR])
    np.testing.assert_array_equal(np.asarray(found.moves[1])[0, :3], [-1.5, 1.0, 0.5])


def test_the_active_action_is_chosen_by_name_or_number():
    model = drift(WEAR)
    swapped = mc.indices.model_arm(model, active="rest")
    assert np.array_equal(swapped.costs, mc.indices.model_arm(model, active=0).costs)
    assert np.array_equal(swapped.costs[::-1], mc.indices.model_arm(model).costs)


def test_a_state_with_one_action_is_not_free():
    found = node_arm()
    assert found.free[:-1].all()
    assert not found.free[-1]
    assert not found.forced[-1]


def test_work_may_be_a_function_of_the_state():
    found = node_arm(work=(0.0, lambda x: 1.0 + x.jobs))
    np.testing.assert_array_equal(found.work[1, :3], [1.0, 2.0, 3.0])


def test_matrices_of_a_tabular_model_are_recovered():
    random = np.random.default_rng(1)
    P, costs = random.dirichlet(np.ones(5), (2, 5)), random.random((5, 2))
    found = mc.indices.model_arm(mc.tabular(P, costs=costs))
    assert found.discrete
    for a in (0, 1):
        np.testing.assert_allclose(found.moves[a], P[a], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found.costs.T, costs)


def test_models_without_exactly_one_decision_of_two_actions_are_refused():
    three = mc.tabular(np.ones((3, 1, 1)), costs=[[0, 1, 2]])
    with pytest.raises(mc.InputError, match="an arm has two actions"):
        mc.indices.model_arm(three)
    none = mc.tabular(np.ones((1, 1, 1)), costs=[[0]])
    with pytest.raises(mc.InputError, match="an arm has one decision; this model has 0"):
        mc.indices.model_arm(none)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"active": "activ"}, "did you mean 'active'"),
        ({"active": 2}, "active is 2"),
        ({"room": 3}, "room needs a function"),
    ],
)
def test_wrong_arguments_are_named(given, message):
    with pytest.raises(mc.InputError, match=message):
        mc.indices.model_arm(arm(NODE, 1.0, 0.0, 4), **given)


@pytest.mark.parametrize("room", [None, 0, True, 2.5])
def test_a_function_needs_a_room(room):
    with pytest.raises(mc.InputError, match=r"room"):
        mc.indices.model_arm(lambda cap: arm(NODE, 1.0, 0.0, cap), room=room)


def test_twice_the_room_is_built_on_demand():
    found = mc.indices.model_arm(lambda cap: arm(NODE, 1.0, 0.0, cap), room=4)
    assert found.enlarged().n == 9
    assert found.enlarged().enlarged().n == 17
