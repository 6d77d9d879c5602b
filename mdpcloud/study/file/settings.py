"""What a study file holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias

from annotated_types import MinLen

from mdpcloud.scenario.mistakes import in_words
from mdpcloud.study.file.axes import Axis
from mdpcloud.study.outputs import Figure, Table

__all__ = ["Block", "check_tables"]

Text: TypeAlias = Annotated[str, MinLen(1)]


@dataclass(frozen=True)
class Block:
    """A part of a study with changes and axes of its own: the table ``[[blocks]]`` of its file.

    Parameters
    ----------
    name : str
        What stands in the column ``block``.
    set : mapping of str
        Changes of the base, beside those of the study.
    axes : tuple of Axis
        Inside those of the study.
    """

    name: Text
    set: Mapping[str, Any] | None = None
    axes: tuple[Axis, ...] = ()


KEYS: Mapping[str, Any] = {
    "format": int,
    "name": Text,
    "base": Any,
    "task": Text,
    "policies": Annotated[tuple[Text, ...], MinLen(1)] | None,
    "measures": tuple[Text, ...],
    "set": Mapping[str, Any],
    "axes": tuple[Axis, ...],
    "blocks": tuple[Block, ...],
    "tables": tuple[Table, ...],
    "figures": tuple[Figure, ...],
}
DEFAULTS: Mapping[str, Any] = {
    "name": "",
    "base": None,
    "task": "compare",
    "policies": None,
    "measures": (),
    "set": {},
    "axes": (),
    "blocks": (),
    "tables": (Table(),),
    "figures": (),
}
LISTS = ("axes", "blocks", "tables", "figures")


def check_tables(document: Mapping[str, Any], mistakes: list[str]) -> tuple[Any, set[str]]:
    """Checked content of a study file, its keys as attributes, and the keys that are wrong.

    What is wrong with them is appended to the mistakes; they have their defaults.
    """
    from pydantic import ValidationError

    single = [name for name in LISTS if isinstance(document.get(name), Mapping)]
    mistakes += [f"{name} must be a list of tables: [[{name}]], not [{name}]" for name in single]
    rest = {name: value for name, value in document.items() if name not in single}
    wrong = {*single}
    try:
        found: Any = _checked(rest)
    except ValidationError as error:
        mistakes += [message for _, message in in_words(error.errors(), KEYS)]
        wrong |= {str(one["loc"][0]) for one in error.errors()}
        found = _checked({"format": 1} | {k: v for k, v in rest.items() if k not in wrong})
    for what in ("blocks", "tables", "figures"):
        mistakes += _names_twice(what, getattr(found, what))
    return found, wrong


def _checked(document: Mapping[str, Any]) -> Any:
    return _model().model_validate_json(json.dumps(document, default=str))


@cache
def _model() -> Any:
    """What checks study files."""
    from pydantic import ConfigDict, create_model

    strict = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )
    fields: dict[str, Any] = {key: (hint, DEFAULTS.get(key, ...)) for key, hint in KEYS.items()}
    return create_model("Study", __config__=strict, **fields)


def _names_twice(what: str, tables: Sequence[Any]) -> Iterator[str]:
    """Names that two tables have; their files would be the same."""
    places: dict[str, int] = {}
    for place, table in enumerate(tables):
        first = places.setdefault(table.name, place)
        if first != place:
            yield f"{what}[{place}].name: {table.name!r} is the name of {what}[{first}] too"
