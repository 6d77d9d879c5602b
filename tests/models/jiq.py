"""Idle servers leave tokens at dispatchers (van der Boor, Borst and van Leeuwaarden)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


def tokens(servers: int, load: float, shares: Sequence[float], exchange: float = 0.0) -> mc.Model:
    """A freed server chooses a dispatcher; tokens move to a random one at rate `exchange`."""
    total = load * servers
    dispatchers = range(len(shares))
    arrivals = [
        mc.Event(
            f"arrival {r}",
            share * total,
            (
                mc.Action("use a token", mc.step(token={r: -1})),
                mc.Action("lost", cost=1 / total, allowed=lambda x, r=r: x.token[r] == 0),
            ),
        )
        for r, share in enumerate(shares)
    ]
    freed = mc.Event(
        "freed",
        lambda x: servers - sum(x.token),
        tuple(mc.Action(f"to {r}", mc.step(token={r: +1})) for r in dispatchers),
    )
    moves = [
        mc.Event(
            f"exchange {r}",
            lambda x, r=r: exchange * x.token[r],
            mc.Action(
                "move",
                [
                    mc.Move(1 / len(shares), mc.step(token={r: -1, s: +1}) if s != r else None)
                    for s in dispatchers
                ],
            ),
        )
        for r in dispatchers
    ]
    return mc.Model(
        mc.Lattice({"token": (servers,) * len(shares)}, where=lambda x: sum(x.token) <= servers),
        (*arrivals, freed, *(moves if exchange else [])),
        measures={f"lost at {r}": (f"arrival {r}", "lost") for r in dispatchers},
    )


def published(index: int) -> Case:
    """Case of a decision problem of the reference file."""
    r = reference("networks")["B_jiq_multi_dispatcher"]["mdp"][index]
    shares = r["alpha"]
    uniform = {f"to {k}": 1 / len(shares) for k in range(len(shares))}
    proportional = {f"to {k}": share for k, share in enumerate(shares)}
    return Case(
        f"jiq {len(shares)} dispatchers",
        lambda: tokens(r["N"], r["lam"], shares),
        "networks.json B",
        r["blocking"]["opt"],
        {
            "uniform": Heuristic({"freed": uniform}, r["blocking"]["uniform"]),
            "proportional": Heuristic({"freed": proportional}, r["blocking"]["prop"]),
        },
        tolerance=2e-12,
    )


def exchanging() -> Case:
    """Case with exchange of tokens: uniform choice, no decision that matters in the reference."""
    records: list[Any] = reference("networks")["B_jiq_multi_dispatcher"]["blocking"]
    r = next(b for b in records if b["nu"] > 0 and b["N"] == 20 and b["beta"] == [0.5, 0.5])
    lost = r["ctmc"]["per_dispatcher"]
    return Case(
        "jiq with exchange",
        lambda: tokens(r["N"], r["lam"], r["alpha"], r["nu"]),
        "networks.json B",
        None,
        {
            "uniform": Heuristic(
                {"freed": {"to 0": 0.5, "to 1": 0.5}},
                r["ctmc"]["blocking"],
                {f"lost at {k}": r["alpha"][k] * r["lam"] * r["N"] * lost[k] for k in (0, 1)},
            )
        },
        tolerance=1e-11,
    )


CASES = (published(0), published(3), exchanging())
