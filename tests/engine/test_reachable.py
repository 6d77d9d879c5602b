import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model, indexed
from mdpcloud.engine.indexed import Codec
from tests.admission import LOST, admission


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def walk(*steps, start=0, room=10**6, **settings):
    """One axis; each step is an event that happens where it stays within the room."""
    events = [
        mc.Event(
            f"step {k}",
            lambda x, k=k: 1.0 * ((x.at + k >= 0) & (x.at + k <= room)),
            mc.step(at=k),
        )
        for k in steps
    ]
    return mc.Model(mc.Reachable({"at": start}, **settings), events)


def states(model):
    problem = compile_model(model)
    return [problem.label(s) for s in range(problem.n)]


@given(st.lists(st.integers(-7, 7), min_size=1, max_size=3, unique=True), st.integers(0, 30))
def test_what_is_reached_is_what_a_search_by_hand_reaches(steps, start):
    reached, frontier = {start}, [start]
    while frontier:
        here = frontier.pop()
        new = {here + k for k in steps if 0 <= here + k <= 30} - reached
        reached |= new
        frontier += new
    assert states(walk(*steps, start=start, room=30)) == [f"(at={k})" for k in sorted(reached)]


def test_states_are_sorted_by_coordinates_the_first_axis_first():
    model = mc.Model(
        mc.Reachable({"a": 1, "f": (1, 0)}),
        [
            mc.Event("swap", lambda x: 1.0 * (x.a > 0), mc.step(a=-1, f=(-1, 2))),
            mc.Event("back", lambda x: 1.0 * (x.a == 0), mc.step(a=+1, f=(1, -2))),
        ],
    )
    assert states(model) == ["(a=0, f=(0, 2))", "(a=1, f=(1, 0))"]


def test_a_space_that_is_reached_has_the_states_of_the_lattice_in_its_order():
    box, found = (
        compile_model(admission(6)),
        compile_model(
            admission(
                space=mc.Reachable({"jobs": 2}),
                actions=[mc.Action("join", mc.step(jobs=1), allowed=lambda x: x.jobs < 6), LOST],
            )
        ),
    )
    assert [box.label(s) for s in range(7)] == [found.label(s) for s in range(found.n)]
    assert (box.rows().transitions != found.rows().transitions).nnz == 0
    np.testing.assert_array_equal(box.rows().cost, found.rows().cost)


def test_both_spaces_give_the_same_solution():
    gate = mc.Action("join", mc.step(jobs=1), allowed=lambda x: x.jobs < 6)
    settings = {"actions": [gate, LOST], "cost_rate": lambda x: 0.05 * x.jobs}
    box = mc.solve(admission(6, **settings))
    found = mc.solve(admission(space=mc.Reachable({"jobs": 0}), **settings))
    assert max(box.bounds[0], found.bounds[0]) <= min(box.bounds[1], found.bounds[1])
    assert box.policy.table().tolist() == found.policy.table().tolist()


def test_moves_of_weight_zero_events_of_rate_zero_and_forbidden_actions_lead_nowhere():
    far = mc.step(jobs=100)
    model = admission(
        space=mc.Reachable({"jobs": 0}),
        actions=[
            mc.Action("join", mc.step(jobs=1), allowed=lambda x: x.jobs < 3),
            mc.Action("far", far, allowed=False),
            mc.Action("never", [mc.Move(1.0), mc.Move(0.0, far)]),
        ],
        extra=[mc.Event("asleep", 0.0, far)],
    )
    assert compile_model(model).n == 4


def test_an_action_below_zero_is_not_allowed_and_reaches_nothing_by_its_other_moves():
    split = [mc.Move(0.5, mc.step(jobs=-3)), mc.Move(0.5, mc.step(jobs=7))]
    model = admission(
        space=mc.Reachable({"jobs": 0}),
        actions=[
            mc.Action("join", mc.step(jobs=1), allowed=lambda x: x.jobs < 2),
            mc.Action("split", split),
            LOST,
        ],
    )
    assert compile_model(model).n == 3


def test_long_jumps_widen_the_numbering():
    model = walk(999_983, -999_983, room=4_000_000)
    assert states(model) == [f"(at={999_983 * k})" for k in range(5)]


def test_a_search_that_runs_away_stops_at_the_most_states_and_shows_one():
    with refused("more than 100 states can be reached, such as (at="):
        compile_model(walk(1, -1, max_states=100))


def test_a_search_that_runs_far_away_stops_too(monkeypatch):
    monkeypatch.setattr(indexed, "FARTHEST", 50)
    with refused("states more than 50 events from the start can be reached, such as (at=50)"):
        compile_model(walk(1))
    assert compile_model(walk(1, room=49)).n == 50


@pytest.mark.slow
def test_thousands_of_states_in_a_row_are_found_within_seconds():
    assert compile_model(walk(1, -1, room=3_999)).n == 4_000


def test_a_space_too_wide_to_number_is_refused():
    with refused("span too large a space to number"):
        compile_model(walk(1, start=2**62))
    with refused("coordinates up to (4294967295, 2147483647) span too large a space"):
        Codec([2**32 - 1, 2**31 - 1])


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.data())
def test_a_code_is_undone_and_keeps_the_order(largest, data):
    points = data.draw(st.lists(st.tuples(*(st.integers(0, top) for top in largest)), min_size=1))
    codec = Codec(largest)
    keys = codec.encode([np.array(column) for column in zip(*points, strict=True)])
    assert list(zip(*(c.tolist() for c in codec.decode(keys)), strict=True)) == points
    assert [points[k] for k in np.argsort(keys, kind="stable")] == sorted(points)


def test_an_event_that_goes_below_zero_is_refused_by_name():
    with refused("event 'down' has rate 1.0 in state (at=0), where its step (at=-1) leaves"):
        compile_model(mc.Model(mc.Reachable({"at": 3}), [mc.Event("down", 1.0, mc.step(at=-1))]))
