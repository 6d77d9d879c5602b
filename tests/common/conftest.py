"""Every model of ``tests/models`` with its second reading, compiled in every form it has."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model, fused, indexed, lattice
from mdpcloud.engine.rows import RowsProblem
from tests.common.interpreter import Interpreted, interpret_case
from tests.models import Case, case, cases

FORMS = ("lattice", "indexed", "rows", "lattice in pieces", "indexed in pieces")
FUSED = ("lattice in fused pieces", "indexed in fused pieces")

# Compiling a fused sweep takes seconds: some models that differ in structure stand for all.
WITH_FUSED = (
    "closed phase-type network",
    "downgrading (1, 2, 4)",
    "jiq with exchange",
    "restless arm",
    "retrial",
    "routing C6",
    "service-rate control",
)


@dataclass(frozen=True)
class Compiled:
    """A case in one form, next to its second reading."""

    case: Case
    problem: Any
    plain: Interpreted

    @property
    def scale(self) -> float:
        """Largest rate times one: what a backup of values up to 1 can reach, cost/time."""
        return float(self.problem.rate_bound + self.problem.cost_scale)


@cache
def read(name: str) -> Interpreted:
    """Second reading of a case."""
    return interpret_case(case(name))


def forms(one: Case) -> tuple[str, ...]:
    """The forms that the case must have; a step given by a function has no lattice form."""
    if one.arrays:
        return ("rows",)
    model = one.build()
    events = [e for e in model.events if isinstance(e, mc.Event)]
    by_function = any(callable(a.step) for e in events for a in e.actions)
    boxed = isinstance(model.space, mc.Lattice) and not by_function
    possible = (*FORMS, *FUSED) if one.name in WITH_FUSED else FORMS
    return tuple(form for form in possible if boxed or not form.startswith("lattice"))


@contextmanager
def small_pieces() -> Iterator[None]:
    """Blocks of a few states, so that small models are cut up like large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "SHORTEST_SLAB", 4)
        patch.setattr(lattice, "LONGEST_BLOCK", 5)
        patch.setattr(indexed, "BLOCK", 7)
        yield


def compile_as(model: Any, form: str) -> Any:
    """A model in that form."""
    name, _, pieces = form.partition(" in ")
    if name == "rows":
        problem: Any = compile_model(model)
        return RowsProblem(problem.rows(), problem.terms, problem.discrete, problem.label)
    with small_pieces() if pieces else nullcontext():
        return compile_model(model, form=name)


@cache
def compiled(name: str, form: str) -> Any:
    """The case in that form."""
    model = case(name).build()
    return compile_model(model) if case(name).arrays else compile_as(model, form)


def available() -> list[tuple[str, str]]:
    """All pairs of case and form."""
    return [(one.name, form) for one in cases() for form in forms(one)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise ``one`` by case and form, ``a_case`` by case, with ``heuristic`` by both."""
    if "one" in metafunc.fixturenames:
        metafunc.parametrize(
            "one",
            [pytest.param(pair, id=f"{pair[0]}-{pair[1]}") for pair in available()],
            indirect=True,
        )
    if "heuristic" in metafunc.fixturenames:
        pairs = [(c, name) for c in cases() for name in c.heuristics]
        ids = [f"{c.name}-{name}" for c, name in pairs]
        metafunc.parametrize(("a_case", "heuristic"), pairs, ids=ids)
    elif "a_case" in metafunc.fixturenames:
        metafunc.parametrize("a_case", [pytest.param(c, id=c.name) for c in cases()])


@pytest.fixture
def one(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """A case in one of its forms."""
    name, form = request.param
    if form in FUSED:
        monkeypatch.setattr(fused, "FEWEST", 0)
    return Compiled(case(name), compiled(name, form), read(name))
