"""How long the averages over segments stay correlated.

The integrated autocorrelation time of a series with autocorrelations rho_k is ::

    tau = 1 + 2 sum_{k >= 1} rho_k,

in segments: the variance of the mean of n segments is about tau / n times that of a segment.
The sum ends at the first lag of at least 5 tau (Sokal 1997, section 3).
"""

from __future__ import annotations

import numpy as np

from mdpcloud.simulate.protocol import Floats

__all__ = ["correlation_times"]

WINDOW = 5.0
"""Lags that are summed, in correlation times."""


def correlation_times(kept: Floats) -> Floats:
    """Integrated autocorrelation times, in segments.

    Deviations are taken from the mean of all replications: replications that disagree are
    correlated for as long as they are.

    Parameters
    ----------
    kept : (R, S, C) array
        Averages over the segments of each replication.

    Returns
    -------
    (C,) array
        At least 1, also where negative correlations would make it less; 1 for a constant.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = np.random.default_rng(1).normal(size=(8, 1000, 1)).repeat(10, axis=1)
    >>> bool(9 < correlation_times(blocks)[0] < 11)
    True
    """
    covariances = _covariances(kept)
    covariances[:, covariances[0] == 0] = 0.0
    variances = np.where(covariances[0] == 0, 1.0, covariances[0])
    times = 2.0 * np.cumsum(covariances / variances, axis=0) - 1.0
    enough = np.arange(len(times))[:, None] >= WINDOW * times
    enough[-1] = True
    last = enough.argmax(axis=0)
    return np.asarray(np.maximum(times[last, np.arange(len(last))], 1.0))


def _covariances(kept: Floats) -> Floats:
    """Autocovariances at lags 0..S-1, up to a factor; (S, C)."""
    _, segments, series = kept.shape
    mean = kept.mean(axis=(0, 1))
    scale = np.abs(kept - mean).max(axis=(0, 1))
    scale[scale == 0] = 1.0
    power = np.zeros((segments + 1, series))
    for replication in kept:
        transform = np.fft.rfft((replication - mean) / scale, 2 * segments, axis=0)
        power += transform.real**2 + transform.imag**2
    return np.asarray(np.fft.irfft(power, axis=0)[:segments])
