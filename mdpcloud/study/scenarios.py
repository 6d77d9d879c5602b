"""Scenarios of many documents that differ in a few places, each checked as a file is.

Settings are checked once for each text of them. Of a system's parameters, each item of a list and
each value is checked once for each text of it, and the class puts them together, so that it checks
what they are together every time. A class that does so with another result than a whole check, and
documents with mistakes, are checked as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
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
MANY = 100_000  # values of one parameter that are kept


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

    def of(self, document: Mapping[str, Any]) -> tuple[Scenario | None, list[Mistake]]:
        """The scenario of a document, or None and everything that is wrong with it.

        Raises
        ------
        InputError
            If it has another format.
        """
        others = {name: value for name, value in document.items() if name != "parameters"}
        text = json.dumps(others, sort_keys=True, default=str)
        if text in self._known:
            scenario, make = self._known[text]
            system = _made(make, document.get("parameters"))
            if system is not None:
                return replace(scenario, system=system), []
        found, mistakes = from_document(document, *self._origin)
        if found is not None and text not in self._known:
            self._remember(text, found, document)
        return found, mistakes

    def _remember(self, text: str, scenario: Scenario, document: Mapping[str, Any]) -> None:
        """Keep a scenario if others can be made of it that have other parameters."""
        make = _maker(type(scenario.system))
        named = scenario.compare.spellings
        by_parameters = any(name.startswith(BEST) for name in named)  # whether there is such a one
        if not by_parameters and _made(make, document.get("parameters")) == scenario.system:
            self._known[text] = scenario, make


def _made(make: Make, parameters: Any) -> Any:
    """A system of parameters, None where anything is wrong with them."""
    try:
        return make(parameters)
    except Exception:  # whatever it is, the whole check says it in the words of the file
        return None


def _maker(system: type[Any]) -> Make:
    """A function that makes systems of a class from their parameters in a file."""
    readers = {name: _reader(hint) for name, hint in hints(system).items()}
    return lambda table: system(**{name: readers[name](raw) for name, raw in table.items()})


def _reader(hint: Any) -> Callable[[Any], Any]:
    """A function that checks a value of a file against an annotation."""
    item = _item_of(hint)
    if item is None:
        return _Reader(hint)
    whole, each = _model_of(hint), _Reader(item)
    return lambda raw: whole.model_validate({"value": tuple(map(each, _list(raw)))}).value


def _list(raw: Any) -> list[Any]:
    if not isinstance(raw, list):
        raise TypeError("no list")
    return raw


def _item_of(hint: Any) -> Any:
    """Annotation of the items of lists of any length, None for anything else."""
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    arguments = get_args(hint)
    many = get_origin(hint) is tuple and len(arguments) == 2 and arguments[1] is Ellipsis
    return arguments[0] if many else None


class _Reader:
    """Checks values of a file against an annotation, once each where they cannot change."""

    def __init__(self, hint: Any) -> None:
        self._check = _model_of(hint).model_validate_json
        self._known: dict[str, Any] = {}

    def __call__(self, raw: Any) -> Any:
        text = json.dumps(raw, default=str)
        if text in self._known:
            return self._known[text]
        value = self._check(f'{{"value":{text}}}').value
        if len(self._known) < MANY and _is_immutable(value):
            self._known[text] = value
        return value


def _is_immutable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _model_of(hint: Any) -> Any:
    """What checks a single value, as strictly as a scenario file."""
    from pydantic import ConfigDict, create_model

    strict = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )
    return create_model("Value", __config__=strict, value=(hint, ...))
