"""Stationary law of one M/M/m+M node, for the public formulas and for the routing rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mdpcloud.errors import InputError

__all__ = ["NodeLaw", "node_law"]

UNLIMITED = 1 << 62
MOST_STEPS = 4e9
LARGEST_LOAD = 1e15
TINY = 1e-200


@dataclass(frozen=True)
class NodeLaw:
    """Stationary means of a node and their derivatives by the arrival rate.

    Logarithms are given where a value can underflow; the values themselves are then 0.

    Attributes
    ----------
    busy, busy_slope : float
        Mean number of busy servers, and its derivative by the arrival rate (time).
    full : float
        Probability that the room is full (0 where it is unlimited).
    log_queue, log_queue_slope, log_waiting, log_full_slope : float
        Natural logarithms of the properties of that name; -inf for a true 0.
    """

    busy: float
    busy_slope: float
    log_queue: float
    log_queue_slope: float
    log_waiting: float
    full: float = 0.0
    log_full_slope: float = -math.inf

    @property
    def queue(self) -> float:
        """Mean number of waiting jobs."""
        return math.exp(self.log_queue)

    @property
    def queue_slope(self) -> float:
        """Derivative of the mean queue by the arrival rate (time)."""
        return math.exp(self.log_queue_slope)

    @property
    def waiting(self) -> float:
        """Probability that all servers are busy."""
        return min(1.0, math.exp(self.log_waiting))

    @property
    def full_slope(self) -> float:
        """Derivative of the rate of blocked jobs by the arrival rate."""
        return math.exp(self.log_full_slope)


def node_law(
    servers: int,
    service_rate: float,
    patience_rate: float,
    arrival_rate: float,
    room: int | None = None,
) -> NodeLaw:
    """Law of a node, a birth-death chain with births at the arrival rate.

    Deaths have rate min(i, m) service_rate + (i-m)^+ patience_rate. Numbers are taken as checked.
    It costs m steps, and some 40 min(a / |a-m|, sqrt(m service_rate / patience_rate)) for the tail,
    with a the offered load.

    Raises
    ------
    InputError
        Without abandonment and with unlimited room when rho >= 1; if the tail is too long to be
        summed; or if the rates are too far apart for floats.
    """
    load = arrival_rate / service_rate
    if load == 0.0:
        return NodeLaw(0.0, 1.0 / service_rate, -math.inf, -math.inf, -math.inf)
    _refuse_distant(load, patience_rate, service_rate)
    excess = float(Fraction(arrival_rate) / Fraction(service_rate) - servers)
    if room is None and patience_rate == 0.0:
        return _patient(servers, service_rate, load, -excess)
    return _impatient(servers, service_rate, patience_rate / service_rate, load, excess, room)


def _impatient(
    servers: int, rate: float, impatience: float, load: float, excess: float, room: int | None
) -> NodeLaw:
    from mdpcloud.queues.kernels import erlang_loss, impatient

    if room is None:
        _refuse_endless(servers, load, excess, impatience)
        room = UNLIMITED
    value, exponent = erlang_loss(min(servers, room), load)
    waiting, queue, slope, idle, busy_slope, full, spare, overloaded = impatient(
        servers, load, impatience, excess, room, math.ldexp(value, exponent)
    )
    if overloaded:  # flow balance: the queue takes what the busy servers leave
        queue, slope = (excess + idle) / impatience, 1.0 / impatience
        return NodeLaw(servers - idle, busy_slope / rate, _log(queue), _log(slope / rate), 0.0)
    start = math.log(value) + exponent * math.log(2.0)
    blocked = math.exp(start + _log(full))
    served = load * (1.0 - blocked) - impatience * math.exp(start + _log(queue))
    return NodeLaw(
        busy=servers - idle if excess > 0.0 else served,
        busy_slope=busy_slope / rate,
        log_queue=start + _log(queue),
        log_queue_slope=start + _log(slope / rate),
        log_waiting=start + _log(waiting),
        full=blocked,
        log_full_slope=start + _log(full) + math.log1p(spare),
    )


def _patient(servers: int, rate: float, load: float, spare: float) -> NodeLaw:
    """M/M/m: P(wait) = C = B / (u + rho B), E queue = C a / (m-a), with u = (m-a)/m and rho = a/m.

    Differentiated: dB/da = B ((m-a)/a + B) and dC/da = [B' u + B (1-B)/m] / (u + rho B)^2, all
    positive.
    """
    from mdpcloud.queues.kernels import erlang_loss

    if spare <= 0.0:
        raise InputError(
            f"no stationary regime: utilisation rho = {1.0 - spare / servers:.6g} >= 1 and no "
            "abandonment; rho must be < 1 or abandonment_rate > 0"
        )
    value, exponent = erlang_loss(servers, load)
    blocked = math.ldexp(value, exponent)
    u = spare / servers
    base = u + load / servers * blocked
    c_slope = ((spare / load + blocked) * u + (1.0 - blocked) / servers) / base**2
    slope = c_slope * load / spare + servers / (base * spare**2)  # both relative to B
    log_start = math.log(value) + exponent * math.log(2.0)
    return NodeLaw(
        busy=load,
        busy_slope=1.0 / rate,
        log_queue=log_start + _log(load / (base * spare)),
        log_queue_slope=log_start + _log(slope / rate),
        log_waiting=log_start - math.log(base),
    )


def _refuse_distant(load: float, patience_rate: float, service_rate: float) -> None:
    impatience = patience_rate / service_rate
    if load > LARGEST_LOAD or (patience_rate > 0.0 and not TINY < impatience < 1.0 / TINY):
        raise InputError(
            f"rates are too far apart: the offered load is {load:.3g} and the abandonment rate "
            f"{impatience:.3g} service rates; the load must be <= {LARGEST_LOAD:g}, the other in "
            f"{TINY:g}..{1.0 / TINY:g} or 0"
        )


def _refuse_endless(servers: int, load: float, excess: float, impatience: float) -> None:
    drift = load / abs(excess) if excess else math.inf
    spread = math.sqrt(servers) / math.sqrt(impatience)
    if 40.0 * min(drift, spread) > MOST_STEPS:
        raise InputError(
            f"abandonment_rate is {impatience:.3g} times the service rate at utilisation rho = "
            f"{load / servers:.12g}: the law spreads over some {spread:.1e} states; "
            "use abandonment_rate = 0 with rho < 1, or a larger rate"
        )


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf
