"""The finite system of trunk reservation under every threshold at once.

With n_0 and n_1 busy servers, jobs of class 0 that find centre 0 full are redirected where
n_1 < s = C_1 - a. Below level s of n_1 the chains of all thresholds are that of complete sharing,
above it that without cooperation: passages up through the former and down through the latter (see
`mdpcloud.limits.qbd.passage`) are found once, and so are the probabilities of what happens below
and above a level, relative to the law of that level. Each threshold then takes one null vector of
C_0 + 1 phases. Nothing is subtracted, so that every probability is accurate relative to itself; as
n_0 does not depend on n_1, P(n_0 = C_0) must be Erlang's formula, and its distance from that is the
estimate of the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.qbd.algebra import dot
from mdpcloud.limits.qbd.law import null_vector
from mdpcloud.limits.qbd.passage import Passage, passage
from mdpcloud.queues.erlang import erlang_b

__all__ = ["ThresholdCosts", "blocking_by_threshold", "threshold_costs"]

Array: TypeAlias = NDArray[np.float64]

MOST_ENTRIES = 200_000_000
"""Numbers that are kept: C_1 matrices of C_0 + 1 rows (1.6 GB)."""

ROUNDING = 1e-13
"""Least estimate of the relative error."""


@dataclass(frozen=True, eq=False)
class ThresholdCosts:
    """Costs of trunk reservation for every threshold.

    Attributes
    ----------
    blocking : (C_1 + 1, 2) array
        For a = 0 ... C_1 the probabilities that jobs of class 0 and 1 are lost.
    costs : (C_1 + 1,) array
        Cost/time.
    error : float
        Estimated relative error of all of them.
    """

    blocking: Array
    costs: Array
    error: float

    @property
    def best(self) -> int:
        """The least threshold whose cost cannot be told from the least cost."""
        return int(np.argmax(self._near_best()))

    @property
    def as_good(self) -> tuple[int, ...]:
        """All thresholds whose costs cannot be told from the least one."""
        return tuple(np.flatnonzero(self._near_best()).tolist())

    @property
    def least(self) -> float:
        """The cost of the best threshold."""
        return float(self.costs[self.best])

    def _near_best(self) -> NDArray[np.bool_]:
        near: NDArray[np.bool_] = self.costs <= self.costs.min() * (1.0 + 2.0 * self.error)
        return near


def threshold_costs(
    arrivals: Sequence[float],
    service_rates: Sequence[float],
    servers: Sequence[int],
    costs: Sequence[float],
) -> ThresholdCosts:
    """Costs for every threshold.

    Parameters
    ----------
    arrivals, service_rates : (2,) sequences of float
        Of the finite system, 1/time.
    servers : (C_0, C_1)
    costs : (w_0, w_1)
        Of a lost job of each class.

    Raises
    ------
    SolveError
        When there are too many servers.

    Examples
    --------
    >>> found = threshold_costs((6.0, 7.0), (1.0, 1.0), (4, 8), (1.0, 2.0))
    >>> found.best, round(found.least, 9), found.blocking.shape
    (2, 5.146144226, (9, 2))
    """
    blocking, error = blocking_by_threshold(arrivals, service_rates, servers)
    rates = np.array(arrivals) * np.array(costs)
    return ThresholdCosts(blocking, blocking @ rates, error)


def blocking_by_threshold(
    arrivals: Sequence[float], service_rates: Sequence[float], servers: Sequence[int]
) -> tuple[Array, float]:
    """Blocking (C_1 + 1, 2) for a = 0 ... C_1, and the estimated relative error."""
    phases, last = servers[0] + 1, servers[1]
    if last * phases**2 > MOST_ENTRIES:
        raise SolveError(
            f"all thresholds of {servers[0]} and {last} servers at once need {last * phases**2} "
            f"numbers; {MOST_ENTRIES} are kept at most. Evaluate single thresholds"
        )
    if arrivals[0] == arrivals[1] == 0.0:
        return np.zeros((last + 1, 2)), 0.0
    chain = _Chain(arrivals, service_rates, servers)
    above, lost = chain.from_above()
    below, left = chain.from_below()
    found = np.empty((last + 1, 3))
    for s in range(last + 1):
        rates = chain.local.copy()
        if s:
            rates += s * service_rates[1] * below[s - 1].entries
        if s < last:
            rates += arrivals[1] * above[s].entries
        law = null_vector(rates)
        total = float(law @ (lost[s][:, 0] + left[s][:, 0]))
        full = float(law @ (lost[s][:, 1] + left[s][:, 1]))
        found[last - s] = law @ lost[s][:, 1], law @ lost[s][:, 2], full
        found[last - s] /= total
    known = erlang_b(servers[0], arrivals[0] / service_rates[0])
    off = float(np.abs(found[:, 2] / known - 1.0).max()) if known > 0.0 else 0.0
    return found[:, :2], 2.0 * off + ROUNDING


class _Chain:
    """Rates of the finite system by levels of n_1, and passages through them."""

    def __init__(
        self, arrivals: Sequence[float], service_rates: Sequence[float], servers: Sequence[int]
    ) -> None:
        phases, self.last = servers[0] + 1, servers[1]
        places = np.arange(1, phases)
        self.local = np.diag(np.full(phases - 1, arrivals[0]), 1)
        self.local[places, places - 1] = service_rates[0] * places
        self.eye = np.eye(phases)
        self.plain = arrivals[1] * self.eye
        self.shared = self.plain.copy()
        self.shared[-1, -1] += arrivals[0]
        self.service = service_rates[1]
        self.here = np.zeros((phases, 3))
        self.here[:, 0] = 1.0
        self.here[-1, 1] = 1.0

    def from_above(self) -> tuple[list[Passage], list[Array]]:
        """Passages down from levels 1 ... C_1, and what happens at levels 0 ... and above.

        That is, relative to the law of the level: the probability of it and all levels above, that
        of n_0 = C_0 there, and that of n_1 = C_1.
        """
        passages: list[Passage] = []
        lost = [self.here + np.array([0.0, 0.0, 1.0])]
        for level in range(self.last, 0, -1):
            beyond = passages[0] if passages else None
            away = self.plain if passages else None
            found = passage(self.local, level * self.service * self.eye, away, beyond)
            passages.insert(0, found)
            lost.insert(0, self.here + dot(self.plain, found.factored.solve(lost[0])))
        return passages, lost

    def from_below(self) -> tuple[list[Passage], list[Array]]:
        """Passages up from levels 0 ... C_1 - 1, and what happens below levels 0 ... C_1."""
        passages: list[Passage] = []
        left = [np.zeros_like(self.here)]
        for level in range(self.last):
            beyond = passages[-1] if passages else None
            away = level * self.service * self.eye if passages else None
            found = passage(self.local, self.shared, away, beyond)
            passages.append(found)
            within = found.factored.solve(self.here + left[-1])
            left.append((level + 1) * self.service * within)
        return passages, left
