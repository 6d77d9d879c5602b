"""Maps of a policy's actions: on two coordinates of the state, or in strips on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mdpcloud.plots.style import (
    SMALL,
    add_legend,
    clean,
    new_figure,
    panels,
    plain,
    title,
    whole_numbers,
)

__all__ = ["crop", "draw_map", "draw_strips", "last_change", "maps_figure", "strips_figure"]

Array = NDArray[Any]
WHITE = (1.0, 1.0, 1.0)  # where nothing is decided, or nothing is known
MANY = 60  # cells along an axis, beyond which they have no outlines


def maps_figure(
    titles: Sequence[str],
    tables: Sequence[Array],
    colours: Mapping[str, Any],
    coordinates: tuple[str, str],
) -> Figure:
    """A panel per policy; see `draw_map`.

    Parameters
    ----------
    titles : sequence of str
    tables : sequence of integer arrays (n_0, n_1)
    colours : mapping
        Action to colour, in the order of the actions' numbers.
    coordinates : (str, str)
        What the axes count.
    """
    columns = 4 if len(tables) == 4 else 3
    figure, grid = panels(len(tables), columns=columns, height=2.6, sharex=True, sharey=True)
    for axes, name, table in zip(grid, titles, tables, strict=True):
        draw_map(axes, table, list(colours.values()))
        title(axes, name)
        axes.set_xlabel(coordinates[0])
        axes.set_ylabel(coordinates[1])
        axes.label_outer()
    _name_actions(figure, tables, colours)
    return figure


def strips_figure(
    titles: Sequence[str], tables: Sequence[Array], colours: Mapping[str, Any], coordinate: str
) -> Figure:
    """A strip per policy; see `draw_strips` and `maps_figure`."""
    figure = new_figure(1.2 + 0.38 * len(tables))
    axes = draw_strips(figure.subplots(), titles, np.array(tables), list(colours.values()))
    axes.set_xlabel(coordinate)
    _name_actions(figure, tables, colours)
    return figure


def _name_actions(figure: Figure, tables: Sequence[Array], colours: Mapping[str, Any]) -> None:
    """A legend of the actions that occur."""
    used = {int(action) for table in tables for action in np.unique(table)}
    shown = {name: colour for a, (name, colour) in enumerate(colours.items()) if a in used}
    add_legend(figure, [Patch(facecolor=c) for c in shown.values()], [*map(plain, shown)])


def draw_map(axes: Axes, actions: Array, colours: Sequence[Any]) -> Axes:
    """Draw a cell per state.

    Parameters
    ----------
    axes : Axes
    actions : integer array (n_0, n_1)
        Action at coordinates (i, j); -1 stays white.
    colours : sequence
        Per action.
    """
    _paint(axes, actions.T, colours)
    axes.yaxis.set_major_locator(whole_numbers())
    return axes


def draw_strips(axes: Axes, names: Sequence[str], actions: Array, colours: Sequence[Any]) -> Axes:
    """Draw a strip per policy, of a cell per state.

    Parameters
    ----------
    axes : Axes
    names : sequence of str
        Of the policies, top down.
    actions : integer array (policies, n_0)
    colours : sequence
        Per action.
    """
    _paint(axes, actions, colours)
    axes.set_yticks(range(len(names)), names)
    for edge in np.arange(len(names) + 1) - 0.5:
        axes.axhline(edge, color="white", linewidth=6.0)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0, labelsize=SMALL + 1)
    axes.spines["left"].set_visible(False)
    return axes


def _paint(axes: Axes, cells: Array, colours: Sequence[Any]) -> None:
    painted = np.array([*map(to_rgb, colours), WHITE])[cells]
    rows, columns = cells.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    outline = 0.4 if max(rows, columns) <= MANY else 0.0
    axes.pcolormesh(*edges, painted, edgecolor="white" if outline else "none", linewidth=outline)
    axes.xaxis.set_major_locator(whole_numbers())
    clean(axes)
    axes.spines[:].set_visible(False)


def last_change(actions: Array, axis: int) -> int:
    """The last coordinate along an axis after which the action still changes somewhere; -1 if none.

    A change to or from -1 does not count.

    Examples
    --------
    >>> last_change(np.array([[1, 1, 1], [1, 2, 0], [0, 0, 0], [0, 0, 0]]), 0)
    1
    """
    known = np.moveaxis(actions, axis, 0)
    changes = (known[1:] != known[:-1]) & (known[1:] >= 0) & (known[:-1] >= 0)
    where = np.flatnonzero(changes.any(axis=tuple(range(1, actions.ndim))))
    return int(where[-1]) if where.size else -1


def crop(tables: Sequence[Array], beyond: int) -> list[Array]:
    """Tables of equal shape up to the last change of an action in any of them, and a little more.

    Parameters
    ----------
    tables : sequence of integer arrays
    beyond : int
        Number of states after the one in which the last action begins.
    """
    last = [max(last_change(table, k) for table in tables) for k in range(tables[0].ndim)]
    return [table[tuple(slice(v + 2 + beyond) for v in last)] for table in tables]
