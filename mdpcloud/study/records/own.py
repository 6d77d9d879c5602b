"""The user's own objects: what tells two of them apart, and hashes of the code that they run.

An object that a module names (a function, a class) is known by that name, and what it does by the
module's file and the files beside it that this imports. One that is made while a program runs (a
closure, a partial function, a rule with parameters) is known by its code and by what it holds.
Neither depends on the process, as bytes of pickles do. What cannot be told apart is refused in a
key, and in sources never the same again: rather is a result computed twice than once too little.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.study.records.own_files import hash_of_module
from mdpcloud.study.records.plain import is_own, name_of_object

__all__ = ["hash_of", "identity_of"]

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
Above = tuple[int, ...]
"""Identities of the objects that hold what is looked at."""


def identity_of(rule: Any) -> str:
    """A text that tells a rule made in Python from others: its name, or its name and a hash.

    Raises
    ------
    InputError
        When it holds what cannot be told apart.

    Examples
    --------
    >>> identity_of(len)
    'builtins:len'
    """
    if _is_named(rule):
        return name_of_object(rule)
    kind = rule if hasattr(rule, "__qualname__") else type(rule)
    return f"{name_of_object(kind)} {_digest(_Walk().of(rule, ()))}"


def hash_of(what: Any) -> str | None:
    """Hash of all that decides what an object, or each of a list of classes, does.

    None where there is nothing, or only what this package names.

    Raises
    ------
    InputError
        When a file has changed since this process loaded it.
    """
    parts = [one for one in (what if isinstance(what, list) else [what]) if one is not None]
    if all(_is_named(one) and not is_own(one.__module__) for one in parts):
        return None
    return _digest(_Walk(in_key=False).of(parts, ()))


def _digest(tokens: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(f"{len(token)}:{token}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _is_named(what: Any) -> bool:
    """Whether its module gives it by its name."""
    found: Any = sys.modules.get(str(getattr(what, "__module__", None)))
    for name in str(getattr(what, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found is not None and found is what


@dataclass
class _Walk:
    """Goes through an object and all that it holds.

    Attributes
    ----------
    in_key : bool
        Whether names stand for what modules name, or the code behind them counts too.
    known : set of int
        Identities of what was met by its name.
    """

    in_key: bool = True
    known: set[int] = field(default_factory=set)

    def of(self, value: Any, above: Above) -> Iterator[str]:
        """Texts that are the same for the same object in any process."""
        if isinstance(value, ATOMS):
            yield f"{type(value).__name__} {value!r}"
        elif id(value) in above:
            yield f"again {above.index(id(value))}"
        elif _is_named(value):
            yield from self._named(value, above)
        else:
            yield from self._held(value, (*above, id(value)))

    def _named(self, value: Any, above: Above) -> Iterator[str]:
        yield name_of_object(value)
        if self.in_key or id(value) in self.known or not is_own(value.__module__):
            return
        self.known.add(id(value))
        found = hash_of_module(value.__module__)
        if found is not None:
            yield found
        elif getattr(sys.modules[value.__module__], "__spec__", None) is not None:
            return  # Python's own
        elif isinstance(value, types.FunctionType):  # as in a notebook
            yield from self._function(value, (*above, id(value)))
        elif isinstance(value, type):
            yield from self.of(_body(value), (*above, id(value)))

    def _held(self, value: Any, above: Above) -> Iterator[str]:
        """What has no name of its own."""
        for kind, tell in _KINDS:
            if isinstance(value, kind):
                yield from tell(self, value, above)
                return
        yield from self._instance(value, above)

    def _sequence(self, value: Any, above: Above) -> Iterator[str]:
        yield f"{type(value).__name__} of {len(value)}"
        for one in value:
            yield from self.of(one, above)

    def _set(self, value: Any, above: Above) -> Iterator[str]:
        yield f"set of {len(value)}"
        yield from sorted(_digest(self.of(one, above)) for one in value)

    def _mapping(self, value: Any, above: Above) -> Iterator[str]:
        yield f"mapping of {len(value)}"
        for pair in value.items():
            yield from self._sequence(pair, above)

    def _array(self, value: Any, above: Above) -> Iterator[str]:
        yield f"{value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            yield from self.of(value.tolist(), above)
        else:
            yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()

    def _function(self, value: types.FunctionType, above: Above) -> Iterator[str]:
        yield from self.of(value.__code__, above)
        yield from self.of((value.__defaults__, value.__kwdefaults__), above)
        for cell in value.__closure__ or ():
            yield from self.of(_content(cell), above)
        if self.in_key or not is_own(str(value.__module__)):
            return
        found = hash_of_module(str(value.__module__))
        yield found or ""
        if found is None:
            for name in sorted(_globals(value.__code__) & value.__globals__.keys()):
                yield name
                yield from self.of(value.__globals__[name], above)

    def _code(self, value: types.CodeType, above: Above) -> Iterator[str]:
        yield f"{value.co_name} {value.co_argcount} {value.co_kwonlyargcount} {value.co_flags}"
        yield hashlib.sha256(value.co_code + value.co_exceptiontable).hexdigest()
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        yield repr(names)
        yield from self._sequence(value.co_consts, above)

    def _method(self, value: Any, above: Above) -> Iterator[str]:
        yield value.__name__
        yield from self.of(value.__self__, above)
        if isinstance(value, types.MethodType):
            yield from self.of(value.__func__, above)

    def _partial(self, value: Any, above: Above) -> Iterator[str]:
        yield from self._sequence((value.func, value.args, value.keywords), above)

    def _module(self, value: types.ModuleType, _: Above) -> Iterator[str]:
        yield value.__name__
        if not self.in_key and is_own(value.__name__):
            yield hash_of_module(value.__name__) or ""

    def _class(self, value: type[Any], above: Above) -> Iterator[str]:
        """A class that no module names, as one made by a function."""
        yield value.__qualname__
        yield from self.of((value.__bases__, _body(value)), above)
        if not self.in_key and is_own(value.__module__):
            yield hash_of_module(value.__module__) or ""

    def _instance(self, value: Any, above: Above) -> Iterator[str]:
        """What an object holds, as pickles tell it, but for what it has computed of that."""
        yield from self.of(type(value), above)
        parts = _reduced(value)
        if isinstance(parts, str):
            yield parts or self._unknown(value)
            return
        call, arguments, state, *items = (*parts, None, None, None)[:5]
        yield from self.of((call, arguments), above)
        yield from self.of(_without_caches(state, type(value)), above)
        for one in items:
            yield from self.of(None if one is None else list(one), above)

    def _unknown(self, value: Any) -> str:
        if self.in_key:
            raise InputError(
                f"{value!r} cannot be told from others like it; give a rule by its name "
                "('my_rules.py:rule'), or make it of functions, numbers and texts"
            )
        return os.urandom(8).hex()


_KINDS: tuple[tuple[Any, Any], ...] = (
    ((list, tuple), _Walk._sequence),
    (Set, _Walk._set),
    (Mapping, _Walk._mapping),
    ((np.ndarray, np.generic), _Walk._array),
    (types.FunctionType, _Walk._function),
    (types.CodeType, _Walk._code),
    ((types.MethodType, types.BuiltinMethodType), _Walk._method),
    (functools.partial, _Walk._partial),
    (types.ModuleType, _Walk._module),
    (type, _Walk._class),
)


def _reduced(value: Any) -> Any:
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


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has not been given yet
        return "empty"


def _globals(code: types.CodeType) -> set[str]:
    """Names that a code and the functions within it may look up in their module."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(_globals, inner))


def _body(kind: type[Any]) -> dict[str, Any]:
    """What a class statement says, without what Python adds."""
    added = ("__dict__", "__weakref__", "__doc__", "__module__", "__abc_impl__", "_abc_impl")
    return {
        name: value.__func__ if isinstance(value, classmethod | staticmethod) else value
        for name, value in vars(kind).items()
        if name not in added
    }


def _without_caches(state: Any, kind: type[Any]) -> Any:
    """State of an object without its cached properties."""
    if not isinstance(state, dict):
        return state
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(kind, str(name), None), functools.cached_property)
    }
