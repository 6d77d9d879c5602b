"""The index policies of a routing system: at each node prices, the first refusal, tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mdpcloud import indices as theory
from mdpcloud.errors import InputError
from mdpcloud.indices.bounds import accepts, upper_bound
from mdpcloud.indices.table_building import refused
from mdpcloud.model.matrices import Floats

__all__ = ["NEAR", "Index", "NodePolicy"]

Index: TypeAlias = Callable[[int], Floats]
NEAR = 60  # jobs: most waiting in the first box, and states whose indices are shown
FARTHEST = 1_000_000  # states in which a policy's threshold is looked for


@dataclass(frozen=True, eq=False)
class NodePolicy:
    """What an index policy does at one node.

    Parameters
    ----------
    index : function
        From ``last`` to the index (last+1,) of states 0..last.
    node : mdpcloud.indices.Node
    outside_cost, charge : float
        Cost of a job sent outside, and of routing one here.
    """

    index: Index
    node: theory.Node
    outside_cost: float
    charge: float

    def prices(self, last: int) -> Floats:
        """Index and charge in states 0..last, inf where the node refuses."""
        index = self.index(last)
        closed = refused(index, self.outside_cost, self.charge)
        return np.where(closed, np.inf, index + self.charge)

    def taken(self, states: int | None = None) -> tuple[int | None, Floats]:
        """First state without routing, and the indices before it.

        Where there is none the first is None, and the indices are those of so many states.
        """
        shown = 2 * self.node.servers + NEAR + 1 if states is None else states
        last = shown - 1
        while True:
            last = last if self.node.room is None else min(last, self.node.room)
            index = self.index(last)
            closed = refused(index, self.outside_cost, self.charge)
            if closed[-1]:
                first = int(np.argmax(closed))
                return first, index[:first]
            if self._is_endless or last >= FARTHEST:
                return None, index[:shown]
            last = 4 * max(last, 1)

    @property
    def _is_endless(self) -> bool:
        """Whether no index of this node can be too dear."""
        most = upper_bound(self.node)
        return self.node.room is None and bool(accepts(most, self.outside_cost, self.charge))

    def table(self, states: int | None = None) -> Floats:
        """The index up to the first state that refuses, which has inf; as `taken` otherwise.

        Raises
        ------
        InputError
            If the number of states is not given, and a state beyond those looked at may refuse.
        """
        first, index = self.taken(states)
        if first is None and states is None and not self._is_endless:
            raise InputError(
                f"{self.node} takes jobs in each of its first {FARTHEST} states, and may refuse "
                "them later; give the number of states (--states) after which its last entry goes "
                "on"
            )
        return index if first is None else np.append(index, np.inf)
