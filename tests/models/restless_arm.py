"""Restless arms: an active and a passive mode (Nino-Mora 2019 for the node)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic
from tests.models.routing import Node, record


def arm(node: Node, arrival_rate: float, charge: float, cap: int) -> mc.Model:
    """Active admits arrivals, passive pays for each of them; the node is passive at its cap."""
    modes = (
        mc.Mode("passive", cost_rate=charge * arrival_rate),
        mc.Mode(
            "active",
            flows=(mc.Flow(arrival_rate, mc.step(jobs=+1)),),
            allowed=lambda x: x.jobs < cap,
        ),
    )
    departure = mc.Event("departure", lambda x: node.death_rate(x.jobs), mc.step(jobs=-1))
    return mc.Model(
        mc.Lattice({"jobs": cap}),
        (mc.Control("mode", modes), departure),
        cost_rate=lambda x: node.loss_rate(x.jobs),
        measures={
            "abandoned": lambda x: node.loss_rate(x.jobs),
            "departures": ("departure", "departure"),
        },
    )


def drift(levels: Sequence[float]) -> mc.Model:
    """A machine that wears when active and recovers when passive, at random by one or two levels.

    Two flows per mode, with rates that depend on the state and that do not sum to one.
    """
    top = len(levels) - 1
    wear = (
        mc.Flow(lambda x: 1.0 * (x.wear < top), mc.step(wear=+1)),
        mc.Flow(lambda x: 0.5 * (x.wear < top - 1), mc.step(wear=+2)),
    )
    recover = (
        mc.Flow(lambda x: 2.0 * (x.wear > 0), mc.step(wear=-1)),
        mc.Flow(lambda x: 0.25 * x.wear * (x.wear > 1), mc.step(wear=-2)),
    )
    return mc.Model(
        mc.Lattice({"wear": top}),
        (
            mc.Control(
                "mode",
                (
                    mc.Mode("rest", cost_rate=3.0, flows=recover),
                    mc.Mode("work", cost_rate=lambda x: np.asarray(levels)[x.wear], flows=wear),
                ),
            ),
        ),
        measures={"wear": lambda x: x.wear},
    )


def active_below(level: int) -> dict[str, Any]:
    """Threshold policy."""
    return {"mode": lambda x: np.where(x.jobs < level, "active", "passive")}


A3 = record("A3")
NODE = Node(A3["nodes"][0]["m"], A3["nodes"][0]["mu"], A3["nodes"][0]["theta"])

WEAR = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
WEAR_OPTIMUM = Fraction(27, 19)

CASES = (
    Case(
        "restless arm",
        lambda: arm(NODE, A3["lam"], A3["C"], A3["box_K"][0]),
        "routing.json A3 DBS: with one node the index policy is optimal",
        A3["optimum"],
        {
            "whittle": Heuristic(active_below(A3["thresholds"]["RB"][0]), A3["cost"]["RB"]),
            "policy improvement": Heuristic(
                active_below(A3["thresholds"]["PI"][0]), A3["cost"]["PI"]
            ),
            "individually optimal": Heuristic(
                active_below(A3["thresholds"]["IO"][0]), A3["cost"]["IO"]
            ),
        },
        tolerance=2e-10,
    ),
    Case(
        "machine that wears",
        lambda: drift(WEAR),
        "policy iteration in exact rationals",
        WEAR_OPTIMUM,
    ),
)
