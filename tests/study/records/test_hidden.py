"""What no field of a system tells is in its key all the same, or the system is refused."""

import copy
import enum
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.study import Study
from mdpcloud.study.records.hidden import hidden_in
from mdpcloud.study.records.identity import content_of, key_of


@dataclass(frozen=True)
class Queue:
    """A queue whose rate of arrivals is no field."""

    scale: InitVar[float]
    rate: float = 1.0

    def __post_init__(self, scale: float) -> None:
        object.__setattr__(self, "_arrivals", self.rate * scale)

    def with_load(self, load: float) -> Any:
        """Another one."""
        new = copy.copy(self)
        object.__setattr__(new, "_arrivals", load)
        return new

    def model(self) -> mc.Model:
        """A queue of three places that loses what finds no room."""
        join = mc.Action("join", mc.step(i={0: 1}), 0.0, lambda x: x.i[0] < 3)
        arrival = mc.Event("arrival", self._arrivals, [join, mc.Action("lose", cost=5.0)])
        service = mc.Event("service", lambda x: 1.0 * (x.i[0] > 0), mc.step(i={0: -1}))
        return mc.Model(mc.Lattice({"i": (3,)}), [arrival, service], cost_rate=lambda x: x.i[0])


@dataclass(frozen=True)
class Holder:
    """A system that holds anything."""

    held: Any = None

    @cached_property
    def twice(self) -> Any:
        """Computed at first use."""
        return [self.held, self.held]

    def model(self) -> None:
        """None."""


class Inheriting(Holder):
    """A class that is no dataclass of its own."""

    def __init__(self, held: Any, more: Any) -> None:
        super().__init__(held)
        object.__setattr__(self, "more", more)


@dataclass
class Slots:
    """A part with a slot that is no field."""

    __slots__ = ("__dict__", "field", "other")
    field: int

    def __init__(self, other: Any) -> None:
        self.field, self.other = 1, other


class Pair(NamedTuple):
    """A pair of one meaning."""

    x: int
    y: int


class Other(NamedTuple):
    """A pair of another meaning."""

    x: int
    y: int


class Listed(list[int]):
    """A list with an attribute."""

    def __init__(self, more: int) -> None:
        super().__init__([1])
        self.more = more


class Kind(enum.StrEnum):
    """A text that is more."""

    A = "a"


def key(system: Any) -> str:
    (one,) = Study.of([({}, system)]).instances
    return one.key


PAIRS = {
    "InitVar": (Queue(0.5), Queue(2.0)),
    "method": (Queue(0.5), Queue(0.5).with_load(0.9)),
    "own __init__": (Inheriting(1, 2), Inheriting(1, 3)),
    "nested": (Holder([{"a": Inheriting(1, 2)}]), Holder([{"a": Inheriting(1, 3)}])),
    "slot": (Holder(Slots(1)), Holder(Slots(2))),
    "named tuples": (Holder(Pair(1, 2)), Holder(Other(1, 2))),
    "subclass of list": (Holder(Listed(1)), Holder(Listed(2))),
    "text of an enumeration": (Holder(Kind.A), Holder("a")),
    "names in arrays": tuple(Holder(np.zeros(2, [(name, "f8")])) for name in "ab"),
    "masks": tuple(Holder(np.ma.array([1.0, 2.0], mask=mask)) for mask in ([0, 1], [1, 0])),
}


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_systems_that_differ_in_no_field_have_keys_of_their_own(one: Any, other: Any) -> None:
    assert key(one) == key(copy.copy(one)) != key(other)


def test_what_is_computed_of_the_fields_does_not_count() -> None:
    one, used = Holder(1.0), Holder(1.0)
    assert used.twice
    assert key(one) == key(used)
    assert hidden_in(used, "parameters") == {}


@pytest.mark.parametrize("value", [1, 1.0, np.float64(1.0), np.ones(2), [(1,)], {"a": None}])
def test_numbers_and_what_holds_them_hide_nothing(value: Any) -> None:
    assert hidden_in(Holder(value), "parameters") == {}


def test_what_cannot_be_told_is_refused_with_its_place(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        system = Holder([Inheriting(1, file)])
        with pytest.raises(InputError, match=r"parameters\.held\[0\] holds 'more', .* a field"):
            key(system)


def test_each_of_such_systems_has_its_own_result(tmp_path: Path) -> None:
    systems = [Queue(0.5), Queue(2.0), Queue(0.5).with_load(0.9)]
    study = Study.of([({"q": q}, one) for q, one in enumerate(systems)])
    rows = mc.study.run(study, store=tmp_path, backend="sequential").rows()
    solved = [mc.solve(one.model()).gain for one in systems]
    assert [row["cost"] for row in rows] == pytest.approx(solved, rel=1e-7)


def test_a_task_of_the_users_own_may_read_names_and_units() -> None:
    (one,) = Study.of([({}, Holder(1))]).instances
    changed = [replace(one.scenario, **{k: "x"}) for k in ("name", "time_unit", "cost_unit")]
    for task, number in (("compare", 1), ("tasks.py:run", 4)):
        keys = {key_of(content_of(scenario, task)) for scenario in (one.scenario, *changed)}
        assert len(keys) == number
