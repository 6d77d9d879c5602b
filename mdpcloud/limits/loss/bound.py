"""A lower bound of the cost of every admission policy of a loss network, at every scale.

A policy that accepts class-j jobs at rate a_j <= lambda_j has a_j / mu_j of them present on
average, and A n <= C always. So its cost is at least the optimum of the linear program

    minimise  sum_j w_j (lambda_j - a_j)   over 0 <= a <= lambda with sum_j A_ij a_j / mu_j <= C_i.

For any prices y >= 0 of the resources, sum_j lambda_j min(w_j, (A^T y)_j / mu_j) - C y is no more
than that; the prices of HiGHS attain it up to its tolerance, and the bound holds whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["least_rejection_cost"]

ROUNDING = 2.0**-53


def least_rejection_cost(
    arrival_rates: Sequence[float],
    service_rates: Sequence[float],
    requirements: Sequence[Sequence[int]],
    capacities: Sequence[float],
    costs: Sequence[float],
) -> float:
    """Lower bound of the cost rate of any policy; the numbers are taken as checked.

    Parameters
    ----------
    arrival_rates, service_rates : sequence of float
        lambda_j >= 0 and mu_j > 0 of each class, 1/time.
    requirements : sequence of sequences of int
        One row per resource: A_ij >= 0.
    capacities : sequence of float
        C_i of each resource.
    costs : sequence of float
        w_j >= 0 of a lost job of each class.

    Examples
    --------
    >>> round(least_rejection_cost([3.0, 1.5], [1.0, 1.0], [[1, 2]], [4.0], [1.0, 4.0]), 12)
    2.0
    """
    from scipy.optimize import linprog

    rates, prices = np.array(arrival_rates, dtype=float), np.array(costs, dtype=float)
    needs = np.array(requirements, dtype=float) / np.array(service_rates, dtype=float)
    room = np.array(capacities, dtype=float)
    found = linprog(-prices, needs, room, bounds=list(zip(0.0 * rates, rates, strict=True)))
    dual = np.zeros(room.size) if found.status else np.maximum(-found.ineqlin.marginals, 0.0)
    saved, paid = float(rates @ np.minimum(prices, dual @ needs)), float(room @ dual)
    rounding = 4.0 * (rates.size + room.size) * ROUNDING * (saved + paid)
    return max(saved - paid - rounding, 0.0)
