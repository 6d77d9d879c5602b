"""How a routing system is simulated: by its events, or job by job where its laws ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError
from mdpcloud.laws import Exponential
from mdpcloud.model.policy import Policy
from mdpcloud.model.space import Axes
from mdpcloud.queues.border import LARGEST_COUNT

if TYPE_CHECKING:
    from mdpcloud.simulate.jobs import Pool
    from mdpcloud.simulate.protocol import Simulation
    from mdpcloud.systems.cloud_routing import CloudRouting, Node

__all__ = ["law_notes", "simulate_jobs", "simulate_model", "unusual_laws"]

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

    if start is not None:
        _check_empty(start, len(system.nodes))
    return JobSimulation(
        tuple(_pool(node) for node in system.nodes),
        system.arrival_rate,
        system.outside_cost,
        system.deadline == "end_service",
        rule,
    )


def _check_empty(start: Any, nodes: int) -> None:
    """Refuse a start that has jobs, or other coordinates than the system."""
    from mdpcloud.simulate.starts import coordinates

    if any(coordinates(start, Axes({"node": (0,) * nodes}, "start"))):
        raise InputError(
            f"start is {start!r}; where services or patience are not exponential, paths begin in "
            "the empty system, as a number of jobs does not say how long they have been there"
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
