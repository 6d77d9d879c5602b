"""Error bounds for the large-scale limit of a loss network.

For prices y >= 0 of the resources, with jobs x_j = rho_j exp(-(A^T y)_j) and the residual r = c -
A x, the dual function D(y) = sum_j x_j + c y is least at y*, see `mdpcloud.limits.kelly`. The error
is bounded in terms of d = A^T (y - y*) = log(x* / x).

The duality gap is at least sum_j x_j (1 + (d_j - 1) e^{d_j}), a term of which is at least x_j d_j^2
/ 3 where it is at most x_j / 12; so the gap bounds d by its square root. As (y - y*) r(y*) >= 0,
also

    sum_j x_j d_j (e^{d_j} - 1) <= sum_i (y_i - y*_i) r_i <= sum over y_i > 0 of |y_i - y*_i| |r_i|;

where the rows of A that may be saturated are independent, y - y* is linear in d, and the bound is
linear in r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Network", "certificate"]

ROUNDING = 2.0**-53

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """Loads (c,), requirements (k, c) and capacities (k,)."""

    loads: Floats
    needs: Floats
    room: Floats

    def jobs(self, prices: Floats) -> Floats:
        """The jobs x of each class."""
        found: Floats = self.loads * np.exp(-prices @ self.needs)
        return found

    def spare(self, prices: Floats) -> Floats:
        """Spare capacity c - A x of each resource."""
        found: Floats = self.room - self.needs @ self.jobs(prices)
        return found


def certificate(network: Network, prices: Floats) -> tuple[float, Floats]:
    """Relative duality gap, and a bound of |d|."""
    gap, scale = _gap(network, prices)
    wander = _from_gap(gap, network.jobs(prices))
    by_row = _from_residual(network, prices, wander)
    return gap / scale, np.minimum(wander, by_row) + _rounding(network, prices)


def _rounding(network: Network, prices: Floats) -> float:
    """Bound of the relative rounding error of x_j."""
    largest = float((prices @ network.needs).max())
    return ROUNDING * (4.0 + (prices.size + 2.0) * largest)


def _gap(network: Network, prices: Floats) -> tuple[float, float]:
    """Duality gap with a bound of its rounding, and D(y)."""
    jobs, logs = network.jobs(prices), prices @ network.needs
    share = min(1.0, float((network.room / np.maximum(network.needs @ jobs, 1e-300)).min()))
    dual = jobs.sum() + network.room @ prices
    primal = share * (jobs @ (1.0 + logs - np.log(share)))
    size = dual + jobs @ logs
    terms = jobs.size + prices.size
    return float(max(dual - primal, 0.0) + 4.0 * terms * ROUNDING * size), float(dual)


def _from_gap(gap: float, jobs: Floats) -> Floats:
    """Bound of |d| from x (1 + (d - 1) e^d) <= gap; infinite where that says nothing."""
    with np.errstate(divide="ignore"):
        ratio = gap / jobs
    found: Floats = np.where(ratio <= 1.0 / 12.0, np.sqrt(3.0 * ratio), np.inf)
    return found


def _from_residual(network: Network, prices: Floats, wander: Floats) -> Floats:
    """Bound of |d| that is linear in the residual; infinite where the rows are dependent."""
    nothing = np.full(network.loads.size, np.inf)
    jobs, spare = network.jobs(prices), network.spare(prices)
    present = jobs > 0.0
    if not (wander[present] <= 0.1).all():
        return nothing
    noise = network.room * (_rounding(network, prices) + 2.0 * ROUNDING * jobs.size)
    most = network.needs[:, present] @ (jobs[present] * np.exp(wander[present]))
    near = (prices > 0.0) | (most >= network.room)
    if not near.any():
        return np.zeros(network.loads.size)
    rows = network.needs[np.ix_(near, present)]
    left = np.linalg.pinv(rows.T)  # y - y* = left d
    if np.linalg.matrix_rank(rows) < rows.shape[0]:
        return nothing
    weight = np.linalg.norm(left / np.sqrt(jobs[present]), axis=1)
    residual = np.where(prices > 0.0, np.abs(spare), np.maximum(-spare, 0.0)) + noise
    length = float(residual[near] @ weight) / 0.9  # of sqrt(x) d
    bound = nothing
    with np.errstate(divide="ignore"):
        bound[present] = length / np.sqrt(jobs[present])
    moved = network.needs[near].T @ (weight * length)  # |A^T (y - y*)|, for classes without load
    found: Floats = np.minimum(bound, 1.01 * moved)
    return found
