"""Systems of a user's own: the least that one must offer, and a little more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mdpcloud as mc
from mdpcloud.systems.base import AT_CAP, Edge, Heuristic


@dataclass(frozen=True)
class Desk:
    """Customers admitted to a desk or turned away; nothing but a model."""

    arrival_rate: float = 1.5
    reward: float = 2.0

    def model(self, caps: Sequence[int] | None = None) -> mc.Model:
        """A queue of at most five."""
        (cap,) = (5,) if caps is None else caps
        join, refuse = mc.Action("join", mc.step(queue=+1)), mc.Action("refuse", cost=self.reward)
        return mc.Model(
            mc.Lattice({"queue": cap}),
            [
                mc.Event("arrival", self.arrival_rate, [join, refuse]),
                mc.Event("service", lambda x: 1.0 * (x.queue > 0), mc.step(queue=-1)),
            ],
            cost_rate=lambda x: 0.5 * x.queue,
        )


@dataclass(frozen=True)
class Shop(Desk):
    """A desk with policies of its own, named."""

    system_name = "corner_shop"
    policy_names = ("greedy", "half")
    profit_rate = 10.0

    def heuristic(self, name: str, ties: str) -> Heuristic:
        """Join while there is room, or half of the room."""
        limit = {"greedy": 5, "half": 2}[name]
        return Heuristic(
            name,
            rule=lambda x: np.where(x.queue < limit, "join", "refuse"),
            indices=[[0.25] * limit],
            notes=(f"ties: {ties}",),
        )


@dataclass(frozen=True)
class Endless(Desk):
    """A desk without a limit, cut by the package."""

    def exact_caps(self) -> tuple[int | None, ...]:
        """Nobody waits for longer than a reward is worth."""
        return (int(2 * self.reward),)

    def start_caps(self) -> tuple[int, ...]:
        """A small box."""
        return (2,)

    def model(self, caps: Sequence[int] | None = None, edge: Edge = "closed") -> mc.Model:
        """At the cap, "join" costs nothing at least, and a refusal at most."""
        (cap,) = self.exact_caps() if caps is None else caps
        base = super().model((cap,))  # type: ignore[arg-type]
        arrival: Any = base.events[0]
        cost = {"closed": None, "lower": 0.5, "upper": 2 * self.reward}[edge]
        extra = (
            []
            if cost is None
            else [mc.Action(f"join{AT_CAP}", cost=cost, allowed=lambda x: x.queue == cap)]
        )
        events = [
            mc.Event("arrival", self.arrival_rate, [*arrival.actions, *extra]),
            base.events[1],
        ]
        return mc.Model(base.space, events, cost_rate=list(base.cost_rate))


@dataclass(frozen=True)
class Parted:
    """Two states without a way between them."""

    def model(self) -> Any:
        """Each costs what it costs."""
        return mc.tabular(np.eye(2)[None], costs=[[1.0], [2.0]])


@dataclass(frozen=True)
class Arrays:
    """A discrete model from arrays."""

    costs: Any = ((1.0, 4.0), (2.0, 0.5))

    def model(self) -> Any:
        """Stay or move, with costs by state and action."""
        stay, move = np.eye(2), np.eye(2)[::-1]
        mix = 0.5 * stay + 0.5 * move
        return mc.tabular(np.array([mix, move]), costs=self.costs)
