"""Restless arms: a controlled chain that is active or passive, and pays a price for its work.

In state i an arm costs c_a(i) and does work w_a(i) per unit of time under action a, 0 passive or 1
active; by default activity is one unit of work and passivity none. At price p the single-arm
problem is

    minimise  E [ cost + p work ];

the index of a state is the price at which both actions are optimal there, and activity is optimal
below it. For an arm given by rewards the price is a subsidy for passivity, the index the same
number.

Source: Whittle, "Restless bandits: activity allocation in a changing world", Journal of Applied
Probability 25A (1988) 287-298; work measures: Nino-Mora, "Dynamic priority allocation via restless
bandit marginal productivity indices", TOP 15 (2007) 161-198.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import ROW_SUM_TOLERANCE, Floats, as_floats

__all__ = ["Arm", "Label", "arm", "check_moves", "named_costs", "per_state", "rate_arm"]

Label: TypeAlias = Callable[[int], str]


@dataclass(frozen=True, eq=False, repr=False)
class Arm:
    """A checked restless arm; `arm`, `rate_arm` and `model_arm` build it.

    Attributes
    ----------
    moves : pair of (n, n) float64 arrays or CSR arrays
        Passive and active: probabilities per step, rows summing to 1, where time is discrete; else
        rates (1/time) with the diagonal, rows summing to 0.
    costs, work : (2, n) arrays
        Passive and active, per unit of time (per step).
    discrete : bool
        Whether time is discrete.
    free : (n,) bool array
        States in which both actions are allowed. In the others both rows are those of the one that
        is.
    forced : (n,) bool array
        Whether the only action of a state that is not free is active.
    label : function from state number to str
        Names of the states in messages.
    enlarged : function without arguments, or None
        Builds the same arm with twice the room, where the room is a cut of an unbounded arm.
    """

    moves: tuple[Any, Any]
    costs: Floats
    work: Floats
    discrete: bool
    free: NDArray[np.bool_]
    forced: NDArray[np.bool_]
    label: Label = str
    enlarged: Callable[[], Arm] | None = None

    def __repr__(self) -> str:
        time, form = (
            "discrete" if self.discrete else "continuous",
            "sparse" if self.is_sparse else "dense",
        )
        return f"<Arm of {self.n} states in {time} time, {form}>"

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.costs.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the moves are sparse matrices."""
        return not isinstance(self.moves[0], np.ndarray)


def arm(
    P0: Any,
    P1: Any,
    costs0: ArrayLike | None = None,
    costs1: ArrayLike | None = None,
    *,
    rewards0: ArrayLike | None = None,
    rewards1: ArrayLike | None = None,
    work0: ArrayLike = 0.0,
    work1: ArrayLike = 1.0,
) -> Arm:
    """Build an arm in discrete time.

    Parameters
    ----------
    P0, P1 : (n, n) arrays or sparse matrices
        Probabilities of the next state, passive and active. Two arrays stay dense and are shared,
        not copied; if one is sparse, both are kept sparse.
    costs0, costs1 : (n,) arrays or numbers, optional
        Cost per step, both or none; 0 by default.
    rewards0, rewards1 : (n,) arrays or numbers, optional
        Instead of costs.
    work0, work1 : (n,) arrays or numbers
        Work per step.

    Returns
    -------
    Arm

    Raises
    ------
    InputError
        Wrong shapes, entries that are negative or not finite, rows that do not sum to 1 within
        1e-9; the message names the place.

    Examples
    --------
    >>> arm([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]], rewards1=[1.0, 2.0]).n
    2
    """
    moves = _moves(P0, P1, ("P0", "P1"), discrete=True)
    return _built(moves, named_costs(costs0, costs1, rewards0, rewards1), (work0, work1), True)


def rate_arm(
    Q0: Any,
    Q1: Any,
    costs0: ArrayLike | None = None,
    costs1: ArrayLike | None = None,
    *,
    rewards0: ArrayLike | None = None,
    rewards1: ArrayLike | None = None,
    work0: ArrayLike = 0.0,
    work1: ArrayLike = 1.0,
) -> Arm:
    """Build an arm in continuous time.

    Parameters
    ----------
    Q0, Q1 : (n, n) arrays or sparse matrices
        Generators, passive and active: rates (1/time) off the diagonal, rows summing to 0. Dense
        ones are shared, not copied.
    costs0, costs1, rewards0, rewards1, work0, work1
        As in `arm`, per unit of time.

    Returns
    -------
    Arm

    Raises
    ------
    InputError
        Wrong shapes, rates that are negative or not finite, rows that do not sum to 0 within 1e-9
        of their largest entry.

    Examples
    --------
    >>> rate_arm([[-1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, -2.0]], [0.0, 3.0], 1.0).discrete
    False
    """
    moves = _moves(Q0, Q1, ("Q0", "Q1"), discrete=False)
    return _built(moves, named_costs(costs0, costs1, rewards0, rewards1), (work0, work1), False)


