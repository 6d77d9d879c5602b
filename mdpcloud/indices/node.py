"""One node of a routing system: m servers, a queue, deadlines and costs.

In state i (jobs present) jobs are served at rate S(i) = min(i, m) mu, and lost at rate L(i) =
(i-m)^+ theta (deadline to the beginning of service) or L(i) = i theta (to the end). Jobs depart at
rate D = S + L and cost c(i) = F L(i) + w i per unit of time. D and c are linear below and above m;
what the indices are like is decided by the two ratios rho of their slopes,

    rho(i) = w / mu                                (deadlines to the beginning, i < m),
             (F theta + w) / (theta + mu)          (deadlines to the end, i < m),
             (F theta + w) / theta = F + w / theta (both, i >= m).

Model: Nino-Mora (2019), Computers & Operations Research 103, 221-236; holding costs, fees and
finite rooms are extensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.queues.border import checked_choice, checked_count, checked_number
from mdpcloud.queues.impatient import DEADLINES

__all__ = ["Node", "condition_note", "rho_is_monotone"]


@dataclass(frozen=True)
class Node:
    """A node with m parallel servers, exponential services and deadlines.

    Attributes
    ----------
    servers : int
        Number of servers m >= 1.
    service_rate, abandonment_rate : float
        Rates mu > 0 of one server and theta >= 0 of a job's deadline, per unit of time.
    deadline : {"begin_service", "end_service"}
        Whether a job leaves at its deadline only while it waits, or in service too.
    fee : float
        Cost F >= 0 of a lost job.
    holding_cost : float
        Cost w >= 0 per job present and unit of time.
    room : int or None
        Most jobs present (waiting and in service), >= 1; None for unlimited.

    Raises
    ------
    InputError
        If a value is out of range; the message names it.

    Examples
    --------
    >>> node = Node(servers=2, service_rate=1.0, abandonment_rate=0.5)
    >>> node.losses([0, 1, 2, 3])
    array([0. , 0. , 0. , 0.5])
    """

    servers: int
    service_rate: float
    abandonment_rate: float
    deadline: str = "begin_service"
    fee: float = 1.0
    holding_cost: float = 0.0
    room: int | None = None

    def __post_init__(self) -> None:
        checked_count("servers", self.servers)
        checked_number("service_rate", self.service_rate)
        checked_number("abandonment_rate", self.abandonment_rate, zero=True)
        checked_choice("deadline", self.deadline, DEADLINES)
        checked_number("fee", self.fee, zero=True)
        checked_number("holding_cost", self.holding_cost, zero=True)
        if self.room is not None:
            checked_count("room", self.room)

    @property
    def departure_slopes(self) -> tuple[float, float]:
        """D(i+1) - D(i) below and above m (per unit of time)."""
        mu, theta = float(self.service_rate), float(self.abandonment_rate)
        return (mu, theta) if self.deadline == "begin_service" else (mu + theta, theta)

    @property
    def cost_slopes(self) -> tuple[float, float]:
        """c(i+1) - c(i) below and above m (cost per unit of time)."""
        holding = float(self.holding_cost)
        losing = self.fee * self.abandonment_rate + holding
        return (holding, losing) if self.deadline == "begin_service" else (losing, losing)

    @property
    def ratios(self) -> tuple[float, float]:
        """The ratio rho of cost and departure slopes, below and above m (cost per job).

        Without abandonment the second is infinite, or 0 where there is no holding cost either.
        """
        (low_cost, high_cost), (low, high) = self.cost_slopes, self.departure_slopes
        if high == 0.0:
            return low_cost / low, math.inf if high_cost > 0.0 else 0.0
        return low_cost / low, high_cost / high

    def services(self, states: ArrayLike) -> NDArray[np.float64]:
        """Service rate S(i) in each state."""
        busy: NDArray[np.float64] = np.minimum(states, self.servers) * float(self.service_rate)
        return busy

    def losses(self, states: ArrayLike) -> NDArray[np.float64]:
        """Abandonment rate L(i) in each state."""
        exposed = np.asarray(states)
        if self.deadline == "begin_service":
            exposed = np.maximum(exposed - self.servers, 0)
        lost: NDArray[np.float64] = exposed * float(self.abandonment_rate)
        return lost

    def departures(self, states: ArrayLike) -> NDArray[np.float64]:
        """Departure rate D(i) = S(i) + L(i) in each state."""
        return self._two_slopes(self.departure_slopes, states)

    def costs(self, states: ArrayLike) -> NDArray[np.float64]:
        """Cost rate c(i) = F L(i) + w i in each state."""
        return self._two_slopes(self.cost_slopes, states)

    def _two_slopes(self, slopes: tuple[float, float], states: ArrayLike) -> NDArray[np.float64]:
        below = np.minimum(states, self.servers)
        line: NDArray[np.float64] = below * slopes[0] + (np.asarray(states) - below) * slopes[1]
        return line


def rho_is_monotone(node: Node) -> bool:
    """Whether the cost of one more job per departure it causes rises with the jobs present.

    It always does with deadlines to the end of service; with deadlines to the beginning it needs
    F + w / theta >= w / mu. All three indices are averages of rho: if it is nondecreasing, they
    are, the node is indexable, and its mean cost is convex in its arrival rate.

    Examples
    --------
    >>> rho_is_monotone(Node(1, 1.0, 4.0, fee=0.25, holding_cost=1.0))
    False
    """
    low, high = node.ratios
    return low <= high


def condition_note(node: Node) -> str | None:
    """Sentence for reports on a node for which the theory of the index rules fails, else None."""
    if rho_is_monotone(node):
        return None
    low, high = node.ratios
    return (
        f"fee + holding_cost / abandonment_rate = {high:.6g} is below holding_cost / service_rate "
        f"= {low:.6g}: waiting jobs cost less per departure than served ones; the node's indices "
        "decrease, its cost is concave in its arrival rate, and index rules and the optimal split "
        "are heuristics without their guarantees"
    )
