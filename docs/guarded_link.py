"""A system of one's own with a policy, a family of policies and a large-scale limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Gt, Unit

import mdpcloud as mc
from mdpcloud.parameters import validate
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from mdpcloud.policies.trunk_reservation import trunk_reservation
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Bounds, Measures, per_job, scaled, scaled_count

Rate = Annotated[float, Gt(0), Unit("1/time")]
Cost = Annotated[float, Gt(0), Unit("cost")]


@dataclass(frozen=True)
class GuardedLink:
    """Two classes share a pool of servers of rate 1.

    Parameters
    ----------
    arrival_rates : tuple of float
        Per class.
    servers : float
    rejection_costs : tuple of float
        Of each job that is lost, per class.
    scale : float
        Multiplies arrival rates and servers.
    """

    arrival_rates: tuple[Rate, Rate] = (0.4, 0.8)
    servers: Annotated[float, Gt(0)] = 1.0
    rejection_costs: tuple[Cost, Cost] = (5.0, 1.0)
    scale: Annotated[float, Gt(0)] = 20.0

    policy_names: ClassVar[tuple[str, ...]] = ("complete_sharing",)
    own_policy: ClassVar[str] = "complete_sharing"

    def __post_init__(self) -> None:
        validate(self)

    @property
    def room(self) -> int:
        """Servers of the finite system."""
        return scaled_count("servers", self.servers, self.scale, least=1)[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rounded."""
        return tuple(filter(None, [scaled_count("servers", self.servers, self.scale)[1]]))

    def model(self, caps: Any = None) -> mc.Model:
        """Jobs of class j are accepted or lost at a price."""
        rates = scaled(self.arrival_rates, self.scale)
        arrivals = [
            mc.Event(
                f"arrival {j}",
                rate,
                [mc.Action("accept", mc.step(jobs=+1)), mc.Action("reject", cost=cost)],
            )
            for j, (rate, cost) in enumerate(zip(rates, self.rejection_costs, strict=True))
        ]
        departure = mc.Event("departure", lambda x: 1.0 * x.jobs, mc.step(jobs=-1))
        lost = {f"rejection_rate[{j}]": (f"arrival {j}", "reject") for j in (0, 1)}
        return mc.Model(
            mc.Lattice({"jobs": self.room}),
            [*arrivals, departure],
            measures={**lost, "mean_jobs[0]": lambda x: 1.0 * x.jobs},
        )

    def derived(self, cost: Bounds, measures: Mapping[str, Bounds]) -> dict[str, Bounds]:
        """Probabilities of loss from rates of loss."""
        return per_job(measures, scaled(self.arrival_rates, self.scale))

    def streams(self) -> list[Stream]:
        """What may be done with a job of each class; class 1 may have to leave servers free."""

        def fits(x: Any) -> Any:
            return x.jobs < self.room

        def spare(x: Any) -> Any:
            return self.room - x.jobs - 1

        return [
            Stream("arrival 0", (Option("accept", fits),)),
            Stream("arrival 1", (Option("accept", fits, spare=spare),)),
        ]

    def heuristic(self, name: str, ties: str = "first") -> Heuristic:
        """The policy by its name."""
        return Heuristic(name, rule=complete_sharing(self.streams()).member())

    def families(self) -> tuple[Family, ...]:
        """Trunk reservation against class 1."""
        reserved = Parameter("reserved", tuple(range(self.room + 1)))
        return (trunk_reservation(self.streams(), [reserved]),)

    def limit(self) -> Measures:
        """A share (1 - servers / load)^+ of either class is lost."""
        load = sum(self.arrival_rates)
        lost = max(0.0, 1.0 - self.servers / load)
        paid = sum(r * w for r, w in zip(self.arrival_rates, self.rejection_costs, strict=True))
        regime = "overload" if lost else "underload"
        jobs = min(load, self.servers)
        errors = dict.fromkeys(("blocking", "mean_jobs", "cost"), 1e-15 * (1.0 + paid))
        return Measures((lost, lost), (jobs,), paid * lost, errors=errors, regime=regime)
