"""What a chart shows: panels of series, whose every number can be written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

__all__ = ["Chart", "Look", "Panel", "Series"]

Look: TypeAlias = Literal[
    "line", "dashed", "dotted", "marks", "dots", "joined", "steps", "guide", "shares", "bars"
]
"""A line, a dashed or dotted one, markers, filled or joined ones, steps, a thin grey line,
the steps of a distribution function from one edge to the other, or bars beside each other."""

COLUMNS = 2  # panels in a row


@dataclass(frozen=True)
class Series:
    """Points or a line.

    Attributes
    ----------
    kind : str
        What it shows, such as "limit" or "N = 10"; named in the legend.
    x, y : sequence of float
        nan where there is none.
    curve : str
        Which curve, where there are several.
    lower, upper : sequence of float
        Ends of intervals, or empty.
    look : Look
    """

    kind: str
    x: Sequence[float]
    y: Sequence[float]
    curve: str = ""
    lower: Sequence[float] = ()
    upper: Sequence[float] = ()
    look: Look = "line"


@dataclass(frozen=True)
class Panel:
    """Series on the same axes.

    Attributes
    ----------
    title, x_label, y_label : str
    series : tuple of Series
    marks : tuple of (x, text)
        Vertical lines with what happens there.
    logarithmic : str
        "", "x", "y" or "xy".
    whole : str
        Axes with whole numbers only: "", "x", "y" or "xy".
    percent : str
        Axes that tell fractions in percent: "", "x", "y" or "xy".
    zeros : bool
        Whether a logarithmic axis has a place at its end for what cannot be told from 0; see
        `mdpcloud.plots.scales`.
    categories : tuple of str
        Texts at x = 0, 1, ...; empty where x is a number.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[tuple[float, str], ...] = ()
    logarithmic: str = ""
    whole: str = ""
    percent: str = ""
    zeros: bool = False
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A figure of panels.

    Attributes
    ----------
    panels : tuple of Panel
    notes : tuple of str
        What a reader of the numbers has to know.
    columns : int
        Panels in a row, at most.
    curves : mapping of str to str
        Name of every curve of figures that belong together, to its text in the legend. Where it is
        given, each curve has a colour, marker and dash of its own in all of them.
    page : {"screen", "page", "column"}
        What size it is made for.
    """

    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    columns: int = COLUMNS
    curves: Mapping[str, str] = field(default_factory=dict)
    page: Literal["screen", "page", "column"] = "screen"

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every plotted number: panel, curve, kind, x, y, lower, upper; None for what is missing.

        Examples
        --------
        >>> chart = Chart((Panel("blocking", "load", "", (Series("limit", [1.0], [0.5]),)),))
        >>> list(chart.rows())
        [('blocking', '', 'limit', 1.0, 0.5, None, None)]
        """
        for panel in self.panels:
            for one in panel.series:
                ends = one.lower or [np.nan] * len(one.x), one.upper or [np.nan] * len(one.x)
                for x, *numbers in zip(one.x, one.y, *ends, strict=True):
                    where = panel.categories[int(x)] if panel.categories else _number(x)
                    yield (panel.title, one.curve, one.kind, where, *map(_number, numbers))

    def to_dict(self) -> dict[str, Any]:
        """The chart as JSON has it."""
        return {"panels": [_panel_record(one) for one in self.panels], "notes": [*self.notes]}


def _panel_record(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "x_label": panel.x_label,
        "y_label": panel.y_label,
        "marks": [{"x": x, "text": text} for x, text in panel.marks],
        "series": [
            {
                "curve": one.curve,
                "kind": one.kind,
                **{
                    name: [*map(_number, getattr(one, name))]
                    for name in ("x", "y", "lower", "upper")
                },
            }
            for one in panel.series
        ],
        **({"categories": [*panel.categories]} if panel.categories else {}),
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
