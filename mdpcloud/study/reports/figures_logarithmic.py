"""What cannot stand on the logarithmic axes of a figure: texts, and numbers below 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Panel, Series
from mdpcloud.plots.scales import NEGLIGIBLE
from mdpcloud.study.outputs import Figure

__all__ = ["check_logarithmic"]


def check_logarithmic(figure: Figure, panels: Sequence[Panel]) -> None:
    """Refuse a logarithmic axis that has no place for what a figure shows.

    Raises
    ------
    InputError
    """
    wanted = figure.logarithmic or ""
    for axis in wanted:
        if axis not in panels[0].logarithmic:
            why = f"{axis} is no number"
            raise InputError(f"figure {figure.name!r}: logarithmic: {axis!r} cannot be: {why}")
    for axis in panels[0].logarithmic:
        column = figure.x if (axis == "x" and figure.kind == "lines") else figure.y
        for value in _below(axis, [one for panel in panels for one in panel.series]):
            raise InputError(
                f"figure {figure.name!r}: logarithmic: {value:g} of {column!r} has no place there"
            )


def _below(axis: str, series: Sequence[Series]) -> Iterator[float]:
    """Numbers that are certainly below 0; along the axis of lines 0 has no place either."""
    for one in series:
        if axis == "x" and one.look != "shares":
            yield from (value for value in one.x if value <= 0.0)
            continue
        values = np.array(one.x if axis == "x" else one.y, float)
        least = -NEGLIGIBLE * np.nanmax(np.abs(values))
        upper = (
            np.array(one.upper, float) if len(one.upper) else np.where(values < least, values, 0.0)
        )
        yield from values[(values < 0.0) & (upper < 0.0)].tolist()
