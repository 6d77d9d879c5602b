"""What a study changes: a place in the scenario's document, or the system itself.

A text names a dotted path into the document (``parameters.nodes[0].servers``); or, by a single
name, the system's own method (``load`` is ``with_load``); or a function of the user's own that
takes a system and a value and returns a system (``my_axes.py:at_load``).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean, is_reference, load, mistake_in_plugin
from mdpcloud.study.file.paths import Path, parse_path
from mdpcloud.systems.registry import is_system

__all__ = ["Target", "changed", "find_target"]

KEYS = (  # of a scenario, apart from its format
    "parameters",
    "solve",
    "compare",
    "simulate",
    "figure",
    "system",
    "name",
    "time_unit",
    "cost_unit",
)
METHOD = "with_"  # begins the name of a method that changes a system


@dataclass(frozen=True)
class Target:
    """What is changed: one of the two is there.

    Attributes
    ----------
    text : str
        As the file spells it.
    path : Path or None
        Place in the document.
    function : function of a system and a value, or None
        What returns the changed system.
    """

    text: str
    path: Path | None = None
    function: Callable[[Any, Any], Any] | None = None


def find_target(text: str, system: type[Any] | None, folder: pathlib.Path) -> Target:
    """What a text names.

    Parameters
    ----------
    text : str
    system : type, optional
        Class of the base, where it is known.
    folder : Path
        Folder that files of functions are relative to.

    Raises
    ------
    InputError
        If there is no such thing.
    """
    if is_reference(text):
        function = load(text, folder)
        if not callable(function):
            raise InputError(
                f"{text!r} must be a function of a system and a value; it is {function!r}"
            )
        return Target(text, function=function)
    path = parse_path(text)
    if path[0] in KEYS:
        return Target(text, path)
    if len(path) > 1 or (system is not None and not hasattr(system, f"{METHOD}{text}")):
        raise InputError(_unknown(path, text, system))
    return Target(text, function=_Method(f"{METHOD}{text}"))


@dataclass(frozen=True)
class _Method:
    """A method of the system."""

    name: str

    def __call__(self, system: Any, value: Any) -> Any:
        return getattr(system, self.name)(value)


def _unknown(path: Path, text: str, system: type[Any] | None) -> str:
    """What is wrong with a path whose first step is no part of a scenario."""
    first, fields = str(path[0]), getattr(system, "__dataclass_fields__", {})
    if first in fields:
        return f"{text!r} must begin with parameters: 'parameters.{text}'"
    if len(path) > 1:
        near = did_you_mean(first, KEYS) or f"; there are {', '.join(KEYS)}"
        return f"{text!r}: there is no {first!r}{near}"
    methods = [name.removeprefix(METHOD) for name in _methods(system)]
    near = did_you_mean(text, [*methods, *KEYS, *(f"parameters.{name}" for name in fields)])
    there = f"; {system.__name__} has {', '.join(methods) or 'none'}" if system else ""
    return f"{text!r} is neither a path nor is there a method {METHOD}{text}{near or there}"


def _methods(system: type[Any] | None) -> Iterable[str]:
    return (name for name in dir(system) if name.startswith(METHOD))


def changed(system: Any, target: Target, value: Any) -> Any:
    """A system changed by a function.

    Raises
    ------
    InputError
        If the function refuses the value or fails, or returns no system.
    """
    assert target.function is not None
    try:
        found = target.function(system, value)
    except InputError as error:
        raise InputError(f"{target.text} = {value!r}: {error}") from error
    except Exception as error:
        reason = mistake_in_plugin(error) or f"{type(error).__name__}: {error}"
        raise InputError(f"{target.text} = {value!r} failed: {reason}") from error
    if not is_system(type(found)):
        raise InputError(f"{target.text} = {value!r} must return a system, not {found!r}")
    return found
