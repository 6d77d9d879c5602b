"""Interrupts of a run: the keyboard's, and those of batch systems."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["terminable"]

PATIENCE = 3.0  # seconds within which a second interrupt is taken for one with the first


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, interrupt as the keyboard does.

    More of either while the processes are being ended changes nothing. Handlers that are not
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

    ours = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if threading.current_thread() is not threading.main_thread():
        ours = {}
    before = {one: usual for one, usual in ours.items() if signal.getsignal(one) is usual}
    try:
        for one in before:
            signal.signal(one, interrupt)
        yield
    finally:
        for one, usual in before.items():
            signal.signal(one, usual)
