"""A single queue whose server chooses its speed, faster being dearer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic

ARRIVAL, ROOM, HOLDING, LOSS = 2, 6, 1, 20
SPEEDS, PRICES = (1, 3, 5), (0, 2, 7)


def speed_control() -> mc.Model:
    """Holding cost per job, price per unit of time of each speed, and a cost per lost job."""
    modes = [
        mc.Mode(
            f"speed {mu}",
            cost_rate=lambda x, price=price: price * (x.jobs > 0),
            flows=(mc.Flow(lambda x, mu=mu: mu * (x.jobs > 0), mc.step(jobs=-1)),),
        )
        for mu, price in zip(SPEEDS, PRICES, strict=True)
    ]
    arrival = mc.Event(
        "arrival",
        ARRIVAL,
        (
            mc.Action("join", mc.step(jobs=+1)),
            mc.Action("lost", cost=LOSS, allowed=lambda x: x.jobs == ROOM),
        ),
    )
    return mc.Model(
        mc.Lattice({"jobs": ROOM}),
        (arrival, mc.Control("speed", tuple(modes))),
        cost_rate=lambda x: HOLDING * x.jobs,
        measures={"jobs": lambda x: x.jobs, "lost": ("arrival", "lost")},
    )


def exact_cost(choice: Sequence[int]) -> Fraction:
    """Average cost of the speeds chosen in states 1, ..., ROOM, from the product form."""
    weights, cost = [Fraction(1)], [Fraction(0)]
    for i, mode in enumerate(choice, start=1):
        weights.append(weights[-1] * Fraction(ARRIVAL, SPEEDS[mode]))
        cost.append(Fraction(HOLDING * i + PRICES[mode] + (LOSS * ARRIVAL if i == ROOM else 0)))
    return sum((w * c for w, c in zip(weights, cost, strict=True)), Fraction(0)) / sum(weights)


def best_of_all() -> tuple[Fraction, tuple[int, ...]]:
    """Least cost over all 3 ** ROOM stationary policies, with one that reaches it."""
    return min((exact_cost(p), p) for p in product(range(len(SPEEDS)), repeat=ROOM))


def table(choice: Sequence[int]) -> Any:
    """Rule from the speeds in states 1, ..., ROOM."""
    return lambda x: np.asarray([choice[0], *choice])[np.asarray(x.jobs)]


STEEP = (0, 0, 1, 1, 2, 2)

CASES = (
    Case(
        "service-rate control",
        speed_control,
        "enumeration of all policies in exact rationals",
        best_of_all()[0],
        {
            "always slow": Heuristic({"speed": lambda x: "speed 1"}, exact_cost((0,) * ROOM)),
            "steep": Heuristic({"speed": table(STEEP)}, exact_cost(STEEP)),
            "best": Heuristic({"speed": table(best_of_all()[1])}, best_of_all()[0]),
        },
        tolerance=1e-13,
    ),
)
