"""A link with trunk reservation between classes of different size, and its families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mdpcloud as mc
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from mdpcloud.policies.trunk_reservation import trunk_reservation

__all__ = ["Link", "levels"]


@dataclass(frozen=True)
class Link:
    """Jobs of class j take ``sizes[j]`` of the capacity, or are lost at a cost."""

    arrival_rates: tuple[float, ...] = (3.0, 1.0)
    sizes: tuple[int, ...] = (1, 2)
    costs: tuple[float, ...] = (1.0, 5.0)
    capacity: int = 6

    def model(self, caps: Sequence[int] | None = None) -> mc.Model:
        """The link; jobs stay for one unit of time on average."""
        arrivals = [
            mc.Event(
                f"arrival {j}",
                rate,
                (
                    mc.Action("accept", mc.step(jobs={j: +1})),
                    mc.Action("reject", cost=self.costs[j]),
                ),
            )
            for j, rate in enumerate(self.arrival_rates)
        ]
        departures = [
            mc.Event(f"departure {j}", _jobs(j), mc.step(jobs={j: -1}))
            for j in range(len(self.sizes))
        ]
        space = mc.Lattice(
            {"jobs": tuple(self.capacity // size for size in self.sizes)},
            where=lambda x: self.used(x) <= self.capacity,
        )
        measures = {f"mean_jobs[{j}]": _jobs(j) for j in range(len(self.sizes))}
        return mc.Model(space, [*arrivals, *departures], measures=measures)

    def used(self, x: Any) -> Any:
        """Capacity in use."""
        return sum(size * x.jobs[j] for j, size in enumerate(self.sizes))

    def streams(self, guarded: Sequence[int] = (0,)) -> list[Stream]:
        """The classes; those that are guarded know what capacity they use and leave."""
        return [self._stream(j, j in guarded) for j in range(len(self.sizes))]

    def _stream(self, j: int, guarded: bool) -> Stream:
        def spare(x: Any) -> Any:
            return self.capacity - self.used(x) - self.sizes[j]

        option = Option(
            "accept",
            fits=lambda x: spare(x) >= 0,
            spare=spare if guarded else None,
            used=self.used if guarded else None,
        )
        return Stream(f"arrival {j}", (option,))

    def reservation(self, *, unimodal: bool = False) -> Family:
        """Capacity reserved against class 0."""
        return trunk_reservation(
            self.streams(), [Parameter("reserved", levels(self.capacity))], unimodal=unimodal
        )


def levels(most: int) -> tuple[int, ...]:
    """0 ... most."""
    return tuple(range(most + 1))


def _jobs(j: int) -> Any:
    return lambda x: 1.0 * x.jobs[j]
