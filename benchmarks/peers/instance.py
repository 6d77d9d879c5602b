"""Instances in plain files that every program reads; needs numpy alone.

A decision process is kept as state-action pairs sorted by state and action, with the probabilities
of the next state in the three arrays of a CSR matrix. It is in discrete time; a step takes
1 / rate units of time, so gains per step times ``rate`` are gains per time. A chain in continuous
time is kept as the rates of its moves, likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.restless import Restless
from benchmarks.peers.stations import Stations

__all__ = ["Chain", "Decisions", "read", "write"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Decisions:
    """A decision process in discrete time, costs to be minimised.

    ``state``, ``action`` and ``cost`` (per step) have one entry per pair; ``indptr``, ``indices``
    and ``data`` are the (pairs, states) matrix; ``gain`` is known to be optimal, per time.
    """

    state: Array
    action: Array
    cost: Array
    indptr: Array
    indices: Array
    data: Array
    rate: float
    gain: float

    @property
    def states(self) -> int:
        return int(self.state[-1]) + 1

    @property
    def actions(self) -> int:
        return int(self.action.max()) + 1

    @property
    def first(self) -> Array:
        """First pair of each state, and the end."""
        return np.searchsorted(self.state, np.arange(self.states + 1))

    def matrix(self) -> Any:
        """The probabilities as a CSR matrix that shares the arrays."""
        from scipy import sparse

        shape = (self.state.size, self.states)
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=shape)

    def bracket(self, values: Array) -> tuple[float, float]:
        """What one sweep over values proves about the optimal gain, but for rounding (Odoni)."""
        values = np.asarray(values, np.float64)
        values = values - values[0]
        backed = self.cost + self.matrix() @ values
        change = np.minimum.reduceat(backed, self.first[:-1]) - values
        return self.rate * float(change.min()), self.rate * float(change.max())


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain in continuous time: rates of moves, where it starts, and a set of states.

    ``probability`` is the known probability of being in the set at the time.
    """

    indptr: Array
    indices: Array
    data: Array
    start: int
    inside: Array
    time: float
    probability: float

    @property
    def states(self) -> int:
        return self.indptr.size - 1


KINDS = {kind.__name__: kind for kind in (Decisions, Chain, Stations, Restless)}


def write(instance: Decisions | Chain | Stations | Restless, path: Path) -> None:
    """Write an npz file; its key `kind` names the class, the others are the fields."""
    arrays = {field.name: getattr(instance, field.name) for field in fields(instance)}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, kind=np.array(type(instance).__name__), **arrays)


def read(path: Path) -> Any:
    """Read what `write` wrote."""
    with np.load(path, allow_pickle=False) as file:
        kind = KINDS[str(file["kind"])]
        arrays = {field.name: file[field.name] for field in fields(kind)}
    return kind(**{name: a.item() if a.ndim == 0 else a for name, a in arrays.items()})
