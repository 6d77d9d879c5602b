"""Two data centres with two resources that help each other (Thompson 2017, chapter 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference

Pair = Sequence[float]


def memory(x: Any, centre: int, r: int) -> Any:
    """Memory in use: jobs of type 0 take `r`, those of type 1 take one unit."""
    return r * x.jobs[centre] + x.jobs[2 + centre]


def processors(x: Any, centre: int, c: int) -> Any:
    """Processors in use: jobs of type 0 take one unit, those of type 1 take `c`."""
    return x.jobs[centre] + c * x.jobs[2 + centre]


def two_centres(
    r: int,
    c: int,
    capacity: Sequence[int],
    arrival_rates: Sequence[Pair],
    service_rates: Pair,
    reject: float,
    forward: float,
) -> mc.Model:
    """Jobs of type j in centre k are ``x.jobs[2 * j + k]``.

    `capacity` is (memory, processors) of centre 0, then of centre 1.
    """
    arrivals = [
        mc.Event(
            f"arrival {j}{k}",
            arrival_rates[j][k],
            (
                mc.Action("local", mc.step(jobs={2 * j + k: +1})),
                mc.Action("remote", mc.step(jobs={2 * j + 1 - k: +1}), cost=forward),
                mc.Action("reject", cost=reject),
            ),
        )
        for j in (0, 1)
        for k in (0, 1)
    ]
    departures = [
        mc.Event(
            f"departure {i}",
            lambda x, i=i: service_rates[i // 2] * x.jobs[i],
            mc.step(jobs={i: -1}),
        )
        for i in range(4)
    ]
    (m0, p0, m1, p1) = capacity
    return mc.Model(
        mc.Lattice(
            {"jobs": (min(m0 // r, p0), min(m1 // r, p1), min(m0, p0 // c), min(m1, p1 // c))},
            where=lambda x: fits(x, r, c, capacity, 0) & fits(x, r, c, capacity, 1),
        ),
        (*arrivals, *departures),
        measures={"rejected 0 at 0": ("arrival 00", "reject")},
    )


def fits(
    x: Any, r: int, c: int, capacity: Sequence[int], k: int, more: tuple[int, int] = (0, 0)
) -> Any:
    """Whether centre `k` can hold its jobs and `more` (memory, processors)."""
    room = memory(x, k, r) + more[0] <= capacity[2 * k]
    return room & (processors(x, k, c) + more[1] <= capacity[2 * k + 1])


def keep_below(levels: Pair, r: int, c: int, capacity: Sequence[int]) -> dict[str, Any]:
    """Type k at its own centre k is kept below a level; other jobs leave if they do not fit."""

    def rule(x: Any, j: int, k: int) -> Any:
        need = ((r, 1), (1, c))[j]
        local = fits(x, r, c, capacity, k, need)
        if j == k:
            local = local & ((memory(x, 0, r) if k == 0 else processors(x, 1, c)) < levels[k])
        away = np.where(fits(x, r, c, capacity, 1 - k, need), "remote", "reject")
        return np.where(local, "local", away)

    return {f"arrival {j}{k}": lambda x, j=j, k=k: rule(x, j, k) for j in (0, 1) for k in (0, 1)}


def published(index: int) -> Case:
    """Case of a record of the reference file."""
    r = reference("allocation")["S4"]["mdp"][index]
    s = reference("allocation")["S4"][r["set"]]
    capacity = tuple(round(r["N"] * cap) for cap in s["cap"])
    rates = [[r["N"] * rate for rate in row] for row in s["lam_jk"]]
    cost, levels = r["best_threshold"]
    finite = next((f for f in s["finite"] if f["N"] == r["N"]), None)
    rejected = (
        {"rejected 0 at 0": rates[0][0] * finite["local_remote_reject"]["11"][2]} if finite else {}
    )
    return Case(
        f"two centres {r['set']} {r['N']}",
        lambda: two_centres(s["R"], s["C"], capacity, rates, s["mu"], r["w_rej"][0], r["w_fwd"][0]),
        "allocation.json S4",
        r["opt"],
        {"best levels": Heuristic(keep_below(levels, s["R"], s["C"], capacity), cost, rejected)},
        tolerance=1e-11,
    )


CASES = (published(1), published(2))
