"""Axes of a chart: how their numbers are drawn, and their ticks.

A logarithmic axis has no zero. Where a panel asks for it (`Panel.zeros`), what cannot be told from
0 (a number of at most 1e-7 of the largest, or with a lower bound of 0 or less) stands at the foot
of the axis, a little below the least of the other numbers, where the tick says "0".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from mdpcloud.plots.chart import Panel, Series
from mdpcloud.plots.style import whole_numbers

__all__ = ["NEGLIGIBLE", "Scale", "is_negligible", "scale_of", "set_scale"]

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-7  # of the largest number
PERCENT = 100.0
FOOT, EDGE = 0.12, 0.04  # of the length of a logarithmic axis: below its numbers, at its ends
NEAREST = {"x": 0.1, "y": 0.06}  # the same: from the tick 0 to the next
LONG = 200.0  # ratio of the ends of an axis, beyond which its ticks are powers of ten
PLAIN = (1e-5, 1e6)  # percents that are written without an exponent
FEW = (1e-3, 1e4)  # other numbers that are


@dataclass(frozen=True)
class Scale:
    """How the numbers of an axis are drawn.

    Attributes
    ----------
    axis : {"x", "y"}
    logarithmic : bool
    factor : float
        100 for fractions that are told in percent, else 1.
    foot : float or None
        Where what cannot be told from 0 is drawn, in the axis' own numbers; None where nothing is.
    ends : (float, float) or None
        Of an axis with a foot.
    top : float
        The largest number.
    """

    axis: str
    logarithmic: bool = False
    factor: float = 1.0
    foot: float | None = None
    ends: tuple[float, float] | None = None
    top: float = np.nan

    def drawn(self, values: Sequence[float]) -> Floats:
        """Numbers as they are drawn; those that a logarithmic axis does not have are nan."""
        found = self.factor * np.array(values, float)
        if self.logarithmic:
            found[~(found > 0.0)] = np.nan
        return found

    def at_foot(self, values: Sequence[float], lower: Sequence[float]) -> NDArray[np.bool_]:
        """Which numbers stand at the foot."""
        found = np.array(values, float)
        if self.foot is None:
            return np.zeros(found.size, dtype=bool)
        return is_negligible(found, np.array(lower, float), self.top)


def is_negligible(values: Floats, lower: Floats, top: float) -> NDArray[np.bool_]:
    """Which numbers cannot be told from 0, where the largest is ``top``.

    Parameters
    ----------
    values : (n,) array
    lower : (n,) array
        Their lower bounds; empty or nan where none is known.
    top : float

    Examples
    --------
    >>> is_negligible(np.array([0.0, 1e-9, 1e-9, 0.5]), np.array([np.nan] * 4), 1.0).tolist()
    [True, True, True, False]
    >>> is_negligible(np.array([0.3, 0.5]), np.array([-0.1, 0.4]), 1.0).tolist()
    [True, False]
    """
    small = values <= NEGLIGIBLE * top
    return small | (lower <= 0.0) if lower.size else small


def scale_of(axis: str, panels: Sequence[Panel]) -> Scale:
    """The scale of an axis that panels share."""
    first = panels[0]
    factor = PERCENT if axis in first.percent else 1.0
    if axis not in first.logarithmic:
        return Scale(axis, factor=factor)
    if not any(panel.zeros for panel in panels):
        return Scale(axis, True, factor)
    values, lower, upper = _numbers(axis, [one for panel in panels for one in panel.series])
    top = float(values.max(initial=0.0))
    zero = is_negligible(values, lower, top)
    if zero.all():
        return Scale(axis, factor=factor)
    if not zero.any():
        return Scale(axis, True, factor, top=top)
    low, high = factor * values[~zero].min(), factor * max(top, upper.max(initial=0.0))
    length = max(high / low, 10.0)
    foot = low / length**FOOT
    ends = (foot / length**EDGE if axis == "y" else foot, high * length**EDGE)
    return Scale(axis, True, factor, foot, ends, top)


def _numbers(axis: str, series: Sequence[Series]) -> tuple[Floats, Floats, Floats]:
    """The numbers of an axis, and the bounds of each, nan where there is none."""
    found = []
    for one in series:
        bounded = (axis == "x") == (one.look == "shares") and len(one.lower) > 0
        ends = (one.lower, one.upper) if bounded else ([np.nan] * len(one.x),) * 2
        found.append(np.array([one.x if axis == "x" else one.y, *ends], float))
    values, lower, upper = np.concatenate(found, axis=1)
    known = np.isfinite(values)
    return values[known], lower[known], np.nan_to_num(upper[known], nan=0.0, posinf=0.0)


def set_scale(axes: Axes, panel: Panel, scale: Scale, most: int) -> None:
    """Set the scale, ends and at most so many ticks of an axis whose numbers are drawn."""
    name = scale.axis
    axis = getattr(axes, f"{name}axis")
    if scale.logarithmic:
        getattr(axes, f"set_{name}scale")("log")
        if scale.ends is not None:
            getattr(axes, f"set_{name}lim")(*scale.ends)
            _tell_foot(axis, scale, most)
        else:
            _tell_decades(axis, getattr(axes, f"get_{name}lim")(), scale, most)
        return
    if name == "y":
        _begin_at_zero(axes, panel, scale)
    if name in panel.whole and not panel.categories:
        axis.set_major_locator(whole_numbers())


def _begin_at_zero(axes: Axes, panel: Panel, scale: Scale) -> None:
    """Let the vertical axis begin a little below zero where the values are not far from it."""
    values = [value for one in panel.series for value in scale.drawn(one.y) if np.isfinite(value)]
    top = axes.get_ylim()[1]
    if values and 0.0 <= min(values) < 0.25 * top:
        axes.set_ylim(-0.02 * top, top)


def _tell_decades(axis: Any, ends: tuple[float, float], scale: Scale, most: int) -> None:
    """Plain numbers on a short logarithmic axis: 1, 2, 5, 10 ...; powers of ten on a long one."""
    low, high = ends
    plain = PLAIN if scale.factor == PERCENT else FEW
    if high <= LONG * low:
        axis.set_major_locator(_locator(low, high, most))
        axis.set_major_formatter(FuncFormatter(_writer(low, high, PLAIN)))
    elif _writer(low, high, plain) is _plainly:
        axis.set_major_formatter(FuncFormatter(_plainly))
    axis.set_minor_formatter(NullFormatter())


def _tell_foot(axis: Any, scale: Scale, most: int) -> None:
    """A tick 0 at the foot, and the others above it."""
    assert scale.foot is not None
    assert scale.ends is not None
    foot, (_, high) = scale.foot, scale.ends
    ticks = _locator(foot, high, most).tick_values(foot, high)
    least = foot * (high / foot) ** NEAREST[scale.axis]
    shown = [foot, *(tick for tick in ticks if least < tick <= high)]
    axis.set_major_locator(FixedLocator(shown))
    written = _writer(min(shown[1:], default=foot), shown[-1], PLAIN)
    axis.set_major_formatter(FuncFormatter(lambda v, _: "0" if v <= 1.01 * foot else written(v)))
    axis.set_minor_locator(NullLocator())


def _locator(low: float, high: float, most: int) -> LogLocator:
    if high > LONG * low:
        return LogLocator(numticks=most)
    return LogLocator(subs=(1.0, 2.0, 3.0, 4.0, 5.0, 7.0) if high <= 8.0 * low else (1.0, 2.0, 5.0))


def _writer(low: float, high: float, plain: tuple[float, float]) -> Callable[..., str]:
    """How the ticks between two ends are written: all in the same way."""
    return _plainly if plain[0] <= low <= high <= plain[1] else _shortly


def _plainly(value: float, _: Any = None) -> str:
    """A tick as a plain number.

    Examples
    --------
    >>> [_plainly(value) for value in (0.0005, 20.0, 1e5)]
    ['0.0005', '20', '100000']
    """
    return f"{value:.10f}".rstrip("0").rstrip(".")


def _shortly(value: float, _: Any = None) -> str:
    r"""A tick with a power of ten.

    Examples
    --------
    >>> [_shortly(value) for value in (1e-7, 2e7)]
    ['$10^{-7}$', '$2\\cdot 10^{7}$']
    """
    digits, power = f"{value:.3e}".split("e")
    first = "" if float(digits) == 1.0 else rf"{float(digits):g}\cdot "
    return rf"${first}10^{{{int(power)}}}$"
