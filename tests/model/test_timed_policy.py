import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.model.policy import Policy
from mdpcloud.model.timed_policy import TimedPolicy
from tests.admission import admission

NAMES = ("stay", "go", "run")


def start(actions=(0, 0, 0)):
    return Policy({"move": np.array(actions, np.int8)}, {"move": NAMES}, (len(actions),))


def timed(times, states, actions, horizon=10.0):
    return TimedPolicy(start(), {"move": (times, states, actions)}, horizon)


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


@pytest.fixture
def policy():
    return timed([1.0, 2.0, 2.0, 5.0], [0, 0, 2, 0], [1, 2, 1, 0])


def test_a_change_holds_from_its_time_on(policy):
    tables = {t: policy.at(t).table().tolist() for t in (0, 0.5, 1, 1.5, 2, 4.9, 5, 10)}
    assert tables == {
        0: [0, 0, 0],
        0.5: [0, 0, 0],
        1: [1, 0, 0],
        1.5: [1, 0, 0],
        2: [2, 0, 1],
        4.9: [2, 0, 1],
        5: [0, 0, 1],
        10: [0, 0, 1],
    }


def test_times_are_listed_once(policy):
    assert policy.times.tolist() == [1.0, 2.0, 5.0]


def test_switches_of_a_state_name_their_actions(policy):
    assert policy.switches("move", 0) == [(1.0, "go"), (2.0, "run"), (5.0, "stay")]
    assert policy.switches("move", 1) == []


def test_a_policy_without_changes_is_the_same_at_all_times():
    policy = TimedPolicy(start([2, 1, 0]), {}, 3.0)
    assert policy.times.size == 0
    assert policy.at(3.0).table().tolist() == [2, 1, 0]
    assert [(b, e, p.table().tolist()) for b, e, p in policy.backwards()] == [(0, 3, [2, 1, 0])]


changes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 2)), max_size=12
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(changes)
def test_pieces_backwards_are_the_policies_at_their_times(rows):
    times, states, actions = (list(part) for part in zip(*rows, strict=True)) if rows else [[]] * 3
    policy = timed(times, np.array(states, int), np.array(actions, int), horizon=6.0)
    pieces = list(policy.backwards())
    assert [end for _, end, _ in pieces][1:] == [begin for begin, _, _ in pieces][:-1]
    assert (pieces[0][1], pieces[-1][0]) == (6.0, 0.0)
    for begin, end, piece in pieces:
        for time in (begin, 0.5 * (begin + end)):
            assert piece.table().tolist() == policy.at(time).table().tolist()


def test_it_survives_pickling(policy):
    again = pickle.loads(pickle.dumps(policy))
    assert again.horizon == policy.horizon
    assert again.switches("move", 0) == policy.switches("move", 0)
    assert again.at(3.0).table().tolist() == policy.at(3.0).table().tolist()


def test_it_cannot_be_changed(policy):
    with pytest.raises(ValueError, match="read-only"):
        policy.changes["move"].times[0] = 0.0
    with pytest.raises(TypeError):
        policy.changes["move"] = None
    policy.at(0).actions["move"][0] = 2
    assert policy.at(0).table()[0] == 0


def test_memory_is_in_proportion_to_the_changes():
    n = 10_000
    first = Policy({"move": np.zeros(n, np.int8)}, {"move": NAMES}, (n,))
    rows = np.linspace(0, 1, 1000), np.arange(1000), np.ones(1000)
    assert len(pickle.dumps(TimedPolicy(first, {"move": rows}, 1.0))) < n + 1000 * 16 + 2000


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (([1.0, 0.5], [0, 0], [1, 1]), "never decrease, from 0 to 10.0"),
        (([11.0], [0], [1]), "never decrease, from 0 to 10.0"),
        (([np.nan], [0], [1]), "never decrease, from 0 to 10.0"),
        (([1.0], [3], [1]), "takes action 1 in state 3; there are 3 states and 3 actions"),
        (([1.0], [0], [3]), "takes action 3 in state 0"),
        (([1.0], [0], [-1]), "takes action -1 in state 0"),
        (([1.0], [0, 1], [1]), "three arrays of one length"),
    ],
)
def test_wrong_changes_are_refused(rows, said):
    with refused(said):
        timed(*rows)


def test_unknown_decisions_are_refused(policy):
    with refused("no decision 'mvoe'; did you mean 'move'?"):
        TimedPolicy(start(), {"mvoe": ([], [], [])}, 1.0)
    with refused("no decision 'x'; there are ['move']"):
        policy.switches("x", 0)
    with refused("state is 3; there are 3 states"):
        policy.switches("move", 3)


def test_times_beyond_the_horizon_are_refused(policy):
    for time in (-0.1, 10.1, np.nan):
        with refused("it must lie between 0 and 10"):
            policy.at(time)


def test_a_randomised_start_is_refused():
    chances = Policy({"move": np.full((3, 2), 1 / 3)}, {"move": NAMES}, (2,))
    with refused("deterministic"):
        TimedPolicy(chances, {}, 1.0)


def test_a_policy_of_another_model_is_refused(policy):
    with refused("says nothing about decision 'arrival'"):
        policy.check(compile_model(admission()))
