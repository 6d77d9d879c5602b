"""Erlang's fixed point in the knapsack form: links that block whole requests independently.

The A_ij units of a job are one request: K_ij is the blocking of class j on resource i alone, by
Kaufman and Roberts, with the loads rho_l prod_{k != i} (1 - K_kl), and class j is lost with
probability 1 - prod_i (1 - K_ij) (Z. Dziong and J. W. Roberts, "Congestion probabilities in a
circuit-switched integrated services network", Performance Evaluation 7 (1987) 267-284). It is
better than Kelly's form where A_ij >= 2, but may have several solutions (S.-P. Chung and K. W.
Ross, "Reduced load approximations for multirate loss networks", IEEE Trans. Commun. 41 (1993)
1222-1231).

Repeated substitution, damped where the residual grows, stops when the residual no longer falls.
The error is estimated by the rate at which it fell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.limits.fixed_point import FixedPoint, Network, checked_network, refuse_unsolved
from mdpcloud.queues.knapsack import kaufman_roberts

__all__ = ["knapsack_fixed_point"]

ROUNDING = 2.0**-53
STEPS = 500
LEAST_SHARE = 0.05  # of a step
IDLE = 5  # steps without a smaller residual after which it stops

Floats: TypeAlias = NDArray[np.float64]


def knapsack_fixed_point(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[int]
) -> FixedPoint:
    """The knapsack form of the Erlang fixed point; parameters and errors as in Kelly's form.

    Examples
    --------
    >>> found = knapsack_fixed_point([3.0, 2.5], [[2, 1], [1, 3]], [12, 15])
    >>> [round(b, 9) for b in found.blocking]
    [0.165651806, 0.207644633]
    """
    network = checked_network(loads, requirements, capacities)
    starts = np.zeros(network.needs.shape), np.where(network.needs > 0, 0.9, 0.0)
    one, other = (_substituted(network, start) for start in starts)
    lost, other_lost = (_lost(found.point) for found in (one, other))
    apart = float(np.abs(lost - other_lost).max())
    error = max(one.error, other.error) * network.needs.shape[0]
    same = "came to the same solution"
    if apart > 10.0 * error + 1e-12:
        same = f"came to solutions that differ by {apart:.1e}"
    return FixedPoint(
        tuple(lost.tolist()),
        tuple(map(tuple, one.point.tolist())),
        one.residual,
        error,
        False,
        (
            "the equations in the knapsack form may have several solutions (Chung and Ross 1993); "
            f"starts from no blocking and from blocking 0.9 {same}",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Substitution:
    """Where it ended, the residual there, and the estimated error."""

    point: Floats
    residual: float
    error: float


def _substituted(network: Network, start: Floats) -> _Substitution:
    """Repeated substitution, damped where the residual grows."""
    point, share, idle = start, 1.0, 0
    kept, residuals = start, [math.inf]
    for _ in range(STEPS):
        change = _requests_blocked(network, point) - point
        residual = float(np.abs(change).max())
        if residual < residuals[-1]:
            kept, idle = point, 0
            residuals.append(residual)
        else:
            share, idle = max(0.5 * share, LEAST_SHARE), idle + 1
        if idle == IDLE or residual == 0.0:
            break
        point = point + share * change
    best = residuals[-1]
    refuse_unsolved(best, kept)
    fall = max(best, ROUNDING) / max(residuals[1], ROUNDING)
    rate = min(0.99, fall ** (1.0 / max(len(residuals) - 2, 1)) if fall < 1.0 else 0.5)
    return _Substitution(kept, best, (best + 8.0 * ROUNDING) / (1.0 - rate))


def _requests_blocked(network: Network, point: Floats) -> Floats:
    """The right-hand side of the knapsack form."""
    found = np.zeros(point.shape)
    for i, needs in enumerate(network.needs):
        others = np.delete(point, i, axis=0)
        thinned = network.loads * np.prod(1.0 - others, axis=0)
        here = needs > 0
        if here.any():
            loads, sizes = thinned[here].tolist(), needs[here].tolist()
            found[i, here] = kaufman_roberts(int(network.room[i]), loads, sizes).blocking
    return found


def _lost(point: Floats) -> Floats:
    """Probability per class that some resource blocks."""
    found: Floats = -np.expm1(np.log1p(-np.minimum(point, 1.0 - ROUNDING)).sum(axis=0))
    return found
