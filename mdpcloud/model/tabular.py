"""Markov decision processes in discrete time, given by arrays.

State-action pairs are kept as rows, sorted by state and action, with the probabilities of the next
state in a sparse matrix. Everything is checked here; a mistake is reported with its place. Arrays
that are already in this form are checked where they are and shared, not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import (
    ROW_SUM_TOLERANCE,
    Floats,
    as_floats,
    as_matrix,
    interleaved,
    row_sums,
    with_data,
)

if TYPE_CHECKING:
    from mdpcloud.model.matrices import Matrix

__all__ = ["TabularModel", "tabular"]

Integers: TypeAlias = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TabularModel:
    """A checked tabular model; `tabular` builds it.

    Parameters
    ----------
    n_states, n_actions : int
        Numbers of states and of actions (an action need not be allowed everywhere).
    state, action : (L,) int32 or int64 arrays
        The allowed pairs, sorted.
    cost : (L,) array
        Expected cost per step of each pair; a reward is a negative cost.
    transitions : (L, n_states) CSR array
        Probabilities of the next state.
    sense : int
        1 for a model given by costs, -1 for one given by rewards.
    """

    n_states: int
    n_actions: int
    state: Integers
    action: Integers
    cost: Floats
    transitions: Matrix
    sense: int = 1


def tabular(
    P: Any,
    *,
    costs: Any = None,
    rewards: Any = None,
    s_indices: ArrayLike | None = None,
    a_indices: ArrayLike | None = None,
    normalise: bool = False,
) -> TabularModel:
    """Build a discrete-time model from arrays, dense or sparse.

    Parameters
    ----------
    P : (A, S, S) array, sequence of A (S, S) arrays or sparse matrices, or (L, S) with indices
        Probability of going from the state to the next one under each action. In the third form
        row l belongs to state ``s_indices[l]`` and action ``a_indices[l]``.
    costs, rewards : array or sequence, optional (at most one of them)
        Per step: (S,) for the state, (S, A) for the pair, (A, S, S) or A sparse matrices for the
        transition; (L,) with indices. No costs at all count as 0. A pair with cost +inf (reward
        -inf) is not allowed.
    s_indices, a_indices : (L,) integer arrays, optional
        State and action of each row of P.
    normalise : bool, default False
        Divide every row by its sum instead of refusing sums further than 1e-9 from 1.

    Returns
    -------
    TabularModel
        Results of a model given by rewards are reported as rewards. With indices, where the rows
        are sorted by state and action, the model shares ``s_indices``, ``a_indices`` and the arrays
        of a float64 CSR matrix P whose columns are sorted: do not change them while it is used.

    Raises
    ------
    InputError
        Wrong shapes, entries that are negative or not finite, rows that do not sum to 1, pairs
        given twice, states without an action; the message names the place.

    Examples
    --------
    >>> model = tabular([[[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]]], costs=[[1, 2], [3, 0]])
    >>> model.n_states, model.n_actions, model.cost
    (2, 2, array([1., 2., 3., 0.]))
    """
    if costs is not None and rewards is not None:
        raise InputError("costs and rewards are both given; give one of them")
    sense = 1 if rewards is None else -1
    name, values = ("costs", costs) if rewards is None else ("rewards", rewards)
    if (s_indices is None) != (a_indices is None):
        raise InputError("s_indices and a_indices belong together; one of them is missing")
    if s_indices is None or a_indices is None:
        pairs, cost = _by_action(P, name, values)
    else:
        pairs, cost = _by_pair(P, name, values, s_indices, a_indices)
    cost = sense * cost  # a copy: costs are what callers change between models
    allowed = np.isfinite(cost)
    if not allowed.all():
        _check_costs(pairs, cost, name, sense)
        pairs, cost = pairs.keep(allowed), cost[allowed]
    matrix = _checked(pairs, normalise)
    _every_state_has_an_action(pairs)
    return TabularModel(
        matrix.shape[1], pairs.n_actions, pairs.state, pairs.action, cost, matrix, sense
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Rows of P with their states and actions, sorted, not yet checked."""

    state: Integers
    action: Integers
    matrix: Matrix
    n_actions: int
    stacked: bool

    def place(self, row: int) -> str:
        """Name a row as its owner wrote it."""
        state, action = self.state[row], self.action[row]
        return f"row {state} of P[{action}]" if self.stacked else f"pair ({state}, {action})"

    def keep(self, rows: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(
            self.state[rows], self.action[rows], self.matrix[rows], self.n_actions, self.stacked
        )


def _by_action(P: Any, name: str, values: Any) -> tuple[_Pairs, Floats]:
    """Read one square matrix per action."""
    blocks = _matrices(P, "P")
    if not blocks or blocks[0].shape[1] == 0:
        raise InputError("P is empty; a model needs at least one action and one state")
    n, count = blocks[0].shape[1], len(blocks)
    for a, block in enumerate(blocks):
        if block.shape != (n, n):
            raise InputError(f"P[{a}] has shape {block.shape}; every P[a] must be {(n, n)}")
    cost = _pair_costs(blocks, name, values)
    state, action = np.repeat(np.arange(n), count), np.tile(np.arange(count), n)
    return _Pairs(state, action, interleaved(blocks), count, True), cost.ravel()


def _by_pair(
    P: Any, name: str, values: Any, s_indices: ArrayLike, a_indices: ArrayLike
) -> tuple[_Pairs, Floats]:
    """Read one row per state-action pair."""
    matrix = as_matrix(P, "P")
    length, n = matrix.shape
    state, action = (
        _indices(indices, length, which)
        for indices, which in ((s_indices, "s_indices"), (a_indices, "a_indices"))
    )
    if length == 0 or n == 0:
        raise InputError("P has no rows or no columns; at least one state and one pair are needed")
    if state.max() >= n:
        row = int(np.argmax(state >= n))
        raise InputError(
            f"s_indices[{row}] is {state[row]}; P has {n} columns, so states 0 to {n - 1}"
        )
    cost = np.zeros(length) if values is None else as_floats(values, name)
    if cost.shape != (length,):
        raise InputError(f"{name} has shape {cost.shape}; with indices it must be ({length},)")
    if not _increasing(state, action):
        order = np.lexsort((action, state))
        state, action = state[order], action[order]
        same = (state[1:] == state[:-1]) & (action[1:] == action[:-1])
        if same.any():
            row = int(np.argmax(same))
            raise InputError(
                f"pair ({state[row]}, {action[row]}) is given twice; every pair at most once"
            )
        matrix, cost = matrix[order], cost[order]
    return _Pairs(state, action, matrix, int(action.max()) + 1, False), cost


def _increasing(state: Integers, action: Integers) -> bool:
    """Whether the pairs are sorted and none is given twice."""
    same = state[1:] == state[:-1]
    return bool(((state[1:] > state[:-1]) | (same & (action[1:] > action[:-1]))).all())


def _pair_costs(blocks: Sequence[Matrix], name: str, values: Any) -> Floats:
    """Expected cost of each pair, (S, A)."""
    n, count = blocks[0].shape[0], len(blocks)
    if values is None:
        return np.zeros((n, count))
    if _is_sequence_of_matrices(values):
        tables = _matrices(values, name)
        if len(tables) != count or any(table.shape != (n, n) for table in tables):
            raise InputError(f"{name} per transition must be {count} matrices of shape {(n, n)}")
        means = [_mean(block, table) for block, table in zip(blocks, tables, strict=True)]
        return np.stack(means, axis=1)
    array = as_floats(values, name)
    if array.shape == (n,):
        return np.repeat(array[:, None], count, axis=1)
    if array.shape == (n, count):
        return array
    raise InputError(
        f"{name} has shape {array.shape}; allowed are ({n},) per state, ({n}, {count}) per state "
        f"and action, ({count}, {n}, {n}) per transition"
    )


def _mean(block: Matrix, table: Matrix) -> Floats:
    """Sum probability times cost over each row; where the probability is 0 the cost is void."""
    coo = block.tocoo()
    possible = coo.data > 0
    row, column = coo.row[possible], coo.col[possible]
    cost = np.asarray(table[row, column], np.float64).ravel()
    mean = np.bincount(row, coo.data[possible] * cost, minlength=block.shape[0])
    return mean.astype(np.float64, copy=False)


def _is_sequence_of_matrices(values: Any) -> bool:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.ndim == 3
    if not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        return False
    return hasattr(values[0], "tocsr") or np.ndim(values[0]) == 2


def _matrices(values: Any, name: str) -> list[Matrix]:
    if not _is_sequence_of_matrices(values):
        raise InputError(
            f"{name} must be an (A, S, S) array or a sequence of A (S, S) matrices, one per "
            "action; for one row per state-action pair give s_indices and a_indices as well"
        )
    return [as_matrix(value, f"{name}[{a}]") for a, value in enumerate(values)]


def _indices(value: ArrayLike, length: int, name: str) -> Integers:
    array = np.asarray(value)
    if array.shape != (length,) or array.dtype.kind not in "iu":
        raise InputError(f"{name} must be {length} integers, one per row of P")
    if array.min(initial=0) < 0:
        row = int(np.argmax(array < 0))
        raise InputError(f"{name}[{row}] is {array[row]}; indices start at 0")
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _check_costs(pairs: _Pairs, cost: Floats, name: str, sense: int) -> None:
    wrong = np.isnan(cost) | np.isneginf(cost)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} of state {pairs.state[row]} and action {pairs.action[row]} are "
            f"{sense * cost[row]:g}; they must be finite, or {sense * np.inf:+g} where the action "
            "is not allowed"
        )


