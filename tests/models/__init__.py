"""Eleven small systems with their reference numbers, found by `cases` without any list.

A module of this package that has a tuple ``CASES`` takes part in every test of ``tests/common``:
its models are compiled in every form, solved by every solver, and compared with the references.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Case", "Heuristic", "case", "cases", "reference"]

FOLDER = Path(__file__).resolve().parent.parent / "reference"


@dataclass(frozen=True)
class Heuristic:
    """A policy with its known average cost.

    Attributes
    ----------
    rules : mapping
        What `mdpcloud.policy` takes: event name -> rule, array or ``{action: probability}``.
    cost : float or Fraction or None
        Average cost per unit of time (a reward where the case says so).
    measures : mapping
        Long-run averages of some of the model's measures under this policy.
    """

    rules: Mapping[str, Any]
    cost: float | Fraction | None = None
    measures: Mapping[str, float | Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A model with its reference numbers.

    Attributes
    ----------
    name : str
        Unique among all cases.
    build : callable
        Makes the model.
    optimum : float or Fraction or None
        Optimal average cost per unit of time; None where there is no reference.
    heuristics : mapping
        Policies with known cost, by name.
    tolerance : float
        Absolute error of the reference numbers.
    rewards : bool
        Whether the numbers are rewards, to be maximised.
    arrays : mapping
        For tabular models only: the arrays ``P``, ``costs`` (per pair) and ``states``, ``actions``
        that name the pairs, from which ``tests/common`` builds its own second model.
    source : str
        Where the numbers come from.
    """

    name: str
    build: Callable[[], Any]
    source: str
    optimum: float | Fraction | None = None
    heuristics: Mapping[str, Heuristic] = field(default_factory=dict)
    tolerance: float = 1e-9
    rewards: bool = False
    arrays: Mapping[str, Any] = field(default_factory=dict)


@cache
def reference(name: str) -> Any:
    """Content of ``tests/reference/<name>.json``."""
    return json.loads((FOLDER / f"{name}.json").read_text())


@cache
def cases() -> tuple[Case, ...]:
    """All cases of all modules of this package, in the order of the modules' names."""
    found: list[Case] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        if not module.name.startswith("test_"):
            found += getattr(import_module(f"{__name__}.{module.name}"), "CASES", ())
    names = [one.name for one in found]
    if len(set(names)) != len(names):
        raise ValueError(
            f"two cases share a name: {sorted(n for n in names if names.count(n) > 1)}"
        )
    return tuple(found)


def case(name: str) -> Case:
    """The case of that name."""
    return next(one for one in cases() if one.name == name)
