"""Where a restless arm is active, by the price of its work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.result import ArmIndex, PricePath
from mdpcloud.plots.style import (
    BLUE,
    FAINT,
    VERMILLION,
    add_legend,
    clean,
    heading,
    new_figure,
    whole_numbers,
)

__all__ = ["active_spans", "draw_active_sets", "draw_index", "plot_index"]

MOST_ROWS = 40  # states that get a bar each
ROOM = 0.12  # beyond the outermost prices, as a part of their range


def plot_index(result: ArmIndex, *, title: str = "", unit: str = "") -> Figure:
    """Where an arm is active at every price; of arms of many states, the index alone.

    Parameters
    ----------
    result : ArmIndex
        With a path of prices, or with an index.
    title : str
        By default the verdict and its reason.
    unit : str
        Of the price, such as "euro per hour".

    Raises
    ------
    InputError
        When there is nothing to draw.
    """
    if not isinstance(result, ArmIndex):
        raise InputError(f"{result!r} is no index; give what mdpcloud.indices.whittle returns")
    path, values = result.path, result.values
    n = path.first.size if path is not None else 0 if values is None else values.size
    bars = path is not None and 0 < n <= MOST_ROWS
    if not bars and (values is None or not np.isfinite(values).any()):
        raise InputError(f"the arm is {result.verdict}, and has no index that could be drawn")
    figure = new_figure(1.1 + 0.2 * n if bars else 3.0)
    axes = figure.subplots()
    price = f"price of work, {unit}" if unit else "price of work"
    if bars and path is not None:
        draw_active_sets(axes, path)
        axes.set_xlabel(price)
        axes.set_ylabel("state")
        handles, labels = axes.get_legend_handles_labels()
        kinds = dict(zip(labels, handles, strict=True))
        add_legend(figure, list(kinds.values()), list(kinds))
    elif values is not None:
        draw_index(axes, result)
        axes.set_xlabel("state")
        axes.set_ylabel(price)
    heading(figure, title or f"{result.verdict}: {result.reason}")
    return figure


def draw_active_sets(axes: Axes, path: PricePath) -> Axes:
    """Draw a bar per state over the prices at which activity is optimal.

    Bars that begin at a price above one at which the state was passive have another colour: the
    arm has no index.
    """
    low, high = _limits(path.prices)
    for state, first, last, again in active_spans(path):
        left, right = max(first, low), min(last, high)
        colour, label = (VERMILLION, "active again") if again else (BLUE, "active")
        axes.barh(state, right - left, 0.7, left, color=colour, label=label)
    axes.set_xlim(low, high)
    axes.set_ylim(path.first.size - 0.5, -0.5)
    axes.yaxis.set_major_locator(whole_numbers())
    return clean(axes, grid="x")


def active_spans(path: PricePath) -> Iterator[tuple[int, float, float, bool]]:
    """State, first and last price of each stretch of activity, and if it was passive before.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> still = [[1.0]]
    >>> found = mc.indices.whittle(mc.indices.arm(still, still, rewards1=2.0))
    >>> list(active_spans(found.path))
    [(0, -inf, 2.0, False)]
    """
    since = np.where(path.first, -np.inf, np.nan)
    for price, state, on in zip(path.prices, path.states, path.active, strict=True):
        if on:
            since[state] = price
        else:
            yield int(state), float(since[state]), float(price), bool(np.isfinite(since[state]))
            since[state] = np.nan
    for state in np.flatnonzero(~np.isnan(since)):
        yield int(state), float(since[state]), np.inf, bool(np.isfinite(since[state]))


def draw_index(axes: Axes, result: ArmIndex) -> Axes:
    """Draw the index of every state; what changes with twice the room is grey."""
    values = result.index
    states = np.flatnonzero(np.isfinite(values))
    settled = np.ones(values.size, np.bool_) if result.settled is None else result.settled
    for part, colour, label in (
        (states[settled[states]], BLUE, "index"),
        (states[~settled[states]], FAINT, "changes with twice the room"),
    ):
        if part.size:
            axes.plot(part, values[part], ".", color=colour, markersize=3.0, label=label)
    if not settled[states].all():
        axes.legend(frameon=False)
    return clean(axes, grid="y")


def _limits(prices: np.ndarray) -> tuple[float, float]:
    if prices.size == 0:
        return -1.0, 1.0
    low, high = float(prices.min()), float(prices.max())
    room = ROOM * (high - low) or ROOM * max(abs(high), 1.0)
    return low - room, high + room
