"""Priority indices of a node: what one more job costs, by three theories.

A job is routed to the node of lowest index (plus its routing charge) if that is at most the
outside cost.

* individually optimal, IO(i) = c(i+1) / D(i+1): the job's own mean cost; later jobs do not count;
* restless bandit, RB(i): the charge per refused job at which accepting and refusing are equally
  good in state i, if the whole stream came to this node alone (Whittle's index);
* policy improvement, PI(i): the difference h(i+1) - h(i) of the relative values under a random
  split that sends this node a stream of its own rate; the rule is one improvement of the split.

All are averages of the ratio rho of `mdpcloud.indices.node`. If it is nondecreasing, so are they,
and IO <= RB <= PI at equal arrival rates. Source: Nino-Mora (2019), Computers & Operations
Research 103, 221-236, in the form of positive recursions (`mdpcloud.indices.index_kernels`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.node import Node
from mdpcloud.queues.border import checked_count, checked_number
from mdpcloud.queues.law import node_law

__all__ = ["individually_optimal", "policy_improvement", "restless_bandit"]

FARTHEST = 20_000_000  # states beyond those asked for; 24 bytes each


def individually_optimal(node: Node, last: int) -> NDArray[np.float64]:
    """Index of a job that looks after itself.

    Parameters
    ----------
    node : Node
    last : int
        Largest state, >= 0.

    Returns
    -------
    (last+1,) ndarray
        IO(i) = c(i+1) / D(i+1) in cost per job, for i = 0..last; constant below m; inf from the
        room on.

    Raises
    ------
    InputError
        If `last` is no whole number >= 0.

    Examples
    --------
    >>> individually_optimal(Node(1, 1.0, 0.5), 3)
    array([0.        , 0.33333333, 0.5       , 0.6       ])
    """
    after = np.arange(1, checked_count("last", last, least=0) + 2)
    averages = node.costs(after) / node.departures(after)
    return _closed(node, np.where(after <= node.servers, node.ratios[0], averages))


def restless_bandit(node: Node, arrival_rate: float, last: int) -> NDArray[np.float64]:
    """Whittle's index of a node that could see the whole stream.

    Parameters
    ----------
    node : Node
    arrival_rate : float
        Rate lam >= 0 of all arrivals to the system, per unit of time.
    last : int
        Largest state, >= 0.

    Returns
    -------
    (last+1,) ndarray
        RB(i) = [c(i+1) - E_i c] / [D(i+1) - E_i D] in cost per job, for i = 0..last, where E_i is
        the stationary mean with room i; constant below m; inf from the room on.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> restless_bandit(Node(1, 1.0, 0.5), 0.8, 2)
    array([0.        , 0.47368421, 0.66814159])
    """
    from mdpcloud.indices.index_kernels import whittle_index

    index = np.empty(checked_count("last", last, least=0) + 1)
    lam = checked_number("arrival_rate", arrival_rate, zero=True)
    whittle_index(node.servers, node.departure_slopes, node.cost_slopes, lam, index)
    return _closed(node, index)


def policy_improvement(
    node: Node, arrival_rate: float, last: int, *, blocked_cost: float | None = None
) -> NDArray[np.float64]:
    """Index of one policy improvement step from a random split.

    Parameters
    ----------
    node : Node
    arrival_rate : float
        Rate lam >= 0 at which the split sends jobs to this node, per unit of time.
    last : int
        Largest state, >= 0.
    blocked_cost : float, optional
        Cost of a job that the split sends to the full node; needed where the room is finite.

    Returns
    -------
    (last+1,) ndarray
        PI(i) = h(i+1) - h(i) in cost per job, for i = 0..last; inf from the room on.

    Raises
    ------
    InputError
        If an argument is out of range; if rho >= 1 without abandonment and room limit; or if
        abandonment is so rare near rho = 1 that the index depends on too many states.

    Notes
    -----
    Howard's equation lam PI(i) = D(i) PI(i-1) + g - c(i) multiplies errors by D(i) / lam. Written
    with the quantities of the Whittle index it is stable backward, PI(i) = [Q_i + lam PI(i+1)] /
    [D(i+1) + lam B_i], from a far state at which PI lies within rounding of RB; from the room,
    where it is `blocked_cost`; or without abandonment from the closed form of M/M/m.

    Examples
    --------
    >>> policy_improvement(Node(1, 1.0, 0.5), 0.8, 2)
    array([0.2559407 , 0.57586658, 0.71069054])
    """
    from mdpcloud.indices.index_kernels import improvement_steps

    last = checked_count("last", last, least=0)
    lam = checked_number("arrival_rate", arrival_rate, zero=True)
    if lam == 0.0:
        return individually_optimal(node, last)
    index = _start(node, lam, last, blocked_cost)
    improvement_steps(node.servers, node.departure_slopes, node.cost_slopes, lam, index)
    wanted = np.full(last + 1, np.inf)
    wanted[: index.size] = index[: last + 1]
    return _closed(node, wanted)


def _start(node: Node, lam: float, last: int, blocked_cost: float | None) -> NDArray[np.float64]:
    """Array up to a state M whose index is known; only that last entry counts."""
    from mdpcloud.indices.index_kernels import settled_state, whittle_index

    if node.room is not None:
        if blocked_cost is None:
            raise InputError(f"blocked_cost is needed for a node with room for {node.room} jobs")
        index = np.empty(node.room + 1)
        index[-1] = checked_number("blocked_cost", blocked_cost, zero=True)
        return index
    far = max(last, node.servers)
    if node.cost_slopes[1] == 0.0:
        return np.zeros(far + 1)
    if node.abandonment_rate == 0.0:
        index = np.empty(far + 1)
        index[-1] = _patient_index(node, lam, far)
        return index
    settled = settled_state(
        node.servers, node.departure_slopes, node.cost_slopes, lam, far, far + FARTHEST + 1
    )
    if settled > far + FARTHEST:
        raise InputError(
            f"abandonment_rate = {node.abandonment_rate} is so small at arrival rate {lam} that "
            f"the policy improvement index depends on more than {FARTHEST} states; use 0 (with "
            "rho < 1) or a larger rate"
        )
    index = np.empty(settled + 1)
    whittle_index(node.servers, node.departure_slopes, node.cost_slopes, lam, index)
    return index


def _patient_index(node: Node, lam: float, state: int) -> float:
    """M/M/m with holding cost, i >= m: PI(i) = w [i+1 - a + lam (1-C) / s] / s, s = m mu - lam."""
    law = node_law(node.servers, node.service_rate, 0.0, lam)
    spare = float(node.servers * Fraction(node.service_rate) - Fraction(lam))
    jobs = state + 1 - law.busy + lam * (1.0 - law.waiting) / spare
    return float(node.holding_cost * jobs / spare)


def _closed(node: Node, index: NDArray[np.float64]) -> NDArray[np.float64]:
    if node.room is not None:
        index[node.room :] = np.inf
    return index
