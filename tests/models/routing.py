"""Routing to parallel nodes with impatient jobs, or outside at a price (Nino-Mora 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import mdpcloud as mc
from tests.models import Case, Heuristic, reference


@dataclass(frozen=True)
class Node:
    """``servers`` of ``service_rate`` each; jobs that wait leave at ``abandonment_rate``."""

    servers: int
    service_rate: float
    abandonment_rate: float

    def loss_rate(self, i: Any) -> Any:
        """Abandonments per unit of time with `i` jobs present."""
        return self.abandonment_rate * np.maximum(i - self.servers, 0)

    def death_rate(self, i: Any) -> Any:
        """Departures of any kind per unit of time with `i` jobs present."""
        return self.service_rate * np.minimum(i, self.servers) + self.loss_rate(i)


def routing(
    nodes: Sequence[Node], arrival_rate: float, outside: float, caps: Sequence[int]
) -> mc.Model:
    """Model with deadlines to the beginning of service; no job joins a node at its cap."""
    arrival = mc.Event(
        "arrival",
        arrival_rate,
        (
            mc.Action("outside", cost=outside),
            *(mc.Action(f"node {k}", mc.step(node={k: +1})) for k in range(len(nodes))),
        ),
    )
    departures = [
        mc.Event(
            f"departure {k}",
            lambda x, k=k, node=node: node.death_rate(x.node[k]),
            mc.Action("leave", mc.step(node={k: -1})),
        )
        for k, node in enumerate(nodes)
    ]
    losses = [lambda x, k=k, node=node: node.loss_rate(x.node[k]) for k, node in enumerate(nodes)]
    return mc.Model(
        mc.Lattice({"node": tuple(caps)}),
        (arrival, *departures),
        cost_rate=losses,
        measures={"abandoned": losses, "outsourced": ("arrival", "outside")},
    )


def join_least(tables: Sequence[Sequence[float]], outside: float) -> Any:
    """Join the node of the least index if that is at most `outside`; ties to the lowest label."""

    def rule(x: Any) -> Any:
        lookups = [np.asarray(t)[np.asarray(x.node[k])] for k, t in enumerate(tables)]
        values = np.stack(np.broadcast_arrays(*lookups))
        best = np.argmin(np.round(values, 12), axis=0)
        return np.where(values.min(axis=0) <= outside + 1e-13, 1 + best, 0)

    return rule


def join_fastest_free(servers: Sequence[int]) -> Any:
    """Join the first node with a free server, else send outside; action names, not numbers."""

    def rule(x: Any) -> Any:
        free = [x.node[k] < m for k, m in enumerate(servers)]
        return np.select(free, [f"node {k}" for k in range(len(servers))], "outside")

    return rule


def individual(node: Node, cap: int) -> list[float]:
    """Index of the individually optimal rule: the probability that a joining job abandons."""
    after = [node.loss_rate(i + 1) / node.death_rate(i + 1) for i in range(cap)]
    return [*map(float, after), np.inf]


def threshold(levels: Sequence[int]) -> Any:
    """One node: join below the level, else outside."""
    return lambda x: np.where(x.node[0] < levels[0], 1, 0)


def split(share: float, cap: int) -> dict[str, Any]:
    """One node: join with a fixed probability, except at the cap."""
    return {
        "outside": lambda x: 1 - share * (x.node[0] < cap),
        "node 0": lambda x: share * (x.node[0] < cap),
    }


def record(name: str) -> Any:
    """The instance of that name with deadlines to the beginning of service."""
    return next(m for m in reference("routing")["mdp"] if (m["name"], m["kind"]) == (name, "DBS"))


def instance(name: str) -> tuple[tuple[Node, ...], float, float, tuple[int, ...]]:
    """Arguments of `routing` for a reference instance, with its exact finite box."""
    r = record(name)
    nodes = tuple(Node(n["m"], n["mu"], n["theta"]) for n in r["nodes"])
    return nodes, r["lam"], r["C"], tuple(r["box_K"])


def individually_optimal(name: str) -> Any:
    """The individually optimal rule of a reference instance."""
    nodes, _, outside, caps = instance(name)
    return join_least([individual(n, c) for n, c in zip(nodes, caps, strict=True)], outside)


def wide_single_node() -> mc.Model:
    """Instance A2 in a box of 60, wide enough for a split that ignores the state."""
    nodes, arrival_rate, outside, _ = instance("A2")
    return routing(nodes, arrival_rate, outside, (60,))


A2 = record("A2")
SHARE = A2["BS"]["lam_k"][0] / A2["lam"]
B6 = record("B6")
C6 = (Node(1, 1.0, 0.5), Node(2, 0.8, 0.5), Node(1, 2.0, 0.5))

CASES = (
    Case(
        "routing A1",
        lambda: routing(*instance("A1")),
        "routing.md 13c, exact rational",
        Fraction(28, 225),
        {
            "restless bandit": Heuristic(
                {"arrival": threshold([1])},
                Fraction(28, 225),
                {"abandoned": Fraction(0), "outsourced": Fraction(16, 45)},
            ),
            "individually optimal": Heuristic({"arrival": threshold([2])}, 0.1494610778, {}),
        },
        tolerance=1e-10,
    ),
    Case(
        "routing A2, wide",
        wide_single_node,
        "routing.json, A2 DBS",
        A2["optimum"],
        {
            "individually optimal": Heuristic({"arrival": threshold([4])}, A2["cost"]["IO"]),
            "bernoulli split": Heuristic(
                {"arrival": split(SHARE, 60)},
                A2["BS"]["cost"],
                {"outsourced": A2["BS"]["lam0"]},
            ),
        },
        tolerance=2e-10,
    ),
    Case(
        "routing B1",
        lambda: routing(*instance("B1")),
        "routing.md 13c, exact rationals",
        Fraction(3546, 7715),
        {
            "individually optimal": Heuristic(
                {"arrival": individually_optimal("B1")}, Fraction(1254438, 2300615)
            ),
            "first free": Heuristic({"arrival": join_fastest_free([1, 1])}, Fraction(12, 25)),
        },
        tolerance=1e-12,
    ),
    Case(
        "routing B6",
        lambda: routing(*instance("B6")),
        "routing.json, B6 DBS",
        B6["optimum"],
        {
            "individually optimal": Heuristic(
                {"arrival": individually_optimal("B6")}, B6["cost"]["IO"]
            ),
        },
        tolerance=2e-10,
    ),
    Case(
        "routing C6",
        lambda: routing(C6, 4.0, 0.45, (2, 4, 4)),
        "routing.md 13c",
        0.4231982205,
        {
            "individually optimal": Heuristic(
                {
                    "arrival": join_least(
                        [individual(n, c) for n, c in zip(C6, (2, 4, 4), strict=True)], 0.45
                    )
                },
                0.5271753853,
            ),
        },
        tolerance=2e-10,
    ),
)
