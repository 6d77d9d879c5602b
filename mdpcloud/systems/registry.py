"""Systems by name: those of this package, of installed packages, and of the user's own files.

A system is a dataclass with a method ``model(caps=None)``; the first line of its docstring says
what it is. Its name is its class attribute ``system_name``, or its class name in lower case with
underscores. Modules of `mdpcloud.systems` are searched; other packages announce theirs as entry
points of the group ``mdpcloud.systems``; ``file.py:Class`` and ``module:Class`` need no entry.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import mdpcloud.systems
from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean, is_reference, load

__all__ = [
    "find_system",
    "is_system",
    "modules",
    "name_of",
    "policy_names",
    "summary_of",
    "system_names",
    "systems_of",
]

GROUP = "mdpcloud.systems"


def modules() -> Iterator[ModuleType]:
    """Modules of this package that may hold systems, by name."""
    for found in pkgutil.iter_modules(mdpcloud.systems.__path__):
        if not found.name.startswith("_"):
            yield import_module(f"{mdpcloud.systems.__name__}.{found.name}")


def systems_of(module: ModuleType) -> list[type[Any]]:
    """Classes of systems that a module defines."""
    return [
        member
        for member in vars(module).values()
        if is_system(member) and member.__module__ == module.__name__
    ]


def is_system(candidate: object) -> bool:
    """Whether an object is a class of systems: a dataclass with a method ``model``."""
    return (
        isinstance(candidate, type)
        and dataclasses.is_dataclass(candidate)
        and callable(getattr(candidate, "model", None))
    )


def name_of(system: type[Any]) -> str:
    """Name of a class of systems.

    Examples
    --------
    >>> class CloudRouting: ...
    >>> name_of(CloudRouting)
    'cloud_routing'
    """
    return (
        vars(system).get("system_name") or re.sub(r"(?<!^)(?=[A-Z])", "_", system.__name__).lower()
    )


def summary_of(system: type[Any]) -> str:
    """First line of the docstring of a class of systems."""
    return (inspect.getdoc(system) or "").partition("\n")[0]


def system_names() -> list[str]:
    """Names of the systems of this package and of installed packages, in order."""
    return sorted({*_built_in(), *(point.name for point in entry_points(group=GROUP))})


def find_system(name: str, folder: Path | None = None) -> type[Any]:
    """Class of systems of a name, or named by ``file.py:Class`` or ``module:Class``.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Folder that the path of a file is relative to, by default the working directory.

    Raises
    ------
    InputError
        If there is no such system, or what is named is none.
    """
    if is_reference(name):
        return _checked(load(name, folder or Path()), name)
    built_in = _built_in()
    if name in built_in:
        return built_in[name]
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = [*built_in, *points]
        hint = did_you_mean(name, known) or f"; there are {', '.join(sorted(known))}"
        raise InputError(f"there is no system {name!r}{hint}")
    return _checked(load(points[name].value, Path()), name)


@cache
def _built_in() -> dict[str, type[Any]]:
    return {name_of(system): system for module in modules() for system in systems_of(module)}


def _checked(candidate: object, name: str) -> type[Any]:
    if not is_system(candidate):
        raise InputError(f"{name!r} must be a dataclass with a method model(caps=None); it is not")
    assert isinstance(candidate, type)
    return candidate


def policy_names(system: type[Any]) -> tuple[str, ...]:
    """Names of the policies that a class of systems knows, its class attribute ``policy_names``."""
    return tuple(getattr(system, "policy_names", ()))
