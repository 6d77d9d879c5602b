"""Limits of an instance: its time and its threads.

The soft limit is that of the solvers, which stop between two sweeps with bounds on what they look
for. The hard one, `after` seconds, is for code that knows nothing of it, such as a rule of the
user's own in an endless loop: the main thread of a process is interrupted by an alarm, where the
system has one, even while it sleeps; any other thread by an exception that Python raises in it
between two of its instructions. A call into compiled code ends first. What goes on nevertheless,
since it catches everything or since the call does not end, ends with its process, where that is a
worker: `last_moment`.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = [
    "KILLED",
    "TimeUp",
    "after",
    "killed_after",
    "last_moment",
    "stopped_after",
    "within",
]

AGAIN = 1.0  # seconds until the next try, for code that catches everything
GRACE = 5.0  # seconds of such tries
KILLED = 1  # exit code of a process after that, which faulthandler has chosen


class TimeUp(BaseException):
    """The hard limit; no `Exception`, so that the code it stops is unlikely to catch it."""


def within(scenario: Scenario, time_limit: float | None) -> Scenario:
    """The scenario on one thread, its solves and simulations within a limit in seconds.

    Limits of its own stay where they are shorter. Neither changes the key of an instance.
    """
    solve, simulate = scenario.solve, scenario.simulate
    return replace(
        scenario,
        solve=replace(solve, threads=1, time_limit=_shorter(solve.time_limit, time_limit)),
        simulate=replace(simulate, n_jobs=1, time_limit=_shorter(simulate.time_limit, time_limit)),
    )


def _shorter(one: float | None, other: float | None) -> float | None:
    known = [limit for limit in (one, other) if limit is not None]
    return min(known, default=None)


def after(time_limit: float) -> float:
    """Seconds after which code is stopped that does not stop by itself.

    Examples
    --------
    >>> after(10.0)
    16.0
    """
    return 1.5 * time_limit + 1.0


@contextlib.contextmanager
def stopped_after(time_limit: float | None) -> Iterator[None]:
    """Stop what runs within, in this thread, a while after a limit in seconds.

    Raises
    ------
    TimeUp
        When it was stopped.
    """
    if time_limit is None:
        yield
    elif threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        yield from _by_alarm(time_limit)
    else:
        yield from _by_thread(time_limit)


def last_moment(time_limit: float) -> float:
    """Seconds after which a worker ends that could not be stopped.

    Examples
    --------
    >>> last_moment(10.0)
    21.0
    """
    return after(time_limit) + GRACE


@contextlib.contextmanager
def killed_after(time_limit: float | None) -> Iterator[None]:
    """End this process if what runs within goes on at its last moment.

    In the main thread this happens even if compiled code lets no other thread run.
    """
    if time_limit is None:
        yield
    elif threading.current_thread() is threading.main_thread():
        with open(os.devnull, "w") as nowhere:
            faulthandler.dump_traceback_later(last_moment(time_limit), exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
    else:
        timer = threading.Timer(last_moment(time_limit), os._exit, (KILLED,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _time_up(time_limit: float) -> TimeUp:
    return TimeUp(f"stopped, since it went on after the time limit of {time_limit:g} s")


def _by_alarm(time_limit: float) -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise _time_up(time_limit)

    before, started = signal.signal(signal.SIGALRM, stop), time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, after(time_limit), AGAIN)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:  # also if the alarm came just before it was turned off
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the caller's own alarm
            signal.setitimer(
                signal.ITIMER_REAL, max(left - time.monotonic() + started, 1e-3), interval
            )


def _by_thread(time_limit: float) -> Iterator[None]:
    thread, done = threading.get_ident(), threading.Event()
    message = str(_time_up(time_limit))
    kind = type("TimeUp", (TimeUp,), {"__str__": lambda _: message})
    watch = threading.Thread(target=_raise_in, args=(thread, kind, time_limit, done), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _raise_in(thread: int, kind: type[TimeUp], time_limit: float, done: threading.Event) -> None:
    """Raise in a thread at its limit, and again until it is done."""
    seconds = after(time_limit)
    while not done.wait(seconds):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
        seconds = AGAIN
