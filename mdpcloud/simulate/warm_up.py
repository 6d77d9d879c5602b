"""How much of the beginning of a simulation to leave out: MSER-5.

Of the averages y_1..y_n over batches of 5 segments (the mean over replications), the first d are
left out, d <= n/2 being the (first) minimiser of ::

    MSER(d) = sum_{i > d} (y_i - mean(y_{d+1}..y_n))^2 / (n - d)^2

(White 1997; White, Cobb and Spratt 2000; Franklin and White 2008), the square of the standard error
of the rest, were the batches independent.
"""

from __future__ import annotations

import numpy as np

from mdpcloud.simulate.estimates import ROUNDING
from mdpcloud.simulate.protocol import Floats

__all__ = ["BATCH", "common", "mser"]

BATCH = 5
"""Segments in a batch."""


def mser(series: Floats) -> int:
    """Number of segments to leave out of one series.

    Parameters
    ----------
    series : (R, S) array
        Averages over the segments of each replication.

    Returns
    -------
    int
        A multiple of 5, at most S/2; 0 for a constant series.

    Examples
    --------
    >>> import numpy as np
    >>> mser(np.array([[9.0] * 8 + [1.0, 2.0] * 20]))
    10
    """
    return common(series[:, :, None])


def common(series: Floats) -> int:
    """Number of segments to leave out of all series.

    The sum of MSER(d) / MSER(0) over the series is minimised, in which the first (the cost) weighs
    as much as all others (the measures) together. Constant series are ignored: where the cost is
    constant the measures decide, and where no series varies nothing is left out.

    Parameters
    ----------
    series : (R, S, C) array
        Averages over the segments of each replication, the cost first.

    Returns
    -------
    int
        A multiple of 5, at most S/2.
    """
    means = series.mean(axis=0)
    count = len(means) // BATCH
    batches = means[: count * BATCH].reshape(count, BATCH, -1).mean(axis=1)
    varying = np.ptp(means, axis=0) > ROUNDING * np.abs(means).max(axis=0)
    if count < 2 or not varying.any():
        return 0
    weights = np.full(len(varying), 1.0 / max(len(varying) - 1, 1))
    weights[0] = 1.0
    criterion = _mser(batches[:, varying])
    return BATCH * int(np.argmin((criterion / criterion[0]) @ weights[varying]))


def _mser(batches: Floats) -> Floats:
    """MSER(d) for d = 0..n/2, per series; (1 + n // 2, C)."""
    count = len(batches)
    centred = batches - batches[count // 2 :].mean(axis=0)
    centred /= np.abs(centred).max(axis=0)
    kept = (count - np.arange(count // 2 + 1))[:, None]
    sums = np.cumsum(centred[::-1], axis=0)[::-1][: count // 2 + 1]
    squares = np.cumsum(centred[::-1] ** 2, axis=0)[::-1][: count // 2 + 1]
    return np.maximum(squares - sums**2 / kept, 0.0) / kept**2
