"""Index curves of a node: what a job costs there, as the rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from mdpcloud.plots.style import INK, clean, whole_numbers

__all__ = ["Curve", "draw_indices"]

MANY = 40  # states, beyond which markers are small


@dataclass(frozen=True)
class Curve:
    """Index values in states 0, 1, ... under one policy."""

    name: str
    values: Sequence[float]
    colour: Any = INK
    marker: str = "o"


def draw_indices(axes: Axes, curves: Sequence[Curve], limit: float | None = None) -> Axes:
    """Draw a marker per state and policy, and a dashed line at the limit.

    Parameters
    ----------
    axes : Axes
    curves : sequence of Curve
    limit : float, optional
        Beyond it a job goes elsewhere: the cost of the outside option.
    """
    if limit is not None:
        axes.axhline(limit, color=INK, linewidth=1.0, linestyle=(0, (5, 3)), label="outside cost")
    for curve in curves:
        axes.plot(
            range(len(curve.values)),
            curve.values,
            marker=curve.marker,
            color=curve.colour,
            label=curve.name,
            linewidth=1.2,
            markersize=4.0 if len(curve.values) <= MANY else 2.5,
            markeredgewidth=0.0,
        )
    axes.xaxis.set_major_locator(whole_numbers())
    return clean(axes, grid="y")
