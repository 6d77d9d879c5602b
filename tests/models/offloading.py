"""Two loss systems that help each other: offloading, trunk reservation (Thompson 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference

Pair = Sequence[float]


def offloading(
    capacity: Sequence[int], arrival_rates: Pair, service_rates: Pair, reject: Pair
) -> mc.Model:
    """Every job is served at its own centre, at the other one, or rejected at a price."""
    arrivals = [
        mc.Event(
            f"arrival {k}",
            arrival_rates[k],
            (
                mc.Action("local", mc.step(busy={k: +1})),
                mc.Action("offload", mc.step(busy={1 - k: +1})),
                mc.Action("reject", cost=reject[k]),
            ),
        )
        for k in (0, 1)
    ]
    return mc.Model(
        mc.Lattice({"busy": tuple(capacity)}),
        (*arrivals, *departures(service_rates)),
        measures={f"rejected {k}": (f"arrival {k}", "reject") for k in (0, 1)},
    )


def trunk_reservation(
    capacity: Sequence[int], arrival_rates: Pair, service_rates: Pair, reject: Pair
) -> mc.Model:
    """Only jobs of centre 0 that find it full may go to the other centre."""
    first = (
        mc.Action("local", mc.step(busy={0: +1})),
        mc.Action("redirect", mc.step(busy={1: +1}), allowed=lambda x: x.busy[0] == capacity[0]),
        mc.Action("reject", cost=reject[0], allowed=lambda x: x.busy[0] == capacity[0]),
    )
    second = (
        mc.Action("local", mc.step(busy={1: +1})),
        mc.Action("reject", cost=reject[1], allowed=lambda x: x.busy[1] == capacity[1]),
    )
    arrivals = (
        mc.Event("arrival 0", arrival_rates[0], first),
        mc.Event("arrival 1", arrival_rates[1], second),
    )
    return mc.Model(
        mc.Lattice({"busy": tuple(capacity)}),
        (*arrivals, *departures(service_rates)),
        measures={f"rejected {k}": (f"arrival {k}", "reject") for k in (0, 1)},
    )


def departures(service_rates: Pair) -> list[mc.Event]:
    """One event per centre."""
    return [
        mc.Event(f"departure {k}", lambda x, k=k, mu=mu: mu * x.busy[k], mc.step(busy={k: -1}))
        for k, mu in enumerate(service_rates)
    ]


def offload_when_full(capacity: Sequence[int], probability: Pair) -> dict[str, Any]:
    """Local where that fits; else offloaded with a probability, if there is room; else rejected."""

    def chances(k: int) -> dict[str, Any]:
        def full(x: Any) -> Any:
            return x.busy[k] == capacity[k]

        def offload(x: Any) -> Any:
            return probability[k] * (full(x) & (x.busy[1 - k] < capacity[1 - k]))

        return {
            "local": lambda x: 1.0 - full(x),
            "offload": offload,
            "reject": lambda x: full(x) - offload(x),
        }

    return {f"arrival {k}": chances(k) for k in (0, 1)}


def reserve(capacity: Sequence[int], reserved: int) -> dict[str, Any]:
    """Redirected only if more than `reserved` places of the other centre are free."""

    def rule(x: Any) -> Any:
        away = np.where(capacity[1] - x.busy[1] > reserved, "redirect", "reject")
        return np.where(x.busy[0] < capacity[0], "local", away)

    return {"arrival 0": rule, "arrival 1": lambda x: np.where(x.busy[1] < capacity[1], 0, 1)}


BOTH = reference("allocation")["S5_finite_mdp_ring"]["mdp"][1]
TRUNK = reference("allocation")["S6_finite_mdp"]["mdp"][7]


def arguments(r: Any) -> tuple[tuple[int, int], Pair, Pair, Pair]:
    """Capacities, arrival rates, service rates and prices of a record."""
    return (
        (r["C1"], r["C2"]),
        (r["lambda1"], r["lambda2"]),
        (r["mu1"], r["mu2"]),
        (r["w1"], r["w2"]),
    )


CASES = (
    Case(
        "offloading",
        lambda: offloading(*arguments(BOTH)),
        "allocation.json S5",
        BOTH["opt"]["both"],
        {
            f"offload {p}": Heuristic(
                offload_when_full((BOTH["C1"], BOTH["C2"]), tuple(map(float, p.split(",")))), cost
            )
            for p, cost in BOTH["p_policies"].items()
        },
        tolerance=1e-11,
    ),
    Case(
        "offloading exact",
        lambda: offloading((1, 1), (1.0, 2.0), (1.0, 1.0), (1.0, 1.0)),
        "allocation.json, exact rationals",
        None,
        {
            "offload": Heuristic(
                offload_when_full((1, 1), (0.5, 0.25)),
                Fraction(80, 163) + 2 * Fraction(203, 326),
                {"rejected 0": Fraction(80, 163), "rejected 1": 2 * Fraction(203, 326)},
            )
        },
        tolerance=1e-14,
    ),
    Case(
        "trunk reservation",
        lambda: trunk_reservation(*arguments(TRUNK)),
        "allocation.json S6",
        TRUNK["opt_cost"],
        {
            f"reserve {a}": Heuristic(reserve((TRUNK["C1"], TRUNK["C2"]), a), cost)
            for a, cost in enumerate(TRUNK["costs_by_a"])
        },
        tolerance=1e-11,
    ),
    Case(
        "trunk reservation exact",
        lambda: trunk_reservation((1, 2), (2.0, 1.0), (1.0, 1.0), (1.0, 1.0)),
        "allocation.json, exact rationals",
        None,
        {
            f"reserve {a}": Heuristic(
                reserve((1, 2), a), 2 * b0 + b1, {"rejected 0": 2 * b0, "rejected 1": b1}
            )
            for a, (b0, b1) in enumerate(
                (
                    (Fraction(394, 1227), Fraction(535, 1227)),
                    (Fraction(446, 843), Fraction(215, 843)),
                    (Fraction(2, 3), Fraction(1, 5)),
                )
            )
        },
        tolerance=1e-14,
    ),
)
