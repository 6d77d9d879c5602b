"""A lower bound of the cost of a link with downgrading, at any scale and under any policy.

Jobs of class j are taken in full at rate f_j, downgraded at d_j and rejected at r_j. By Little's
law the mean of the units in use, which is at most C, is at least as large as they need, so that the
optimal cost is at least that of the linear program

    min sum_j w_j d_j + v_j r_j,  f_j + d_j + r_j = lambda_j,  sum_j f_j A_j/mu_j + d_j/mu_0 <= C.

Its dual has one variable, the price y >= 0 of a unit:

    max_y sum_j lambda_j min{ y A_j/mu_j, w_j + y/mu_0, v_j } - y C,

concave and linear between the prices at which two terms of a minimum agree, which are all tried.
Every price gives a bound, so that rounding of the prices does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["fluid_bound"]

Floats = NDArray[np.float64]

EPS = float(np.finfo(float).eps)


def fluid_bound(
    arrival_rates: Sequence[float],
    service_rates: Sequence[float],
    requirements: Sequence[int],
    capacity: float,
    rejection_costs: Sequence[float],
    downgrading_costs: Sequence[float],
) -> float:
    """Lower bound of the cost of a link (cost/time), less what rounding may add.

    Examples
    --------
    >>> round(fluid_bound((3, 4), (1, 1), (1, 2), 10, (1, 1), (0, 0.5)), 12)
    0.5
    """
    rates, lost = np.asarray(arrival_rates, float), np.asarray(rejection_costs, float)
    loads = np.array(
        [np.divide(requirements, service_rates), np.full(rates.size, 1.0), 0.0 * rates]
    )
    loads[1] /= service_rates[0]
    costs = np.array([0.0 * rates, downgrading_costs, lost])
    loads[1, 0], costs[1, 0] = 0.0, lost[0]  # class 0 is not downgraded
    prices = _prices(loads, costs)
    with np.errstate(over="ignore", invalid="ignore"):
        least = np.min(costs[:, :, None] + prices * loads[:, :, None], axis=0)
        values = rates @ least - prices * capacity
        values -= 4.0 * (rates.size + 4) * EPS * (rates @ least + prices * capacity)
    # prices whose terms are beyond floating point are left out, as every one gives a bound
    return float(max(values[np.isfinite(values)].max(), 0.0))


def _prices(loads: Floats, costs: Floats) -> Floats:
    """Prices at which two choices of a class cost the same."""
    pairs = ((0, 1), (0, 2), (1, 2))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = [(costs[k] - costs[i]) / (loads[i] - loads[k]) for i, k in pairs]
    prices: Floats = np.concatenate([np.zeros(1), *found])
    return np.extract(np.isfinite(prices) & (prices >= 0.0), prices)
