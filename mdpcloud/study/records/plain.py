"""Values as JSON gives them back."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mdpcloud.errors import InputError

__all__ = ["field_names", "is_own", "name_of_object", "plain"]

PACKAGE = f"{__name__.partition('.')[0]}."
FILES = f"{PACKAGE}plugins."  # modules of the user's files lie below this one


def plain(value: Any, where: str) -> Any:
    """A value as JSON gives it back: lists for tuples, numbers of Python for numpy's.

    A dataclass becomes a mapping of its fields and of ``class``, its name, so that two classes of
    the same fields differ.

    Raises
    ------
    InputError
        When JSON cannot hold it; the message tells where in the value, which it calls ``where``.

    Examples
    --------
    >>> plain({"rows": ({"cost": 0.5, "states": 12},)}, "result")
    {'rows': [{'cost': 0.5, 'states': 12}]}
    >>> plain({"rows": [{"cost": float("nan")}]}, "result")
    Traceback (most recent call last):
    mdpcloud.errors.InputError: result.rows[0].cost is nan; it must be finite, or None
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration, its text
    if isinstance(value, float):
        return _finite(value, where)
    return _plain_parts(value, where)


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise InputError(f"{where} is {float(value)!r}; it must be finite, or None")
    return float(value)


def _plain_parts(value: Any, where: str) -> Any:
    """What is made of parts."""
    if isinstance(value, list | tuple):
        return [plain(one, f"{where}[{i}]") for i, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {_text(name, where): plain(one, f"{where}.{name}") for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        parts = {name: plain(getattr(value, name), f"{where}.{name}") for name in field_names(kind)}
        return {"class": name_of_object(kind), **parts}
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        return plain(value.tolist(), where)
    raise InputError(
        f"{where} is {value!r}; a study can store only numbers, texts, true or false, None, and "
        "lists, mappings and dataclasses of these"
    )


def _text(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise InputError(f"{where} has the key {name!r}; a study can store only texts as keys")
    return str.__str__(name)


@lru_cache(maxsize=1024)
def field_names(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass."""
    return tuple(one.name for one in fields(kind))


# --- names of classes and functions ---------------------------------------------------------------


def is_own(module: str) -> bool:
    """Whether a module is no part of this package."""
    return not module.startswith(PACKAGE) or module.startswith(FILES)


def name_of_object(what: Any) -> str:
    """Name of a class or function that is the same wherever its file lies.

    Examples
    --------
    >>> from mdpcloud.laws import Erlang
    >>> name_of_object(Erlang)
    'Erlang'
    >>> from fractions import Fraction
    >>> name_of_object(Fraction)
    'fractions:Fraction'
    """
    return _name(str(what.__module__), what.__qualname__)


@lru_cache(maxsize=1024)
def _name(module: str, name: str) -> str:
    if not is_own(module):
        return name
    if module.startswith(FILES):
        return f"{Path(str(sys.modules[module].__file__)).name}:{name}"
    return f"{module}:{name}"
