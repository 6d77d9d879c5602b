"""Erlang's formulas for nodes without abandonment: M/M/m/m (B) and M/M/m (C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mdpcloud.queues.border import checked_count, checked_number
from mdpcloud.queues.law import node_law

__all__ = ["DelayQueue", "erlang_b", "erlang_c", "log_erlang_b", "mmc"]


@dataclass(frozen=True)
class DelayQueue:
    """Stationary means of an M/M/m queue.

    Attributes
    ----------
    waiting_probability : float
        Probability that a job finds all servers busy (Erlang C).
    mean_wait : float
        Mean time from arrival to the beginning of service, in the unit of time of the rates.
    mean_queue, mean_jobs : float
        Mean number of jobs waiting, and in the system.
    utilisation : float
        Share of busy servers, rho = arrival_rate / (servers x service_rate) < 1.
    """

    waiting_probability: float
    mean_wait: float
    mean_queue: float
    mean_jobs: float
    utilisation: float


def erlang_b(servers: int, offered_load: float) -> float:
    """Blocking probability of an M/M/m/m system.

    Parameters
    ----------
    servers : int
        Number of servers m >= 0.
    offered_load : float
        Arrival rate over service rate, a >= 0 (erlangs).

    Returns
    -------
    float
        In [0, 1]. Values below 1e-308 are returned as 0; see `log_erlang_b`.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    B(0) = 1, B(i) = a B(i-1) / (i + a B(i-1)), Erlang (1917); all terms positive.

    Examples
    --------
    >>> erlang_b(2, 1.0)
    0.2
    """
    return math.ldexp(*_loss(servers, offered_load))


def log_erlang_b(servers: int, offered_load: float) -> float:
    """Natural logarithm of `erlang_b`, for probabilities that underflow; -inf without load.

    The parameters and errors are those of `erlang_b`.

    Examples
    --------
    >>> round(log_erlang_b(200, 0.001) / math.log(10), 7)
    -974.8973229
    """
    value, exponent = _loss(servers, offered_load)
    return math.log(value) + exponent * math.log(2.0) if value > 0.0 else -math.inf


def erlang_c(servers: int, offered_load: float) -> float:
    """Probability of waiting in an M/M/m queue.

    Parameters
    ----------
    servers : int
        Number of servers m >= 1.
    offered_load : float
        Arrival rate over service rate, 0 <= a < m (erlangs).

    Returns
    -------
    float
        C = B / (1-rho + rho B), with B the value of `erlang_b` and rho = a / m.

    Raises
    ------
    InputError
        If an argument is out of range, or rho >= 1: there is no stationary regime then.

    Examples
    --------
    >>> round(erlang_c(2, 1.0), 15)
    0.333333333333333
    """
    return mmc(servers=servers, service_rate=1.0, arrival_rate=offered_load).waiting_probability


def mmc(*, servers: int, service_rate: float, arrival_rate: float) -> DelayQueue:
    """Stationary means of an M/M/m queue without abandonment.

    Parameters
    ----------
    servers : int
        Number of servers m >= 1.
    service_rate, arrival_rate : float
        Rate of one server, > 0, and of the Poisson arrivals, >= 0, per unit of time.

    Raises
    ------
    InputError
        If an argument is out of range, or rho = arrival_rate / (m service_rate) >= 1.

    Notes
    -----
    Mean queue C rho / (1-rho), mean wait by Little's law. The spare capacity m - a is formed
    exactly.

    Examples
    --------
    >>> mmc(servers=1, service_rate=1.0, arrival_rate=0.75).mean_jobs
    3.0
    """
    servers = checked_count("servers", servers)
    service_rate = checked_number("service_rate", service_rate)
    arrival_rate = checked_number("arrival_rate", arrival_rate, zero=True)
    law = node_law(servers, service_rate, 0.0, arrival_rate)
    return DelayQueue(
        waiting_probability=law.waiting,
        mean_wait=law.queue / arrival_rate if arrival_rate else 0.0,
        mean_queue=law.queue,
        mean_jobs=law.busy + law.queue,
        utilisation=arrival_rate / (servers * service_rate),
    )


def _loss(servers: int, offered_load: float) -> tuple[float, int]:
    from mdpcloud.queues.kernels import erlang_loss

    servers = checked_count("servers", servers, least=0)
    value, scale = erlang_loss(servers, checked_number("offered_load", offered_load, zero=True))
    return float(value), int(scale)
