"""Join the shorter of two sampled loss servers (Vasantam and Mazumdar)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


def sampled_pairs(servers: int, capacity: int, arrival_rate: float) -> mc.Model:
    """``x.tail[i]`` servers have more than i jobs; two servers are sampled with replacement."""

    def at(x: Any, level: int) -> Any:
        above = x.tail[level] if level < capacity else 0
        return (servers if level == 0 else x.tail[level - 1]) - above

    def join(level: int) -> Any:
        if level == capacity:
            return {"cost": 1 / (servers * arrival_rate)}
        return {"step": mc.step(tail={level: +1})}

    arrivals = [
        mc.Event(
            f"arrival {low}{high}",
            lambda x, low=low, high=high: (
                arrival_rate * (1 + (low < high)) * at(x, low) * at(x, high) / servers
            ),
            (mc.Action("shorter", **join(low)), mc.Action("longer", **join(high))),
        )
        for low in range(capacity + 1)
        for high in range(low, capacity + 1)
    ]
    departures = [
        mc.Event(
            f"departure {level}",
            lambda x, level=level: level * at(x, level),
            mc.step(tail={level - 1: -1}),
        )
        for level in range(1, capacity + 1)
    ]
    return mc.Model(mc.Reachable({"tail": (0,) * capacity}), (*arrivals, *departures))


def always(capacity: int, action: Any, at_full: Any) -> dict[str, Any]:
    """One action (or chances) for every pair, another one where the longer queue is full."""
    levels = range(capacity + 1)
    return {
        f"arrival {low}{high}": at_full if high == capacity else action
        for low in levels
        for high in range(low, capacity + 1)
    }


def shorter(x: Any) -> str:
    """Join the shorter of the two queues."""
    return "shorter"


EVENLY = {"shorter": 0.5, "longer": 0.5}


R = reference("networks")["A_jsqd_erlang_loss"]["mdp"][1]

CASES = (
    Case(
        "jsq",
        lambda: sampled_pairs(R["N"], R["C"], R["lam"]),
        "networks.json A, and Erlang's formula for one sampled server",
        R["blocking"]["opt"],
        {
            "shorter": Heuristic(always(R["C"], shorter, shorter), R["exact_jsqd"]),
            "longer": Heuristic(always(R["C"], lambda x: 1, shorter), R["blocking"]["worst"]),
            "at random": Heuristic(always(R["C"], EVENLY, EVENLY), Fraction(4, 19)),
        },
        tolerance=2e-13,
    ),
)
