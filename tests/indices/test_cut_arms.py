"""Arms cut from unbounded ones: where the index is an artefact of the cut."""

import dataclasses
import warnings

import numpy as np
import pytest

import mdpcloud as mc
from tests.models.restless_arm import A3, NODE, arm

LOAD = 0.9


def served(i):
    return 1.0 * (i > 0)


def half_served(i):
    return 0.5 * (i > 0)


def jobs(i):
    return 1.0 * i


def queue(room):
    """A server that works faster while active; the cut blocks arrivals, which cost nothing."""
    return mc.indices.birth_death_arm(
        LOAD, LOAD, half_served, served, jobs, jobs, room=room, unbounded=True
    )


def caught(function, *arguments):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, [str(w.message) for w in found if w.category is mc.indices.IndexWarning]


def test_near_the_cut_the_index_is_called_an_artefact():
    found, messages = caught(mc.indices.whittle, queue(40))
    assert found.is_indexable
    assert not found.settled[-1]
    (message,) = messages
    assert "artefact of the cut" in message
    first = int(np.argmin(found.settled))
    assert f"the first of them {first}," in message


def test_settled_states_have_the_index_of_a_much_larger_room():
    criterion = mc.Discounted(rate=0.3)
    found, _ = caught(mc.indices.whittle, queue(60), criterion)
    large, _ = caught(mc.indices.whittle, queue(480), criterion)
    assert found.settled.any()
    assert not found.settled.all()
    settled = np.flatnonzero(found.settled)
    np.testing.assert_allclose(found.index[settled], large.index[settled], rtol=1e-8, atol=1e-10)
    changed = np.flatnonzero(~found.settled)
    assert (np.abs(found.index[changed] - large.index[changed]) > 1e-10).any()


def test_an_index_that_does_not_depend_on_the_cut_brings_no_warning():
    losses = NODE.loss_rate
    leaving = NODE.death_rate
    given = mc.indices.birth_death_arm(
        A3["lam"], 0.0, leaving, leaving, losses, losses, work1=A3["lam"], room=50
    )
    found, messages = caught(mc.indices.whittle, given)
    assert messages == []
    assert found.settled[:-1].all()
    assert not found.settled[-1]  # it must refuse, for the cut
    assert found.index[-1] == np.inf


def test_a_room_that_is_real_is_not_compared():
    given = dataclasses.replace(queue(20), enlarged=None)
    found, messages = caught(mc.indices.whittle, given)
    assert messages == []
    assert found.settled is None


def test_states_of_models_are_matched_by_their_names():
    def model(room):
        refusing = arm(NODE, A3["lam"], 0.0, room)
        return dataclasses.replace(refusing, space=mc.Lattice({"jobs": room, "idle": 0}))

    given = mc.indices.model_arm(model, active="passive", room=30, work1=A3["lam"])
    found, messages = caught(mc.indices.whittle, given)
    assert found.is_indexable
    assert messages == []
    assert found.settled[:-1].all()


def test_an_arm_that_changes_its_verdict_with_the_room_has_no_settled_state(monkeypatch):
    from mdpcloud.indices.restless import whittle as module

    verdicts = iter(
        [
            mc.indices.ArmIndex(mc.indices.Verdict.INDEXABLE, "", np.zeros(11), np.zeros(11)),
            mc.indices.ArmIndex(mc.indices.Verdict.MULTICHAIN, "two classes"),
        ]
    )
    monkeypatch.setattr(module, "_verdict", lambda *_: next(verdicts))
    found, messages = caught(mc.indices.whittle, queue(10))
    assert not found.settled.any()
    assert messages == ["with twice the room the arm is multichain (two classes)"]


def test_the_warning_names_the_caller():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mc.indices.whittle(queue(10))
    assert found[0].filename == __file__


@pytest.mark.parametrize("wrong", [None, 3, "arm", np.eye(3)])
def test_what_is_no_arm_is_refused(wrong):
    with pytest.raises(mc.InputError, match="it must be an arm"):
        mc.indices.whittle(wrong)


@pytest.mark.parametrize("criterion", [mc.FiniteHorizon(3.0), "average", 0.9])
def test_what_is_no_criterion_is_refused(criterion):
    with pytest.raises(mc.InputError, match=r"an index has AverageCost\(\) or Discounted"):
        mc.indices.whittle(queue(10), criterion)


def test_equations_without_digits_leave_an_arm_undecided(monkeypatch):
    from mdpcloud.indices.path import path as module

    def lost(*_, **__):
        raise mc.SolveError("the equations are too ill-conditioned")

    monkeypatch.setattr(module, "price_path", lost)
    found = mc.indices.whittle(mc.indices.arm([[1.0]], [[1.0]]))
    assert found.verdict is mc.indices.Verdict.UNDECIDED
    with pytest.raises(mc.indices.NoIndexError, match=r"undecided.*ill-conditioned"):
        found.index  # noqa: B018
