"""Index rules: send the job to the node of lowest index, outside when all are too dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.simulate.separable import TIES, Ties, tie_order

__all__ = ["TIES", "IndexRule", "Ties", "tie_order"]

Table: TypeAlias = Callable[[int], NDArray[np.float64]]
"""From ``last`` to the prices (last+1,) of one more job in states 0..last, inf where refused."""


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
        known = self._known.get(k)
        if known is None or known.size <= last:
            known = self._known[k] = self.tables[k](last)
        return known[: last + 1]

    @cached_property
    def _known(self) -> dict[int, NDArray[np.float64]]:
        """Longest prices asked for at each node, which hold the shorter ones."""
        return {}

    def _price(self, k: int, jobs: Any) -> Any:
        last = jobs if isinstance(jobs, int) else int(np.max(jobs))
        return self.prices(k, last)[jobs]

    def __call__(self, x: Any) -> Any:
        """The action in state x, or in arrays of states."""
        jobs = getattr(x, self.family)
        found = [self._price(k, jobs[k]) for k in range(len(self.tables))]
        least = reduce(np.minimum, found)
        action: Any = 0
        for k in reversed(self.order):
            action = np.where(found[k] <= least + self.margin, k + 1, action)
        return np.where(np.isinf(least), 0, action)
