"""Queues with admission control, the models of most tests of the border, and their exact laws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import mdpcloud as mc

__all__ = ["admission", "birth_death_law", "threshold_cost", "two_queues"]

JOIN = mc.Action("join", mc.step(jobs=+1))
LOST = mc.Action("lost", cost=1.0)


def admission(
    cap: int = 3,
    *,
    rate: Any = 0.5,
    servers: int = 1,
    actions: Any = (JOIN, LOST),
    space: Any = None,
    extra: Sequence[Any] = (),
    **settings: Any,
) -> mc.Model:
    """M/M/servers with room for ``cap`` jobs; an arriving job may be refused at cost 1."""
    events = (
        mc.Event("arrival", rate, actions),
        mc.Event("service", lambda x: np.minimum(x.jobs, servers), mc.step(jobs=-1)),
        *extra,
    )
    return mc.Model(space or mc.Lattice({"jobs": cap}), events, **settings)


def two_queues(caps: tuple[int, int] = (3, 4), holding: tuple[float, float] = (1.0, 1.5)) -> Any:
    """Two servers; a job joins one of them or is refused."""
    routes = [mc.Action(f"node {k}", mc.step(node={k: +1})) for k in range(2)]
    arrival = mc.Event("arrival", 1.3, [*routes, mc.Action("refuse", cost=6.0)])
    services = [
        mc.Event(f"service {k}", lambda x, k=k: (1.0 + 0.2 * k) * (x.node[k] > 0), step)
        for k, step in enumerate(mc.step(node={k: -1}) for k in range(2))
    ]
    return mc.Model(
        mc.Lattice({"node": caps}),
        [arrival, *services],
        cost_rate=[lambda x, k=k: holding[k] * x.node[k] for k in range(2)],
        measures={"refusals": ("arrival", "refuse"), "jobs": lambda x: x.node[0] + x.node[1]},
    )


def birth_death_law(up: Sequence[Any], down: Sequence[Any]) -> list[Fraction]:
    """Stationary law of the chain that goes from k to k + 1 at rate up[k], back at down[k]."""
    law = [Fraction(1)]
    for birth, death in zip(up, down, strict=True):
        law.append(law[-1] * Fraction(birth) / Fraction(death))
    total = sum(law)
    return [p / total for p in law]


def threshold_cost(limit: int, rate: Fraction, holding: Fraction, refusal: Fraction) -> Fraction:
    """Cost rate of M/M/1 with service rate 1 that refuses jobs from ``limit`` jobs on."""
    law = birth_death_law([rate] * limit, [1] * limit)
    return sum((holding * k * p for k, p in enumerate(law)), rate * refusal * law[-1])
