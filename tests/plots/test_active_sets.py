"""Pictures of where an arm is active."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import mdpcloud as mc
from mdpcloud.indices.restless.result import ArmIndex, Verdict
from mdpcloud.plots.active_sets import active_spans, plot_index

RANDOM = np.random.default_rng(4)


def found(n):
    P = RANDOM.dirichlet(np.ones(n), (2, n))
    return mc.indices.whittle(mc.indices.arm(P[0], P[1], rewards1=RANDOM.random(n)))


def labels(figure):
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_each_state_has_a_bar_up_to_its_index():
    result = found(5)
    spans = {state: (first, last) for state, first, last, _ in active_spans(result.path)}
    assert all(spans[i] == (-np.inf, result.index[i]) for i in range(5))
    figure = plot_index(result)
    assert len(figure.axes[0].patches) == 5
    assert labels(figure) == {"active"}


def test_many_states_are_drawn_as_a_curve():
    figure = plot_index(found(60), unit="euro")
    assert not figure.axes[0].patches
    assert figure.axes[0].get_ylabel() == "price of work, euro"


def test_what_changes_with_twice_the_room_is_told_apart():
    result = ArmIndex(
        Verdict.INDEXABLE,
        "made up",
        values=np.arange(60.0),
        settled=np.arange(60) < 50,
    )
    shown = plot_index(result, title="an arm").axes[0].get_legend().get_texts()
    assert [text.get_text() for text in shown] == ["index", "changes with twice the room"]


def test_an_arm_with_nothing_to_draw_is_refused():
    nothing = ArmIndex(Verdict.MULTICHAIN, "made up")
    with pytest.raises(mc.InputError, match="multichain"):
        plot_index(nothing)


def test_an_arm_of_one_state_is_drawn():
    still = [[1.0]]
    assert isinstance(plot_index(mc.indices.whittle(mc.indices.arm(still, still))), Figure)


def test_what_is_no_index_is_refused():
    with pytest.raises(mc.InputError, match="is no index; give what"):
        plot_index(mc.indices.arm([[1.0]], [[1.0]]))
