"""Interrupts of a run: the keyboard's, and those of batch systems."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["STOPPING", "postponed", "terminable"]

STOPPING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""What stops a run: the keyboard, a batch system, a terminal that is closed."""
PATIENCE = 3.0  # seconds within which a second interrupt is taken for one with the first


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let what stops a run interrupt as the keyboard does.

    More of these while the processes are being ended changes nothing. Handlers that are not
    Python's own stay; threads other than the main one have no part in this.

    Raises
    ------
    KeyboardInterrupt
        Inside, with the name of the signal.
    """
    last = -PATIENCE

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last >= PATIENCE:
            last = time.monotonic()
            raise KeyboardInterrupt(signal.Signals(number).name)

    usual = (signal.default_int_handler, signal.SIG_DFL)
    is_main = threading.current_thread() is threading.main_thread()
    found = {one: signal.getsignal(one) for one in STOPPING if is_main}
    before = {one: handler for one, handler in found.items() if handler in usual}
    try:
        for one in before:
            signal.signal(one, interrupt)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Call the handlers of what stops a run only when this has ended; in the main thread alone."""
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {one: signal.getsignal(one) for one in STOPPING if is_main}
    came: list[tuple[int, FrameType | None]] = []
    ours = {one: handler for one, handler in handlers.items() if callable(handler)}
    for one in ours:
        signal.signal(one, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for one, handler in ours.items():
            signal.signal(one, handler)
    for number, frame in came[:1]:
        ours[signal.Signals(number)](number, frame)
