"""Building an index table from the indices of nodes.

A policy takes a job at a node up to the first state whose index plus charge exceeds the outside
cost; the table ends there, or goes on with its last entry where no state refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.bounds import TIE_TOLERANCE, accepts
from mdpcloud.indices.restless.result import ArmIndex
from mdpcloud.indices.table import (
    FORMAT,
    VERSION,
    IndexTable,
    NodeIndex,
    TableNode,
    TieOrder,
    Units,
)
from mdpcloud.model.matrices import Floats, as_floats
from mdpcloud.queues.border import checked_number

__all__ = ["index_table_of", "refused"]

STATE = "jobs at the node, in service and waiting"


def index_table_of(
    policies: Mapping[str, Sequence[ArmIndex | ArrayLike]],
    outside_cost: float,
    *,
    charges: Sequence[float] | None = None,
    servers: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    ties: str = "first",
    service_rates: Sequence[float] | None = None,
    system: str = "own arms",
) -> IndexTable:
    """Index table of nodes of one's own.

    Parameters
    ----------
    policies : mapping of str to sequence of ArmIndex or (n,) arrays
        Per policy and node the index of states 0, 1, ..., jobs in service and waiting: the price of
        one more job. An arm has such an index if it is active where it turns jobs away, its work
        the jobs turned away. Of an arm cut from an unbounded one only the states before the first
        that is not settled count.
    outside_cost : float
        Cost >= 0 of a job that no node takes.
    charges : sequence of float, optional
        Cost of routing a job to each node; 0 by default.
    servers : sequence of int, optional
        Number of servers of each node; 1 by default.
    names : sequence of str, optional
        By default ``node 0``, ``node 1``, ...
    ties : {"first", "last", "fastest", "slowest"}
        Which of several nodes of equal price takes the job.
    service_rates : sequence of float, optional
        Rate of one server of each node; needed for the last two ties.
    system : str
        What the table says of its origin.

    Returns
    -------
    IndexTable
        Its ``to_json()`` is what `mdpcloud.runtime` reads; `mdpcloud.indices.table_lua.to_lua`,
        `mdpcloud.indices.table_c.to_c` and `mdpcloud.indices.table_csv.to_csv` write the other
        forms. ``dataclasses.replace`` gives it other units or another name.

    Raises
    ------
    InputError
        If anything does not fit, or an index is nan or -inf before the state that refuses.
    NoIndexError
        If an arm has no index.

    Examples
    --------
    >>> table = index_table_of({"mine": [[0.0, 0.1, 0.3], [0.2, 0.2]]}, 0.25, servers=[1, 2])
    >>> [(one.index, one.beyond) for one in table.policies["mine"]]
    [((0.0, 0.1), 'refuse'), ((0.2, 0.2), 'last')]
    """
    from mdpcloud import __version__

    outside_cost = checked_number("outside_cost", outside_cost, zero=True)
    if not isinstance(policies, Mapping):
        raise InputError(
            "policies must be a mapping from names to a list of indices, one per node, as in "
            f"{{'mine': [index, ...]}}, not {type(policies).__name__}"
        )
    for name, indices in policies.items():
        _check_is_list(f"policies[{name!r}]", indices)
    n = max(map(len, policies.values()), default=0)
    if n == 0:
        raise InputError("policies must have at least one policy with at least one node")
    names = [f"node {k}" for k in range(n)] if names is None else names
    servers = [1] * n if servers is None else servers
    charges = [0.0] * n if charges is None else charges
    columns = {"names": names, "servers": servers, "charges": charges}
    columns |= {f"policies[{name!r}]": indices for name, indices in policies.items()}
    if service_rates is not None:
        columns["service_rates"] = service_rates
    _check_lengths(columns, n)
    return IndexTable(
        format=FORMAT,
        version=VERSION,
        generator=f"mdpcloud {__version__}",
        system=system,
        name=system,
        scenario_sha256=None,
        units=Units("time unit", "cost unit", "cost unit per job"),
        state=STATE,
        outside_cost=outside_cost,
        ties=_tie_order(ties, service_rates, n, TIE_TOLERANCE * outside_cost),
        nodes=tuple(map(TableNode, names, servers, charges)),
        policies={
            name: tuple(
                _node_index(one, outside_cost, charge, f"policies[{name!r}][{k}]")
                for k, (one, charge) in enumerate(zip(indices, charges, strict=True))
            )
            for name, indices in policies.items()
        },
    )


def refused(index: Floats, outside_cost: float, charge: float) -> NDArray[np.bool_]:
    """From the first state on in which a rule of this index refuses; of the index' shape."""
    found: NDArray[np.bool_] = np.logical_or.accumulate(~accepts(index, outside_cost, charge))
    return found


def _tie_order(ties: str, rates: Sequence[float] | None, n: int, margin: float) -> TieOrder:
    from mdpcloud.simulate.separable import tie_order

    if ties in ("fastest", "slowest") and rates is None:
        raise InputError(f"ties is {ties!r}, which needs service_rates, one per node")
    given = [1.0] * n if rates is None else rates
    checked = [checked_number(f"service_rates[{k}]", rate) for k, rate in enumerate(given)]
    return TieOrder(ties, tuple(tie_order(ties, checked).tolist()), margin)  # type: ignore[arg-type]


def _node_index(given: Any, outside_cost: float, charge: float, place: str) -> NodeIndex:
    index = _settled(given) if isinstance(given, ArmIndex) else as_floats(given, place)
    if index.ndim != 1 or index.size == 0:
        raise InputError(f"{place} has shape {index.shape}; an index of each state is needed")
    closed = refused(index, outside_cost, charge)
    taken = index[: int(np.argmax(closed))] if closed[-1] else index
    if np.isnan(index[: taken.size + 1]).any() or np.isneginf(taken).any():
        raise InputError(f"{place} must be finite up to the first state that refuses a job")
    return NodeIndex(tuple(taken.tolist()), "refuse" if closed[-1] else "last")


def _settled(arm: ArmIndex) -> Floats:
    """The index up to the first state in which the cut of the arm shows."""
    if arm.settled is None or arm.settled.all():
        return arm.index
    return arm.index[: int(np.argmin(arm.settled))]


def _check_lengths(columns: Mapping[str, Sequence[Any]], n: int) -> None:
    for name, column in columns.items():
        _check_is_list(name, column)
        if len(column) != n:
            raise InputError(f"{name} has {len(column)} entries for {n} nodes; one each is needed")


def _check_is_list(name: str, column: object) -> None:
    """One entry for each node: a sequence or an array, but no text."""
    is_list = isinstance(column, Sequence) or getattr(column, "ndim", 0) > 0
    if not is_list or isinstance(column, str):
        raise InputError(f"{name} must be a list with one entry per node, not {column!r:.60}")