def _checked(pairs: _Pairs, normalise: bool) -> Matrix:
    """Check the probabilities and return them without explicit zeros."""
    matrix = pairs.matrix
    least, largest = matrix.data.min(initial=np.inf), matrix.data.max(initial=0.0)
    if not (least >= 0 and largest < np.inf):  # nan is neither
        raise InputError(_wrong_probability(pairs))
    total = row_sums(matrix)
    if normalise:
        if total.min() <= 0:
            raise InputError(f"{pairs.place(int(np.argmin(total)))} sums to 0")
        share = np.repeat(total, np.diff(matrix.indptr))
        matrix = with_data(matrix, np.divide(matrix.data, share, out=share))
    elif not 1 - ROW_SUM_TOLERANCE <= total.min() <= total.max() <= 1 + ROW_SUM_TOLERANCE:
        row = int(np.argmax(np.abs(total - 1) > ROW_SUM_TOLERANCE))
        raise InputError(
            f"{pairs.place(row)} sums to {total[row]:.10g}; probabilities must sum to 1 "
            "(normalise=True divides every row by its sum)"
        )
    if least == 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def _wrong_probability(pairs: _Pairs) -> str:
    """Name the first entry that is negative or not finite."""
    matrix = pairs.matrix
    entry = int(np.argmin((matrix.data >= 0) & np.isfinite(matrix.data)))
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    return (
        f"probability {matrix.data[entry]:g} of going to state {matrix.indices[entry]} in "
        f"{pairs.place(row)}; probabilities must be finite and >= 0"
    )


def _every_state_has_an_action(pairs: _Pairs) -> None:
    n = pairs.matrix.shape[1]
    present = np.count_nonzero(pairs.state[1:] != pairs.state[:-1]) + min(pairs.state.size, 1)
    if present == n:
        return
    without = np.setdiff1d(np.arange(n), pairs.state)
    raise InputError(
        f"state {without[0]} has no allowed action ({without.size} such state(s)); "
        "every state needs one"
    )
