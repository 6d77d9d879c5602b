"""A lower bound of the cost of cooperating centres, for every policy and every size of the system.

Jobs of type j that come to centre k are taken there at rate s_jk, sent on and taken in centre k' at
rate f_jk, and lost at r_jk. By Little's law the mean number of jobs of type j in a centre is the
rate at which they are taken there over mu_j, and what they use is at most the capacity, so that the
cost is at least the value of the linear programme

    min sum w r_jk + v f_jk,   s_jk + f_jk + r_jk = l_jk,
    sum_j (s_jk + f_jk'') A_jm/mu_j <= C_km   (k'' sends to k),   s, f, r >= 0.

The solver's prices z_km of the capacities are made feasible in the dual, whose value is a bound
whatever the solver's error, less what rounding may add to it:

    sum_jk l_jk min(w, p_jk, v + p_jk') - sum_km C_km z_km,   p_jk = sum_m z_km A_jm/mu_j.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["least_cost"]

EPS = float(np.finfo(float).eps)


def least_cost(
    arrivals: ArrayLike,
    services: ArrayLike,
    requirements: ArrayLike,
    capacities: ArrayLike,
    costs: tuple[float, float],
    following: Sequence[int],
) -> float:
    """Lower bound of the cost of lost and forwarded jobs, cost/time.

    Parameters
    ----------
    arrivals : (types, centres) array
    services : (types,) array
    requirements : (types, resources) array
    capacities : (centres, resources) array
    costs : (w, v)
        Of a lost and of a forwarded job.
    following : sequence of int
        The centre to which each one sends.

    Examples
    --------
    >>> rates, needs = [[0.5, 0.1], [0.1, 0.5]], [[2, 1], [1, 2]]
    >>> round(least_cost(rates, [1.0, 1.0], needs, [[1.0] * 2] * 2, (1.0, 0.5), (1, 0)), 12)
    0.1
    """
    from scipy.optimize import linprog

    rates, rooms = np.asarray(arrivals, float), np.asarray(capacities, float)
    uses = np.asarray(requirements, float) / np.asarray(services, float)[:, None]
    (types, centres), resources = rates.shape, rooms.shape[1]
    local = np.zeros((centres, resources, types, centres))
    for k in range(centres):
        local[k, :, :, k] = uses.T
    remote = local[..., list(following)]
    taken = np.concatenate([part.reshape(rooms.size, -1) for part in (local, remote)], axis=1)
    lost, sent = costs
    found = linprog(
        np.repeat([0.0, sent, lost], rates.size),
        A_ub=np.hstack([taken, np.zeros((rooms.size, rates.size))]),
        b_ub=rooms.ravel(),
        A_eq=np.hstack([np.eye(rates.size)] * 3),
        b_eq=rates.ravel(),
        method="highs",
    )
    prices = np.zeros(rooms.shape)
    if found.success:
        prices = np.maximum(-found.ineqlin.marginals, 0.0).reshape(rooms.shape)
    own = uses @ prices.T
    worth = np.minimum(np.minimum(own, sent + own[:, list(following)]), lost)
    gained, paid = float((rates * worth).sum()), float((rooms * prices).sum())
    rounding = 2.0 * (rates.size + rooms.size + resources) * EPS * (gained + paid)
    return float(max(gained - paid - rounding, 0.0))