def _built(moves: tuple[Any, Any], costs: tuple[Any, Any], work: Any, discrete: bool) -> Arm:
    n = moves[0].shape[0]
    both = np.ones(n, np.bool_)
    return Arm(
        moves,
        np.stack([per_state(value, name, n) for name, value in costs]),
        np.stack([per_state(value, f"work{a}", n) for a, value in enumerate(work)]),
        discrete,
        free=both,
        forced=~both,
    )


def named_costs(costs0: Any, costs1: Any, rewards0: Any, rewards1: Any) -> tuple[Any, Any]:
    """Name and cost of each action, from costs or rewards.

    A reward that is not given is 0; a single cost is refused, as costs that forget an action look
    like those of another problem.
    """
    if rewards0 is None and rewards1 is None:
        if (costs0 is None) != (costs1 is None):
            missing = "costs0" if costs0 is None else "costs1"
            raise InputError(f"{missing} is missing; give both costs, 0 for an action without any")
        return ("costs0", costs0), ("costs1", costs1)
    if costs0 is not None or costs1 is not None:
        raise InputError("costs and rewards are both given; give one of them")
    pairs = (("rewards0", rewards0), ("rewards1", rewards1))
    return tuple(  # type: ignore[return-value]
        (name, None if value is None else -as_floats(value, name)) for name, value in pairs
    )


def per_state(value: Any, name: str, n: int) -> Floats:
    """A number, (n,) numbers or None (0) as (n,) finite numbers."""
    array = as_floats(0.0 if value is None else value, name)
    if array.shape not in ((), (n,)):
        raise InputError(f"{name} has shape {array.shape}; a number or ({n},) is needed")
    wrong = ~np.isfinite(np.broadcast_to(array, (n,)))
    if wrong.any():
        raise InputError(f"{name} of state {int(np.argmax(wrong))} is not finite")
    return np.broadcast_to(array, (n,))


def _moves(first: Any, second: Any, names: tuple[str, str], discrete: bool) -> tuple[Any, Any]:
    """Both matrices, dense or both sparse, checked."""
    given = (first, second)
    if any(hasattr(matrix, "tocsr") for matrix in given):
        from mdpcloud.model.matrices import as_matrix

        found: list[Any] = [as_matrix(m, name) for m, name in zip(given, names, strict=True)]
    else:
        found = [as_floats(m, name) for m, name in zip(given, names, strict=True)]
    n = found[0].shape[-1] if found[0].ndim == 2 else 0
    for matrix, name in zip(found, names, strict=True):
        if matrix.shape != (n, n) or n == 0:
            raise InputError(
                f"{name} has shape {matrix.shape}; {names[0]} and {names[1]} must be square, of "
                "equal size and not empty"
            )
        check_moves(matrix, name, discrete)
    return found[0], found[1]


def check_moves(matrix: Any, name: str, discrete: bool) -> None:
    """Refuse a square matrix that is not stochastic, or no generator in continuous time."""
    _check_entries(matrix, name, diagonal=discrete)
    if discrete:
        _check_sums(matrix, name, 1.0, np.ones(matrix.shape[0]))
    else:
        scale = np.maximum(np.abs(matrix.diagonal()), np.finfo(np.float64).tiny)
        _check_sums(matrix, name, 0.0, scale)


def _check_entries(matrix: Any, name: str, diagonal: bool) -> None:
    """Refuse entries that are not finite, or negative where no entry of the diagonal."""
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if entries.size == 0 or (entries.min() >= 0.0 and np.isfinite(entries.max())):
        return
    for i in range(matrix.shape[0]):
        columns, values = _row(matrix, i)
        wrong = ~np.isfinite(values) | ((values < 0.0) & (diagonal | (columns != i)))
        if wrong.any():
            entry = int(np.argmax(wrong))
            raise InputError(
                f"{name}[{i}, {columns[entry]}] is {values[entry]:g}; entries must be finite and "
                f">= 0{'' if diagonal else ' off the diagonal'}"
            )


def _row(matrix: Any, i: int) -> tuple[NDArray[Any], Floats]:
    if isinstance(matrix, np.ndarray):
        return np.arange(matrix.shape[1]), matrix[i]
    part = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[part], matrix.data[part]


def _check_sums(matrix: Any, name: str, wanted: float, scale: Floats) -> None:
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = ~(np.abs(totals - wanted) <= ROW_SUM_TOLERANCE * scale)
    if wrong.any():
        i = int(np.argmax(wrong))
        hint = ""
        if wanted == 0.0 and totals[i] > 0.0:
            hint = " (the diagonal is minus the sum of the rates; mdpcloud.indices.arm takes steps)"
        raise InputError(
            f"row {i} of {name} sums to {totals[i]:.10g}; it must sum to {wanted:g}{hint}"
        )
