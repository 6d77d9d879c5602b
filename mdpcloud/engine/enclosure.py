"""Proved bounds of the right-hand sides of one chain under several cost rates."""

from __future__ import annotations

import numpy as np

from mdpcloud.engine.moves import Matrix, pointers, targets
from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows_kernels import enclose
from mdpcloud.errors import SolveError

__all__ = ["enclose_rates"]


def enclose_rates(
    generator: Matrix, roundings: int, costs: Floats, values: Floats, *, discount: float = 0.0
) -> list[tuple[float, float]]:
    """Return, for cost rates of one chain, numbers below and above every c + Q h - discount h.

    Parameters
    ----------
    generator : (n, n) CSR array
        1/time; what is on its diagonal does not matter.
    roundings : int
        How many roundings separate its rates from the model's, see `Rows`.
    costs, values : (m, n) arrays
        Cost rates c, which are taken as they are, and values h.

    Raises
    ------
    SolveError
        If a value is not finite.
    """
    n = generator.shape[0]
    first = np.arange(n + 1)
    moves = pointers(generator), targets(generator), generator.data
    lower, upper, no_lumps = np.empty(n), np.empty(n), np.zeros(n)
    bounds = []
    for cost, h in zip(costs, values, strict=True):
        rows = first, first, cost, no_lumps, *moves
        if not enclose(*rows, h, lower, upper, discount, roundings):
            raise SolveError("a value of the certifying sweep is not finite")
        bounds.append((float(lower.min()), float(upper.max())))
    return bounds
