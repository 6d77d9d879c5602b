"""Costs of the members of a one-parameter family of policies, the best of them, and the optimum.

Costs are over the scale; every member of the family's grid is evaluated, none is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.asymptotics.evaluation import Effort, at_scale, curves_of
from mdpcloud.asymptotics.settings import BestMember, FamilyCosts
from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel, Series
from mdpcloud.plots.style import pretty
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import Family

__all__ = ["best_chart", "family_chart"]

COST = "cost rate / N"
SAME = 1e-9  # relative difference of bounds that are one line


@dataclass(frozen=True)
class _Members:
    """Values of the parameter, and bounds of the cost over the scale at each of them."""

    values: tuple[float, ...]
    lower: list[float]
    upper: list[float]

    @property
    def costs(self) -> list[float]:
        return [0.5 * (low + high) for low, high in zip(self.lower, self.upper, strict=True)]

    @property
    def best(self) -> int:
        return int(np.argmin(self.costs))

    @property
    def rivals(self) -> list[float]:
        """Values of the members that the bounds cannot tell from the best."""
        least = min(self.upper)
        return [v for v, low in zip(self.values, self.lower, strict=True) if low <= least]


def family_chart(system: Any, settings: FamilyCosts, effort: Effort) -> Chart:
    """The chart of costs against the parameter of a family, with the optimum and the fluid bound.

    Parameters
    ----------
    system : object
        An allocation system with families, see `mdpcloud.systems.base`.
    settings : FamilyCosts
    effort : Effort

    Raises
    ------
    InputError
        When the system has no such family, or it has several parameters.
    """
    series: list[Series] = []
    notes: list[str] = []
    for scale in settings.scales:
        one, curve = at_scale(system, scale), f"N = {scale:g}"
        members = _evaluated(one, settings.family, scale, curve, effort)
        x = [value / (scale if settings.per_scale else 1.0) for value in members.values]
        best, cost = members.best, members.costs[members.best]
        ends = members.lower, members.upper
        series.append(Series("member", x, members.costs, curve, *ends, look="joined"))
        series.append(Series("best", [x[best]], [cost], curve, look="dots"))
        value = members.values[best]
        notes.append(f"{curve}: the best member has parameter {value:g} and cost {cost:.6g} N")
        if settings.optimum:
            low, high = (bound / scale for bound in _optimum(one, effort))
            series.append(_level("optimum", x, 0.5 * (low + high), curve, "dashed"))
    series += _bounds(system, settings.scales, series)
    label = settings.label or _family(system, settings.family).parameters[0].name
    label = f"{label} / N" if settings.per_scale else label
    whole = "x" if all(float(value).is_integer() for one in series for value in one.x) else ""
    panel = Panel(pretty(settings.family), label, COST, tuple(series), whole=whole)
    return Chart((panel,), tuple(notes))


def _bounds(system: Any, scales: Sequence[float], series: Sequence[Series]) -> list[Series]:
    """The fluid bound: one line, or one of each scale where rounding makes them differ."""
    bounds = _bound(system, scales)
    x = [value for one in series for value in one.x]
    if bounds and max(bounds) - min(bounds) <= SAME * abs(max(bounds)):
        return [_level("fluid bound", x, min(bounds), "", "dotted")]
    return [
        _level("fluid bound", x, bound, f"N = {scale:g}", "dotted")
        for scale, bound in zip(scales, bounds, strict=bool(bounds))
    ]


def best_chart(system: Any, settings: BestMember, effort: Effort) -> Chart:
    """The chart of the best member of a family against the scale: its parameter, and its cost.

    Where the bounds cannot tell members apart, the parameter has an interval. The arguments and
    errors are those of `family_chart`.
    """
    parameters: list[Series] = []
    costs: list[Series] = []
    scales = [*settings.scales]
    for curve, one in curves_of(system, settings.curves):
        found = [
            _evaluated(
                at_scale(one, scale),
                settings.family,
                scale,
                ", ".join(filter(None, (f"N = {scale:g}", curve))),
                effort,
            )
            for scale in scales
        ]
        rivals = [members.rivals for members in found]
        best = [float(members.values[members.best]) for members in found]
        ends = [float(min(r)) for r in rivals], [float(max(r)) for r in rivals]
        parameters.append(Series("best member", scales, best, curve, *ends, look="joined"))
        cost = [members.costs[members.best] for members in found]
        ends = [min(members.lower) for members in found], [min(members.upper) for members in found]
        costs.append(Series("best member", scales, cost, curve, *ends, look="joined"))
        if bounds := _bound(one, scales):
            costs.append(Series("fluid bound", scales, bounds, curve, look="dashed"))
    label = settings.label or _family(system, settings.family).parameters[0].name
    left = Panel(f"best {label}", "scale N", label, tuple(parameters), logarithmic="x")
    right = Panel("cost of the best member", "scale N", COST, tuple(costs), logarithmic="x")
    return Chart((left, right))


def _family(system: Any, name: str) -> Family:
    """The family of a name, which must have one parameter."""
    families: tuple[Family, ...] = system.families() if hasattr(system, "families") else ()
    known = {one.name: one for one in families}
    if name not in known:
        near = did_you_mean(name, known) or (f"; there are {', '.join(known)}" if known else "")
        raise InputError(f"the system has no family {name!r}{near}")
    if len(known[name].parameters) != 1:
        raise InputError(
            f"family {name!r} has {len(known[name].parameters)} parameters; a figure shows one"
        )
    return known[name]


def _evaluated(system: Any, name: str, scale: float, what: str, effort: Effort) -> _Members:
    from mdpcloud.policies.search import member_bounds

    family = _family(system, name)
    bounds = member_bounds(
        system.model(),
        family,
        tolerance=effort.tolerance,
        threads=effort.threads,
        progress=lambda done, total: effort.tell(done, total, f"members at {what}"),
    )
    lower, upper = (bounds / scale).T.tolist()
    return _Members(family.parameters[0].values, lower, upper)


def _optimum(system: Any, effort: Effort) -> tuple[float, float]:
    from mdpcloud.solve import solve

    found = solve(system.model(), tolerance=effort.tolerance, threads=effort.threads)
    return float(np.min(found.bounds[0])), float(np.max(found.bounds[1]))


def _bound(system: Any, scales: Sequence[float]) -> list[float]:
    """The fluid bound of the system of each scale, over the scale; none where there is no bound."""
    if not hasattr(system, "fluid_bound"):
        return []
    return [float(at_scale(system, scale).fluid_bound()) / scale for scale in scales]


def _level(kind: str, x: Sequence[float], y: float, curve: str, look: Any) -> Series:
    return Series(kind, [min(x), max(x)], [y, y], curve, look=look)
