"""Mistakes of a scenario file in the user's words: where, what, and what is allowed.

Pydantic finds the mistakes, but speaks of its own types; these messages are made from the place of
a mistake and the annotation that is declared there.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mdpcloud.errors import InputError
from mdpcloud.parameters import describe, hints, tagged, wrong_value
from mdpcloud.plugins import did_you_mean, nearest

__all__ = ["Mistake", "in_words"]

Mistake = tuple[str, str]  # place, and message
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # of TOML; others are quoted
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")  # pydantic's words for unknown keys


def in_words(errors: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> list[Mistake]:
    """Mistakes in words.

    Parameters
    ----------
    errors : sequence of mappings
        What pydantic's ``ValidationError.errors()`` lists.
    known : mapping
        Name of each key of the file to its annotation.
    """
    misspelt = {_meant(error, known) for error in errors}
    found = [
        _mistake(error, known)
        for error in errors
        if not (_is_consequence(error) or _is_misspelt(error, misspelt))
    ]
    certain = [f"{place}." for place, _, tried in found if not tried]
    kept = [
        (place, message)
        for place, message, tried in found
        if not (tried and any(other.startswith(f"{place}.") for other in certain))
    ]
    return list(dict.fromkeys(kept))


def _is_consequence(error: Mapping[str, Any]) -> bool:
    """Whether a list is called too short only because some of its items are wrong."""
    return bool(error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"])


def _is_misspelt(error: Mapping[str, Any], misspelt: Collection[Any]) -> bool:
    """Whether a key is called missing that the file has, by a name that is not quite right."""
    loc = error["loc"]
    places = (tuple(loc[: k + 1]) for k in range(len(loc)))
    return error["type"] == "missing" and any(place in misspelt for place in places)


def _meant(error: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Place of the key that an unknown key is likely to mean, and that is therefore not missing."""
    if error["type"] not in UNKNOWN:
        return None
    *before, key = error["loc"]
    return (*before, nearest(str(key), _walk(error["loc"], known)[2]))


def _mistake(error: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Place, message, and whether a table was only tried as something that it is not."""
    kind, value = error["type"], error["input"]
    place, hint, siblings = _walk(error["loc"], known)
    if kind in UNKNOWN:
        key = str(error["loc"][-1])
        near = did_you_mean(key, siblings) or f"; known are {', '.join(siblings)}"
        return place, f"{place} is not known{near}", False
    if kind == "missing":
        return place, f"{place} is missing; it must be {describe(hint)}", False
    if kind == "value_error":
        return place, f"{place}: {_without_class(error['ctx']['error'])}", False
    if kind == "dict_type":
        of = f" of {describe(hint)}" if tagged(_known(hint)) else ""
        return place, f"{place} must be a table{of}, not {value!r}", False
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_tag(place, hint, value, error["ctx"]["discriminator"].strip("'"))
    if kind == "dataclass_type" and not _is_choice(hint):
        return place, f"{place} must be a table of {', '.join(_fields(hint))}, not {value!r}", False
    return place, wrong_value(value, hint, place), isinstance(value, dict)


def _wrong_tag(place: str, hint: Any, value: Any, field: str) -> tuple[str, str, bool]:
    """A table whose kind is unknown or not given."""
    place = f"{place}.{field}"
    allowed: Any = Literal[tuple(tagged(_known(hint)))]
    if field not in value:
        return place, f"{place} is missing; it must be {describe(allowed)}", False
    return place, wrong_value(value[field], allowed, place), False


def _without_class(error: Exception) -> str:
    """Message of an error raised on construction, without the class that `validate` puts first."""
    text = str(error)
    first, colon, rest = text.partition(": ")
    return rest if isinstance(error, InputError) and colon and first.isidentifier() else text


def _walk(loc: Sequence[str | int], known: Mapping[str, Any]) -> tuple[str, Any, Sequence[str]]:
    """Place as ``nodes[1].servers``, the annotation there, and the keys known beside it."""
    place, hint, siblings = "", None, list(known)
    fields: Mapping[str, Any] = known
    for position, step in enumerate(loc):
        if isinstance(step, int):
            place, hint = f"{place}[{step}]", _item(hint, step)
        elif get_origin(_plain(hint)) is Mapping:
            place, siblings, hint = f"{place}.{_key(step)}", [], get_args(_plain(hint))[1]
        elif tagged(_known(hint)):
            hint = tagged(_known(hint))[str(step)]
        elif _is_choice(hint):
            if position + 1 < len(loc):
                hint = next((one for one in _options(_plain(hint)) if _name(one) == step), hint)
        else:
            place = f"{place}.{step}" if place else step
            siblings, hint = list(fields), fields.get(step)
        fields = _fields(hint)
    return place, hint, siblings


def _key(name: str) -> str:
    """A key as TOML spells it."""
    return name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _plain(hint: Any) -> Any:
    """Annotation without its limits and without "or left out"."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    options = _options(hint)
    return _plain(options[0]) if len(options) == 1 else hint


def _known(hint: Any) -> Any:
    """Annotation without "or left out"."""
    options = _options(hint)
    return options[0] if len(options) == 1 else hint


def _options(hint: Any) -> list[Any]:
    if get_origin(hint) not in (Union, types.UnionType):
        return []
    return [one for one in get_args(hint) if one is not type(None)]


def _is_choice(hint: Any) -> bool:
    """Whether pydantic's next step tells which of several types it tried."""
    return len(_options(_plain(hint))) > 1


def _name(hint: Any) -> str:
    return getattr(_plain(hint), "__name__", "")


def _item(hint: Any, index: int) -> Any:
    arguments = get_args(_plain(hint))
    if not arguments:
        return None
    return arguments[0] if arguments[-1] is Ellipsis else arguments[index]


def _fields(hint: Any) -> Mapping[str, Any]:
    plain = _plain(hint)
    return hints(plain) if isinstance(plain, type) and dataclasses.is_dataclass(plain) else {}
