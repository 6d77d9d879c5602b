"""Dotted paths into a scenario, such as ``parameters.nodes[0].servers``.

A path is names, with a point between them, each followed by places in lists; ``[*]`` is every item
of a list. A name that is no bare key of TOML stands in quotes, as in
``solve.constraints."routing_rate[0]"``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.scenario.mistakes import BARE_KEY

__all__ = ["Path", "Step", "covers", "parse_path", "put", "short_name", "show_path", "touches"]

Step: TypeAlias = str | int | EllipsisType
"""A key of a table, a place in a list from 0, or every place."""
Path: TypeAlias = tuple[Step, ...]

_NAME = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"')
_PLACE = re.compile(r"\[(?:(\d+)|\*)\]")
_LEFT_OUT: Any = object()


def parse_path(text: str) -> Path:
    """Steps of a path.

    Raises
    ------
    InputError
        If it is none.

    Examples
    --------
    >>> parse_path("parameters.nodes[0].servers")
    ('parameters', 'nodes', 0, 'servers')
    >>> parse_path("parameters.nodes[*].room")
    ('parameters', 'nodes', Ellipsis, 'room')
    """
    steps: list[Step] = []
    end = 0
    while end < len(text):
        found = _NAME.match(text, end + bool(steps)) if text[end] == "." or not steps else None
        place = _PLACE.match(text, end) if found is None and steps else None
        match = found or place
        if match is None:
            break
        steps.append(_name(match[0]) if found else int(match[1]) if match[1] else ...)
        end = match.end()
    if not steps or end < len(text):
        raise InputError(
            f"{text!r} is no path; it must be names and places in lists, such as "
            "'parameters.nodes[0].servers', or [*] for every item"
        )
    return tuple(steps)


def _name(text: str) -> str:
    return str(json.loads(text, strict=False)) if text.startswith('"') else text


def show_path(path: Sequence[Step]) -> str:
    """Text of a path.

    Examples
    --------
    >>> show_path(("solve", "constraints", "a / b"))
    'solve.constraints."a / b"'
    """
    return "".join(map(_shown, path)).removeprefix(".")


def _shown(step: Step) -> str:
    if not isinstance(step, str):
        return "[*]" if step is ... else f"[{step}]"
    return f".{step if BARE_KEY.fullmatch(step) else json.dumps(step, ensure_ascii=False)}"


def short_name(path: Path) -> str:
    """What a path is called in tables: its last name, after the list it is an item of.

    Examples
    --------
    >>> [short_name(parse_path(text)) for text in ("solve.tolerance", "parameters.nodes[0].room")]
    ['tolerance', 'nodes[0].room']
    >>> short_name(parse_path("parameters.nodes[*].room"))
    'room'
    """
    chosen = [at for at, step in enumerate(path) if isinstance(step, int)]
    names = [at for at, step in enumerate(path) if isinstance(step, str)]
    if not chosen:
        return str(path[names[-1]])
    return show_path(path[max(at for at in names if at < chosen[0]) :])


def covers(whole: Path, part: Path) -> bool:
    """Whether setting one path sets all of another.

    Examples
    --------
    >>> covers(parse_path("parameters.nodes[*]"), parse_path("parameters.nodes[1].room"))
    True
    """
    return len(whole) <= len(part) and all(
        a == b or (a is ... and isinstance(b, int)) for a, b in zip(whole, part, strict=False)
    )


def touches(one: Path, other: Path) -> bool:
    """Whether setting one path changes something that is at, in or around another.

    Examples
    --------
    >>> touches(parse_path("parameters.nodes[1]"), parse_path("parameters.nodes[*].room"))
    True
    """
    return all(
        a == b or {type(a), type(b)} == {int, EllipsisType}
        for a, b in zip(one, other, strict=False)
    )


def put(document: Any, path: Path, value: Any) -> Any:
    """A document with another value at a path; what did not change is shared, nothing is copied.

    Parameters
    ----------
    document : mapping
        As TOML reads it.
    path : Path
        A table on its way that is not there is made; an item of a list must be there.
    value : object

    Raises
    ------
    InputError
        If there is no such place.

    Examples
    --------
    >>> put({"nodes": [{"servers": 1}, {"servers": 2}]}, ("nodes", ..., "servers"), 5)
    {'nodes': [{'servers': 5}, {'servers': 5}]}
    """
    return _put(document, path, 0, value)


def _put(before: Any, path: Path, at: int, value: Any) -> Any:
    if at == len(path):
        return value
    step = path[at]
    if isinstance(step, str):
        table = _table(before, path, at)
        return {**table, step: _put(_inner(table, step, path, at), path, at + 1, value)}
    items = _items(before, path, at)
    if step is ...:
        return [_put(one, path, at + 1, value) for one in items]
    return [*items[:step], _put(items[step], path, at + 1, value), *items[step + 1 :]]


def _table(before: Any, path: Path, at: int) -> Mapping[str, Any]:
    if before is _LEFT_OUT:
        return {}
    if not isinstance(before, Mapping):
        raise InputError(f"{show_path(path[:at])} is {before!r}, no table with {path[at]!r}")
    return before


def _inner(table: Mapping[str, Any], name: str, path: Path, at: int) -> Any:
    """What a table has at a name; a list must be there, since its items are meant."""
    if name not in table and at + 1 < len(path) and not isinstance(path[at + 1], str):
        near = did_you_mean(name, table) or f"; there are {', '.join(table) or 'none'}"
        raise InputError(f"there is no list {show_path(path[: at + 1])}{near}")
    return table.get(name, _LEFT_OUT)


def _items(before: Any, path: Path, at: int) -> list[Any]:
    place, step = show_path(path[:at]), path[at]
    if not isinstance(before, list):
        raise InputError(f"{place} is {before!r}, no list with {_shown(step)}")
    if step is ... and not before:
        raise InputError(f"{place} is an empty list, so {place}[*] is nothing")
    if isinstance(step, int) and step >= len(before):
        raise InputError(f"{place} is a list of {len(before)}, so it has no {_shown(step)}")
    return before
