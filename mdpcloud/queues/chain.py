"""Stationary laws of general birth-death processes on 0..n-1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.errors import InputError

__all__ = ["birth_death"]


def birth_death(birth: ArrayLike, death: ArrayLike) -> NDArray[np.float64]:
    """Stationary distribution of a birth-death process.

    Parameters
    ----------
    birth : (n-1,) array_like
        Rate from state i to i+1, for i = 0..n-2; >= 0, any unit of time.
    death : (n-1,) array_like
        Rate from state i+1 to i, for i = 0..n-2; >= 0.

    Returns
    -------
    (n,) ndarray
        Positive on the one closed class (0 where below 1e-308), 0 on transient states; sums to 1.

    Raises
    ------
    InputError
        If the arrays differ in length, an entry is negative or not finite (the message says where),
        or the chain has several closed classes.

    Notes
    -----
    Detailed balance pi_{i+1} = pi_i birth_i / death_i, as a product of fractions with an exponent
    of its own: no overflow, no subtraction; the relative error grows like n times the rounding
    unit.

    Examples
    --------
    >>> birth_death([1.0, 1.0], [1.0, 2.0])
    array([0.4, 0.4, 0.2])
    """
    up, down = _rates("birth", birth), _rates("death", death)
    if up.size != down.size:
        raise InputError(
            f"birth and death must have the same length, got {up.size} and {down.size}"
        )
    first = int(np.flatnonzero(down == 0.0)[-1]) + 1 if (down == 0.0).any() else 0
    last = int(np.flatnonzero(up == 0.0)[0]) if (up == 0.0).any() else up.size
    if first > last:
        raise InputError(
            f"the chain has several closed classes: no birth from state {last} and no death from "
            f"state {first}; the stationary distribution must be unique"
        )
    law = np.zeros(up.size + 1)
    law[first : last + 1] = _irreducible(up[first:last], down[first:last])
    return law


def _irreducible(birth: NDArray[np.float64], death: NDArray[np.float64]) -> NDArray[np.float64]:
    from mdpcloud.queues.kernels import birth_death_weights

    fraction, exponent = np.empty(birth.size + 1), np.empty(birth.size + 1, dtype=np.int64)
    birth_death_weights(birth, death, fraction, exponent)
    shift = np.maximum(exponent - exponent.max(), -2000).astype(np.int32)
    weights = np.ldexp(fraction, shift)
    law: NDArray[np.float64] = weights / weights.sum()
    return law


def _rates(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        given = np.asarray(values)
        rates = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers, got {values!r}") from error
    if rates.ndim != 1 or given.dtype == np.bool_ or np.iscomplexobj(given):
        raise InputError(f"{name} must be a one-dimensional array of real numbers")
    wrong = np.flatnonzero(~(np.isfinite(rates) & (rates >= 0.0)))
    if wrong.size:
        raise InputError(f"{name}[{wrong[0]}] is {rates[wrong[0]]}; rates must be finite and >= 0")
    return rates
