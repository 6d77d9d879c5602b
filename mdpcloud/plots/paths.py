"""A simulated path of a state variable beside its long-run law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import as_floats
from mdpcloud.plots.style import (
    BLUE,
    INK,
    SKY,
    SMALL,
    VERMILLION,
    add_legend,
    clean,
    new_figure,
    plain,
    title,
    whole_numbers,
)
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.estimates import estimates
from mdpcloud.simulate.protocol import COST, Floats, Record
from mdpcloud.simulate.result import Estimate, SimulationResult

__all__ = [
    "draw_law",
    "draw_sample_path",
    "name_parts",
    "occupation",
    "plot_path",
    "shade_warm_up",
]

CHANGES = 400  # of a path that can be told apart; every recorder keeps more of them
FEW = 150  # changes, up to which the line is strong
RARE = 2e-3  # share of time of all the values that are left out at the upper end
MANY = 40  # values, beyond which bars have no whiskers
SHADE = "#ececec"


def plot_path(
    result: SimulationResult,
    name: str,
    *,
    law: ArrayLike | None = None,
    changes: int = CHANGES,
    time_unit: str = "",
) -> Figure:
    """The first changes of a state variable in one replication, and how often it has each value.

    Parameters
    ----------
    result : SimulationResult
    name : str
        A recorded state variable.
    law : (W,) array, optional
        Long-run probabilities of the values 0..W-1, to be compared.
    changes : int
        At most so many changes are shown.
    time_unit : str
        Such as "hour".

    Raises
    ------
    InputError
        When the variable was not recorded.
    """
    records = _records(result, name)
    segments, kept = result.series.shape[1], result.kept(COST).shape[1]
    shares = occupation(records, segments, segments - kept)
    exact = None if law is None else as_floats(law, "law").ravel()
    figure = new_figure(3.2)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2.2, 1.0))
    draw_sample_path(left, records[0], result.warm_up, result.time, changes)
    draw_law(right, shares, exact)
    shown = records[0].values[: changes + 1]
    left.set_ylim(-0.6, max(shown.max(), _largest(shares, exact)) + 0.6)
    left.set_ylabel(plain(name))
    left.set_xlabel(plain(f"time, {time_unit}" if time_unit else "time"))
    title(left, "start of one replication")
    title(right, "share of time")
    name_parts(figure, right, ("simulated", "95 % interval", "exact"))
    return figure


def draw_sample_path(
    axes: Axes, record: Record, warm_up: float, end: float, changes: int = CHANGES
) -> Axes:
    """Draw the first changes as steps; the warm-up is shaded.

    Parameters
    ----------
    axes : Axes
    record : Record
    warm_up, end : float
        Time that is left out of the estimates, and time of the whole path.
    changes : int
        At most so many are drawn.
    """
    times, values = record.times[: changes + 1], record.values[: changes + 1]
    last = end if times.size <= min(changes, CHANGES) else float(times[-1])
    axes.plot(
        np.append(times, last),
        np.append(values, values[-1]),
        color=BLUE,
        drawstyle="steps-post",
        linewidth=1.3 if times.size <= FEW else 0.9,
    )
    axes.set_xlim(0.0, last)
    shade_warm_up(axes, warm_up)
    axes.yaxis.set_major_locator(whole_numbers())
    return clean(axes, grid="y")


def name_parts(figure: Figure, axes: Axes, order: Sequence[str]) -> None:
    """A legend of what is drawn, in this order."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = [label for label in order if label in handles]
    add_legend(figure, [handles[label] for label in labels], labels)


def shade_warm_up(axes: Axes, end: float) -> None:
    """Shade and name what is left out, from 0 to ``end`` on the x axis."""
    if end <= 0.0:
        return
    left, right = axes.get_xlim()
    axes.axvspan(left, min(end, right), color=SHADE, linewidth=0, zorder=0)
    axes.annotate(
        "warm-up",
        (left, 1.0),
        xytext=(4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color=INK,
        fontsize=SMALL,
        bbox={"facecolor": SHADE, "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
    )


def draw_law(axes: Axes, shares: Sequence[Estimate], law: Floats | None = None) -> Axes:
    """Draw a bar per value with its 95 % interval; dots at the probabilities to be compared.

    Parameters
    ----------
    axes : Axes
    shares : sequence of W Estimate
        Share of time at each of the values 0..W-1.
    law : (W,) array, optional
        The values' probabilities; it may be shorter or longer.
    """
    count = 1 + _largest(shares, law)
    shares = shares[:count]
    means = np.array([share.value for share in shares])
    low, high = np.array([(share.lower, share.upper) for share in shares]).T
    level = np.arange(means.size)
    few = count <= MANY
    axes.barh(level, means, height=0.8 if few else 1.0, color=SKY, label="simulated")
    spread = np.array([means - np.maximum(low, 0.0), high - means])
    if few and np.isfinite(spread).all():
        axes.errorbar(
            means,
            level,
            xerr=spread,
            fmt="none",
            ecolor=INK,
            elinewidth=1.0,
            capsize=2.0,
            label="95 % interval",
        )
    if law is not None:
        size = 4.0 if few else 2.0
        axes.plot(
            law[:count],
            np.arange(min(law.size, count)),
            "o",
            color=VERMILLION,
            markersize=size,
            markeredgewidth=0.0,
            label="exact",
            zorder=4,
        )
    axes.set_xlim(left=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.set_ylim(-0.6, count - 0.4)
    axes.tick_params(axis="y", length=0)
    return clean(axes, grid="x")


def occupation(records: Sequence[Record], segments: int, first: int) -> list[Estimate]:
    """Share of time at each value, over the segments from ``first`` on of all replications.

    A segment may be made of several of those in which the share of time was recorded.
    """
    width = max(record.occupation.shape[1] for record in records)
    kept = np.zeros((len(records), segments - first, width))
    for r, record in enumerate(records):
        rows, values = record.occupation.shape
        shares = record.occupation.reshape(segments, rows // segments, values).mean(axis=1)
        kept[r, :, :values] = shares[first:]
    return list(estimates(kept, [str(value) for value in range(width)]).values())


def _largest(shares: Sequence[Estimate], law: Floats | None) -> int:
    """The largest value worth a bar: those above are rare, together."""
    means = np.array([share.value for share in shares])
    return max(_quantile(part) for part in (means, law) if part is not None and part.size)


def _quantile(probabilities: Floats) -> int:
    """The smallest value with at most `RARE` above it."""
    from_here = np.cumsum(probabilities[::-1])[::-1]
    return max(int(np.count_nonzero(from_here > RARE)) - 1, 0)


def _records(result: SimulationResult, name: str) -> Sequence[Record]:
    if name in result.records:
        return result.records[name]
    recorded = list(result.records)
    hint = did_you_mean(name, recorded) or (f"; recorded are {recorded}" if recorded else "")
    raise InputError(
        f"{name!r} was not recorded{hint}; name what is to be recorded in simulate(..., paths=...)"
    )
