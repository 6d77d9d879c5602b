"""How the bounds of a gain close: one line per method, over the work done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from mdpcloud.plots.style import clean, policy_colours

__all__ = ["History", "draw_brackets"]

FINEST = 1e-17  # shown for a bracket without width


@dataclass(frozen=True)
class History:
    """The bounds of one solve, as its ``progress`` reports them.

    Attributes
    ----------
    name : str
        Of the method.
    work : sequence of float
        What was spent so far, at each report: seconds, or iterations.
    lower, upper : sequence of float
        The bounds then, not yet certified.
    certified : (lower, upper) or None
        The bounds of the result.
    """

    name: str
    work: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    certified: tuple[float, float] | None = None

    @property
    def widths(self) -> list[float]:
        """Relative widths of the brackets, the narrowest so far; the certified one comes last."""
        widths, narrowest = [], float("inf")
        for low, high in zip(self.lower, self.upper, strict=True):
            narrowest = min(narrowest, _relative(low, high))
            widths.append(narrowest)
        if self.certified is not None and widths:
            widths[-1] = _relative(*self.certified)
        return widths


def _relative(low: float, high: float) -> float:
    size = max(abs(low), abs(high))
    return max((high - low) / size, FINEST) if size > 0 else FINEST


def draw_brackets(
    axes: Axes, histories: Sequence[History], *, tolerance: float, unit: str = "CPU seconds"
) -> Axes:
    """Draw the relative width of the bracket of each solve; a dot marks the certified end.

    Parameters
    ----------
    axes : Axes
    histories : sequence of History
    tolerance : float
        The width asked for, drawn as a line.
    unit : str
        Of the work.
    """
    looks = policy_colours([history.name for history in histories])
    for history in histories:
        colour, marker = looks[history.name]
        widths = history.widths
        axes.plot(history.work, widths, color=colour, linewidth=1.6, label=history.name)
        axes.plot(history.work[-1:], widths[-1:], marker, color=colour, markersize=7, zorder=4)
    axes.axhline(tolerance, color="#8c8c8c", linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_yscale("log")
    axes.set_xlim(left=0.0)
    axes.set_xlabel(unit)
    axes.set_ylabel("(upper − lower) / gain")
    return clean(axes, grid="y")
