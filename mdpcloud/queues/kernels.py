"""Compiled recursions of birth-death queues; only positive terms are added, nothing is subtracted.

All of them extend the room of a node by one job at a time. With D(i) the total departure rate in
state i and B_i the probability that a node with room for i jobs is full,

    B_0 = 1,    B_i = lam B_{i-1} / (D(i) + lam B_{i-1}),    o_i = D(i) / (D(i) + lam B_{i-1}),

and the law with room i is the law with room i-1 with probability o_i = 1 - B_i, and the state i
otherwise. Hence E_i f = E_{i-1} f + B_i (f(i) - E_{i-1} f), and similarly for covariances.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

__all__ = ["birth_death_weights", "erlang_loss", "impatient"]

SMALL_EXPONENT = -300
SMALL = 2.0**SMALL_EXPONENT


@kernel()
def erlang_loss(servers: int, load: float) -> tuple[float, int]:
    """Erlang B as a pair (value, exponent): B = value 2^exponent.

    B_i = a B_{i-1} / (i + a B_{i-1}). A value below 2^-300 is scaled up: from there on its share in
    the denominator is below rounding, because B_i decreases in i.
    """
    value, exponent, share, lift = 1.0, 0, load, 0
    if load < SMALL:
        load, lift = math.frexp(load)
        share = 0.0
    for i in range(1, servers + 1):
        value = load * value / (i + share * value)
        exponent += lift
        if value < SMALL and value > 0.0:
            value /= SMALL
            exponent += SMALL_EXPONENT
            share = 0.0
    return value, exponent


@kernel()
def impatient(
    servers: int, load: float, impatience: float, excess: float, room: int, start: float
) -> tuple[float, float, float, float, float, float, float, bool]:
    """Moments of M/M/m+M with room for `room` jobs, by extending the room one job at a time.

    Time is measured in mean services: D(i) = min(i, m) + impatience (i-m)^+ and lam = load. With
    queue = (X-m)^+, Q_i = queue(i+1) - E_i queue and e_i = i - E_i X,

        e_i = o_i (1 + e_{i-1}),    Q_i = 1{i >= m} + o_i Q_{i-1},
        E_i queue = E_{i-1} queue + B_i Q_{i-1},
        Cov_i(queue, X) = o_i Cov_{i-1}(queue, X) + B_i e_i Q_{i-1},

    the same for busy = min(X, m) with steps 1{i < m}, and d E f(X) / d lam = Cov(f(X), X) / lam.
    What is proportional to B_m is carried relative to it, so that nothing underflows; `start` is
    B_m itself (B_room where room < m).

    It stops when the room is reached, or for i >= m when the rest of the covariance, at most
    2 B_i (Q_i + 1)(e_i + 1) / (1-q)^3 with q = lam / D(i+1) < 1, is below rounding; in overload
    also when the servers are busy up to rounding, although the queue is still far from its mean
    excess / impatience.

    Returns
    -------
    waiting, queue, queue_slope : float
        P(X >= m), E queue and d E queue / d load, all three relative to `start`.
    idle, busy_slope : float
        E (m-X)^+ and d E busy / d load.
    full, spare : float
        B_room relative to `start`, 0 where the sum ended before the room, and room - E X.
    overloaded : bool
        The last stop applied: E queue = (excess + idle) / impatience, with slope 1 / impatience.
    """
    blocked, spare, busy_step, busy_cov, idle = 1.0, 0.0, 1.0, 0.0, float(servers)
    for i in range(1, min(servers, room) + 1):
        inverse = 1.0 / (i + load * blocked)
        keep = i * inverse
        blocked = load * blocked * inverse
        spare = keep * (1.0 + spare)
        busy_cov = keep * busy_cov + blocked * spare * busy_step
        busy_step = keep * busy_step + (1.0 if i < servers else 0.0)
        idle = keep * idle + blocked * (servers - i)
    if room <= servers:
        waiting = 1.0 if room == servers else 0.0
        return waiting, 0.0, 0.0, idle, busy_cov / load, 1.0, spare, False

    free = 1.0 - start
    full, waiting, queue, queue_step, queue_cov = 1.0, 1.0, 0.0, 1.0, 0.0
    overloaded = False
    i = servers
    while i < room:
        i += 1
        departures = servers + (i - servers) * impatience
        inverse = 1.0 / (departures + load * start * full)
        keep = departures * inverse
        full = load * full * inverse
        spare = keep * (1.0 + spare)
        queue += full * queue_step
        queue_cov = keep * queue_cov + full * spare * queue_step
        queue_step = keep * queue_step + 1.0
        busy_cov = keep * busy_cov + start * full * spare * busy_step
        busy_step *= keep
        waiting = keep * waiting + full
        idle *= keep
        free *= keep
        slack = 1.0 - load / (departures + impatience)  # 1 - q
        if slack > 0.0 and full * (queue_step + 1.0) * (spare + 1.0) < 1e-17 * queue_cov * slack**3:
            break
        busy = free < 1e-18 and idle < 1e-18 * excess and busy_cov < 1e-18 * load
        if busy and room > 1 << 60:
            overloaded = True
            break
    if i < room:
        full = 0.0
    return waiting, queue, queue_cov / load, idle, busy_cov / load, full, spare, overloaded


@kernel()
def birth_death_weights(
    birth: NDArray[np.float64],
    death: NDArray[np.float64],
    fraction: NDArray[np.float64],
    exponent: NDArray[np.int64],
) -> None:
    """Stationary weights as fraction 2^exponent, in place.

    w_0 = 1, w_{i+1} = w_i birth_i / death_i.
    """
    fraction[0], exponent[0] = 1.0, 0
    for i in range(birth.size):
        up, up_exponent = math.frexp(birth[i])
        down, down_exponent = math.frexp(death[i])
        rest, rest_exponent = math.frexp(fraction[i] * up / down)
        fraction[i + 1] = rest
        exponent[i + 1] = exponent[i] + up_exponent - down_exponent + rest_exponent
