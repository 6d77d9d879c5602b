"""Studies of systems made in Python.

The name of a system's class is part of the key of an instance, and so are the names of rules; a
class of the user's own is therefore named with its module.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.scenario import CompareSettings, Scenario, SolveSettings
from mdpcloud.scenario.settings import Ties
from mdpcloud.study.file.axes import TAKEN
from mdpcloud.study.output_mistakes import labels_of, mistakes_in_columns, mistakes_in_names
from mdpcloud.study.outputs import Outputs
from mdpcloud.study.study import Instance, Label, Study
from mdpcloud.study.tasks import find_task
from mdpcloud.systems.registry import find_system, is_system, name_of

__all__ = ["study_of", "system_name"]


def study_of(
    points: Iterable[tuple[Mapping[str, Label], Any]],
    policies: Mapping[str, Any] | Iterable[str] | None,
    task: str | Callable[[Scenario], Mapping[str, Any]],
    name: str,
    ties: Any,
    tolerance: float,
    outputs: Outputs | None,
) -> Study:
    """See `mdpcloud.study.Study.of`."""
    if not isinstance(name, str) or not name:
        raise InputError(f"name must be a text, not {name!r}")
    if ties not in get_args(Ties):
        raise InputError(f"ties must be {' or '.join(map(repr, get_args(Ties)))}, not {ties!r}")
    settings = (CompareSettings(_chosen(policies), ties), SolveSettings(tolerance))
    does = find_task(task, Path())
    pairs = [_pair(number, point) for number, point in enumerate(points)]
    instances = tuple(
        Instance(number, labels, _scenario(system, name, *settings), does)
        for number, (labels, system) in enumerate(pairs)
    )
    if not instances:
        raise InputError("a study needs at least one point; there is none")
    wanted = outputs or Outputs()
    mistakes = [*mistakes_in_columns(wanted, does, labels_of(instances))]
    mistakes += mistakes_in_names(wanted, instances)
    if mistakes:
        raise InputError("\n".join(mistakes))
    return Study(name, instances, does, wanted)


def _pair(number: int, point: Any) -> tuple[dict[str, Label], Any]:
    """Labels and system of a point."""
    if not (isinstance(point, tuple | list) and len(point) == 2 and isinstance(point[0], Mapping)):
        raise InputError(
            f"points[{number}] must be a pair of labels, such as {{'load': 0.9}}, and a system, "
            f"not {point!r}"
        )
    labels, system = point
    if not is_system(type(system)):
        raise InputError(
            f"points[{number}]: {system!r} is no system; it must be an instance of a dataclass "
            "with a method model()"
        )
    return {name: _label(number, name, value) for name, value in labels.items()}, system


def _label(number: int, name: Any, value: Any) -> Label:
    """A label as a plain value of Python."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(name, str) or not name or not isinstance(plain, str | int | float | bool):
        raise InputError(
            f"points[{number}]: a label must have a text as its name and a number, a text, true or "
            f"false as its value, not {name!r}: {value!r}"
        )
    if name in TAKEN:
        raise InputError(f"points[{number}]: {name!r} is a column of the results; rename the label")
    return plain


def system_name(system: type[Any]) -> str:
    """Name of a class of systems that no other class has: part of an instance's key.

    That of `mdpcloud.systems.registry` for systems found by it, else ``module:Class``.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> system_name(mc.systems.CloudRouting)
    'cloud_routing'
    """
    return _system_name(system)  # type: ignore[arg-type]  # mypy takes no class for hashable


@cache
def _system_name(system: Hashable) -> str:
    assert isinstance(system, type)
    name = name_of(system)
    with contextlib.suppress(InputError):
        if find_system(name) is system:
            return name
    return f"{system.__module__}:{system.__qualname__}"


def _chosen(policies: Mapping[str, Any] | Iterable[str] | None) -> dict[str, Any] | None:
    """Name of each policy to its rule, or to the name itself."""
    if policies is None:
        return None
    if not isinstance(policies, Mapping):
        names = [policies] if isinstance(policies, str) else [*policies]
        policies = dict(zip(names, names, strict=True))
    wrong = [name for name in policies if not isinstance(name, str) or not name]
    if wrong or not policies:
        found = f"{wrong[0]!r}" if wrong else "none"
        raise InputError(
            f"policies must be names, or a mapping of names to rules of your own; there is {found}"
        )
    return dict(policies)


def _scenario(system: Any, name: str, compare: CompareSettings, solve: SolveSettings) -> Scenario:
    return Scenario(
        format=1,
        system=system,
        system_name=system_name(type(system)),
        name=name,
        time_unit="time",
        cost_unit="cost",
        solve=solve,
        compare=compare,
    )
