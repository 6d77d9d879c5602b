import re

import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model, memory
from tests.admission import admission


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def test_a_box_larger_than_the_memory_is_refused_with_its_size_and_what_to_change(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 4_000_000_000)
    space = mc.Lattice({"node": (999, 999, 99)})
    with refused(
        "the box 1000 x 1000 x 100 has 1e+08 states and needs about 4.8 GB, of which 4.0 GB are "
        "free; choose smaller caps"
    ):
        memory.check_memory(space)


def test_a_box_that_fits_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 5_000_000_000)
    memory.check_memory(mc.Lattice({"node": (999, 999, 99)}))


def test_where_the_system_does_not_say_only_the_numbering_limits_a_box(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(mc.Lattice({"node": (999, 999, 99)}))
    with refused("has 2.16e+09 states and needs about 104 GB; choose smaller caps"):
        memory.check_memory(mc.Lattice({"a": 2_159_999_999}))


def test_the_memory_is_asked_for_in_bytes(monkeypatch):
    assert memory.available_memory() is None or memory.available_memory() > 1e6

    def no_name(name):
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", no_name)
    assert memory.available_memory() is None


@pytest.mark.parametrize("form", [None, "lattice", "indexed"])
def test_nothing_is_allocated_for_a_box_that_is_refused(form):
    with refused("the box 1000001 x 1000001 has 1e+12 states"):
        compile_model(admission(space=mc.Lattice({"jobs": 10**6, "other": 10**6})), form)
