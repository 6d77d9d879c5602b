"""Loss systems with one resource: the recursion of Kaufman and Roberts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.queues.border import checked_count
from mdpcloud.queues.occupancy import LossLaw, checked_loads, checked_row, occupancy_law

__all__ = ["kaufman_roberts"]


def kaufman_roberts(capacity: int, loads: Sequence[float], requirements: Sequence[int]) -> LossLaw:
    """Stationary law of a link whose jobs of each class need a number of its slots.

    Parameters
    ----------
    capacity : int
        Number of slots C.
    loads : sequence of float
        Offered load rho_j of each class, arrival rate over service rate, >= 0.
    requirements : sequence of int
        Slots A_j >= 1 that a job of each class needs; a class may need more than there are.

    Raises
    ------
    InputError
        If a number is out of range, or the lists differ in length.

    Notes
    -----
    With q the law of the occupied slots, m q(m) = sum_j A_j rho_j q(m - A_j) and B_j = P(m > C -
    A_j) (J. S. Kaufman, IEEE Trans. Commun. 29 (1981) 1474-1481; J. W. Roberts, 1981). The law
    depends on the means of the service times only. It takes C steps for each class; there is no
    overflow whatever the loads.

    Examples
    --------
    >>> law = kaufman_roberts(6, [3.0, 1.5], [1, 2])
    >>> [round(b, 12) for b in law.blocking], [round(x, 12) for x in (117 / 541, 477 / 1082)]
    ([0.216266173752, 0.440850277264], [0.216266173752, 0.440850277264])
    """
    slots = checked_count("capacity", capacity, least=0)
    rho = checked_loads(loads)
    row = checked_row("requirements", requirements, rho.size)
    if 0 in row:
        raise InputError(f"requirements[{row.index(0)}] is 0; every class needs at least 1 slot")
    return occupancy_law(np.array([slots]), rho, np.array([row]))
