"""A link on which jobs may be downgraded (Fricker, Guillemin, Robert and Thompson 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


def occupied(x: Any, demands: Sequence[int]) -> Any:
    """Capacity in use."""
    return sum(a * x.jobs[j] for j, a in enumerate(demands))


def downgrading(
    demands: Sequence[int],
    arrival_rates: Sequence[float],
    service_rates: Sequence[float],
    capacity: int,
    reject_cost: Sequence[float],
    downgrade_cost: Sequence[float],
    level: int = 0,
) -> mc.Model:
    """Each job is accepted in full, downgraded to class 0 or rejected; `level` is only measured."""
    arrivals = [
        mc.Event(
            f"arrival {j}",
            rate,
            (
                mc.Action("full", mc.step(jobs={j: +1})),
                *(
                    [mc.Action("downgrade", mc.step(jobs={0: +1}), cost=downgrade_cost[j])]
                    if j
                    else []
                ),
                mc.Action("reject", cost=reject_cost[j]),
            ),
        )
        for j, rate in enumerate(arrival_rates)
    ]
    departures = [
        mc.Event(f"departure {j}", lambda x, j=j, mu=mu: mu * x.jobs[j], mc.step(jobs={j: -1}))
        for j, mu in enumerate(service_rates)
    ]
    return mc.Model(
        mc.Lattice(
            {"jobs": tuple(capacity // a for a in demands)},
            where=lambda x: occupied(x, demands) <= capacity,
        ),
        (*arrivals, *departures),
        measures={
            "below": lambda x: 1.0 * (occupied(x, demands) < level),
            "full": lambda x: 1.0 * (occupied(x, demands) == capacity),
        },
    )


def downgrade_from(level: int, demands: Sequence[int], capacity: int) -> dict[str, Any]:
    """Policy D(level): in full below the level where that fits, else downgraded, else rejected."""

    def rule(x: Any, a: int, last: str) -> Any:
        used = occupied(x, demands)
        in_full = (used < level) & (used + a <= capacity)
        return np.where(in_full, "full", np.where(used < capacity, last, "reject"))

    def rule_of(j: int, a: int) -> Any:
        return lambda x: rule(x, a, "downgrade" if j else "full")

    return {f"arrival {j}": rule_of(j, a) for j, a in enumerate(demands)}


def accept_in_full(demands: Sequence[int], capacity: int) -> dict[str, Any]:
    """Pure loss system: in full where that fits, else rejected (action numbers, not names)."""

    def rule_of(j: int, a: int) -> Any:
        return lambda x: np.where(occupied(x, demands) + a <= capacity, 0, 2 if j else 1)

    return {f"arrival {j}": rule_of(j, a) for j, a in enumerate(demands)}


TWO, THREE = (reference("allocation")["S3"]["mdp"][i] for i in (1, 5))


def published(r: Any) -> Case:
    """Case of a record of the reference file."""
    demands, capacity, best = tuple(r["A"]), r["C"], r["best_C0"]
    arguments = (demands, r["lam"], r["mu"], capacity, r["w_rej"], r["w_dg"])
    return Case(
        f"downgrading {demands}",
        lambda: downgrading(*arguments),
        "allocation.json S3",
        r["opt_cost"],
        {
            f"from {best}": Heuristic(downgrade_from(best, demands, capacity), r["best_C0_cost"]),
            "from 0": Heuristic(downgrade_from(0, demands, capacity), r["all_C0_costs"]["0"]),
            "pure loss": Heuristic(accept_in_full(demands, capacity), r["pure_loss_cost"]),
        },
        tolerance=1e-11,
    )


CASES = (
    published(TWO),
    published(THREE),
    Case(
        "downgrading exact",
        lambda: downgrading((1, 2), (1.0, 2.0), (1.0, 2.0), 4, (1.0, 1.0), (0.0, 0.0), level=2),
        "allocation.json, exact rationals",
        None,
        {
            "from 2": Heuristic(
                downgrade_from(2, (1, 2), 4),
                None,
                {"below": Fraction(1024, 3863), "full": Fraction(831, 3863)},
            )
        },
        tolerance=1e-14,
    ),
)
