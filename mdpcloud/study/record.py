"""The record of an instance, as its JSON file holds it.

::

    {
      "format": 1,
      "key": "9f2c...",                    sha256 of the content
      "content": {...},                    what decides the result (`mdpcloud.study.identity`)
      "sources": {"mdpcloud": "0.1.0", "package": "...", "own": {...}},
      "status": "done",                    or "not_converged", "failed"
      "error": null,                       or a text
      "result": {"rows": [...], ...},      null where there is none
      "checksum": "51ab...",               of status, error and result
      "run": {"host": ..., "started": ..., "elapsed": ...}
    }

Everything but ``run`` is the same whenever it is computed again. The key vouches for the content
and the checksum for the result: no digit of either can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from mdpcloud.study.identity import key_of

__all__ = [
    "DONE",
    "FAILED",
    "FORMAT",
    "NOT_CONVERGED",
    "Record",
    "from_text",
    "is_newer",
    "make_record",
    "plain",
    "to_text",
    "why_unsound",
]

Record: TypeAlias = Mapping[str, Any]
FORMAT = 1
DONE, NOT_CONVERGED, FAILED = "done", "not_converged", "failed"
KEYS = ("format", "key", "content", "sources", "status", "error", "result", "checksum", "run")
COMPACT = (",", ":")


def make_record(
    content: Mapping[str, Any],
    sources: Mapping[str, Any],
    status: str,
    *,
    result: Mapping[str, Any] | None = None,
    error: str | None = None,
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A record from its parts, as plain data: the same as is read from its file.

    Raises
    ------
    ValueError
        When the result holds what JSON cannot, such as nan; the message tells where.
    """
    found = None if result is None else plain(result, "result")
    return {
        "format": FORMAT,
        "key": key_of(content),
        "content": plain(content, "content"),
        "sources": plain(sources, "sources"),
        "status": status,
        "error": error,
        "result": found,
        "checksum": _checksum(status, error, found),
        "run": plain(run or {}, "run"),
    }


def _checksum(status: Any, error: Any, result: Any) -> str:
    """Hash of what came out, 16 hexadecimal digits; the order of columns counts."""
    text = json.dumps([status, error, result], separators=COMPACT, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain(value: Any, where: str) -> Any:
    """A value as JSON gives it back: lists for tuples, numbers of Python for numpy's.

    Raises
    ------
    ValueError
        When JSON cannot hold it; the message tells where in the value, which it calls ``where``.

    Examples
    --------
    >>> plain({"rows": ({"cost": 0.5, "states": 12},)}, "result")
    {'rows': [{'cost': 0.5, 'states': 12}]}
    >>> plain({"rows": [{"cost": float("nan")}]}, "result")
    Traceback (most recent call last):
    ValueError: result.rows[0].cost is nan; it must be finite, or None
    """
    if value is None or isinstance(value, bool | int | str):
        return value if type(value) in _EXACT else _exact(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)!r}; it must be finite, or None")
        return float(value)
    if isinstance(value, Mapping):
        return {_name(name, where): plain(one, f"{where}.{name}") for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, f"{where}[{i}]") for i, one in enumerate(value)]
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        return plain(value.tolist(), where)
    raise ValueError(
        f"{where} is {value!r}; it must be a number, a text, true or false, None, or a list or "
        "mapping of these"
    )


_EXACT = (type(None), bool, int, str)


def _exact(value: int | str) -> int | str:
    """An enumeration's member, or another refinement of a number or text, without that."""
    return int(value) if isinstance(value, int) else str.__str__(value)


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{where} has the key {name!r}; it must be a text")
    return name


def to_text(record: Record) -> str:
    """A record as one line of JSON.

    Raises
    ------
    ValueError
        When it holds nan or an infinite number.
    """
    return json.dumps(record, separators=COMPACT, allow_nan=False) + "\n"


def from_text(raw: bytes) -> Any:
    """What the bytes of a file hold.

    Raises
    ------
    ValueError
        When they are no strict JSON in UTF-8.
    """
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"it holds {constant}")


def is_newer(record: Any) -> bool:
    """Whether a later version of this package made it: what it means is not known here."""
    found = record.get("format") if isinstance(record, dict) else None
    return type(found) is int and found > FORMAT


def why_unsound(record: Any, key: str) -> str | None:
    """What is wrong with what a file of a key holds; None if it is a sound record."""
    if not isinstance(record, dict) or any(name not in record for name in KEYS):
        return "it is no record"
    if record["format"] != FORMAT or type(record["format"]) is not int:
        return f"it has format {record['format']!r}, not {FORMAT}"
    if any(not isinstance(record[name], dict) for name in ("content", "sources", "run")):
        return "it is no record"
    try:
        if record["key"] != key or key_of(record["content"]) != key:
            return "its content is not that of its name"
        if record["checksum"] != _checksum(record["status"], record["error"], record["result"]):
            return "its result is not that of its checksum"
    except ValueError:
        return "it holds an infinite number"
    return _why_incomplete(record)


def _why_incomplete(record: Mapping[str, Any]) -> str | None:
    status, result = record["status"], record["result"]
    if status not in (DONE, NOT_CONVERGED, FAILED):
        return f"its status is {status!r}"
    if not isinstance(result, dict | None) or not isinstance((result or {}).get("rows", []), list):
        return "its result is no table"
    if status == DONE and "rows" not in (result or {}):
        return "it has no rows"
    return (
        None
        if all(isinstance(row, dict) for row in (result or {}).get("rows", []))
        else ("its rows are no mappings")
    )
