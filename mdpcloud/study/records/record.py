"""The record of an instance, as its JSON file holds it.

::

    {
      "format": 1,
      "key": "9f2c...",                    sha256 of the content
      "content": {...},                    what decides the result, see `identity`
      "checksum": "51ab...",               of status, error and result
      "status": "done",                    or "not_converged", "failed"
      "error": null,                       or a text
      "result": {"rows": [...], ...},      null where there is none
      "sources": {"mdpcloud": "0.1.0", "package": "...", "own": {...}},
      "run": {"host": ..., "started": ..., "elapsed": ...}
    }

Everything but ``run`` is the same whenever it is computed again. The key vouches for the content
and the checksum for the result: no digit of either can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from mdpcloud.study.records.identity import canonical, key_of
from mdpcloud.study.records.plain import plain

__all__ = [
    "DONE",
    "FAILED",
    "FORMAT",
    "NOT_CONVERGED",
    "Record",
    "from_text",
    "is_intact",
    "is_newer",
    "make_record",
    "plain",
    "sayable",
    "to_text",
    "why_unsound",
]

Record: TypeAlias = Mapping[str, Any]
FORMAT = 1
DONE, NOT_CONVERGED, FAILED = "done", "not_converged", "failed"
KEYS = ("format", "key", "content", "checksum", "status", "error", "result", "sources", "run")
OUTCOME = ("status", "error", "result")
DIGITS = 16  # of a checksum


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
    InputError
        When the result holds what JSON cannot, such as nan; the message tells where.
    """
    found = None if result is None else plain(result, "result")
    outcome = {"status": status, "error": error, "result": found}
    return {
        "format": FORMAT,
        "key": key_of(content),
        "content": json.loads(canonical(content)),
        "checksum": _checksum(outcome),
        **outcome,
        "sources": plain(sources, "sources"),
        "run": plain(run or {}, "run"),
    }


def _checksum(outcome: Mapping[str, Any]) -> str:
    """Hash of what came out; the order of columns counts."""
    return _hash(_compact(outcome)[1:-1].encode())[:DIGITS]


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def sayable(text: str) -> str:
    r"""A text with its half surrogates written out, which no file and no terminal can hold.

    They are in names of files that are not UTF-8, and so in the errors of opening these.

    Examples
    --------
    >>> print(sayable("no file a\udcff"))
    no file a\udcff
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def to_text(record: Record) -> str:
    """A record as one line of JSON.

    Raises
    ------
    ValueError
        When it holds nan or an infinite number.
    """
    return _compact(record) + "\n"


def is_intact(raw: bytes, key: str) -> bool:
    """Whether bytes are those that `to_text` made of a sound record, by their hashes alone.

    Where they are not, as when another program has indented the file, `why_unsound` knows; it has
    to write all numbers anew, which takes ten times as long.
    """
    head = b'{"format":%d,"key":"%s","content":' % (FORMAT, key.encode())
    middle, label = raw.find(b',"checksum":"', len(head)), len(b',"checksum":"')
    checksum = raw[middle + label : middle + label + DIGITS].decode("ascii", "replace")
    begin = middle + label + DIGITS + len(b'",')
    end = raw.find(b',"sources":', begin)
    return (
        raw.startswith(head)
        and _hash(raw[len(head) : middle]) == key
        and _hash(raw[begin:end])[:DIGITS] == checksum
    )


def from_text(raw: bytes) -> Any:
    """What the bytes of a file hold.

    Raises
    ------
    ValueError
        When they are no strict JSON in UTF-8.
    """
    from pydantic_core import from_json

    try:
        return from_json(raw, allow_inf_nan=False)  # exact, and three times as fast as json
    except ValueError:
        return _from_any_text(raw.decode("utf-8"))


def _from_any_text(text: str) -> Any:
    """With half surrogates, as of names of files that are not UTF-8, and the clearest errors."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"it holds {constant}")


def is_newer(record: Any) -> bool:
    """Whether a later version of this package made it: what it means is not known here."""
    found = record.get("format") if isinstance(record, dict) else None
    return type(found) is int and found > FORMAT


def why_unsound(record: Any, key: str, *, intact: bool = False) -> str | None:
    """What is wrong with what a file of a key holds; None if it is a sound record.

    Where `is_intact` has found the file ``intact``, its hashes are not checked again.
    """
    if not isinstance(record, dict) or any(name not in record for name in KEYS):
        return "it is no record"
    if record["format"] != FORMAT or type(record["format"]) is not int:
        return f"it has format {record['format']!r}, not {FORMAT}"
    if any(not isinstance(record[name], dict) for name in ("content", "sources", "run")):
        return "it is no record"
    return (None if intact else _why_changed(record, key)) or _why_incomplete(record)


def _why_changed(record: Mapping[str, Any], key: str) -> str | None:
    try:
        if record["key"] != key or key_of(record["content"]) != key:
            return "its content is not that of its name"
        if record["checksum"] != _checksum({name: record[name] for name in OUTCOME}):
            return "its result is not that of its checksum"
    except ValueError:
        return "it holds an infinite number"
    return None


def _why_incomplete(record: Mapping[str, Any]) -> str | None:
    status, result = record["status"], record["result"]
    if status not in (DONE, NOT_CONVERGED, FAILED):
        return f"its status is {status!r}"
    if not isinstance(record["error"], str | None) or not isinstance(result, dict | None):
        return "its error is no text, or its result no table"
    rows = (result or {}).get("rows")
    if status == DONE and rows is None:
        return "it has no rows"
    if rows is not None and not (isinstance(rows, list) and all(isinstance(r, dict) for r in rows)):
        return "its rows are no mappings"
    return None
