"""Up to how many states the chain of a policy is factored.

The fill of a sparse factor grows with the section of the states' graph: the states per point of the
longest axis. Measured per state, in one factorisation: 1 us for a section of 9, 6 us for one of 121
in the plane, 16 us for one of 196 and 100 us for one of 340 in three dimensions, where it soon
costs more than all sweeps of an iteration.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["BAND", "direct_limit"]

ALWAYS = 3000  # states
THIN = 30  # states per point of the longest axis: the factor is a narrow band
BAND = 1_000_000  # states of a thin lattice
PLANE = 100_000  # states of a lattice of two axes


def direct_limit(problem: Any) -> int:
    """States up to which factoring a chain of this problem comes first.

    Parameters
    ----------
    problem : Problem
    """
    grid = getattr(problem, "grid", None)
    if grid is None:
        return ALWAYS
    lengths = [int(column.max()) + 1 for column in grid.columns]
    if math.prod(lengths) <= THIN * max(lengths):
        return BAND
    return PLANE if len(lengths) == 2 else ALWAYS
