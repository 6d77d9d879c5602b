"""Searches for cyclic garbage: records make none, and among many of them they take long."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["no_collections"]


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Without searches for cyclic garbage inside."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
