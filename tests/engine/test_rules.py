import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from tests.admission import JOIN, LOST, admission, two_queues

BELOW_TWO = [0, 0, 1, 1]


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def by_if(x):
    if x.jobs < 2:
        return "join"
    return "lost"


def by_if_with_numbers(x):
    return 0 if x.jobs < 2 else 1


def in_two_ways(x):
    return "join" if x.jobs < 2 else 1


def for_arrays_alone(x):
    out = x.jobs.copy()
    out[:] = x.jobs >= 2
    return out


RULES = {
    "names by np.where": lambda x: np.where(x.jobs < 2, "join", "lost"),
    "numbers by np.where": lambda x: np.where(x.jobs < 2, 0, 1),
    "booleans": lambda x: x.jobs >= 2,
    "whole floats": lambda x: np.floor(x.jobs / 2),
    "names state by state": by_if,
    "numbers state by state": by_if_with_numbers,
    "numpy scalars state by state": lambda x: np.int8(by_if_with_numbers(x)),
    "arrays of one": lambda x: np.array([by_if_with_numbers(x)]),
    "names and numbers": in_two_ways,
    "a table": np.array(BELOW_TWO),
    "a list": BELOW_TWO,
    "a list of names": ["join", "join", "lost", "lost"],
    "for the event": {"arrival": by_if},
    "for arrays alone": for_arrays_alone,
    "a column": np.array(BELOW_TWO)[:, None],
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_may_return_names_or_numbers_of_states_or_arrays(rule):
    assert mc.policy(admission(), rule).table().tolist() == BELOW_TWO


@pytest.mark.parametrize("rule", ["lost", 1, {"arrival": "lost"}, {"arrival": 1}])
def test_one_action_stands_for_all_states(rule):
    assert mc.policy(admission(), rule).table().tolist() == [1, 1, 1, 1]


@given(st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_a_table_of_the_shape_of_the_lattice_is_a_rule(bits):
    routes = [mc.Action("a"), mc.Action("b")]
    model = mc.Model(mc.Lattice({"a": 2, "b": 3}), mc.Event("e", 1.0, routes))
    table = np.array(bits).reshape(3, 4)
    assert np.array_equal(mc.policy(model, table).table(), table)
    assert np.array_equal(mc.policy(model, bits).table(), table)


@given(st.integers(0, 2**16), st.integers(1, 5))
def test_a_rule_that_means_something_else_for_arrays_is_asked_state_by_state(seed, k):
    table = np.random.default_rng(seed).integers(0, 2, 40)

    def rule(x):
        """The largest of the states so far: one number of one state, a running one of arrays."""
        return table[np.max(x.jobs) // k % 40] + 0 * x.jobs

    found = mc.policy(admission(39, actions=[LOST, mc.Action("gone")]), rule).table()
    assert found.tolist() == [table[s // k] for s in range(40)]


PROBABILITIES = {
    "numbers": {"join": 0.25, "lost": 0.75},
    "action numbers": {0: 0.25, 1: 0.75},
    "arrays": {"join": np.full(4, 0.25), "lost": [0.75] * 4},
    "functions": {"join": lambda x: 0.25, "lost": lambda x: 0.75 + 0 * x.jobs},
    "for the event": {"arrival": {"join": 0.25, "lost": 0.75}},
}


@pytest.mark.parametrize("rule", PROBABILITIES.values(), ids=PROBABILITIES)
def test_actions_may_be_drawn_with_probabilities(rule):
    model = admission(actions=[mc.Action("join"), LOST])
    assert mc.policy(model, rule).table().tolist() == [[0.25] * 4, [0.75] * 4]


def test_an_action_that_is_left_out_has_probability_zero():
    assert mc.policy(admission(), {"lost": 1.0}).table().tolist() == [[0] * 4, [1] * 4]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("join", "takes action 'join' in state (jobs=3), where it is not allowed; allowed are"),
        ([1, 1, 1, 0], "takes action 'join' in state (jobs=3), where it is not allowed"),
        ("joni", "returns 'joni' in state (jobs=0), which is no action; did you mean 'join'?"),
        (lambda x: np.where(x.jobs < 2, "lost", "x"), "returns 'x' in state (jobs=2), which is no"),
        (lambda x: None, "returns None in state (jobs=0); it must return the name or number"),
        (lambda x: "lost" if x.jobs < 2 else None, "returns None in state (jobs=2)"),
        (lambda x: x.jobs / 2, "returns 0.5 in state (jobs=1)"),
        (lambda x: np.nan * x.jobs, "returns nan in state (jobs=0)"),
        (np.full(4, np.inf), "returns inf in state (jobs=0)"),
        (lambda x: [0, 1], "returns [0, 1] in state (jobs=0); it must return the name or number"),
        (lambda x: JOIN if x.jobs < 2 else LOST, "it must return the name or number"),
        (lambda x: x.jobs, "returns action number 2 in state (jobs=2); numbers are 0..1"),
        (-1, "returns action number -1 in state (jobs=0)"),
        ([0, 0, 1], "gives 3 actions for 4 states"),
        (lambda x: x.jbos, "the rule for 'arrival': x has no axis 'jbos'; did you mean 'jobs'?"),
        ({"arival": "lost"}, "the model has no event 'arival'; did you mean 'arrival'?"),
        ({"arrival": "lost", "service": 0, "x": 1}, "the model has no event 'x'; there are"),
        ({}, "no rule for decision 'arrival'; decisions are ['arrival']"),
        ({"service": 0}, "no rule for decision 'arrival'"),
        ({"join": 0.5, "lost": 0.6}, "are [0.5, 0.6] in state (jobs=0); they must be >= 0 and sum"),
        ({"join": -0.5, "lost": 1.5}, "are [-0.5, 1.5] in state (jobs=0)"),
        ({"join": np.nan, "lost": 1}, "are [nan, 1.0] in state (jobs=0)"),
        ({"join": 0.5, "lost": 0.5}, "'join' with positive probability in state (jobs=3)"),
        ({"join": 0.5, "lots": 0.5}, "'arrival' has no action 'lots'; did you mean 'lost'?"),
        ({"join": 0.5, 7: 0.5}, "'arrival' has no action 7; there are ['join', 'lost']"),
        ({"join": [0.5] * 3, "lost": 0.5}, "probability of 'join' for 'arrival' has 3 numbers for"),
        ({"join": "half", "lost": 0.5}, "probability of 'join' for 'arrival' is not an array"),
        ({"join": lambda x: x.jbos, "lost": 1}, "x has no axis 'jbos'; did you mean 'jobs'?"),
    ],
)
def test_a_rule_that_is_no_policy_is_refused_by_state(rule, said):
    with refused(said):
        mc.policy(admission(), rule)


def test_an_error_inside_a_rule_passes():
    with pytest.raises(AttributeError, match="no attribute 'shpae'"):
        mc.policy(admission(), lambda x: np.asarray(x.jobs).shpae)
    with pytest.raises(KeyError):
        mc.policy(admission(), lambda x: {}[x.jobs])


def test_several_decisions_need_a_rule_each():
    second = mc.Event("second", 0.1, [mc.Action("in", mc.step(jobs=1)), mc.Action("out")])
    model = admission(extra=[second])
    with refused("give a rule per decision, as a mapping, or a function that returns a mapping; d"):
        mc.policy(model, "lost")
    with refused("no rule for decision 'second'; decisions are ['arrival', 'second']"):
        mc.policy(model, {"arrival": "lost"})
    assert set(mc.policy(model, {"arrival": "lost", "second": "out"}).actions) == {
        "arrival",
        "second",
    }


def two_decisions():
    second = mc.Event("second", 0.1, [mc.Action("in", mc.step(jobs=1)), mc.Action("out")])
    return admission(extra=[second])


def in_arrays(x):
    return {"arrival": np.where(x.jobs < 2, "join", "lost"), "second": 1 + 0 * x.jobs}


def state_by_state(x):
    if x.jobs < 2:
        return {"arrival": "join", "second": "out"}
    return {"second": 1, "arrival": 1}


@pytest.mark.parametrize("rule", [in_arrays, state_by_state])
def test_one_function_may_decide_on_all_of_several(rule):
    found = mc.policy(two_decisions(), rule)
    assert found.table("arrival").tolist() == BELOW_TWO
    assert found.table("second").tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "rule",
    [
        lambda x: {"arrival": np.where(x.jobs < 2, "join", "lost"), "service": "service"},
        lambda x: {"arrival": "join" if x.jobs < 2 else "lost"},
    ],
)
def test_where_there_is_one_decision_a_function_may_return_a_mapping_too(rule):
    """A model may have other events on which nothing is to be decided, which it may name."""
    assert mc.policy(admission(), rule).table().tolist() == BELOW_TWO
    simulated = mc.simulate(admission(), rule, rng=1, events=20_000)
    assert (
        simulated.gain.value == mc.simulate(admission(), BELOW_TWO, rng=1, events=20_000).gain.value
    )
    with refused("an action for 'arival'; did you mean 'arrival'?"):
        mc.policy(admission(), lambda x: {"arival": 0})


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda x: "lost", "decides on ['arrival', 'second'] must return a mapping from each of"),
        (lambda x: {"arrival": 1}, "actions for ['arrival'], but none for decision 'second'"),
        (lambda x: {"arrival": 1, "secnd": 1}, "for 'secnd'; did you mean 'second'?"),
        (lambda x: {"arrival": 1, "second": "ot"}, "'ot' in state (jobs=0), which is no action;"),
        (lambda x, y: {"arrival": 1, "second": 1}, "one argument, the state; it is <lambda>(x, y)"),
    ],
)
def test_a_function_that_does_not_decide_on_all_is_refused(rule, said):
    with refused(said):
        mc.policy(two_decisions(), rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            lambda x, y: 0,
            "the rule for 'arrival' must be a function of one argument, the",
        ),
        (lambda: 0, "it is <lambda>()"),
        (lambda x, *, k: 0, "it is <lambda>(x, *, k)"),
    ],
)
def test_a_function_of_more_or_less_than_the_state_is_refused(rule, said):
    with refused(said):
        mc.policy(admission(), rule)


