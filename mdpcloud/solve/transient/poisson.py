"""Poisson probabilities for uniformisation, with proved bounds of what they leave out.

w(k) = exp(-q) q^k / k!, k = first ... last, is computed by the recursions w(k + 1) = w(k) q / (k +
1) and w(k - 1) = w(k) k / q from the mode, where w is set to 1, and divided by the sum (Fox and
Glynn, Computing Poisson probabilities, 1988; Jansen, Understanding Fox and Glynn's "Computing
Poisson probabilities", 2011). No exponential is taken, nothing underflows, all terms are positive.
The recursions end where geometric series, which bound the tails since the ratios of neighbouring
probabilities fall to both sides of the mode, are below the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF

__all__ = ["PoissonWeights", "certain", "poisson_weights"]

SUMMING = 64.0
"""Roundings of the sums and of the division by them, generously."""


@dataclass(frozen=True, eq=False)
class PoissonWeights:
    """The probabilities of a Poisson variable N on a window; they sum to 1.

    Parameters
    ----------
    first : int
        Left end of the window.
    weights : (m,) array
        Probabilities of first ... last.
    outside : float
        Bound of the probability outside the window.
    rounding : float
        Bound of the relative rounding of a weight.
    error : float
        Bound of sum_k |weight(k) - P(N = k)| over all k, rounding included.
    beyond : float
        Bound of E[(N - last)+].
    """

    first: int
    weights: Floats
    outside: float
    rounding: float
    error: float
    beyond: float

    @property
    def last(self) -> int:
        """Right end of the window."""
        return self.first + self.weights.size - 1

    def exceeding(self) -> Floats:
        """Return P(N > k) for k = 0 ... last - 1: sums of weights from the right, (last,).

        Each has the relative error ``rounding`` besides an absolute one of twice ``outside``.
        """
        tail = np.cumsum(self.weights[:0:-1])[::-1]
        return np.concatenate([np.ones(self.first), np.minimum(tail, 1.0)])


def poisson_weights(mean: float, tolerance: float) -> PoissonWeights:
    """Return the probabilities of a Poisson variable but for a mass of at most the tolerance.

    Parameters
    ----------
    mean : float
        >= 0. Of length about 2 sqrt(2 mean log(1 / tolerance)) is the window.
    tolerance : float
        Probability that may lie outside the window.

    Examples
    --------
    >>> poisson = poisson_weights(2.0, 1e-12)
    >>> poisson.first, round(float(poisson.weights[3]), 12), round(8 / 6 * math.exp(-2), 12)
    (0, 0.180447044315, 0.180447044315)
    """
    if mean == 0.0:
        return certain(0)
    mode = math.floor(mean)
    right, above, beyond = _rightwards(mean, mode, 0.5 * tolerance)
    left, below = _leftwards(mean, mode, 0.5 * tolerance)
    weights = np.concatenate([left[::-1], np.ones(1), right])
    total = float(weights.sum())
    weights /= total
    distance = np.abs(np.arange(weights.size) - left.size)
    mean_rounding = UNIT_ROUNDOFF * (4.0 * float(weights @ distance) + SUMMING)
    outside = (above + below) / total
    return PoissonWeights(
        first=mode - left.size,
        weights=weights,
        outside=outside,
        rounding=UNIT_ROUNDOFF * (4.0 * max(left.size, right.size) + SUMMING),
        error=2.0 * outside + mean_rounding,
        beyond=beyond / total,
    )


def certain(count: int) -> PoissonWeights:
    """All weight on one number."""
    return PoissonWeights(count, np.ones(1), 0.0, 0.0, 0.0, 0.0)


def _rightwards(mean: float, mode: int, tolerance: float) -> tuple[Floats, float, float]:
    """Weights right of the mode, relative to it; bounds of the mass and of the excess beyond."""
    length = 16 + int(4.0 * math.sqrt(mean))
    while True:
        k = mode + np.arange(1.0, length + 1)
        weights: Floats = np.cumprod(mean / k, dtype=np.float64)
        ratio = mean / (k + 1)
        tail = weights * ratio / (1.0 - ratio)
        enough = np.flatnonzero(tail <= tolerance)
        if enough.size:
            end = int(enough[0])
            beyond = float(tail[end] / (1.0 - ratio[end]))
            return weights[: end + 1], float(tail[end]), beyond
        length *= 2


def _leftwards(mean: float, mode: int, tolerance: float) -> tuple[Floats, float]:
    """Weights left of the mode, from the mode outwards, and a bound of the mass further left."""
    length = 16 + int(4.0 * math.sqrt(mean))
    while True:
        k = np.arange(mode, max(mode - length, 0), -1.0)
        weights: Floats = np.cumprod(k / mean, dtype=np.float64)
        ratio = (k - 1) / mean
        tail = weights * ratio / (1.0 - ratio)
        enough = np.flatnonzero(tail <= tolerance)
        if enough.size:
            end = int(enough[0])
            return weights[: end + 1], float(tail[end])
        if length >= mode:
            return weights, 0.0
        length *= 2
