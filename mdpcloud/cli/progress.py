"""Progress of long solves on standard error: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["bar", "done", "lines", "progress_bar", "simulation_bar", "teller"]

Callback = Callable[[int, float, float], None]
Members = Callable[[int, int, float, float], None]
EVERY = 10.0  # seconds between lines


@dataclass(frozen=True)
class _Progress:
    """Progress of solves, and of searches through the members of a family of policies."""

    steps: Callback
    members: Members

    def __call__(self, iterations: int, lower: float, upper: float) -> None:
        self.steps(iterations, lower, upper)


def done(width: float, first: float, last: float) -> float:
    """Part of the way from the first width of the bounds to the last, on the scale of logarithms.

    Examples
    --------
    >>> round(done(1e-4, 1.0, 1e-8), 12)
    0.5
    """
    if width <= last:
        return 1.0
    if not last < width < first:
        return 0.0
    return math.log(first / width) / math.log(first / last)


def lines(
    say: Callable[[str], object],
    clock: Callable[[], float] = time.monotonic,
    what: str = "iterations",
) -> Callback:
    """Progress as lines, `EVERY` so many seconds at most; ``what`` is counted.

    Examples
    --------
    >>> seconds = iter([0.0, 1.0, 11.0, 12.0, 25.0])
    >>> progress = lines(print, lambda: next(seconds))
    >>> for iterations in (10, 20, 30, 40):
    ...     progress(iterations, 1.5, 1.75)
    after 11 s: 20 iterations, 1.5 to 1.75
    after 25 s: 40 iterations, 1.5 to 1.75
    """
    tell = teller(say, clock)
    return _Progress(
        lambda iterations, lower, upper: tell(lambda: _so_far(iterations, lower, upper, what)),
        lambda *found: tell(lambda: _members(*found)),
    )


def teller(
    say: Callable[[str], object], clock: Callable[[], float]
) -> Callable[[Callable[[], str]], None]:
    """Function that says a text, `EVERY` so many seconds at most, with the time that has passed."""
    start = told = clock()

    def tell(text: Callable[[], str]) -> None:
        nonlocal told
        now = clock()
        if now - told >= EVERY:
            told = now
            say(f"after {now - start:.0f} s: {text()}")

    return tell


def _so_far(iterations: int, lower: float, upper: float, what: str = "iterations") -> str:
    return f"{iterations} {what}, {lower:.8g} to {upper:.8g}"


def _members(done: int, total: int, lower: float, upper: float) -> str:
    return f"{done} of {total} members, {lower:.8g} to {upper:.8g}"


@contextmanager
def progress_bar(
    tolerance: float, console: Console | None = None, what: str = "iterations"
) -> Iterator[Callback]:
    """Bar that a solver moves by calling ``progress(iterations, lower, upper)``.

    Parameters
    ----------
    tolerance : float
        Relative width of the bounds at which the solver stops.
    console : Console, optional
        Where the bar is drawn, or lines are printed if that is no terminal.
    what : str
        What is counted.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lines(console.print, what=what)
        return
    with bar(console) as (drawn, task):
        widest = 0.0

        def move(iterations: int, lower: float, upper: float) -> None:
            nonlocal widest
            width, last = upper - lower, tolerance * max(abs(lower), abs(upper))
            widest = max(widest, width) if math.isfinite(width) else widest
            text = _so_far(iterations, lower, upper, what)
            drawn.update(task, completed=done(width, widest, last), description=text)

        def search(members: int, total: int, lower: float, upper: float) -> None:
            text = _members(members, total, lower, upper)
            drawn.update(task, completed=members / total, description=text)

        yield _Progress(move, search)


@contextmanager
def bar(console: Console) -> Iterator[tuple[Progress, TaskID]]:
    """A bar that vanishes at the end, and its only task."""
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as drawn:
        yield drawn, drawn.add_task("starting", total=1.0)


@contextmanager
def simulation_bar(
    events: int | None, half_width: float | None, policies: int, console: Console | None = None
) -> Iterator[Callback]:
    """Bar that simulations, one after the other, move by ``progress(events, lower, upper)``.

    Parameters
    ----------
    events : int or None
        At which each of them ends, about.
    half_width : float or None
        Of the interval, at which each of them ends.
    policies : int
        Number of simulations.
    console : Console, optional
        As for `progress_bar`.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lines(console.print, what="events")
        return
    with bar(console) as (drawn, task):
        number, before, widest = 1, 0, 0.0

        def move(now: int, lower: float, upper: float) -> None:
            nonlocal number, before, widest
            if now < before:
                number, widest = number + 1, 0.0
            before = now
            width = upper - lower
            widest = max(widest, width) if math.isfinite(width) else widest
            part = min(now / events, 1.0) if events else 0.0
            if half_width is not None:
                part = max(part, done(width, widest, 2.0 * half_width))
            text = f"policy {number} of {policies}: {_so_far(now, lower, upper, 'events')}"
            drawn.update(task, completed=(number - 1 + part) / policies, description=text)

        yield move
