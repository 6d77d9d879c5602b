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
      "run": {"host": ..., "started": ..., "elapsed": ...}
    }

Everything but ``run`` is the same whenever it is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mdpcloud.study.identity import key_of

__all__ = ["DONE", "FAILED", "FORMAT", "NOT_CONVERGED", "Record", "make_record", "why_unsound"]

Record: TypeAlias = Mapping[str, Any]
FORMAT = 1
DONE, NOT_CONVERGED, FAILED = "done", "not_converged", "failed"
KEYS = ("format", "key", "content", "sources", "status", "error", "result", "run")


def make_record(
    content: Mapping[str, Any],
    sources: Mapping[str, Any],
    status: str,
    *,
    result: Mapping[str, Any] | None = None,
    error: str | None = None,
    run: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A record from its parts."""
    return {
        "format": FORMAT,
        "key": key_of(content),
        "content": dict(content),
        "sources": dict(sources),
        "status": status,
        "error": error,
        "result": None if result is None else dict(result),
        "run": dict(run or {}),
    }


def why_unsound(record: Any, key: str) -> str | None:
    """What is wrong with what a file of a key holds; None if it is a sound record."""
    if not isinstance(record, dict) or any(name not in record for name in KEYS):
        return "it is no record"
    if record["format"] != FORMAT:
        return f"it has format {record['format']!r}, not {FORMAT}"
    if record["key"] != key or key_of(record["content"]) != key:
        return "its content is not that of its name"
    if record["status"] not in (DONE, NOT_CONVERGED, FAILED):
        return f"its status is {record['status']!r}"
    if record["status"] == DONE and not isinstance((record["result"] or {}).get("rows"), list):
        return "it has no rows"
    return None
