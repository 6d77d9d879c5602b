"""What objects of the user's own are made of: code, bodies of classes, what pickles hold."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

__all__ = [
    "ATOMS",
    "body_of",
    "content_of_cell",
    "functions_of",
    "is_data",
    "is_named",
    "names_in",
    "reduced",
    "without_caches",
]

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def is_named(what: Any) -> bool:
    """Whether its module gives it by its name."""
    found: Any = sys.modules.get(str(getattr(what, "__module__", None)))
    for name in str(getattr(what, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found is not None and found is what


def reduced(value: Any) -> Any:
    """What pickles hold of an object, its name in a module, or "" where neither is known."""
    inner = getattr(value, "py_func" if type(value).__module__.startswith("numba.") else "-", None)
    if isinstance(value, functools._lru_cache_wrapper):
        inner = value.__wrapped__
    if inner is not None:
        return tuple, (inner,)
    try:
        parts = value.__reduce_ex__(4)
    except Exception:
        return ""
    if not isinstance(parts, str):
        return parts
    module = sys.modules.get(getattr(value, "__module__", None) or type(value).__module__)
    return parts if getattr(module, parts, None) is value else ""


def content_of_cell(cell: Any) -> Any:
    """What a variable of a closure holds."""
    try:
        return cell.cell_contents
    except ValueError:  # it has not been given yet
        return "empty"


def names_in(code: types.CodeType) -> set[str]:
    """Names that a code and the functions within it may look up in their module."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(names_in, inner))


def functions_of(value: Any) -> list[types.FunctionType]:
    """A function itself, or those of a class, without what wraps them."""
    parts = body_of(value).values() if isinstance(value, type) else [value]
    inner = (getattr(one, "fget", None) or getattr(one, "func", one) for one in parts)
    found = (getattr(one, "py_func", getattr(one, "__wrapped__", one)) for one in inner)
    return [one for one in found if isinstance(one, types.FunctionType)]


def is_data(value: Any) -> bool:
    """Whether it is made of numbers and texts only."""
    if type(value) is dict:
        value = [*value.keys(), *value.values()]
    if type(value) in (list, tuple, set, frozenset):
        return all(map(is_data, value))
    return type(value) in ATOMS


def body_of(kind: type[Any]) -> dict[str, Any]:
    """What a class statement says, without what Python adds."""
    added = ("__dict__", "__weakref__", "__doc__", "__module__", "__abc_impl__", "_abc_impl")
    return {
        name: value.__func__ if isinstance(value, classmethod | staticmethod) else value
        for name, value in vars(kind).items()
        if name not in added
    }


def without_caches(state: Any, kind: type[Any]) -> Any:
    """State of an object without its cached properties."""
    if not isinstance(state, dict):
        return state
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(kind, str(name), None), functools.cached_property)
    }
