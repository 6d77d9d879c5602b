"""Rules of the user's own are told apart by all that they hold, and by what they look up."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdpcloud.plugins import load
from mdpcloud.study import Study
from mdpcloud.study.records.identity import sources_of
from mdpcloud.study.records.own import hash_of, identity_of
from mdpcloud.study.records.store import Store
from mdpcloud.study.running.resuming import find


class _Answering:
    """What has a number, and answers it."""

    number: Any

    def __call__(self, x: Any) -> Any:
        """The action."""
        return self.number


class Listed(_Answering, list[int]):
    """A list too."""


class Mapped(_Answering, dict[str, int]):
    """A mapping too."""


class Grouped(_Answering, tuple[int, ...]):
    """A tuple too."""


class Real(_Answering, float):
    """A number too."""


class Filled(_Answering, np.ndarray):  # type: ignore[misc]
    """An array too."""


class Partial(_Answering, functools.partial):  # type: ignore[misc]
    """A partial function too."""


def with_number(one: Any, number: int) -> Any:
    one.number = number
    return one


def with_attribute(number: int) -> Any:
    def rule(x: Any) -> Any:
        return rule.number  # type: ignore[attr-defined]

    return with_number(rule, number)


def of_metaclass(number: int) -> Any:
    kind = type("Kind", (type,), {"__call__": lambda cls, x: number})
    return kind("Rule", (), {})


def of_text(number: int) -> Any:
    names = {"__name__": __name__, "LIMIT": number}
    exec("def rule(x): return LIMIT", names)
    return names["rule"]


def holding(value: Any) -> Callable[[Any], Any]:
    return lambda x: value


MAKERS: dict[str, Callable[[int], Any]] = {
    "list": lambda number: with_number(Listed(), number),
    "mapping": lambda number: with_number(Mapped(), number),
    "tuple": lambda number: with_number(Grouped(), number),
    "float": lambda number: with_number(Real(), number),
    "array": lambda number: with_number(np.zeros(2).view(Filled), number),
    "partial": lambda number: with_number(Partial(max), number),
    "attribute of a partial": lambda number: with_number(functools.partial(max), number),
    "attribute of a function": with_attribute,
    "metaclass": of_metaclass,
    "globals of its own": of_text,
    "mask": lambda number: holding(np.ma.array([1.0, 2.0], mask=[number == 1, number == 2])),
    "names of an array": lambda number: holding(np.zeros(2, [(f"x{number}", "f8")])),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rules_are_told_apart_by_what_subclasses_and_attributes_add(
    make: Callable[[int], Any],
) -> None:
    one, same, other = make(1), make(1), make(2)
    assert identity_of(one) == identity_of(same) != identity_of(other)
    assert hash_of(one) == hash_of(same) != hash_of(other)


PROGRAM = """
import functools, sys
from mdpcloud.study.records.own import hash_of, identity_of

LIMIT = (int(sys.argv[1]), "a")
{"a", "b", "c"}

def directly(x): return LIMIT
def within(x): return lambda: directly(x)
@functools.lru_cache
def cached(x): return within(x)
def through(x): return cached(x)
class Rule:
    def __call__(self, x): return through(x)
class Property:
    @property
    def limit(self): return LIMIT
    def __call__(self, x): return self.limit
def apart(x): return __file__, sys

for rule in (directly, within, cached, through, Rule(), Property(), lambda x: LIMIT, apart):
    print(identity_of(rule), hash_of(rule))
"""


@pytest.mark.slow
def test_numbers_that_a_program_sets_as_it_is_called_are_in_the_sources(tmp_path: Path) -> None:
    """The same program, wherever it lies, with another argument."""

    def run(folder: str, argument: str) -> list[list[str]]:
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "program.py"
        program.write_text(PROGRAM)
        command = [sys.executable, str(program), argument]
        environment = {**os.environ, "PYTHONHASHSEED": argument}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [line.rsplit(" ", 1) for line in done.stdout.splitlines()]

    one, same, other = run("a", "1"), run("b", "1"), run("c", "2")
    assert one == same
    assert [name for name, _ in one] == [name for name, _ in other]
    differs = [a != b for (_, a), (_, b) in zip(one, other, strict=True)]
    assert differs == [True] * 7 + [False]


SYSTEM = """
from dataclasses import dataclass
from typing import Any

@dataclass(frozen=True)
class Whole:
    part: Any

    def model(self): ...

@dataclass(frozen=True)
class Part:
    rate: float = 1.0
"""


def test_an_edited_class_of_a_part_is_noticed_in_the_instances_that_have_it(tmp_path: Path) -> None:
    for name in ("whole", "one", "other"):
        (tmp_path / f"{name}.py").write_text(SYSTEM)
    whole: Any = load("whole.py:Whole", tmp_path)

    def sources() -> list[Any]:
        parts: list[Any] = [load(f"{name}.py:Part", tmp_path) for name in ("one", "other")]
        study = Study.of([({"k": k}, whole(part())) for k, part in enumerate(parts)])
        store = Store(tmp_path / "store")
        store.records.mkdir(parents=True, exist_ok=True)
        found = find(study, store, resume=True, keep_old=False, retry_failed=False).sources
        assert all(found[one.key] == sources_of(one.scenario) for one in study.instances)
        return [found[one.key] for one in study.instances]

    before = sources()
    (tmp_path / "other.py").write_text(f"{SYSTEM}# edited")
    assert [one != two for one, two in zip(before, sources(), strict=True)] == [False, True]


def test_a_file_that_gives_a_rule_of_another_counts(tmp_path: Path) -> None:
    (tmp_path / "that_defines.py").write_text("C = 0\ndef rule(x): return C\n")
    found = []
    for number in (0, 1):
        text = f"from that_defines import rule\nSOMETHING = {number}\n"
        (tmp_path / "gives.py").write_text(text)
        rule = load("gives.py:rule", tmp_path)
        texts = ("x/gives.py:rule", "rule", "other.py:rule", "gives.py:other", "")
        found.append([hash_of(rule, text) for text in texts])
    assert [one != other for one, other in zip(*found, strict=True)] == [True] * 2 + [False] * 3
