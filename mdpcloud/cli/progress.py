"""A progress bar for long solves, on standard error where that is a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["done", "progress_bar"]

Callback = Callable[[int, float, float], None]


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


@contextmanager
def progress_bar(tolerance: float, console: Console | None = None) -> Iterator[Callback | None]:
    """Bar that a solver moves by calling ``progress(iterations, lower, upper)``.

    Parameters
    ----------
    tolerance : float
        Relative width of the bounds at which the solver stops.
    console : Console, optional
        Where the bar is drawn; none is drawn if that is no terminal.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        widest = 0.0

        def move(iterations: int, lower: float, upper: float) -> None:
            nonlocal widest
            width, last = upper - lower, tolerance * max(abs(lower), abs(upper))
            widest = max(widest, width) if math.isfinite(width) else widest
            text = f"{iterations} iterations, {lower:.8g} to {upper:.8g}"
            bar.update(task, completed=done(width, widest, last), description=text)

        yield move
