"""Scenarios of many documents that differ in a few places, each checked as a file is.

Settings are checked once for each text of them. Of a system's parameters, each item of a list and
each value is checked once for each text of it, and the class puts them together, so that it checks
what they are together every time. A class that does so with another result than a whole check, and
documents with mistakes, are checked as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from mdpcloud.parameters import hints
from mdpcloud.policies.family import BEST
from mdpcloud.scenario.mistakes import Mistake
from mdpcloud.scenario.reading import from_document

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = ["Scenarios"]

Make = Callable[[Mapping[str, Any]], Any]
MANY = 100_000  # settings, and values of one parameter, that are kept


class Scenarios:
    """Scenarios of documents.

    Parameters
    ----------
    file : Path
        Whose folder their system is relative to.
    sha256 : str
        Of its bytes.
    rules : Path
        Folder that their rules are relative to.
    """

    def __init__(self, file: Path, sha256: str, rules: Path) -> None:
        self._origin = (file, sha256, rules)
        self._known: dict[str, tuple[Scenario, Make]] = {}
        self._makers: dict[type[Any], Make] = {}

    def of(self, document: Mapping[str, Any]) -> tuple[Scenario | None, list[Mistake]]:
        """The scenario of a document, or None and everything that is wrong with it.

        Raises
        ------
        InputError
            If it has another format.
        """
        others = {name: value for name, value in document.items() if name != "parameters"}
        text = json.dumps(others, default=str)
        if text in self._known:
            scenario, make = self._known[text]
            system = _made(make, document.get("parameters", {}))
            if system is not None:
                return replace(scenario, system=system), []
        found, mistakes = from_document(document, *self._origin)
        if found is not None and text not in self._known and len(self._known) < MANY:
            self._remember(text, found, document)
        return found, mistakes

    def _remember(self, text: str, scenario: Scenario, document: Mapping[str, Any]) -> None:
        """Keep a scenario if others can be made of it that have other parameters."""
        system = type(scenario.system)
        if system not in self._makers:
            self._makers[system] = _maker(system)
        make = self._makers[system]
        named = scenario.compare.spellings
        by_parameters = any(name.startswith(BEST) for name in named)  # whether there is such a one
        if not by_parameters and _makes(make, document.get("parameters", {}), scenario.system):
            self._known[text] = scenario, make


def _made(make: Make, parameters: Any) -> Any:
    """A system of parameters, None where anything is wrong with them."""
    try:
        return make(parameters)
    except Exception:  # whatever it is, the whole check says it in the words of the file
        return None


def _makes(make: Make, parameters: Any, system: Any) -> bool:
    """Whether what is made of parameters is a system; False where that cannot be told."""
    try:
        return bool(make(parameters) == system)
    except Exception:  # of a class that compares in ways of its own, or is not made like this
        return False


def _maker(system: type[Any]) -> Make:
    """A function that makes systems of a class from their parameters in a file."""
    readers = {
        name: _Reader(whole) if item is None else _ListReader(whole, item)
        for name, (whole, item) in _models(system).items()  # type: ignore[arg-type]
    }
    return lambda table: system(**{name: readers[name](raw) for name, raw in table.items()})


class _Reader:
    """Checks values of a file, once each where they cannot change."""

    def __init__(self, model: Any) -> None:
        self._check = model.model_validate_json
        self._known: dict[str, Any] = {}

    def __call__(self, raw: Any) -> Any:
        text = json.dumps(raw, default=str)
        if text in self._known:
            return self._known[text]
        value = self._check(f'{{"value":{text}}}').value
        if len(self._known) < MANY and _is_immutable(value):
            self._known[text] = value
        return value


class _ListReader:
    """Checks lists of a file, each of their items by itself."""

    def __init__(self, whole: Any, item: Any) -> None:
        self._whole = whole.model_validate
        self._each = _Reader(item)

    def __call__(self, raw: Any) -> Any:
        if not isinstance(raw, list):
            raise TypeError("no list")
        return self._whole({"value": tuple(map(self._each, raw))}).value


def _is_immutable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=32)  # since it takes a hundred times as long as a check
def _models(system: Hashable) -> dict[str, tuple[Any, Any]]:
    """Of each parameter what checks it, and what checks an item of it, None where it is no list."""
    assert isinstance(system, type)
    items = {name: (hint, _item_of(hint)) for name, hint in hints(system).items()}
    return {
        name: (_model_of(hint), None if item is None else _model_of(item))
        for name, (hint, item) in items.items()
    }


def _item_of(hint: Any) -> Any:
    """Annotation of the items of lists of any length, None for anything else."""
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    arguments = get_args(hint)
    many = get_origin(hint) is tuple and len(arguments) == 2 and arguments[1] is Ellipsis
    return arguments[0] if many else None


def _model_of(hint: Any) -> Any:
    """What checks a single value, as strictly as a scenario file."""
    from pydantic import ConfigDict, create_model

    strict = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )
    return create_model("Value", __config__=strict, value=(hint, ...))
