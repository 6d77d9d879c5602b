"""Where and when a result was made."""

from __future__ import annotations

import datetime
import platform
from functools import cache
from importlib.metadata import version
from typing import Any

import mdpcloud
from mdpcloud.engine.jit import source_hash

__all__ = ["describe_run"]


def describe_run(started: datetime.datetime) -> dict[str, Any]:
    """Versions, machine, start and elapsed seconds."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        **_describe_process(),
        "started": started.isoformat(timespec="seconds"),
        "elapsed": (now - started).total_seconds(),
    }


@cache  # it reads files of packages, which takes longer than a small comparison's sweeps
def _describe_process() -> dict[str, str]:
    return {
        "mdpcloud": mdpcloud.__version__,
        "source_hash": source_hash(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "platform": platform.platform(),
    }
