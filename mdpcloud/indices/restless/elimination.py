"""Elimination of the states of a killed chain in the order of Gittins' index.

`mdpcloud.indices.restless.gittins` states the recursion. Dense matrices wait for their updates:
with K the shares q_is / D_s and R the rows q_sj of the last pivots, the current rates are M + K R,
of which a step needs one row and one column; the product is added every `BLOCK` pivots. Sparse
matrices are kept as lists of rows until they are no longer sparse.

Rounding. Every number is a sum, product or quotient of numbers >= 0, so that a step is an exact
elimination followed by relative changes of at most eps of what is left. A state found m steps later
has as its index a quotient of two polynomials in that with coefficients >= 0, homogeneous of degree
m + 1 (the forests of the matrix-tree theorem; O'Cinneide, "Entrywise perturbation theory and error
analysis for Markov chains", Numerische Mathematik 65 (1993) 109-120), so that its relative change
is at most ((1 + eps) / (1 - eps))^(m+1) - 1. The errors of all steps before a state multiply.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.memory import available_memory
from mdpcloud.errors import InputError
from mdpcloud.model.matrices import Floats

__all__ = ["Eliminated", "eliminate"]

BLOCK = 64  # pivots between two matrix products
FULL = 0.03  # share of entries from which what is left is made dense
COMPACT = 0.9  # share of states left below which the others are taken out of the matrix
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Eliminated:
    """What was left of each state when it was eliminated.

    Attributes
    ----------
    reward, time : (n,) arrays
        Until the next visit to a state with a smaller index (or to the same), per unit of time in
        the state itself; the index is their quotient.
    relative : (n,) array
        Bounds of the relative errors of the quotients.
    order : (n,) integer array
        The states, the largest index first.
    """

    reward: Floats
    time: Floats
    relative: Floats
    order: NDArray[np.intp]


def eliminate(moves: Any, rewards: Floats, alpha: float) -> Eliminated:
    """Eliminate all states, the largest index first.

    Parameters
    ----------
    moves : (n, n) array or CSR array
        Rates, or probabilities per step; the diagonal is not looked at.
    rewards : (n,) array
        Per unit of time, all >= 0.
    alpha : float
        Discount rate, > 0.
    """
    left = _Left(rewards.copy(), np.ones(rewards.size), alpha)
    states: NDArray[np.intp] = np.arange(rewards.size)
    if not isinstance(moves, np.ndarray):
        states, moves = _eliminate_sparse(left, moves)
    _eliminate_dense(left, moves, states)
    order = np.array(left.order, np.intp)
    relative = np.empty(order.size)
    relative[order] = _relative(np.array(left.roundings))
    return Eliminated(left.reward, left.time, relative, order)


class _Left:
    """Rewards and times of the states that are left, and the record of those that are not."""

    def __init__(self, reward: Floats, time: Floats, alpha: float) -> None:
        self.reward, self.time, self.alpha = reward, time, alpha
        self.order: list[int] = []
        self.roundings: list[float] = []

    def record(self, state: int, roundings: float) -> None:
        """Note that a state is gone; `roundings` is eps of its step in units of 2**-53."""
        self.order.append(state)
        self.roundings.append(roundings)


def _relative(roundings: Floats) -> Floats:
    """Bounds of the relative errors, in the order of elimination.

    The step j steps before counts 2 (j + 1) times: once in each of the two polynomials. The
    discount rate, the differences of rewards and the quotient come with 8 roundings of their own.
    """
    eps = 1.01 * UNIT * (np.concatenate([[8.0], roundings[:-1]]))
    logarithm = 2.0 * np.cumsum(np.cumsum(eps) + eps)
    bound: Floats = np.expm1(np.minimum(1.01 * logarithm, 600.0))
    return bound


# --- dense ----------------------------------------------------------------------------------------


def _eliminate_dense(left: _Left, matrix: Floats, states: NDArray[np.intp]) -> None:
    """Eliminate `states`, whose rates among each other are `matrix`, block by block.

    The rows and columns of states that are gone stay, unused, until there are some of them.
    """
    alive = np.ones(states.size, np.bool_)
    matrix = matrix.copy()
    while states.size:
        count = min(BLOCK, int(np.count_nonzero(alive)))
        shares, rows = _eliminate_block(left, matrix, states, alive, count)
        if np.count_nonzero(alive) > COMPACT * states.size:
            _add_product(matrix, shares, rows)
            continue
        kept = np.flatnonzero(alive)
        shares, rows = shares[kept], np.ascontiguousarray(rows[:, kept])
        matrix, states, alive = matrix[np.ix_(kept, kept)], states[kept], alive[kept]
        if states.size:
            _add_product(matrix, shares, rows)


def _eliminate_block(
    left: _Left, matrix: Floats, states: NDArray[np.intp], alive: NDArray[np.bool_], count: int
) -> tuple[Floats, Floats]:
    """Eliminate so many states; K (m, count) and R (count, m), to be added to the matrix."""
    shares, rows = np.zeros((states.size, count)), np.zeros((count, states.size))
    reward, time = left.reward[states], left.time[states]
    for t in range(count):
        s = int(np.argmax(np.where(alive, reward / time, -np.inf)))
        row = matrix[s] + shares[s, :t] @ rows[:t]
        column = matrix[:, s] + shares[:, :t] @ rows[:t, s]
        alive[s] = False
        row[~alive] = 0.0
        column[~alive] = 0.0
        share = column / (left.alpha * time[s] + row.sum())
        reward += share * reward[s]
        time += share * time[s]
        shares[:, t], rows[t] = share, row
        left.record(int(states[s]), _dense_roundings(t, count, states.size))
    left.reward[states], left.time[states] = reward, time
    return shares, rows


def _add_product(matrix: Floats, shares: Floats, rows: Floats) -> None:
    """Set matrix += shares @ rows in its place; transposed, as LAPACK stores by columns."""
    from scipy.linalg import blas

    multiply: Any = blas.dgemm
    multiply(1.0, rows.T, shares.T, beta=1.0, c=matrix.T, overwrite_c=True)


def _dense_roundings(t: int, count: int, size: int) -> float:
    """Roundings of a step after t pending ones: row and column, sum, share, update.

    The sum is numpy's: pairwise, of blocks of 128 numbers in 8 parts. The last step of a block also
    carries those of the matrix product.
    """
    product = count + 2.0 if t == count - 1 else 0.0
    return 2.0 * (t + 2.0) + 24.0 + math.log2(size + 1.0) + 6.0 + product


# --- sparse ---------------------------------------------------------------------------------------


def _eliminate_sparse(left: _Left, matrix: Any) -> tuple[NDArray[np.intp], Floats]:
    """Eliminate until the rest is full; the states of the rest and their rates."""
    graph = _Graph(matrix)
    reward, time = left.reward.tolist(), left.time.tolist()
    heap = [(-r / d, i) for i, (r, d) in enumerate(zip(reward, time, strict=True))]
    heapq.heapify(heap)
    while heap and not graph.is_full():
        key, s = heapq.heappop(heap)
        if s not in graph.rows or key != -reward[s] / time[s]:
            continue
        row, sources = graph.remove(s)
        out = math.fsum([left.alpha * time[s], *row.values()])
        for i, rate in sources:
            share = rate / out
            reward[i] += share * reward[s]
            time[i] += share * time[s]
            heapq.heappush(heap, (-reward[i] / time[i], i))
            graph.add(i, share, row)
        left.record(s, 8.0)
    left.reward[:], left.time[:] = reward, time
    return graph.rest()


class _Graph:
    """Rates between the states that are left, by row, and the states before each."""

    def __init__(self, matrix: Any) -> None:
        n = matrix.shape[0]
        pointers, targets, rates = (
            part.tolist() for part in (matrix.indptr, matrix.indices, matrix.data)
        )
        self.rows: dict[int, dict[int, float]] = {}
        self.before: list[set[int]] = [set() for _ in range(n)]
        for i in range(n):
            part = slice(pointers[i], pointers[i + 1])
            self.rows[i] = {
                j: rate
                for j, rate in zip(targets[part], rates[part], strict=True)
                if j != i and rate > 0.0
            }
            for j in self.rows[i]:
                self.before[j].add(i)
        self.entries = sum(map(len, self.rows.values()))

    def is_full(self) -> bool:
        """Whether so many entries are left that a dense matrix is faster."""
        return self.entries > FULL * len(self.rows) ** 2

    def remove(self, s: int) -> tuple[dict[int, float], list[tuple[int, float]]]:
        """Take a state out; its row, and the states before it with their rates."""
        row = self.rows.pop(s)
        for j in row:
            self.before[j].discard(s)
        sources = [(i, self.rows[i].pop(s)) for i in sorted(self.before[s])]
        self.entries -= len(row) + len(sources)
        return row, sources

    def add(self, i: int, share: float, row: dict[int, float]) -> None:
        """Add a multiple of a row to that of state i."""
        own = self.rows[i]
        size = len(own)
        for j, rate in row.items():
            if j != i:
                own[j] = own.get(j, 0.0) + share * rate
                self.before[j].add(i)
        self.entries += len(own) - size

    def rest(self) -> tuple[NDArray[np.intp], Floats]:
        """States that are left, increasing, and their rates as a dense matrix."""
        states = np.array(sorted(self.rows), np.intp)
        place = {int(i): k for k, i in enumerate(states)}
        _check_memory(states.size)
        matrix = np.zeros((states.size, states.size))
        for i in place:
            for j, rate in self.rows.pop(i).items():
                matrix[place[i], place[j]] = rate
        return states, matrix


def _check_memory(size: int) -> None:
    """Refuse a rest that does not fit the memory twice."""
    available = available_memory()
    if available is not None and 16 * size**2 > available:
        raise InputError(
            f"the arm's graph fills up: {size} states are left that nearly all lead to each other, "
            f"which takes {16 * size**2 / 1e9:.3g} GB, and {available / 1e9:.3g} GB are free"
        )
