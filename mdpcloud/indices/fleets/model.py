"""The joint model of a small fleet: arms that step together, or move one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.model.event import Control, Event, Flow, Mode, step
from mdpcloud.model.matrices import Floats, as_matrix
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.model.tabular import TabularModel, tabular

__all__ = ["rates_model", "steps_model"]

MOST_MOVES = 50_000_000  # entries of all joint matrices of probabilities


# --- discrete time --------------------------------------------------------------------------------


def steps_model(arms: Sequence[Arm], sets: NDArray[np.bool_]) -> TabularModel:
    """Arms that step together; action a is the a-th set.

    Parameters
    ----------
    arms : sequence of N Arm
        In discrete time.
    sets : (A, N) bool array
        Which arms are active.

    Returns
    -------
    TabularModel
        Its probabilities are products of the arms', rounded to float64.
    """
    from scipy import sparse

    entries = [[as_matrix(matrix, "moves") for matrix in one.moves] for one in arms]
    sizes = np.array([[matrix.nnz for matrix in pair] for pair in entries], np.float64)
    total = sum(np.prod(np.where(active, sizes[:, 1], sizes[:, 0])) for active in sets)
    if total > MOST_MOVES:
        raise InputError(
            f"the joint matrices of {len(arms)} arms have {total:.3g} entries; at most "
            f"{MOST_MOVES:.0e} can be solved exactly. mdpcloud.indices.relax bounds fleets of any "
            "size"
        )
    costs = np.stack([_joint_cost(arms, active) for active in sets], axis=1)
    _check_allowed(arms, costs)

    def joint(active: NDArray[np.bool_]) -> Any:
        chosen = [pair[int(on)] for pair, on in zip(entries, active, strict=True)]
        return reduce(lambda a, b: sparse.kron(a, b, format="csr"), chosen)

    return tabular([joint(active) for active in sets], costs=costs)


def _joint_cost(arms: Sequence[Arm], active: NDArray[np.bool_]) -> Floats:
    """Cost of each joint state, inf where an arm is not free to be what it should be."""
    tables = [_cost(one, int(on)) for one, on in zip(arms, active, strict=True)]
    return np.asarray(reduce(np.add.outer, tables)).ravel()


def _cost(one: Arm, action: int) -> Floats:
    return np.where(_may(one, action), one.costs[action], np.inf)


def _may(one: Arm, action: int) -> NDArray[np.bool_]:
    """Where an arm may take an action."""
    return one.free | (one.forced if action else ~one.forced)


def _check_allowed(arms: Sequence[Arm], costs: Floats) -> None:
    stuck = np.isinf(costs).all(axis=1)
    if stuck.any():
        places = np.unravel_index(int(np.argmax(stuck)), [one.n for one in arms])
        names = ", ".join(one.label(int(x)) for one, x in zip(arms, places, strict=True))
        raise InputError(
            f"in the joint state ({names}) some arms must be active and others passive, and no "
            "allowed set of arms has the size of the budget"
        )


# --- continuous time ------------------------------------------------------------------------------


def rates_model(arms: Sequence[Arm], sets: NDArray[np.bool_]) -> Model:
    """Arms that move one at a time; the modes of one control are the sets.

    Parameters
    ----------
    arms : sequence of N Arm
        In continuous time.
    sets : (A, N) bool array
        Which arms are active.

    Returns
    -------
    Model
        On a lattice with the axes ``x.arm[0]``, ``x.arm[1]``, ...
    """
    _check_allowed(arms, np.stack([_joint_cost(arms, active) for active in sets], axis=1))
    parts = [_Parts.of(one, k) for k, one in enumerate(arms)]
    modes = [
        Mode(
            _name(active),
            _Sum(tuple(part.costs[on] for part, on in _pairs(parts, active) if part.costs)),
            [flow for part, on in _pairs(parts, active) for flow in part.flows[on]],
            _All(tuple(part.may[on] for part, on in _pairs(parts, active))),
        )
        for active in sets
    ]
    events = [event for part in parts for event in part.events]
    return Model(
        Lattice({"arm": [one.n - 1 for one in arms]}),
        [Control("active arms", modes), *events],
        cost_rate=[part.cost for part in parts if part.cost is not None],
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """Costs and moves of an arm as terms of the joint model.

    What is the same under both actions belongs to no mode: moves to events, costs to the states.
    """

    cost: _At | None
    costs: tuple[_At, ...]
    events: tuple[Event, ...]
    flows: tuple[tuple[Flow, ...], ...]
    may: tuple[_At, ...]

    @classmethod
    def of(cls, one: Arm, k: int) -> _Parts:
        """The parts of arm k."""
        moves = [_by_distance(one, action) for action in (0, 1)]
        same = [
            amount
            for amount, table in moves[0].items()
            if amount in moves[1] and np.array_equal(table, moves[1][amount])
        ]
        equal = np.array_equal(*one.costs)
        return cls(
            cost=_At(k, one.costs[0]) if equal else None,
            costs=() if equal else tuple(_At(k, cost) for cost in one.costs),
            events=tuple(
                Event(f"arm {k} moves by {amount}", _At(k, moves[0][amount]), step(arm={k: amount}))
                for amount in same
            ),
            flows=tuple(
                tuple(
                    Flow(_At(k, table), step(arm={k: amount}))
                    for amount, table in tables.items()
                    if amount not in same
                )
                for tables in moves
            ),
            may=tuple(_At(k, _may(one, action)) for action in (0, 1)),
        )


def _pairs(parts: Sequence[_Parts], active: NDArray[np.bool_]) -> Any:
    return zip(parts, active.astype(int).tolist(), strict=True)


def _name(active: NDArray[np.bool_]) -> str:
    return ", ".join(map(str, np.flatnonzero(active))) or "none"


def _by_distance(one: Arm, action: int) -> dict[int, Floats]:
    """Rates (n,) of moving by each distance."""
    matrix = as_matrix(one.moves[action], "moves").tocoo()
    moved = (matrix.row != matrix.col) & (matrix.data > 0.0)
    row, rate = matrix.row[moved], matrix.data[moved]
    distance = matrix.col[moved].astype(np.int64) - row
    tables = {}
    for amount in np.unique(distance).tolist():
        here = distance == amount
        tables[amount] = np.zeros(one.n)
        tables[amount][row[here]] = rate[here]
    return tables


@dataclass(frozen=True, eq=False)
class _At:
    """A function of one arm's state, given by a table."""

    k: int
    table: NDArray[Any]

    def __call__(self, x: Any) -> Any:
        return self.table[x.arm[self.k]]


@dataclass(frozen=True, eq=False)
class _Sum:
    """The sum of functions."""

    parts: tuple[_At, ...]

    def __call__(self, x: Any) -> Any:
        return sum((part(x) for part in self.parts), 0.0)


@dataclass(frozen=True, eq=False)
class _All:
    """Whether all of several conditions hold."""

    parts: tuple[_At, ...]

    def __call__(self, x: Any) -> Any:
        return reduce(np.logical_and, (part(x) for part in self.parts))
