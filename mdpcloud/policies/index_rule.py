"""Index rules: send the job to the node of lowest index, outside when that is too dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError

__all__ = ["TIES", "Ties", "index_rule", "tie_order"]

Ties = Literal["first", "last", "fastest", "slowest"]
TIES: tuple[Ties, ...] = ("first", "last", "fastest", "slowest")
SAME = 1e-13  # indices closer than this times the outside cost are equal


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
    labels = np.arange(len(speeds))
    if ties == "first":
        return labels
    if ties == "last":
        return labels[::-1]
    if ties not in TIES:
        raise InputError(f"ties is {ties!r}; it must be one of {', '.join(TIES)}")
    rates = np.asarray(speeds, dtype=np.float64)
    return np.argsort(-rates if ties == "fastest" else rates, kind="stable")


def index_rule(
    tables: Sequence[ArrayLike],
    limit: float,
    order: Sequence[int] | NDArray[np.int64],
    *,
    family: str = "node",
) -> Callable[[Any], Any]:
    """A rule that takes action 1 + k, k the node of lowest index, or action 0 beyond a limit.

    Parameters
    ----------
    tables : sequence of 1-d arrays
        Per node its index in states 0, 1, ...; beyond the last entry the node is not taken.
    limit : float
        Indices up to it are taken (ties included, relative tolerance 1e-13).
    order : sequence of int
        Nodes in the order in which they win ties.
    family : str
        The model's axis family.
    """
    padded = [np.append(np.asarray(table, dtype=np.float64), np.inf) for table in tables]
    slack = SAME * max(1.0, abs(limit)) if limit == 0 else SAME * abs(limit)

    def rule(x: Any) -> Any:
        states = getattr(x, family)
        best: Any = np.inf
        action: Any = 0
        for k in order:
            index = padded[k][np.minimum(states[k], padded[k].size - 1)]
            better = (index < best - slack) & (index <= limit + slack)
            action = np.where(better, k + 1, action)
            best = np.where(better, index, best)
        return action

    return rule
