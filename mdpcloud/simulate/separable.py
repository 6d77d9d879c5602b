"""Rules that choose the component of least price: a state space of any size needs no table.

With p_k(x_k) the price of one more job at component k, the job goes to

    the first k in the order of ties with  p_k(x_k) <= min_j p_j(x_j) + margin,

and nowhere (action 0) where every price is infinite. After a change of one component the choice is
made in O(log n) by `mdpcloud.simulate.tournament_kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = ["TIES", "SeparableRule", "Ties", "tie_order"]

Ties = Literal["first", "last", "fastest", "slowest"]
TIES: tuple[Ties, ...] = ("first", "last", "fastest", "slowest")
"""Which of several components of equal price is taken: by label, or by its rate."""


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


@runtime_checkable
class SeparableRule(Protocol):
    """A rule: action 1 + k for the component k of least price, 0 where every price is infinite."""

    @property
    def order(self) -> Sequence[int] | NDArray[np.int64]:
        """Components in the order in which they win ties."""
        ...

    @property
    def margin(self) -> float:
        """Prices that are at most this far above the least one are equal to it."""
        ...

    @property
    def family(self) -> str:
        """The axis family of the components."""
        ...

    def prices(self, k: int, last: int) -> NDArray[np.float64]:
        """Price (last+1,) of one more job at component k in states 0..last, inf if refused."""
        ...
