"""A random split of jobs over nodes: its long-run averages in closed form, and its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud import indices as theory
from mdpcloud.policies.bernoulli_split import BernoulliSplit
from mdpcloud.queues.law import node_law

__all__ = ["split_means", "split_rule"]


def split_means(nodes: Sequence[theory.Node], split: BernoulliSplit) -> dict[str, float]:
    """Long-run averages of the model's measures under a split, exponential times."""
    means: dict[str, float] = {}
    lost = 0.0
    blocked = 0.0
    for k, (node, rate) in enumerate(zip(nodes, split.rates, strict=True)):
        found, turned_away = _node_means(k, node, float(rate))
        means |= found
        means[f"routing_rate[{k}]"] = float(rate) - turned_away
        lost += found[f"abandonment_rate[{k}]"]
        blocked += turned_away
    for total in ("mean_jobs", "mean_queue"):
        means[total] = sum(means[f"{total}[{k}]"] for k in range(len(nodes)))
    means["abandonment_rate"] = lost
    means["outsourcing_rate"] = float(split.outside_rate) + blocked
    return means


def _node_means(k: int, node: theory.Node, rate: float) -> tuple[dict[str, float], float]:
    """Long-run averages of a node under its Poisson stream, and its rate of blocked jobs."""
    in_service = node.service_rate + (
        node.abandonment_rate if node.deadline == "end_service" else 0.0
    )
    busy = queue = blocked = 0.0
    if rate > 0:
        law = node_law(node.servers, in_service, node.abandonment_rate, rate, node.room)
        busy, queue, blocked = law.busy, law.queue, rate * law.full
    exposed = queue + (busy if node.deadline == "end_service" else 0.0)
    means = {
        f"abandonment_rate[{k}]": node.abandonment_rate * exposed,
        f"mean_jobs[{k}]": busy + queue,
        f"mean_queue[{k}]": queue,
        f"utilisation[{k}]": busy / node.servers,
    }
    return means, blocked


def split_rule(probabilities: NDArray[np.float64], rooms: Sequence[int | None]) -> dict[str, Any]:
    """A random split as a rule: action to its probability.

    Where rooms are limited the probabilities are functions of the state: jobs drawn for a full room
    go outside.
    """
    rule: dict[str, Any] = {"outside": max(0.0, 1.0 - float(np.sum(probabilities)))}
    limited = {k: room for k, room in enumerate(rooms) if room is not None}
    for k, share in enumerate(probabilities):
        inside = partial(_within, k, limited[k], float(share)) if k in limited else float(share)
        rule[f"node {k}"] = inside
    if limited:
        shares = {k: float(probabilities[k]) for k in limited}
        rule["outside"] = partial(_turned_away, rule["outside"], limited, shares)
    return rule


def _within(k: int, room: int, share: float, x: Any) -> NDArray[np.float64]:
    return np.where(np.asarray(x.node[k]) < room, share, 0.0)


def _turned_away(
    outside: float, rooms: Mapping[int, int], shares: Mapping[int, float], x: Any
) -> Any:
    return outside + sum(
        np.where(np.asarray(x.node[k]) >= room, shares[k], 0.0) for k, room in rooms.items()
    )
