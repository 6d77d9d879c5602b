"""The yardstick: relative value iteration on CSR rows of the downgrading model, and nothing else.

Every state has one row with all its departures, and one row per arrival and action that fits; a row
is a cost and the rates of its moves (CSR). One compiled kernel walks through the rows:

    h <- h + (v - s) / L,   v = sum_e min_l [ k_l + sum_y A_ly (h(y) - h(x)) ],

with s the middle of the last bounds and L 1.05 times the largest total rate; it stops when
max v - min v <= tolerance |s|. It shares no code with mdpcloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Optimum", "Table", "iterate", "table"]


class Table(NamedTuple):
    """Rows sorted by state, then by term; rows ``begin[g] ... begin[g+1]`` are of one term.

    Every state has the same number of terms: each arrival, and all departures together.
    """

    states: int
    terms: int
    begin: NDArray[np.uint32]
    cost: NDArray[np.float64]
    indptr: NDArray[np.uint32]
    indices: NDArray[np.uint32]
    rates: NDArray[np.float64]
    bound: float


class Optimum(NamedTuple):
    """Bounds of the gain (up to rounding) and the number of sweeps."""

    lower: float
    upper: float
    sweeps: int


def table(
    arrival_rates: Sequence[float],
    service_rates: Sequence[float],
    requirements: Sequence[int],
    capacity: int,
    rejection_costs: Sequence[float],
    downgrading_costs: Sequence[float],
) -> Table:
    """The rows of a link on which jobs are accepted, downgraded to class 0 or rejected."""
    mesh = np.ogrid[tuple(slice(0, capacity // a + 1) for a in requirements)]
    used = np.asarray(sum(a * x for a, x in zip(requirements, mesh, strict=True)))
    inside = used <= capacity
    jobs = np.array(np.nonzero(inside), np.int32)
    used = used[inside]
    number = np.zeros(inside.shape, np.int32)
    number[inside] = np.arange(used.size)
    everywhere, terms = np.arange(used.size, dtype=np.int32), len(requirements) + 1
    parts, blank = [], np.zeros(0, np.int32)

    def add(term: int, states: Any, cost: float, moves: list[tuple[Any, Any, Any]]) -> None:
        """Rows of some states; moves have the places of their rows, targets and rates."""
        rows, to, rates = (np.concatenate(part) for part in zip(*moves, strict=True))
        matrix = sparse.csr_array((rates, (rows, to)), shape=(states.size, used.size))
        parts.append((states * terms + term, np.full(states.size, cost), matrix))

    def target(states: Any, j: int, change: int) -> Any:
        there = jobs[:, states]
        there[j] += change
        return number[tuple(there)]

    for e, rate in enumerate(arrival_rates):
        for j, cost in {e: 0.0, **({0: downgrading_costs[e]} if e else {})}.items():
            fits = everywhere[used + requirements[j] <= capacity]
            move = np.arange(fits.size), target(fits, j, +1), np.full(fits.size, rate)
            add(e, fits, rate * cost, [move])
        add(e, everywhere, rate * rejection_costs[e], [(blank, blank, np.zeros(0))])
    present = [everywhere[jobs[j] > 0] for j in range(len(requirements))]
    leave = [
        (at, target(at, j, -1), service_rates[j] * jobs[j][at]) for j, at in enumerate(present)
    ]
    add(len(requirements), everywhere, 0.0, leave)
    return _sorted(used.size, terms, parts)


def _sorted(states: int, terms: int, parts: list[Any]) -> Table:
    group = np.concatenate([part[0] for part in parts])
    order = np.argsort(group, kind="stable")
    matrix = sparse.vstack([part[2] for part in parts], format="csr")[order]
    begin = np.searchsorted(group[order], np.arange(states * terms + 1))
    out = np.maximum.reduceat(matrix.sum(axis=1), begin[:-1]).reshape(states, terms).sum(axis=1)
    return Table(
        states,
        terms,
        begin.astype(np.uint32),
        np.concatenate([part[1] for part in parts])[order],
        matrix.indptr.astype(np.uint32),
        matrix.indices.astype(np.uint32),
        matrix.data,
        1.05 * float(out.max()),
    )


ONE = np.uint64(1)  # signed indices are checked for wrap-around, which takes a third of the time


@numba.njit(nogil=True, cache=True, fastmath=True)
def sweep(
    terms: int,
    begin: Any,
    cost: Any,
    indptr: Any,
    indices: Any,
    rates: Any,
    h: Any,
    out: Any,
    shift: float,
    step: float,
) -> Any:
    low, high = 1e300, -1e300
    group, row, j = np.uint64(0), np.uint64(0), np.uint64(0)
    for x in range(h.size):
        here, v = h[x], 0.0
        for _ in range(terms):
            group += ONE
            end, best = np.uint64(begin[group]), 1e300
            while row < end:
                row += ONE
                value, last = cost[row - ONE], np.uint64(indptr[row])
                while j < last:
                    value += rates[j] * (h[indices[j]] - here)
                    j += ONE
                best = min(best, value)
            v += best
        out[x] = here + step * (v - shift)
        low = min(low, v)
        high = max(high, v)
    return low, high


@numba.njit(nogil=True, cache=True)
def sweeps(
    terms: int,
    begin: Any,
    cost: Any,
    indptr: Any,
    indices: Any,
    rates: Any,
    h: Any,
    out: Any,
    step: float,
    tolerance: float,
    most: int,
) -> Any:
    low, high, shift, count = -np.inf, np.inf, 0.0, 0
    while count < most and high - low > tolerance * abs(shift):
        low, high = sweep(terms, begin, cost, indptr, indices, rates, h, out, shift, step)
        h, out = out, h
        shift = 0.5 * (low + high)
        count += 1
    return low, high, count


def iterate(rows: Table, tolerance: float, most: int = 1_000_000) -> Optimum:
    """Solve from zero values."""
    h = np.zeros(rows.states)
    return Optimum(*sweeps(*rows[1:-1], h, np.empty_like(h), 1.0 / rows.bound, tolerance, most))
