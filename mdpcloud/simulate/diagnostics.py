"""When the interval of a simulation is not to be trusted."""

from __future__ import annotations

import numpy as np

from mdpcloud.simulate.protocol import Floats

__all__ = ["doubts"]


def doubts(series: Floats, dropped: int) -> tuple[str, ...]:
    """Why the run is too short for its interval to be trusted; empty when it seems long enough.

    Parameters
    ----------
    series : (R, S) array
        Averages of the cost over the segments of each replication, warm-up included.
    dropped : int
        Segments that are left out as warm-up.
    """
    kept = series[:, dropped:]
    if np.ptp(kept) == 0:
        return ()
    length = kept.shape[1]
    time = correlation_time(kept)
    if length < LEAST_LENGTH * time:
        return (
            f"the run is too short: after the warm-up a replication is {length / time:.2g} times "
            f"as long as its cost stays correlated, and {LEAST_LENGTH} times are needed",
        )
    return ()


LEAST_LENGTH = 50
"""Kept length of a replication in integrated autocorrelation times, at least."""

_WINDOW = 5.0


def correlation_time(kept: Floats) -> float:
    """Integrated autocorrelation time 1 + 2 sum_k rho_k, in segments.

    The sum ends at the first lag of at least five times its value (Sokal 1997, section 3).
    Autocorrelations are about the mean of all replications.

    Parameters
    ----------
    kept : (R, S) array
        Not all equal.
    """
    segments = kept.shape[1]
    centred = kept - kept.mean()
    centred /= np.abs(centred).max()
    spectrum = np.abs(np.fft.rfft(centred, 2 * segments, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum.sum(axis=0))[:segments]
    times = 2.0 * np.cumsum(covariances / covariances[0]) - 1.0
    enough = np.arange(segments) >= _WINDOW * times
    return float(max(times[np.argmax(enough) if enough.any() else -1], 1.0))
