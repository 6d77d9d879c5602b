"""How a routing system is simulated: by its events, or job by job where its laws ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.laws import Exponential
from mdpcloud.model.policy import Policy
from mdpcloud.queues.border import LARGEST_COUNT

if TYPE_CHECKING:
    from mdpcloud.simulate.jobs import Pool
    from mdpcloud.simulate.protocol import Simulation
    from mdpcloud.systems.cloud_routing import CloudRouting, Node

__all__ = ["law_notes", "simulate_jobs", "simulate_model", "split_rule", "unusual_laws"]

SHOWN = 3  # nodes that a message names


def unusual_laws(nodes: Sequence[Node]) -> list[str]:
    """Which nodes have services or patience that are not exponential, in words.

    "scv" is the squared coefficient of variation.
    """
    return [
        f"{name} of nodes[{k}] is {law.law} (scv {law.scv:.4g})"
        for k, node in enumerate(nodes)
        for name in ("service", "patience")
        if (law := getattr(node, name)) is not None and not isinstance(law, Exponential)
    ]


def law_notes(nodes: Sequence[Node]) -> list[str]:
    """What a reader has to know of laws that are not exponential: one sentence, or nothing."""
    found = unusual_laws(nodes)
    if not found:
        return []
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [
        f"{', '.join(found[:SHOWN])}{more}: indices, thresholds and the split are those of "
        "exponential times of the same means, and policies can be compared by simulation only"
    ]


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


def simulate_model(system: CloudRouting, rule: Any, start: Any) -> Simulation:
    """The events of the model, on a box that is never full but for the rooms.

    A policy made of arrays is simulated on the box that it was made for.
    """
    from mdpcloud.simulate.events import event_simulation

    own = getattr(rule, "policy", None)
    rule = own if isinstance(own, Policy) else rule
    caps = [LARGEST_COUNT] * len(system.nodes)
    if isinstance(rule, Policy):
        caps = [size - 1 for size in rule.shape]
    return event_simulation(system.model(caps), rule, start)


def simulate_jobs(system: CloudRouting, rule: Any, start: Any) -> Simulation:
    """The jobs one by one, from the empty system."""
    from mdpcloud.simulate.jobs import JobSimulation

    if start is not None and np.any([np.any(value) for value in dict(start).values()]):
        raise InputError(
            f"start is {start!r}; where services or patience are not exponential, paths begin in "
            "the empty system, as a number of jobs does not say how long they have been there"
        )
    return JobSimulation(
        tuple(_pool(node) for node in system.nodes),
        system.arrival_rate,
        system.outside_cost,
        system.deadline == "end_service",
        rule,
    )


def _pool(node: Node) -> Pool:
    from mdpcloud.simulate.jobs import Duration, Pool

    exponential, theta = Exponential(), node.abandonment_rate
    patience = Duration(node.patience or exponential, 1.0 / theta) if theta > 0.0 else None
    return Pool(
        node.servers,
        Duration(node.service or exponential, 1.0 / node.service_rate),
        patience,
        node.room,
        node.fee,
        node.routing_charge,
        node.holding_cost,
    )
