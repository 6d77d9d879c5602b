import re

import pytest

import mdpcloud as mc
from tests.admission import admission

STAY = mc.Event("stay", 1.0, mc.Action("stay"))
LATTICE = mc.Lattice({"a": 1})


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


@pytest.mark.parametrize(
    ("space", "events", "said"),
    [
        ({"a": 1}, [STAY], "space is {'a': 1}; it must be a Lattice or a Reachable"),
        (LATTICE, [], "a model needs at least one event"),
        (LATTICE, [STAY, STAY], "two events are named 'stay'; names must differ"),
        (LATTICE, [mc.Action("stay")], "is neither an Event nor a Control"),
        (LATTICE, [STAY, mc.Control("stay", mc.Mode("on"))], "two events are named 'stay'"),
    ],
)
def test_a_model_needs_a_space_and_events_of_different_names(space, events, said):
    with refused(said):
        mc.Model(space, events)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (
            ("arival", "lost"),
            "measure 'm' counts an unknown event 'arival'; did",
        ),
        (("arrival", "lots"), "measure 'm' counts an unknown action 'lots'; did you mean 'lost'?"),
        (("arrival", "x"), "unknown action 'x'; there are ['join', 'lost']"),
    ],
)
def test_a_measure_that_counts_what_does_not_exist_is_refused(count, said):
    with refused(said):
        admission(measures={"m": count})


def test_a_mode_of_a_control_can_be_counted():
    control = mc.Control("speed", [mc.Mode("slow"), mc.Mode("fast")])
    assert admission(extra=[control], measures={"fast": ("speed", "fast")}).measures


def test_one_event_needs_no_list():
    assert mc.Model(LATTICE, STAY).events == (STAY,)


def test_a_list_of_cost_rates_is_their_sum():
    parts = [1.0, lambda x: 2.0 * x.jobs, lambda x: x.jobs**2]
    one = admission(cost_rate=lambda x: 1.0 + 2.0 * x.jobs + x.jobs**2)
    several = admission(cost_rate=parts)
    assert len(several.cost_rate) == 3
    assert mc.solve(several).gain == pytest.approx(mc.solve(one).gain, rel=1e-12)


def test_measures_cannot_be_changed_afterwards():
    with pytest.raises(TypeError):
        admission(measures={"m": 1.0}).measures["n"] = 2.0
