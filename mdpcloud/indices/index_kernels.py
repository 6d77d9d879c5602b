"""Compiled index recursions of a node whose rates and costs have two slopes, below and above m.

With D(i) the departure rate, c(i) the cost rate, Dc(i) = c(i+1) - c(i) and DD(i) = D(i+1) - D(i):

    B_0 = 1,                B_i = lam B_{i-1} / (D(i) + lam B_{i-1}),      o_i = 1 - B_i,
    Q_i = Dc(i) + o_i Q_{i-1} = c(i+1) - E_i c,
    W_i = DD(i) + o_i W_{i-1} = D(i+1) - E_i D,

where E_i is the stationary mean of the node with room i. Positive terms only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["improvement_steps", "settled_state", "whittle_index"]


@kernel()
def whittle_index(
    servers: int,
    departure: tuple[float, float],
    cost: tuple[float, float],
    arrival_rate: float,
    index: NDArray[np.float64],
) -> None:
    """Fill index[i] = Q_i / W_i; below m it is the constant ratio of the lower slopes."""
    blocked, cost_step, departure_step = 1.0, cost[0], departure[0]
    for i in range(index.size):
        if i > 0:
            above = 1 if i >= servers else 0
            deaths = min(i, servers) * departure[0] + max(i - servers, 0) * departure[1]
            keep = deaths / (deaths + arrival_rate * blocked)
            blocked = arrival_rate * blocked / (deaths + arrival_rate * blocked)
            cost_step = cost[above] + keep * cost_step
            departure_step = departure[above] + keep * departure_step
        if i < servers:
            index[i] = cost[0] / departure[0]
        elif departure_step > 0.0:
            index[i] = cost_step / departure_step
        else:
            index[i] = math.inf if cost_step > 0.0 else 0.0


@kernel()
def settled_state(
    servers: int,
    departure: tuple[float, float],
    cost: tuple[float, float],
    arrival_rate: float,
    last: int,
    most: int,
) -> int:
    """First state M in last..most from which the policy improvement index may be started.

    With u = cost[1] / departure[1] the ratio of the upper slopes, the index phi(M) lies between the
    Whittle index w(M) and u, and an error at M reaches state i times r_i ... r_{M-1}, where r_j =
    B_{j+1} / B_j. M is the first state with |u - w(M)| r_last ... r_{M-1} <= 2^-60 w(last). The
    difference u - w is formed from positive terms: X_i / W_i, X_i = |u DD(i) - Dc(i)| + o_i
    X_{i-1}.
    """
    limit = cost[1] / departure[1]
    below = abs(limit * departure[0] - cost[0])
    blocked, cost_step, departure_step, gap_step = 1.0, cost[0], departure[0], below
    reach, wanted = 1.0, 0.0
    i = 0
    while True:
        if i == last:
            wanted = 2.0**-60 * cost_step / departure_step
        if i >= most or (i >= last and gap_step / departure_step * reach <= wanted):
            return i
        i += 1
        above = 1 if i >= servers else 0
        deaths = min(i, servers) * departure[0] + max(i - servers, 0) * departure[1]
        inverse = 1.0 / (deaths + arrival_rate * blocked)
        if i > last:
            reach *= arrival_rate * inverse
        keep = deaths * inverse
        blocked = arrival_rate * blocked * inverse
        cost_step = cost[above] + keep * cost_step
        departure_step = departure[above] + keep * departure_step
        gap_step = (0.0 if above else below) + keep * gap_step


@kernel()
def improvement_steps(
    servers: int,
    departure: tuple[float, float],
    cost: tuple[float, float],
    arrival_rate: float,
    index: NDArray[np.float64],
) -> None:
    """Fill index backward from index[M], its last entry, given.

    index[i] = (Q_i + lam index[i+1]) / (D(i+1) + lam B_i).
    """
    size = index.size - 1
    steps, rates = np.empty(size), np.empty(size)
    blocked, cost_step = 1.0, cost[0]
    for i in range(size):
        deaths = min(i + 1, servers) * departure[0] + max(i + 1 - servers, 0) * departure[1]
        steps[i], rates[i] = cost_step, deaths + arrival_rate * blocked
        keep = deaths / rates[i]
        blocked = arrival_rate * blocked / rates[i]
        cost_step = cost[1 if i + 1 >= servers else 0] + keep * cost_step
    for i in range(size - 1, -1, -1):
        index[i] = (steps[i] + arrival_rate * index[i + 1]) / rates[i]
