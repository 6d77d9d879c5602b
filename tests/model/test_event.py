import pickle
import re

import pytest

import mdpcloud as mc
from mdpcloud.model.event import MOST_CHOICES

STAY, GO = mc.Action("stay"), mc.Action("go", mc.step(a=+1))


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def test_a_step_alone_is_an_action_of_the_name_of_the_event():
    assert mc.Event("service", 1.0, mc.step(a=-1)).actions == (mc.Action("service", mc.step(a=-1)),)


def test_one_action_mode_or_flow_needs_no_list():
    flow = mc.Flow(1.0, mc.step(a=+1))
    assert mc.Event("e", 1.0, STAY).actions == (STAY,)
    assert mc.Mode("on", flows=flow).flows == (flow,)
    assert mc.Control("c", mc.Mode("on")).modes == (mc.Mode("on"),)


def test_a_step_cannot_be_changed_and_can_be_pickled():
    step = mc.step(a=+1, node={2: -1})
    with pytest.raises(TypeError):
        step.amounts["a"] = 2
    assert pickle.loads(pickle.dumps(step)) == step


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: mc.Event("e", 1.0, []), "event 'e' has no action; it needs at least one"),
        (lambda: mc.Control("c", []), "control 'c' has no mode; it needs at least one"),
        (lambda: mc.Event("e", 1.0, [GO, GO]), "event 'e' has two actions named 'go'"),
        (
            lambda: mc.Control("c", [mc.Mode("m"), mc.Mode("m")]),
            "control 'c' has two modes named 'm'",
        ),
        (lambda: mc.Event("e", 1.0, [mc.step(a=1)]), "is no action"),
        (lambda: mc.Event("e", 1.0, [mc.Mode("m")]), "is no action"),
        (lambda: mc.Control("c", [STAY]), "is no mode"),
        (lambda: mc.Event("e", 1.0, mc.Action(3)), "event 'e': the name 3 is not a string"),
        (lambda: mc.Event(7, 1.0, STAY), "event 7: the name 7 is not a string"),
        (lambda: mc.Mode("m", flows=[mc.step(a=1)]), "is not a flow"),
        (
            lambda: mc.Event("e", 1.0, [mc.Action(str(k)) for k in range(MOST_CHOICES + 1)]),
            f"event 'e' has {MOST_CHOICES + 1} actions; at most {MOST_CHOICES} are supported",
        ),
    ],
)
def test_choices_of_the_wrong_kind_number_or_name_are_refused(make, said):
    with refused(said):
        make()


@pytest.mark.parametrize("make", [mc.Move, mc.Flow])
def test_a_step_before_its_weight_is_refused(make):
    with pytest.raises(mc.InputError, match="first and then the step"):
        make(mc.step(jobs=+1), 0.5)
