"""Random models: lattices of one to four axes, regions, tables, random targets, controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.model.event import Step

__all__ = ["models", "returning_models"]

LONGEST = 3  # of a step, per axis


@dataclass(frozen=True)
class Lookup:
    """A function of some coordinates, given by a table."""

    table: Any
    axes: tuple[int, ...]

    def __call__(self, x: Any) -> Any:
        if not self.axes:
            return self.table[()]
        return self.table[tuple(x.i[k] for k in self.axes)]


class Maker:
    """Draws the parts of a model."""

    def __init__(
        self, rng: np.random.Generator, caps: tuple[int, ...], decades: float = 0.0
    ) -> None:
        self.rng, self.caps, self.decades = rng, caps, decades

    def axes(self) -> tuple[int, ...]:
        """A random set of axes."""
        return tuple(np.flatnonzero(self.rng.random(len(self.caps)) < 0.5))

    def table(self, draw: Callable[[tuple[int, ...]], Any]) -> Lookup:
        """Random numbers on a random set of axes."""
        axes = self.axes()
        return Lookup(np.asarray(draw(tuple(self.caps[k] + 1 for k in axes))), axes)

    def rate(self) -> Lookup:
        """Rates, a third of them zero."""
        scale = 10.0 ** self.rng.uniform(-self.decades, self.decades)
        return self.table(lambda s: scale * self.rng.random(s) * (self.rng.random(s) < 0.67))

    def positive_rate(self) -> float:
        """One rate that is not zero."""
        return float(10.0 ** self.rng.uniform(-self.decades - 1.0, self.decades))

    def cost(self) -> Any:
        """A cost: zero, a number or a table."""
        kind = self.rng.integers(3)
        return (0.0, float(self.rng.normal()), self.table(self.rng.standard_normal))[kind]

    def step(self) -> Step:
        """A displacement along a few axes."""
        amounts = {
            int(k): int(self.rng.integers(-LONGEST, LONGEST + 1))
            for k in self.rng.permutation(len(self.caps))[: self.rng.integers(1, 3)]
        }
        return mc.step(i=amounts)

    def moves(self) -> Any:
        """A step, or several with probabilities that may depend on the state."""
        if self.rng.random() < 0.6:
            return self.step()
        share = self.table(self.rng.random)
        return [
            mc.Move(share, self.step()),
            mc.Move(lambda x: 1.0 - share(x), self.step() if self.rng.random() < 0.8 else None),
        ]

    def allowed(self) -> Any:
        """No condition, or a random one."""
        return None if self.rng.random() < 0.6 else self.table(lambda s: self.rng.random(s) < 0.7)

    def event(self, number: int) -> mc.Event:
        """An event with one to six actions, one of which stays."""
        actions = [
            mc.Action(f"go {k}", self.moves(), self.cost(), self.allowed())
            for k in range(self.rng.integers(0, 6))
        ]
        actions.insert(self.rng.integers(len(actions) + 1), mc.Action("stay", cost=self.cost()))
        return mc.Event(f"event {number}", self.rate(), actions)

    def control(self, number: int) -> mc.Control:
        """A control with two or three modes; the first has no flows."""
        modes = [mc.Mode("rest", self.cost())]
        for k in range(self.rng.integers(1, 3)):
            flows = [mc.Flow(self.rate(), self.step()) for _ in range(self.rng.integers(1, 3))]
            modes.append(mc.Mode(f"mode {k}", self.cost(), flows, self.allowed()))
        return mc.Control(f"control {number}", modes)

    def region(self) -> Any:
        """The whole box, a corner cut off, or a random set of points that holds the origin."""
        kind = self.rng.integers(3)
        if kind == 0:
            return None
        if kind == 1:
            weights, most = self.rng.integers(0, 4, len(self.caps)), self.rng.integers(2, 15)
            return lambda x: sum(int(w) * i for w, i in zip(weights, x.i, strict=True)) <= most
        inside = self.rng.random([cap + 1 for cap in self.caps]) < self.rng.uniform(0.2, 1.0)
        inside[(0,) * len(self.caps)] = True
        return Lookup(inside, tuple(range(len(self.caps))))

    def model(self) -> mc.Model:
        """Some events and perhaps a control."""
        terms: list[Any] = [self.event(k) for k in range(self.rng.integers(1, 5))]
        if self.rng.random() < 0.4:
            terms.append(self.control(len(terms)))
        costs = [self.table(self.rng.standard_normal) for _ in range(self.rng.integers(0, 4))]
        return mc.Model(mc.Lattice({"i": self.caps}, where=self.region()), terms, cost_rate=costs)

    def returning_model(self) -> mc.Model:
        """A model on a box in which every policy comes back to the origin."""
        model = self.model()
        back = [
            mc.Event(
                f"back {k}",
                Lookup(self.positive_rate() * (np.arange(cap + 1) > 0), (k,)),
                mc.step(i={k: -1}),
            )
            for k, cap in enumerate(self.caps)
        ]
        slow = mc.Event("slow", 0.01, mc.Action("pay", cost=self.cost()))
        return mc.Model(
            mc.Lattice({"i": self.caps}),
            [*model.events, *back, slow],
            cost_rate=list(model.cost_rate),
        )


def returning_models(decades: float) -> st.SearchStrategy[mc.Model]:
    """Models of at most twelve states in which every policy has one closed class."""
    caps = st.lists(st.integers(0, 5), min_size=1, max_size=3).filter(
        lambda c: np.prod(np.array(c) + 1) <= 12
    )
    seeds = st.integers(0, 2**32 - 1)
    return st.builds(
        lambda s, c: Maker(np.random.default_rng(s), tuple(c), decades).returning_model(),
        seeds,
        caps,
    )


def models() -> st.SearchStrategy[mc.Model]:
    """Models of up to some hundred states; rates may vanish, so chains may have any structure."""
    caps = st.lists(st.integers(0, 11), min_size=1, max_size=4).filter(
        lambda c: np.prod(np.array(c) + 1) <= 300
    )
    seeds = st.integers(0, 2**32 - 1)
    return st.builds(lambda s, c: Maker(np.random.default_rng(s), tuple(c)).model(), seeds, caps)
