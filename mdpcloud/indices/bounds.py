"""Bounds on the optimal cost of one more job at a node, and the exact box that they give.

Let h be the relative values of the optimal policy, external routing at cost C being always
possible. With rho as in `mdpcloud.indices.node` and U = sup rho,

    v(i) <= h(i + e_k) - h(i) <= U,      v(i) = sum_{j <= i} DD(j) inf_{y >= j} rho(y) / D(i+1).

Proof idea: let the system without the job copy every decision of the system with it; until the two
meet again, the cost so far plus v(state) is a submartingale. Hence a job is never routed to node k
in a state with r_k + v_k(i_k) > min(C, min_j (r_j + U_j)), and a box up to the first such state is
exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.node import Node, rho_is_monotone
from mdpcloud.queues.border import checked_number

__all__ = ["TIE_TOLERANCE", "accepts", "critical_cost", "exact_cap", "lower_bound", "upper_bound"]

TIE_TOLERANCE = 1e-13  # relative to the larger of the costs compared


def lower_bound(node: Node, states: ArrayLike) -> NDArray[np.float64]:
    """Least cost v(i) that one more job in state i brings about, whatever the policy.

    Parameters
    ----------
    node : Node
    states : array_like of int
        Jobs present before, >= 0.

    Returns
    -------
    ndarray
        Cost per job, of the shape of `states`: c(i+1) / D(i+1), exactly constant for i < m; the
        constant F + w / theta where rho decreases.
    """
    after = np.asarray(states) + 1
    low, high = node.ratios
    if not rho_is_monotone(node):
        return np.full(after.shape, high)
    averages = node.costs(after) / node.departures(after)
    return np.where(after <= node.servers, low, averages)


def upper_bound(node: Node) -> float:
    """Largest cost U = sup rho that one more job brings about; inf for patient jobs that cost."""
    return max(node.ratios)


def critical_cost(
    nodes: Sequence[Node], outside_cost: float, charges: Sequence[float] | None = None
) -> float:
    """Price above which no optimal policy accepts a job.

    It is c0 = min(C, min of r_k + U_k over the nodes of unlimited room).

    Parameters
    ----------
    nodes : sequence of Node
    outside_cost : float
        Cost C >= 0 of a job routed outside.
    charges : sequence of float, optional
        Charge r_k >= 0 for routing a job to node k; 0 by default.
    """
    charges = checked_charges(nodes, charges)
    unlimited = [r + upper_bound(k) for r, k in zip(charges, nodes, strict=True) if k.room is None]
    return min([checked_number("outside_cost", outside_cost, zero=True), *unlimited])


def accepts(index: ArrayLike, outside_cost: float, charge: float = 0.0) -> NDArray[np.bool_]:
    """Whether a job of this index is routed to the node: index <= C - r, ties included.

    Differences below `TIE_TOLERANCE` times max(C, r) count as ties; `exact_cap` counts in the same
    way.
    """
    allowance = TIE_TOLERANCE * max(abs(outside_cost), abs(charge))
    taken: NDArray[np.bool_] = np.asarray(index) <= outside_cost - charge + allowance
    return taken


def exact_cap(node: Node, critical: float, charge: float = 0.0) -> int | None:
    """Least number of jobs at which no optimal policy routes another one to the node.

    Parameters
    ----------
    node : Node
    critical : float
        The cost c0 of `critical_cost`, which depends on all nodes.
    charge : float
        Charge r for routing a job to this node.

    Returns
    -------
    int or None
        K = min {i : r + v(i) > c0}, at most the room; None if unbounded.

    Notes
    -----
    With t = c0 - r and slopes Dc, DD above m, c(j) > t D(j) reads (j-m)(Dc - t DD) > t D(m) - c(m),
    which gives j = K+1 without counting; the result is then checked against `lower_bound` at K and
    K-1.

    Examples
    --------
    >>> exact_cap(Node(3, 4.0, 0.3), 0.25), exact_cap(Node(3, 4.0, 0.3), 1.0)
    (16, None)
    """
    critical = checked_number("critical", critical, zero=True)
    cap = _first_refusal(node, critical, checked_number("charge", charge, zero=True))
    if cap is None or node.room is None:
        return node.room if cap is None else cap
    return min(cap, node.room)


def _first_refusal(node: Node, critical: float, charge: float) -> int | None:
    def refused(state: int) -> bool:
        return not accepts(lower_bound(node, state), critical, charge)

    if refused(0):
        return 0
    limit = critical - charge + TIE_TOLERANCE * max(critical, charge)
    rise = node.cost_slopes[1] - limit * node.departure_slopes[1]
    if rise <= 0.0 or not rho_is_monotone(node):
        return None
    start = limit * float(node.departures(node.servers)) - float(node.costs(node.servers))
    steps = start / rise
    if not steps < 2.0**53:  # the indices themselves no longer tell such states apart
        return None
    cap = node.servers + max(0, math.floor(steps))
    return next((k for k in (cap - 1, cap) if refused(k)), cap + 1)


def checked_charges(nodes: Sequence[Node], charges: Sequence[float] | None) -> list[float]:
    """Charges as floats >= 0, one per node, 0 by default; InputError naming the wrong one."""
    if charges is None:
        return [0.0] * len(nodes)
    if len(charges) != len(nodes):
        raise InputError(
            f"there are {len(charges)} charges for {len(nodes)} nodes; one each is needed"
        )
    return [checked_number(f"charges[{k}]", r, zero=True) for k, r in enumerate(charges)]
