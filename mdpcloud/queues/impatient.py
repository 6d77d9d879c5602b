"""Queues whose jobs abandon: M/M/m+M with exponential deadlines."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mdpcloud.queues.border import checked_choice, checked_count, checked_number
from mdpcloud.queues.law import NodeLaw, node_law

__all__ = ["DEADLINES", "AbandonmentQueue", "abandonment"]

DEADLINES = ("begin_service", "end_service")


@dataclass(frozen=True)
class AbandonmentQueue:
    """Stationary means of an M/M/m+M queue; all have a relative error of about 1e-12 or less.

    Attributes
    ----------
    loss_rate : float
        Mean number of jobs lost per unit of time, l(lam).
    loss_rate_derivative : float
        dl / dlam in [0, 1], the loss caused by one more job.
    loss_probability : float
        Probability that a job is lost, l / lam (its limit for lam = 0).
    waiting_probability : float
        Probability that a job finds all servers busy.
    mean_jobs, mean_queue : float
        Mean number of jobs in the system, and of those waiting.
    log_loss_rate, log_waiting_probability : float
        Natural logarithms, for values below 1e-308; -inf for a true 0. The relative error of
        exp(log) is about 1e-16 |log|.
    """

    loss_rate: float
    loss_rate_derivative: float
    loss_probability: float
    waiting_probability: float
    mean_jobs: float
    mean_queue: float
    log_loss_rate: float
    log_waiting_probability: float


def abandonment(
    *,
    servers: int,
    service_rate: float,
    abandonment_rate: float,
    arrival_rate: float,
    deadline: str = "begin_service",
) -> AbandonmentQueue:
    """Stationary means of an M/M/m+M queue and the derivative of its loss rate.

    Parameters
    ----------
    servers : int
        Number of servers m >= 1.
    service_rate, abandonment_rate, arrival_rate : float
        Rate mu > 0 of one server, rate theta >= 0 of a job's exponential deadline, and rate lam >=
        0 of the Poisson arrivals, per unit of time.
    deadline : {"begin_service", "end_service"}
        Whether a job leaves at its deadline only while it waits, or in service too.

    Raises
    ------
    InputError
        If an argument is out of range; if theta = 0 and rho = lam / (m mu) >= 1, when there is no
        stationary regime; or if theta is so small near rho = 1 that the law spreads over more than
        1e8 states.

    Notes
    -----
    Positive recursions over the room of the node (see `mdpcloud.queues.kernels`), and dl / dlam =
    Cov(L(X), X) / lam. Deadlines to the end of service lead to the same chain with service rate mu
    + theta. Model: Nino-Mora (2019), Computers & Operations Research 103, 221-236.

    Examples
    --------
    >>> queue = abandonment(servers=1, service_rate=1.0, abandonment_rate=1.0, arrival_rate=1.0)
    >>> abs(queue.loss_rate - math.exp(-1)) < 1e-15  # deadlines like services: X is Poisson
    True
    """
    servers = checked_count("servers", servers)
    mu = checked_number("service_rate", service_rate)
    theta = checked_number("abandonment_rate", abandonment_rate, zero=True)
    lam = checked_number("arrival_rate", arrival_rate, zero=True)
    if checked_choice("deadline", deadline, DEADLINES) == "begin_service":
        return _lost_while_waiting(node_law(servers, mu, theta, lam), mu, theta, lam)
    return _lost_anywhere(node_law(servers, mu + theta, theta, lam), theta, lam)


def _lost_while_waiting(law: NodeLaw, mu: float, theta: float, lam: float) -> AbandonmentQueue:
    """L = theta queue; by flow balance its derivative is also 1 - mu d busy / dlam."""
    derivative = theta * law.queue_slope
    log_loss = _log(theta) + law.log_queue
    return AbandonmentQueue(
        loss_rate=math.exp(log_loss),
        loss_rate_derivative=min(1.0, derivative),
        loss_probability=min(1.0, math.exp(log_loss) / lam) if lam else 0.0,
        waiting_probability=law.waiting,
        mean_jobs=law.busy + law.queue,
        mean_queue=law.queue,
        log_loss_rate=log_loss,
        log_waiting_probability=law.log_waiting,
    )


def _lost_anywhere(law: NodeLaw, theta: float, lam: float) -> AbandonmentQueue:
    """L = theta X."""
    jobs, slope = law.busy + law.queue, law.busy_slope + law.queue_slope
    return AbandonmentQueue(
        loss_rate=theta * jobs,
        loss_rate_derivative=min(1.0, theta * slope),
        loss_probability=min(1.0, theta * jobs / lam if lam else theta * slope),
        waiting_probability=law.waiting,
        mean_jobs=jobs,
        mean_queue=law.queue,
        log_loss_rate=_log(theta * jobs),
        log_waiting_probability=law.log_waiting,
    )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf
