import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.model.space import Axes


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def test_a_lattice_counts_from_zero_to_its_caps():
    assert mc.Lattice({"node": (2, 3), "phase": 1}).shape == (3, 4, 2)


def test_coordinates_are_an_open_mesh_with_families_as_tuples():
    x = mc.Lattice({"node": (2, 3), "phase": 1}).mesh()
    assert [c.shape for c in (*x.node, x.phase)] == [(3, 1, 1), (1, 4, 1), (1, 1, 2)]
    assert x.node[1].ravel().tolist() == [0, 1, 2, 3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.integers(1, 3))
def test_a_state_lists_its_coordinates_in_the_order_of_the_axes(family, single):
    axes = Axes({"node": family, "phase": single}, "cap")
    assert len(axes) == len(family) + 1
    assert axes.state([*family, single]) == (tuple(family), single)
    assert axes.describe([*family, single]) == f"(node={tuple(family)}, phase={single})"


def test_without_a_condition_the_whole_box_is_inside():
    assert mc.Lattice({"a": 2}).inside() is None


def test_a_condition_keeps_the_points_where_it_holds():
    inside = mc.Lattice({"a": 2, "b": 2}, where=lambda x: x.a + x.b <= 2).inside()
    assert inside.tolist() == [[True, True, True], [True, True, False], [True, False, False]]


def test_a_condition_of_one_axis_holds_along_the_others():
    inside = mc.Lattice({"a": 1, "b": 2}, where=lambda x: x.b > 0).inside()
    assert inside.tolist() == [[False, True, True]] * 2


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (lambda x: x.a > 5, "the space is empty"),
        (lambda x: np.ones(7, bool), "where has shape (7,), which does not broadcast over the box"),
        (lambda x: 1 if x.a > 1 else 0, "write np.where for if"),
        (lambda x: x.a > 1 and x.a < 3, "& for and"),
        (lambda x: x.aa > 1, "where: x has no axis 'aa'; did you mean 'a'?"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused(where, said):
    with refused(said):
        mc.Lattice({"a": 3}, where=where).inside()


@pytest.mark.parametrize("space", [mc.Lattice, mc.Reachable])
@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({}, "a space needs a mapping of at least one name"),
        ([3, 4], "axes are [3, 4]"),
        ({"a": -1}, "of axis 'a' is -1; it must be an integer >= 0"),
        ({"a": 1.0}, "of axis 'a' is 1.0; it must be an integer >= 0"),
        ({"a": True}, "of axis 'a' is True"),
        ({"a": "3"}, "of axis 'a' is '3'"),
        ({"a": (1, -2)}, "of axis 'a' is -2"),
        ({"a": ()}, "family 'a' is empty"),
        ({"a b": 1}, "axis name 'a b' is not a Python identifier"),
        ({"_a": 1}, "axis name '_a' is not"),
        ({"for": 1}, "axis name 'for' is not"),
        ({1: 1}, "axis name 1 is not"),
    ],
)
def test_axes_that_are_no_names_with_counts_are_refused(space, axes, said):
    with refused(said):
        space(axes)


def test_numpy_integers_and_arrays_are_counts_too():
    assert mc.Lattice({"a": np.int32(2), "b": np.array([1, 3])}).shape == (3, 2, 4)


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ({"qeue": 1}, "event 'e': the space has no axis 'qeue'; did you mean 'queue'?"),
        ({"zzz": 1}, "the space has no axis 'zzz'; there are ['queue', 'node']"),
        ({"node": 1}, "family 'node' takes {index: amount} or 2 amounts, not 1"),
        ({"node": (1, 0, 0)}, "family 'node' takes {index: amount} or 2 amounts"),
        ({"node": {2: 1}}, "node[2] does not exist; indices are 0..1"),
        ({"node": {-1: 1}}, "node[-1] does not exist"),
        ({"node": {"a": 1}}, "node['a'] does not exist"),
        ({"queue": {0: 1}}, "axis 'queue' takes one integer, not {0: 1}"),
    ],
)
def test_displacements_along_axes_that_do_not_exist_are_refused(amounts, said):
    with refused(said):
        Axes({"queue": 3, "node": (1, 1)}, "cap").displacement(amounts, "event 'e'")


def test_a_displacement_is_zero_along_the_axes_it_does_not_name():
    axes = Axes({"queue": 3, "node": (1, 1)}, "cap")
    assert axes.displacement({"node": {1: -1}}, "") == [0, 0, -1]
    assert axes.displacement({"node": (2, 3)}, "") == [0, 2, 3]


def test_a_search_needs_room_for_a_state():
    with refused("max_states is 0; it must be >= 1"):
        mc.Reachable({"a": 0}, max_states=0)
