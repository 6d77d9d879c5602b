"""Progress of a study: a bar on a terminal, else a plain line per minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Pace", "study_bar"]

Callback = Callable[[int, int, int], None]
MINUTE = 60.0  # seconds between lines


@dataclass
class Pace:
    """How quickly instances are done, those that were known at the start not counted.

    Parameters
    ----------
    clock : function
        Seconds.

    Examples
    --------
    >>> seconds = iter([0.0, 10.0])
    >>> pace = Pace(lambda: next(seconds))
    >>> pace.told(100, 200, 0)
    '100 of 200 done'
    >>> pace.told(120, 200, 1)
    '120 of 200 done, 2.0 per second, 40 s left, 1 failed'
    """

    clock: Callable[[], float] = time.monotonic
    start: tuple[float, int] | None = field(default=None, init=False)

    def told(self, done: int, total: int, failed: int) -> str:
        """Where the study is, in words."""
        now = self.clock()
        first, known = self.start = self.start or (now, done)
        words = [f"{done} of {total} done"]
        if done > known and now > first:
            rate = (done - known) / (now - first)
            words += [_rate(rate), f"{_duration((total - done) / rate)} left"]
        return ", ".join(words + ([f"{failed} failed"] if failed else []))


def _rate(per_second: float) -> str:
    """A rate in words, per second or, if it is slow, per minute or per hour."""
    for unit, seconds in (("second", 1.0), ("minute", 60.0)):
        if per_second * seconds >= 1.0:
            return f"{per_second * seconds:.1f} per {unit}"
    return f"{per_second * 3600:.1f} per hour"


def _duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> _duration(40.2), _duration(200.0), _duration(9000.0)
    ('40 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def study_bar(console: Console | None = None, every: float = MINUTE) -> Iterator[Callback]:
    """Bar that a study moves by ``progress(done, total, failed)``, or lines if it is no terminal.

    Parameters
    ----------
    console : Console, optional
        Standard error by default.
    every : float
        Seconds between lines.
    """
    console = console or Console(stderr=True)
    pace = Pace()
    if not console.is_terminal:
        with _lines(console, pace, every) as progress:
            yield progress
        return
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as drawn:
        task = drawn.add_task("starting", total=1.0)
        yield lambda done, total, failed: drawn.update(
            task, completed=done, total=total, description=pace.told(done, total, failed)
        )


@contextmanager
def _lines(console: Console, pace: Pace, every: float) -> Iterator[Callback]:
    """Tell the latest state at equal times, also while no instance ends."""
    started = time.monotonic()
    latest: list[tuple[int, int, int]] = []
    over = threading.Event()

    def tell() -> None:
        while not over.wait(every):
            if latest:
                passed = time.monotonic() - started
                console.print(f"after {passed:.0f} s: {pace.told(*latest[-1])}", highlight=False)

    def progress(done: int, total: int, failed: int) -> None:
        if not latest:
            pace.told(done, total, failed)  # the pace counts from here
        latest[:] = [(done, total, failed)]

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield progress
    finally:
        over.set()
        teller.join()
