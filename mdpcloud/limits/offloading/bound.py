"""A lower bound of the cost of loss, valid for every policy and every size of the system.

On average centre j serves at most a_j jobs per unit of time, so that the cost of loss is at least
the value of the linear programme

    min sum_k w_k r_k,   sum_j s_kj + r_k = l_k,   sum_k s_kj <= a_j,   s, r >= 0,

where s_kj > 0 only where jobs of class k may go to centre j. The solver's prices z_j of the
capacities are made feasible in the dual, whose value is a bound whatever the solver's error, less
what rounding may add to it:

    sum_k l_k min(w_k, min_j z_j) - sum_j a_j z_j   <=   min sum_k w_k r_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mdpcloud.limits.offloading.boundary_value import EPS

__all__ = ["least_loss"]


def least_loss(
    arrivals: Sequence[float],
    capacities: Sequence[float],
    costs: Sequence[float],
    reach: Sequence[Sequence[int]],
) -> float:
    """Lower bound of the cost of lost jobs, cost/time.

    Parameters
    ----------
    arrivals, costs : sequence of float
        Arrival rate and cost of a lost job of each class.
    capacities : sequence of float
        Jobs that each centre can serve per unit of time.
    reach : sequence of sequences of int
        Centres that may serve each class.

    Examples
    --------
    >>> round(least_loss((6.0, 7.0), (4.0, 8.0), (1.0, 3.0), ((0, 1), (0, 1))), 12)
    1.0
    """
    from scipy.optimize import linprog

    rate, cost = _unit([*arrivals, *capacities]), _unit(costs)
    arrivals, capacities, costs = (
        [value / unit for value in values]
        for values, unit in ((arrivals, rate), (capacities, rate), (costs, cost))
    )
    classes, pairs = len(arrivals), [(k, j) for k, to in enumerate(reach) for j in to]
    served = np.array([[float(k == of) for k, _ in pairs] for of in range(classes)])
    at = np.array([[float(j == of) for _, j in pairs] for of in range(len(capacities))])
    found = linprog(
        np.concatenate([np.zeros(len(pairs)), np.asarray(costs, float)]),
        A_ub=np.hstack([at, np.zeros((len(capacities), classes))]),
        b_ub=capacities,
        A_eq=np.hstack([served, np.eye(classes)]),
        b_eq=arrivals,
        method="highs",
    )
    prices = np.zeros(len(capacities))
    if found.success:
        prices = np.maximum(-found.ineqlin.marginals, 0.0)
    worth = [min(price, *prices[list(to)]) for price, to in zip(costs, reach, strict=True)]
    gained, paid = float(np.dot(worth, arrivals)), float(np.dot(prices, capacities))
    rounding = (classes + len(capacities)) * EPS * (gained + paid)
    return max(gained - paid - rounding, 0.0) * rate * cost


def _unit(values: Sequence[float]) -> float:
    """A power of 2 near the largest value, as solvers take large numbers for infinite ones."""
    return math.ldexp(1.0, math.frexp(max(values))[1])
