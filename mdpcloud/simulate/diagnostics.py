"""When the interval of a simulation is not to be trusted: too short a run, or too rare a thing.

Two checks, on the segments that are kept:

1. A replication has to be at least 50 integrated autocorrelation times long, and all replications
   together 200 (the rule of 50 is that of Sokal 1997 and of Foreman-Mackey et al. 2013, section 3).
   An M/M/1 queue at load 0.95 that starts empty fails this in all runs that are shorter than some
   20 such times, whatever their intervals.
2. At least 10 segments have to differ from the median segment. Where all are the same, whatever
   happens less often than about 3 times in the run may have been missed ("rule of three", Hanley
   and Lippman-Hand 1983).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdpcloud.simulate.correlation import correlation_times
from mdpcloud.simulate.estimates import rounding
from mdpcloud.simulate.protocol import COST, Floats

__all__ = ["doubts", "remarks"]

LEAST_LENGTH = 50.0
"""Length of a replication, at least, in correlation times."""

LEAST_TOTAL = 200.0
"""Length of all replications together, at least, in correlation times."""

LEAST_SEEN = 10
"""Segments that have to differ from the others."""

_SHOWN = 5


def doubts(series: Floats, dropped: int) -> tuple[str, ...]:
    """Why the run is too short for the interval of its cost; empty when it seems long enough.

    Parameters
    ----------
    series : (R, S) array
        Averages of the cost over the segments of each replication, warm-up included.
    dropped : int
        Segments that are left out as warm-up.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1).normal(size=(8, 500))
    >>> doubts(noise, 0)
    ()
    >>> doubts(noise.cumsum(axis=1), 0)
    ('the run is too short: cost stays correlated over ...
    """
    return remarks(series[:, dropped:, None], [COST])


def remarks(kept: Floats, names: Sequence[str]) -> tuple[str, ...]:
    """Why the intervals of some averages should not be trusted.

    Parameters
    ----------
    kept : (R, S, C) array
        Averages over the segments of each replication, without the warm-up.
    names : sequence of C str
        Names of the averages.

    Examples
    --------
    >>> import numpy as np
    >>> remarks(np.zeros((8, 500, 1)), ["lost"])
    ('the same all the time in this run: lost (0); ...
    """
    return (*_too_short(kept, names), *_seldom(kept, names))


def _too_short(kept: Floats, names: Sequence[str]) -> list[str]:
    """Which averages stay correlated for too large a part of a replication."""
    replications, length, _ = kept.shape
    varying = np.ptp(kept, axis=(0, 1)) > rounding(kept)
    shares = np.where(varying, correlation_times(kept) / length, 0.0)
    most = 1.0 / max(LEAST_LENGTH, LEAST_TOTAL / replications)
    long = [name for name, share in zip(names, shares.tolist(), strict=True) if share > most]
    if not long:
        return []
    return [
        f"the run is too short: {_listed(long)} {'stays' if len(long) == 1 else 'stay'} correlated "
        f"over {shares.max():.2g} of the length of a replication (warm-up left out), and that "
        f"should be {most:.2g} or less; the interval may be too narrow or in the wrong place (if "
        "longer runs say the same, there may be no long-run average)"
    ]


def _seldom(kept: Floats, names: Sequence[str]) -> list[str]:
    """Which averages rest on too few occurrences, or on none."""
    segments = kept.reshape(-1, kept.shape[2])
    different = np.abs(segments - np.median(segments, axis=0)) > rounding(kept)
    seen = different.sum(axis=0).tolist()
    same = (np.ptp(segments, axis=0) <= rounding(kept)).tolist()
    never = [
        f"{name} ({value:.6g})"
        for name, value, constant in zip(names, segments[0].tolist(), same, strict=True)
        if constant
    ]
    few = [n for n, k in zip(names, seen, strict=True) if 0 < k < LEAST_SEEN]
    found = []
    if never:
        found.append(
            f"the same all the time in this run: {_listed(never)}; what happens less than about 3 "
            "times in a run of this length may have been missed, and is not in the interval"
        )
    if few:
        found.append(
            f"other than usual in fewer than {LEAST_SEEN} of {len(segments)} segments: "
            f"{_listed(few)}; the intervals rest on too few occurrences"
        )
    return found


def _listed(names: Sequence[str]) -> str:
    """Names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
