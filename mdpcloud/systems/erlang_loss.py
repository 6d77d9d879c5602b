"""Erlang's loss system: servers without a queue.

Jobs arrive at rate lambda, take one of C servers for a mean time 1/mu, and are lost where all are
busy. With the load a = lambda / mu the probability of that is Erlang B,

    B = (a^C / C!) / sum_k a^k / k!,    B(k) = a B(k-1) / (k + a B(k-1)),  B(0) = 1,

whatever the law of the service times; see `mdpcloud.queues.erlang_b`. Nothing is to be decided: a
job that fits is worth accepting.

Source: A. K. Erlang (1917); G. Thompson, "Stochastic models for resource allocation in large
distributed systems" (PhD thesis, Universite Pierre et Marie Curie, 2017), chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from annotated_types import Gt, Unit

from mdpcloud.errors import InputError
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean
from mdpcloud.queues.erlang import erlang_b, log_erlang_b
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Bounds, Measures, per_job, scaled_count

if TYPE_CHECKING:
    from mdpcloud.limits.loss.erlang import Correction
    from mdpcloud.limits.trajectory import Trajectory

__all__ = ["ErlangLoss"]

ROUNDING = 2.0**-53
TINY = 1e-300  # probabilities below have fewer digits, or none
SMALLEST, LARGEST = 1e-290, 1e300  # of rates and loads
ON_BOUNDARY = 1e-12  # of the load per server: what it differs from 1 by may be a rounding error


@dataclass(frozen=True)
class ErlangLoss:
    """Jobs that find all servers busy are lost.

    Parameters
    ----------
    servers : float
        Number of servers, per unit of the scale.
    arrival_rate : float
        Rate lambda at which jobs arrive, per unit of the scale.
    service_rate : float
        Rate mu of one server.
    scale : float
        Multiplies servers and arrival rate.

    Notes
    -----
    A lost job costs 1. Errors of the source: its formula (1.1) is Erlang B, called Erlang C there;
    the states begin with 0, and jobs are accepted below C, not at C; its figure 1.5 has the load on
    the axis that it calls service rate, and the limit needs the positive part, (1 - 1/rho)^+. The
    limiting law of the free servers, an M/M/1 queue, is valid from 0 on.

    Examples
    --------
    >>> ErlangLoss(5, 3.0, 1.0).exact().blocking[0], 81 / 736
    (0.11005434782608696, 0.11005434782608696)
    """

    servers: Annotated[float, Gt(0)]
    arrival_rate: Annotated[float, Gt(0), Unit("1/time")]
    service_rate: Annotated[float, Gt(0), Unit("1/time")]
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = ("complete_sharing",)
    own_policy: ClassVar[str] = "complete_sharing"

    def __post_init__(self) -> None:
        validate(self)
        _ = self._finite
        self._check_range()

    def _check_range(self) -> None:
        """Rates and loads within the range of floats, where they have all their digits."""
        whole = {
            "arrival_rate times scale": self.arrival_rate * self.scale,
            "service_rate times servers": self.service_rate * self.servers,
        }
        whole["offered load, arrival_rate times scale over service_rate"] = self._load
        whole["load per server, arrival_rate over service_rate over servers"] = (
            self.arrival_rate / self.service_rate / self.servers
        )
        for name, value in whole.items():
            if not SMALLEST <= value <= LARGEST:
                raise InputError(
                    f"ErlangLoss: the {name} is {value:g}; it must be within {SMALLEST:g} to "
                    f"{LARGEST:g}, as floats have fewer digits or none beyond"
                )

    @classmethod
    def example(cls) -> Self:
        """A hundred servers at load 1."""
        return cls(servers=100.0, arrival_rate=100.0, service_rate=1.0)

    @cached_property
    def _finite(self) -> tuple[int, tuple[str, ...]]:
        """Servers of the finite system, and notes on rounding."""
        count, note = scaled_count("servers", self.servers, self.scale, least=1)
        return count, (note,) if note else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Where servers were rounded."""
        return self._finite[1]

    @property
    def _load(self) -> float:
        """Offered load of the finite system."""
        return self.arrival_rate * self.scale / self.service_rate

    @property
    def load_per_server(self) -> float:
        """The load rho per server in the limit."""
        return self.arrival_rate / (self.service_rate * self.servers)

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The finite system, in which nothing is to be decided.

        Raises
        ------
        InputError
            When caps are given: the state space is finite.
        """
        if caps is not None:
            raise InputError("caps are not for erlang_loss: its state space is finite")
        servers = self._finite[0]
        arrival = Event(
            "arrival 0",
            self.arrival_rate * self.scale,
            [
                Action("accept", step(jobs={0: +1})),
                Action("reject", cost=1.0, allowed=lambda x: x.jobs[0] == servers),
            ],
        )
        departure = Event("departure 0", _jobs(self.service_rate), step(jobs={0: -1}))
        measures = {"rejection_rate[0]": ("arrival 0", "reject"), "mean_jobs[0]": _jobs(1.0)}
        return Model(Lattice({"jobs": (servers,)}), [arrival, departure], measures=measures)

    def derived(self, cost: Bounds, measures: Mapping[str, Bounds]) -> dict[str, Bounds]:
        """Bounds of the probability that a job is lost."""
        return per_job(measures, (self.arrival_rate * self.scale,))

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """The only policy, with its cost in closed form.

        Parameters
        ----------
        name : str
            "complete_sharing".
        ties : str
            Not used: the policy knows no ties.
        """
        if name not in self.policy_names:
            near = did_you_mean(name, self.policy_names)
            known = ", ".join(self.policy_names)
            raise InputError(f"policy {name!r} is unknown; there are {known}{near}")
        exact = self.exact()
        return Heuristic(
            name,
            rule={},
            cost=exact.cost,
            error=self._error,
            measures={"rejection_rate[0]": exact.cost, "mean_jobs[0]": self._busy},
            notes=exact.notes,
        )

    # --- closed forms -----------------------------------------------------------------------------

    def exact(self) -> Measures:
        """Measures of the finite system, by Erlang B, for up to 10^8 servers.

        The errors are bounds: the recursion makes 4 roundings per step, which fade, and the load 2
        of its own; both together change B by at most 6 (free servers + 1) roundings of it. Below
        1e-300 a note gives its logarithm. The busy servers are a (1 - B(C)) = C a / (C + a B(C-1)),
        without the difference, so that B of the error of B(C-1) is left in them.
        """
        servers, notes = self._finite
        blocking = erlang_b(servers, self._load)
        busy, rate = self._busy, self.arrival_rate * self.scale
        if blocking < TINY:
            log = log_erlang_b(servers, self._load) / math.log(10.0)
            notes = (*notes, f"log10 of the blocking probability is {log:.6f}")
        error = self._error
        return Measures(
            (blocking,),
            (busy,),
            rate * blocking,
            errors={
                "blocking": error * blocking + TINY,
                "mean_jobs": min(error * blocking + 8.0 * ROUNDING, 1.0) * busy,
                "cost": (error * blocking + TINY) * rate + TINY,
            },
            notes=notes,
        )

    @cached_property
    def _busy(self) -> float:
        """Mean number of busy servers, C a / (C + a B(C-1))."""
        servers, load = self._finite[0], self._load
        before = erlang_b(servers - 1, load)
        if load <= servers:
            return load / (1.0 + load / servers * before)
        return servers / (servers / load + before)

    @property
    def _error(self) -> float:
        """Relative error of the blocking probability, before and after the last server."""
        free = max(self._finite[0] - self._busy, 0.0)
        return ROUNDING * (7.0 * (free + 1.0) + 4.0)

    # --- the limit --------------------------------------------------------------------------------

    def limit(self) -> Measures:
        """Limit of many servers, (1 - 1/rho)^+, per unit of the scale.

        The notes give the next term for the finite system, with its certified error.

        Examples
        --------
        >>> limit = ErlangLoss(1.0, 1.25, 1.0, scale=100).limit()
        >>> limit.regime, round(limit.blocking[0], 12), limit.mean_jobs
        ('overload', 0.2, (1.0,))
        """
        from mdpcloud.limits.loss.erlang import limiting_blocking

        rho = self.load_per_server
        near = abs(rho - 1.0) <= ON_BOUNDARY
        blocking = limiting_blocking(rho)
        found = self.corrected()
        notes = [
            f"with {self._finite[0]} servers, {found.formula} = {found.value:.6g}, within "
            f"{found.error:.1e} of the exact probability"
        ]
        if near:
            notes.append("rho = 1: the limit is approached as one over the square root of N")
        return Measures(
            (blocking,),
            (min(self.arrival_rate / self.service_rate, self.servers),),
            self.arrival_rate * blocking,
            errors={
                "blocking": 4.0 * ROUNDING,
                "mean_jobs": 2.0 * ROUNDING * self.servers,
                "cost": 5.0 * ROUNDING * self.arrival_rate,
            },
            regime="critical" if near else "overload" if rho > 1.0 else "underload",
            notes=tuple(notes),
        )

    def corrected(self) -> Correction:
        """The limit and its next term, at the number of servers of the finite system.

        See `mdpcloud.limits.loss.erlang`.
        """
        from mdpcloud.limits.loss.erlang import corrected_blocking

        servers = self._finite[0]
        load = self._load / servers
        return corrected_blocking(servers, 1.0 if abs(load - 1.0) <= 2.0 * ROUNDING else load)

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """Busy servers in the fluid limit, per unit of the scale.

        Parameters
        ----------
        horizon : float
        start : sequence of float, optional
            Busy servers at time 0; none by default.
        times : sequence of float, optional
        """
        from mdpcloud.limits.loss.fluid import link_fluid

        rates = (self.arrival_rate,), (self.service_rate,)
        return link_fluid(*rates, (1,), self.servers, horizon, start, times)

    def fluid_bound(self) -> float:
        """Lower bound of the cost: at most all servers are busy."""
        served = self.service_rate * self._finite[0]
        return max(self.arrival_rate * self.scale - served, 0.0) * (1.0 - 8.0 * ROUNDING)


def _jobs(rate: float) -> Any:
    return lambda x: rate * x.jobs[0]
