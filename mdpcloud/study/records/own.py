"""The user's own objects: what tells two of them apart, and hashes of the code that they run.

An object that a module names (a function, a class) is known by that name, and what it does by the
module's file and the files beside it that this imports. One that is made while a program runs (a
closure, a partial function, a rule with parameters) is known by its code and by what it holds.
Neither depends on the process, as bytes of pickles do. What cannot be told apart is refused in a
key, and in sources never the same again: rather is a result computed twice than once too little.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.study.records.own_files import has_own_file, hash_of_module, hashes_of_givers
from mdpcloud.study.records.own_parts import (
    ATOMS,
    body_of,
    content_of_cell,
    functions_of,
    is_data,
    is_named,
    names_in,
    reduced,
    without_caches,
)
from mdpcloud.study.records.plain import is_own, name_of_object

__all__ = ["hash_of", "identity_of"]

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
    if is_named(rule):
        return name_of_object(rule)
    kind = rule if hasattr(rule, "__qualname__") else type(rule)
    return f"{name_of_object(kind)} {_digest(_Walk().of(rule, ()))}"


def hash_of(what: Any, reference: str = "") -> str | None:
    """Hash of all that decides what an object, or each of a list of classes, does.

    None where there is nothing, or only what this package names. The reference is the text that
    names it in a study, if any.

    Raises
    ------
    InputError
        When a file has changed since this process loaded it.
    """
    parts = [one for one in (what if type(what) is list else [what]) if one is not None]
    files = hashes_of_givers(reference, parts)
    if not files and all(is_named(one) and not is_own(one.__module__) for one in parts):
        return None
    return _digest(_Walk(in_key=False).of(parts + files, ()))


def _digest(tokens: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(f"{len(token)}:{token}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


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
        if type(value) in ATOMS:
            yield f"{type(value).__name__} {value!r}"
        elif id(value) in above:
            yield f"again {above.index(id(value))}"
        elif is_named(value):
            yield from self._named(value, above)
        else:
            yield from self._held(value, (*above, id(value)))

    def _named(self, value: Any, above: Above) -> Iterator[str]:
        yield name_of_object(value)
        if self.in_key or id(value) in self.known or not is_own(value.__module__):
            return
        self.known.add(id(value))
        yield hash_of_module(value.__module__) or ""
        if has_own_file(value.__module__):
            for function in functions_of(value):
                yield from self._data(function, (*above, id(value)))
        elif getattr(sys.modules[value.__module__], "__spec__", None) is not None:
            return  # Python's own
        elif isinstance(value, types.FunctionType):  # as in a notebook
            yield from self._function(value, (*above, id(value)))
        elif isinstance(value, type):
            yield from self.of(body_of(value), (*above, id(value)))

    def _held(self, value: Any, above: Above) -> Iterator[str]:
        """What has no name of its own; what subclasses add to a kind is told as of any object."""
        yield from _teller(value)(self, value, above)

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
        yield f"{value.dtype.descr if value.dtype.names else value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            yield from self.of(value.tolist(), above)
        else:
            yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()

    def _function(self, value: types.FunctionType, above: Above) -> Iterator[str]:
        yield from self.of(value.__code__, above)
        yield from self.of((value.__defaults__, value.__kwdefaults__), above)
        for cell in value.__closure__ or ():
            yield from self.of(content_of_cell(cell), above)
        if vars(value):
            yield from self.of(vars(value), above)
        module = str(value.__module__)
        if self.in_key:  # where the module is the same, sources tell the rest
            if value.__globals__ is not getattr(sys.modules.get(module), "__dict__", None):
                yield from self._globals(value, above)
        elif is_own(module):
            found = hash_of_module(module)
            yield found or ""
            yield from (self._data if found else self._globals)(value, above)

    def _globals(self, value: types.FunctionType, above: Above) -> Iterator[str]:
        """What a function may look up in its module."""
        for name in sorted(names_in(value.__code__) & value.__globals__.keys()):
            yield name
            yield from self.of(value.__globals__[name], above)

    def _data(self, value: types.FunctionType, above: Above) -> Iterator[str]:
        """What its module's file does not tell of that: numbers set as a program is called."""
        for name in sorted(names_in(value.__code__) & value.__globals__.keys()):
            one = value.__globals__[name]
            if not name.startswith("__") and (is_data(one) or _is_code(one)):
                yield name
                yield from self.of(one, above)

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

    def _module(self, value: types.ModuleType, _: Above) -> Iterator[str]:
        yield value.__name__
        if not self.in_key and is_own(value.__name__):
            yield hash_of_module(value.__name__) or ""

    def _class(self, value: type[Any], above: Above) -> Iterator[str]:
        """A class that no module names, as one made by a function."""
        yield value.__qualname__
        if type(value) is not type:
            yield from self.of(type(value), above)
        yield from self.of((value.__bases__, body_of(value)), above)
        if not self.in_key and is_own(value.__module__):
            yield hash_of_module(value.__module__) or ""

    def _instance(self, value: Any, above: Above) -> Iterator[str]:
        """What an object holds, as pickles tell it, but for what it has computed of that."""
        yield from self.of(type(value), above)
        parts = reduced(value)
        if isinstance(parts, str):
            yield parts or self._unknown(value)
            return
        call, arguments, state, *items = (*parts, None, None, None)[:5]
        yield from self.of((call, arguments), above)
        yield from self.of(without_caches(state, type(value)), above)
        if isinstance(value, np.ndarray):  # whose pickles hold no attributes
            yield from self.of(vars(value), above)
        for one in items:
            yield from self.of(None if one is None else list(one), above)

    def _unknown(self, value: Any) -> str:
        if self.in_key:
            raise InputError(
                f"{value!r} cannot be told from others like it; give a rule by its name "
                "('my_rules.py:rule'), or make it of functions, numbers and texts"
            )
        return os.urandom(8).hex()


_KINDS: dict[type[Any], Any] = {
    list: _Walk._sequence,
    tuple: _Walk._sequence,
    set: _Walk._set,
    frozenset: _Walk._set,
    dict: _Walk._mapping,
    types.MappingProxyType: _Walk._mapping,
    np.ndarray: _Walk._array,
    types.FunctionType: _Walk._function,
    types.CodeType: _Walk._code,
    types.MethodType: _Walk._method,
    types.BuiltinMethodType: _Walk._method,
}


def _teller(value: Any) -> Any:
    """How to tell what has no name; what subclasses add to a kind is told as of any object."""
    if isinstance(value, type):
        return _Walk._class
    if isinstance(value, types.ModuleType):
        return _Walk._module
    if isinstance(value, np.generic) and type(value).__module__ == "numpy":
        return _Walk._array
    return _KINDS.get(type(value), _Walk._instance)


def _is_code(value: Any) -> bool:
    """Whether it is a function or class of the user's own."""
    if not isinstance(value, types.FunctionType) and not is_named(value):
        return False
    return is_own(str(value.__module__)) and has_own_file(value.__module__)
