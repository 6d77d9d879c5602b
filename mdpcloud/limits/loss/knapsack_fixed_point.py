"""Erlang's fixed point in the knapsack form: links that block whole requests independently.

The A_ij units of a job are one request: K_ij is the blocking of class j on resource i alone, by
Kaufman and Roberts, with the loads rho_l prod_{k != i} (1 - K_kl), and class j is lost with
probability 1 - prod_i (1 - K_ij) (Z. Dziong and J. W. Roberts, "Congestion probabilities in a
circuit-switched integrated services network", Performance Evaluation 7 (1987) 267-284). It is
better than Kelly's form where A_ij >= 2, but may have several solutions (S.-P. Chung and K. W.
Ross, "Reduced load approximations for multirate loss networks", IEEE Trans. Commun. 41 (1993)
1222-1231).

Repeated substitution in log(1 - K_ij), damped where the residual grows, stops when the residual no
longer falls: at high load 1 - K_ij goes as a negative power of the load, so that the logarithms
move along a line, which damping follows however many resources hold the same jobs. The error is
estimated by the rate at which the residual fell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.limits.loss.fixed_point import FixedPoint, Network, checked_network, refuse_unsolved
from mdpcloud.queues.knapsack import kaufman_roberts

__all__ = ["knapsack_fixed_point"]

ROUNDING = 2.0**-53
TINY = 1e-300
STEPS = 500
LEAST_SHARE = 0.02  # of a step
GROWTH = 1.1  # of the share, where the residual falls
IDLE = 20  # steps without a smaller residual after which it stops

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
    lost, other_lost = (0.0 - np.expm1(found.logs.sum(axis=0)) for found in (one, other))
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
    """Where it ended, log(1 - K) there, the residual, and the estimated error."""

    point: Floats
    logs: Floats
    residual: float
    error: float


def _substituted(network: Network, start: Floats) -> _Substitution:
    """Repeated substitution in the logarithms of 1 - K, damped where the residual grows."""
    logs, share, idle = np.log1p(-start), 1.0, 0
    kept, residuals = logs, [math.inf]
    for _ in range(STEPS):
        image = _log_acceptance(network, logs)
        residual = float(np.abs(image - logs).max())
        if residual < residuals[-1]:
            kept, idle, share = logs, 0, min(GROWTH * share, 1.0)
            residuals.append(residual)
        else:
            share, idle = max(0.5 * share, LEAST_SHARE), idle + 1
        if idle == IDLE or residual == 0.0:
            break
        logs = logs + share * (image - logs)
    best, point = residuals[-1], 0.0 - np.expm1(kept)
    apart = float(np.abs(np.expm1(_log_acceptance(network, kept)) - np.expm1(kept)).max())
    refuse_unsolved(apart, point)
    fall = max(best, ROUNDING) / max(residuals[1], ROUNDING)
    rate = min(0.99, fall ** (1.0 / max(len(residuals) - 2, 1)) if fall < 1.0 else 0.5)
    return _Substitution(point, kept, apart, (best + 8.0 * ROUNDING) / (1.0 - rate))


def _log_acceptance(network: Network, logs: Floats) -> Floats:
    """The right-hand side of the knapsack form, as logarithms of 1 - K."""
    found = np.zeros(logs.shape)
    for i, needs in enumerate(network.needs):
        thinned = network.loads * np.exp(np.delete(logs, i, axis=0).sum(axis=0))
        here = needs > 0
        if here.any():
            loads, sizes = thinned[here].tolist(), needs[here].tolist()
            law = kaufman_roberts(int(network.room[i]), loads, sizes)
            found[i, here] = np.log(np.maximum(law.acceptance, TINY))
    return found
