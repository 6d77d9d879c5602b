import pickle
import re

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model
from tests.admission import LOST, admission, two_queues


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def fastest(x):
    return np.where(x.node[1] < 4, "node 1", np.where(x.node[0] < 3, "node 0", "refuse"))


@pytest.fixture(scope="module")
def routing():
    return two_queues()


def test_a_table_has_the_shape_of_the_lattice(routing):
    table = mc.policy(routing, fastest).table()
    assert table.shape == (4, 5)
    assert (table[:, :4] == 1).all()
    assert table[:, 4].tolist() == [0, 0, 0, 2]


def test_a_table_of_probabilities_has_one_table_per_action(routing):
    chances = {
        "node 0": lambda x: 0.25 * (x.node[0] < 3),
        "refuse": lambda x: 1 - 0.25 * (x.node[0] < 3),
    }
    policy = mc.policy(routing, chances)
    assert policy.randomised
    assert policy.table().shape == (3, 4, 5)
    np.testing.assert_array_equal(policy.table().sum(axis=0), 1)
    assert policy.table()[0, :, 2].tolist() == [0.25, 0.25, 0.25, 0]


def test_a_table_of_a_region_is_a_list_over_its_states():
    model = admission(space=mc.Lattice({"jobs": 5}, where=lambda x: x.jobs <= 3))
    assert mc.policy(model, "lost").table().shape == (4,)


def test_decisions_are_told_apart_by_name():
    model = admission(extra=[mc.Event("second", 0.1, [mc.Action("in", mc.step(jobs=1)), LOST])])
    policy = mc.policy(model, {"arrival": "lost", "second": lambda x: np.where(x.jobs < 3, 0, 1)})
    assert policy.table("second").tolist() == [0, 0, 0, 1]
    with refused("name one of the decisions; there are ['arrival', 'second']"):
        policy.table()
    with refused("the policy has no decision 'secnd'; did you mean 'second'?"):
        policy.table("secnd")


def test_events_without_a_choice_are_no_part_of_a_policy():
    always = mc.Event("always", 1.0, [mc.Action("a"), mc.Action("b", allowed=lambda x: x.jobs < 0)])
    policy = mc.policy(admission(extra=[always]), "lost")
    assert set(policy.actions) == {"arrival"}


def test_where_the_rate_is_zero_there_is_no_action():
    model = admission(rate=lambda x: 0.5 * (x.jobs != 1))
    assert mc.policy(model, "lost").table().tolist() == [1, -1, 1, 1]


def test_a_policy_cannot_be_changed_and_can_be_pickled(routing):
    policy = mc.policy(routing, fastest)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.names == policy.names
    assert copy.shape == policy.shape
    assert np.array_equal(copy.table(), policy.table())
    with pytest.raises(TypeError):
        policy.actions["arrival"] = policy.table()


def test_its_choice_fills_in_the_terms_that_decide_nothing(routing):
    problem = compile_model(routing)
    policy = mc.policy(routing, fastest)
    choice = policy.choice(problem)
    assert choice.shape == (3, 20)
    assert np.array_equal(choice[0].reshape(4, 5), policy.table())
    assert choice[1].reshape(4, 5)[:, 0].tolist() == [-1, 0, 0, 0]


def test_the_choice_of_a_randomised_policy_is_a_table_of_chances_per_term(routing):
    problem = compile_model(routing)
    mixture = mc.policy(routing, {"refuse": 1.0}).choice(problem)
    assert [chances.shape for chances in mixture] == [(3, 20), (1, 20), (1, 20)]
    assert (mixture[0][2] == 1).all()
    assert mixture[1].sum() == 15


OTHER_ACTIONS = (mc.Action("join", mc.step(jobs=+1)), mc.Action("reject"))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (admission(4), "5 states and actions ['join', 'lost'] there, 4 states and"),
        (admission(actions=OTHER_ACTIONS), "4 states and actions ['join', 'reject'] there"),
        (admission(actions=[LOST]), "the policy says nothing about decision 'arrival'"),
    ],
)
def test_a_policy_of_another_model_is_refused(other, said):
    policy = mc.policy(other, {} if len(other.events[0].actions) == 1 else {"arrival": 1})
    for use in (mc.evaluate, mc.improve):
        with refused(said):
            use(admission(), policy)


def test_a_policy_is_refused_where_its_actions_are_not_allowed():
    names = {"arrival": ("join", "lost")}
    for actions, said in (
        ([0, 0, 0, 0], "takes action 'join' in state (jobs=3), where it is not allowed"),
        ([0, 0, 7, 1], "returns action number 7 in state (jobs=2); numbers are 0..1"),
        ([0, -1, 1, 1], "returns action number -1 in state (jobs=1)"),
    ):
        with refused(said):
            mc.evaluate(admission(), mc.Policy({"arrival": np.array(actions)}, names, (4,)))