def test_a_function_that_does_not_tell_its_arguments_is_called():
    with refused("it must return the name or number"):
        mc.policy(admission(), type)


def test_a_model_without_decisions_has_an_empty_policy():
    model = admission(actions=[LOST])
    assert mc.policy(model, {}).actions == {}
    with refused("or a function that returns a mapping; decisions are []"):
        mc.policy(model, "lost")


def test_where_the_rate_is_zero_a_rule_may_return_anything():
    model = admission(rate=lambda x: 0.5 * (x.jobs < 3))
    assert mc.policy(model, "join").table().tolist() == [0, 0, 0, -1]
    assert mc.policy(model, {"join": 1.0}).table().tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]


def test_a_mode_is_chosen_like_an_action():
    speed = mc.Control("speed", [mc.Mode("slow"), mc.Mode("fast", 1.0)])
    model = mc.Model(admission().space, [*admission(actions=[LOST]).events, speed])
    table = mc.policy(model, lambda x: np.where(x.jobs > 1, "fast", "slow")).table("speed")
    assert table.tolist() == [0, 0, 1, 1]


def test_a_rule_of_a_tabular_model_gets_the_number_of_the_state():
    model = mc.tabular([np.eye(3), np.eye(3)], costs=[[1, 2]] * 3)
    assert mc.policy(model, lambda s: s % 2).table().tolist() == [0, 1, 0]
    assert mc.policy(model, lambda s: 1 if s == 2 else 0).table().tolist() == [0, 0, 1]
    with refused("action number 2 in state 2; numbers are 0..1"):
        mc.policy(model, lambda s: s)


def test_a_rule_gets_families_as_tuples():
    def shortest(x):
        return np.where(x.node[0] <= x.node[1], 0, 1)

    model = two_queues((9, 9))
    here = {"arrival": lambda x: np.where(np.minimum(*x.node) == 9, 2, shortest(x))}
    assert mc.policy(model, here).table()[:3, :3].tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    with refused("takes action 'node 0' in state (node=(9, 9)), where it is not allowed"):
        mc.policy(model, shortest)
