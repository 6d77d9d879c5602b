"""Index rules: send the job to the node of lowest index, outside when all are too dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = ["TIES", "IndexRule", "Ties", "tie_order"]

Ties = Literal["first", "last", "fastest", "slowest"]
TIES: tuple[Ties, ...] = ("first", "last", "fastest", "slowest")

Table: TypeAlias = Callable[[int], NDArray[np.float64]]
"""From ``last`` to the prices (last+1,) of one more job in states 0..last, inf where refused."""


def tie_order(ties: str, speeds: Sequence[float]) -> NDArray[np.int64]:
    """Nodes in the order in which they win ties.

    Parameters
    ----------
    ties : {"first", "last", "fastest", "slowest"}
        By label, or by service rate; equally fast nodes by label, first first.
    speeds : sequence of float
        Service rate of one server of each node.

    Examples
    --------
    >>> tie_order("fastest", [1.0, 3.0, 3.0])
    array([1, 2, 0])
    """
    if ties not in TIES:
        raise InputError(
            f"ties is {ties!r}; it must be one of {', '.join(TIES)}{did_you_mean(ties, TIES)}"
        )
    labels = np.arange(len(speeds))
    if ties == "first":
        return labels
    if ties == "last":
        return labels[::-1]
    rates = np.asarray(speeds, dtype=np.float64)
    return np.argsort(-rates if ties == "fastest" else rates, kind="stable")


@dataclass(frozen=True, eq=False)
class IndexRule:
    """A rule: action 1 + k, k the node of lowest price, or action 0 where every node refuses.

    The job goes to the first node in `order` whose price is within `margin` of the least price.

    Parameters
    ----------
    tables : tuple of functions
        Per node its prices, see `Table`; ``last`` is the largest state that the rule is given.
    order : sequence of int
        Nodes in the order in which they win ties.
    margin : float
        Prices that are at most this far above the least one are equal to it.
    family : str
        The model's axis family.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> prices = (lambda last: np.arange(last + 1.0), lambda last: np.full(last + 1, 2.0))
    >>> rule = IndexRule(prices, order=(1, 0))
    >>> rule(SimpleNamespace(node=(np.arange(4), 0)))
    array([1, 1, 2, 2])
    """

    tables: tuple[Table, ...]
    order: Sequence[int] | NDArray[np.int64]
    margin: float = 0.0
    family: str = "node"

    def prices(self, k: int, last: int) -> NDArray[np.float64]:
        """Price (last+1,) of one more job at node k in states 0..last, inf where it refuses."""
        return self.tables[k](last)

    def __call__(self, x: Any) -> Any:
        """The action in state x, or in arrays of states."""
        jobs = getattr(x, self.family)
        found = [self.prices(k, int(np.max(jobs[k])))[jobs[k]] for k in range(len(self.tables))]
        least = reduce(np.minimum, found)
        action: Any = 0
        for k in reversed(self.order):
            action = np.where(found[k] <= least + self.margin, k + 1, action)
        return np.where(np.isinf(least), 0, action)
