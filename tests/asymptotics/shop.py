"""A small allocation system of the tests: M/M/c/c, whose limit and fluid are formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from mdpcloud.errors import NoLimitError
from mdpcloud.limits.trajectory import Trajectory
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from mdpcloud.policies.trunk_reservation import trunk_reservation
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Bounds, Measures, per_job, scaled_count


@dataclass(frozen=True)
class Shop:
    """A shop with c places; who finds none is lost, at a cost of 1. Critical load has no limit.

    Parameters
    ----------
    arrival_rates : tuple of float
        One.
    places : float
    tables : int
        Not used.
    """

    arrival_rates: tuple[Annotated[float, Gt(0)]] = (2.0,)
    places: Annotated[float, Gt(0)] = 1.0
    tables: Annotated[int, Ge(0)] = 0
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = ("open",)
    own_policy: ClassVar[str] = "open"

    def __post_init__(self) -> None:
        validate(self)

    @property
    def _rounded(self) -> tuple[int, str | None]:
        return scaled_count("places", self.places, self.scale, least=1)

    @property
    def count(self) -> int:
        return self._rounded[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(filter(None, self._rounded[1:]))

    @property
    def rate(self) -> float:
        return self.arrival_rates[0] * self.scale

    def model(self, caps: Any = None) -> Model:
        take = Action("take", step(jobs=+1))
        arrival = Event("arrival", self.rate, [take, Action("reject", cost=1.0)])
        departure = Event("departure", lambda x: 1.0 * x.jobs, step(jobs=-1))
        measures = {"rejection_rate[0]": ("arrival", "reject"), "mean_jobs[0]": lambda x: x.jobs}
        return Model(Lattice({"jobs": self.count}), [arrival, departure], measures=measures)

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        return Heuristic(name, rule=self.families()[0].member(0))

    def families(self) -> tuple[Family, ...]:
        count = self.count
        option = Option("take", fits=lambda x: x.jobs < count, spare=lambda x: count - x.jobs - 1)
        stream = Stream("arrival", (option,))
        grid = tuple(range(count + 1))
        return (
            trunk_reservation([stream], [Parameter("reserved", grid)]),
            Family("pairs", (Parameter("a", (0,)), Parameter("b", (0,))), lambda a, b: {}),
        )

    def derived(self, cost: Bounds, measures: Any) -> dict[str, Bounds]:
        return per_job(measures, (self.rate,))

    def limit(self) -> Measures:
        if self.arrival_rates[0] == self.places:
            raise NoLimitError("the load is 1, and it must not be")
        lost = max(1.0 - self.places / self.arrival_rates[0], 0.0)
        kept = min(self.arrival_rates[0], self.places)
        return Measures((lost,), (kept,), lost * self.arrival_rates[0])

    def fluid_bound(self) -> float:
        return self.scale * max(self.arrival_rates[0] - self.places, 0.0)

    def fluid(self, horizon: float, start: Any = None, times: Any = None) -> Trajectory:
        times = np.asarray(times)
        first = 0.0 if start is None else start[0]
        rate = self.arrival_rates[0]
        free = rate + (first - rate) * np.exp(-times)
        changes = ()
        if rate > self.places > first:
            changes = ((float(np.log((rate - first) / (rate - self.places))), "full"),)
        states = np.minimum(free, self.places)[:, None]
        return Trajectory(times, states, ("jobs[0]",), changes, 1e-12)
