"""Markov chains, in continuous time or in steps.

Only the off-diagonal rates matter for the long run; they are stored as given, and nothing is ever
recovered from a diagonal (1 - 1e-17 is 1 in floating point, the rate 1e-17 is not 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import ROW_SUM_TOLERANCE, Floats, as_floats, as_matrix

if TYPE_CHECKING:
    from mdpcloud.model.matrices import Matrix

__all__ = ["MarkovChain", "markov_chain"]


@dataclass(frozen=True, eq=False)
class MarkovChain:
    """A checked Markov chain; `markov_chain` builds it.

    Parameters
    ----------
    n : int
        Number of states.
    rates : (n, n) CSR array
        Rates of moving from the row's state to the column's, 1/time, all positive, no diagonal. In
        discrete time: probabilities per step.
    stay : (n,) bool array
        Discrete time: whether the chain can stay in the state for a step. Continuous time: True.
    discrete : bool
        Whether time is discrete.
    labels : function from state number to str, optional
        Names of the states in messages; by default their numbers.
    """

    n: int
    rates: Matrix
    stay: NDArray[np.bool_]
    discrete: bool
    labels: Callable[[int], str] | None = None

    def label(self, state: int) -> str:
        """Return the name of a state."""
        return str(state) if self.labels is None else self.labels(state)


def markov_chain(
    *,
    generator: Any = None,
    transition_matrix: Any = None,
    rates: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    normalise: bool = False,
) -> MarkovChain:
    """Build a Markov chain; rows are origins, columns destinations.

    Parameters
    ----------
    generator : (n, n) array or sparse matrix, optional
        Rates (1/time) off the diagonal, rows sum to 0.
    transition_matrix : (n, n) array or sparse matrix, optional
        Probabilities per step, rows sum to 1.
    rates : (origin, destination, rate), each (M,), optional
        Rates (1/time) one by one; entries with equal ends add up, and a move from a state to itself
        changes nothing. States are 0 to the largest number that occurs.
    normalise : bool, default False
        Divide the rows of a transition matrix by their sums, or ignore the diagonal of a generator,
        instead of refusing rows that sum to something else (up to 1e-9, relative to the row's
        largest entry).

    Returns
    -------
    MarkovChain

    Raises
    ------
    InputError
        Entries that are negative or not finite, wrong row sums; the message names the place.

    Examples
    --------
    >>> markov_chain(rates=([0, 1], [1, 0], [2.0, 3.0])).n
    2
    """
    given = [part is not None for part in (generator, transition_matrix, rates)]
    if sum(given) != 1:
        raise InputError("give exactly one of generator, transition_matrix and rates")
    if rates is not None:
        return _from_rates(*rates)
    discrete = transition_matrix is not None
    name = "transition_matrix" if discrete else "generator"
    matrix = _square(transition_matrix if discrete else generator, name)
    coo = matrix.tocoo()
    row, column, value = coo.row, coo.col, coo.data
    _check_entries(row, column, value, name, diagonal=discrete)
    scale = _check_sums(row, value, matrix.shape[0], name, discrete, normalise)
    diagonal = np.zeros(matrix.shape[0])
    diagonal[row[row == column]] = value[row == column]
    stay = diagonal > 0 if discrete else np.ones(matrix.shape[0], np.bool_)
    return MarkovChain(
        matrix.shape[0], _off_diagonal(row, column, value / scale[row], stay.size), stay, discrete
    )


def _from_rates(origin: ArrayLike, destination: ArrayLike, rate: ArrayLike) -> MarkovChain:
    row, column = np.asarray(origin), np.asarray(destination)
    value = as_floats(rate, "rate")
    if row.ndim != 1 or row.shape != column.shape or row.shape != value.shape or row.size == 0:
        raise InputError("rates must be three arrays of equal length, at least 1")
    for name, numbers in (("origin", row), ("destination", column)):
        if numbers.dtype.kind not in "iu" or (numbers < 0).any():
            raise InputError(f"the {name}s in rates must be integers >= 0")
    _check_entries(row, column, value, "rates", diagonal=True)
    n = int(max(row.max(), column.max())) + 1
    return MarkovChain(n, _off_diagonal(row, column, value, n), np.ones(n, np.bool_), False)


def _square(value: Any, name: str) -> Matrix:
    matrix = as_matrix(value, name)
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError(f"{name} has shape {matrix.shape}; a square matrix is needed")
    return matrix


def _check_entries(
    row: NDArray[Any], column: NDArray[Any], value: Floats, name: str, *, diagonal: bool
) -> None:
    """Refuse entries that are not finite, or negative where they are rates."""
    wrong = ~np.isfinite(value) | ((value < 0) & (diagonal | (row != column)))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"{name} has the entry {value[k]:g} from state {row[k]} to state {column[k]}; "
            f"entries{'' if diagonal else ' off the diagonal'} must be finite and >= 0"
        )


def _check_sums(
    row: NDArray[Any], value: Floats, n: int, name: str, discrete: bool, normalise: bool
) -> Floats:
    """Check the row sums and return what each row is to be divided by."""
    total = np.bincount(row, value, minlength=n).astype(np.float64, copy=False)
    if normalise:
        if discrete and (total <= 0).any():
            raise InputError(f"row {int(np.argmax(total <= 0))} of {name} sums to 0")
        return total if discrete else np.ones(n)
    scale = np.full(n, float(discrete))
    np.maximum.at(scale, row, np.abs(value))
    wrong = np.abs(total - float(discrete)) > ROW_SUM_TOLERANCE * scale
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"row {k} of {name} sums to {total[k]:.10g}; rows must sum to {int(discrete)} "
            f"(normalise=True {'divides by the sums' if discrete else 'ignores the diagonal'})"
        )
    return np.ones(n)


def _off_diagonal(row: NDArray[Any], column: NDArray[Any], value: Floats, n: int) -> Matrix:
    from scipy import sparse

    keep = (row != column) & (value > 0)
    entries = value[keep], (row[keep], column[keep])
    return cast("Matrix", sparse.csr_array(entries, shape=(n, n)))
