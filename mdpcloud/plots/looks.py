"""Colours, markers and dashes of the curves and kinds of a chart, and its legend.

Where curves have names of their own (`Chart.curves`), colour, marker and dash belong to the curve;
what they are compared with is a line without markers, in ink.
Else, where there are several curves, colour tells them apart, and the marker or dash tells the
kind of each (the limit, or a finite system); where there is one curve, colour tells the kinds
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mdpcloud.plots.chart import Chart, Series
from mdpcloud.plots.style import FAINT, INK, LINES, MARKERS, policy_colours

__all__ = ["Looks", "legend", "open_mark"]

DASHES: tuple[Any, ...] = ((0, (3.4, 1.4)), (0, (1.1, 1.2)), (0, (6, 2, 1.2, 2)), (0, (9, 3)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
MARKED = ("marks", "dots", "joined")
DASHED = ("line", "dashed", "dotted", "steps")


@dataclass(frozen=True)
class Looks:
    """How the series of a chart are drawn; see `Looks.of`."""

    curves: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # those that are no guides, in order
    marked: list[str] = field(default_factory=list)  # kinds that are drawn with markers
    lines: list[str] = field(default_factory=list)
    own: dict[str, tuple[Any, str, Any]] = field(default_factory=dict)
    thickness: float = 1.0

    @classmethod
    def of(cls, chart: Chart, thickness: float = 1.0) -> Looks:
        """The looks of a chart's series, for lines of a thickness."""
        every = [one for panel in chart.panels for one in panel.series if one.look != "guide"]
        marked = [one.kind for one in every if one.look in MARKED]
        lines = [one.kind for one in every if one.look in DASHED]
        curves = dict.fromkeys(one.curve for one in every if one.curve)
        kinds = dict.fromkeys(one.kind for one in every)
        return cls(
            [*curves],
            [*kinds],
            [*dict.fromkeys(marked)],
            [*dict.fromkeys(lines)],
            _own(chart),
            thickness,
        )

    @property
    def several(self) -> bool:
        """Whether colour tells curves apart."""
        return len(self.curves) > 1

    @property
    def plain(self) -> list[str]:
        """The first kind of line, drawn in ink where there is one curve and other kinds."""
        return self.lines[:1] if len(self.kinds) > 1 else []

    def colour(self, one: Series) -> Any:
        """The colour of a series."""
        if one.look == "guide":
            return FAINT
        if one.curve in self.own:
            return INK if one.look in DASHED else self.own[one.curve][0]
        if self.several:
            return INK if not one.curve else LINES[self.curves.index(one.curve) % len(LINES)]
        others = [kind for kind in self.kinds if kind not in self.plain]
        return INK if one.kind in self.plain else LINES[others.index(one.kind) % len(LINES)]

    def style(self, one: Series) -> dict[str, Any]:
        """Properties of the line of a series."""
        found = self._style(one)
        for name in ("linewidth", "markersize", "markeredgewidth"):
            if name in found:
                found[name] *= self.thickness
        return found

    def _style(self, one: Series) -> dict[str, Any]:
        colour = self.colour(one)
        if one.look == "guide":
            return {"color": colour, "linewidth": 1.0, "linestyle": (0, (2, 2)), "zorder": 1}
        if one.curve in self.own:
            return self._own_style(one)
        if one.look in MARKED:
            marker = MARKERS[self.marked.index(one.kind) % len(MARKERS)]
            joined = {"linestyle": "-" if one.look == "joined" else "none", "linewidth": 0.9}
            inside = colour if one.look == "dots" else "white"
            face = {"markerfacecolor": inside, "markeredgewidth": 1.3, "markersize": 5.0}
            return {"color": colour, "marker": marker, "zorder": 3, **joined, **face}
        dash: Any = {"dashed": DASHES[0], "dotted": DASHES[1]}.get(one.look, "-")
        if one.look == "line" and self.several and one.kind != self.lines[0]:
            dash = DASHES[(self.lines.index(one.kind) - 1) % len(DASHES)]
        steps = {"drawstyle": "steps-post", "linewidth": 0.9, "zorder": 1.5}
        line = {"color": colour, "linestyle": dash, "linewidth": 1.7, "zorder": 2}
        return line | (steps if one.look == "steps" else {})

    def bar(self, one: Series) -> dict[str, Any]:
        """Properties of the bars of a series."""
        hatch = HATCHES[list(self.own).index(one.curve) % len(HATCHES)]
        return {"facecolor": self.colour(one), "edgecolor": "white", "linewidth": 0, "hatch": hatch}

    def _own_style(self, one: Series) -> dict[str, Any]:
        colour, marker, dash = self.own[one.curve]
        if one.look in DASHED:
            return {"color": INK, "linestyle": DASHES[0], "linewidth": 1.3, "zorder": 2}
        if one.look == "shares":
            step = {"drawstyle": "steps-post", "linewidth": 1.7}
            return {"color": colour, "linestyle": dash, "zorder": 2, **step}
        size = 6.4 - 0.35 * (list(self.own).index(one.curve) % 6)  # the first show behind the last
        line = {"linewidth": 1.1, "markersize": size, "markeredgewidth": 0.0}
        return {"color": colour, "marker": marker, "linestyle": "-", "zorder": 3, **line}


def _own(chart: Chart) -> dict[str, tuple[Any, str, Any]]:
    """Colour, marker and dash of each curve that has a name of its own."""
    dashes = ("-", *DASHES)
    return {
        name: (colour, marker, dashes[i % len(dashes)])
        for i, (name, (colour, marker)) in enumerate(policy_colours([*chart.curves]).items())
    }


def open_mark(style: dict[str, Any]) -> dict[str, Any]:
    """A style with open marks and no line."""
    edge = {"markerfacecolor": "none", "markeredgewidth": 0.2 * style["markersize"]}
    return {**style, "linestyle": "none", **edge}


def legend(chart: Chart, looks: Looks) -> tuple[list[Any], list[str]]:
    """Handles and texts: each curve by its colour, each kind by its marker or dash."""
    every = [one for panel in chart.panels for one in panel.series]
    if chart.curves:
        return _named(chart, looks, every)
    found: dict[str, Any] = {}
    if looks.several:
        for one in every:
            if one.curve:
                found.setdefault(one.curve, Line2D([], [], color=looks.colour(one), linewidth=3.0))
    for one in every:
        style = looks.style(one)
        style["color"] = INK if looks.several and one.look != "guide" else style["color"]
        found.setdefault(one.kind, Line2D([], [], **style))
    if looks.several and len({one.kind for one in every}) == 1:
        del found[every[0].kind]
    return [*found.values()], [*found]


def _named(chart: Chart, looks: Looks, every: Sequence[Series]) -> tuple[list[Any], list[str]]:
    """Handles and texts of the curves that occur, in the order of their names."""
    first: dict[str, Series] = {}
    for one in every:
        first.setdefault(one.curve, one)
    shown = [name for name in chart.curves if name in first]
    return [_handle(looks, first[name]) for name in shown], [chart.curves[name] for name in shown]


def _handle(looks: Looks, one: Series) -> Any:
    if one.look == "bars":
        return Patch(**looks.bar(one))
    return Line2D([], [], **looks.style(one))
