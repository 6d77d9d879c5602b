"""What a system holds that its parameters do not tell.

A dataclass may have attributes that are no fields, as when a method sets one, and a value may be of
a class that adds something to a list or a number. Either would be lost in the key of an instance.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.study.records.own import identity_of
from mdpcloud.study.records.own_parts import ATOMS, without_caches
from mdpcloud.study.records.plain import field_names

__all__ = ["hidden_in"]

BUILT_IN = (list, tuple, Mapping, str, int, float)  # what `plain` takes for one of these


def hidden_in(value: Any, where: str) -> dict[str, str]:
    """Place in a value, which it calls ``where``, to a hash of what is hidden there.

    Raises
    ------
    InputError
        When it cannot be told from others.

    Examples
    --------
    >>> from mdpcloud.laws import Erlang
    >>> hidden_in([Erlang(2), 3.0], "parameters")
    {}
    """
    found = {}
    for place, what in _hidden(value, where):
        try:
            found[place] = identity_of(what)
        except InputError as error:
            names = ", ".join(map(repr, what)) if type(what) is dict else repr(what)
            raise InputError(
                f"{place} holds {names}, which cannot be told from others like it; make it a field "
                f"of a dataclass, or a functools.cached_property ({error})"
            ) from None
    return found


def _hidden(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind in (list, tuple):
        for i, one in enumerate(value):
            if type(one) not in ATOMS:  # most are, and there are many
                yield from _hidden(one, f"{where}[{i}]")
    elif kind in (dict, types.MappingProxyType):
        for name, one in value.items():
            yield from _hidden(one, f"{where}.{name}")
    elif is_dataclass(kind) and not isinstance(value, BUILT_IN):
        if more := _attributes(value):
            yield where, more
        for name in field_names(kind):
            one = getattr(value, name)
            if type(one) not in ATOMS:
                yield from _hidden(one, f"{where}.{name}")
    elif kind not in ATOMS and not _is_plain(value):
        yield where, value


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes of a dataclass that are neither fields nor computed of them at first use."""
    names = field_names(type(value))  # type: ignore[arg-type]  # mypy takes no class for hashable
    state = object.__getstate__(value)
    if type(state) is dict and len(state) == len(names):  # fields, unless one has been deleted
        return {name: what for name, what in state.items() if name not in names}
    parts = state if isinstance(state, tuple) else (state,)
    held = {name: what for part in parts if part for name, what in part.items()}
    found: dict[str, Any] = without_caches(held, type(value))
    return {name: what for name, what in found.items() if name not in names}


def _is_plain(value: Any) -> bool:
    """Whether it is an array or a scalar of numpy, which holds numbers and nothing else."""
    if type(value).__module__ != "numpy" or not isinstance(value, np.ndarray | np.generic):
        return False
    return value.dtype.names is None and not value.dtype.hasobject
