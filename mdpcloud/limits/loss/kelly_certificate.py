"""Error bounds for the large-scale limit of a loss network.

For prices y >= 0 of the resources, with jobs x_j = rho_j exp(-(A^T y)_j) and the residual r = c -
A x, the dual function D(y) = sum_j x_j + c y is least at y*, see `mdpcloud.limits.loss.kelly`. The
error is bounded in terms of d = A^T (y - y*) = log(x* / x).

The duality gap is at least sum_j x_j (1 + (d_j - 1) e^{d_j}), a term of which is at least x_j d_j^2
/ 3 where it is at most x_j / 12; so the gap bounds d by its square root. As (y - y*) r(y*) >= 0,
also

    sum_j x_j d_j (e^{d_j} - 1) <= sum_i (y_i - y*_i) r_i <= sum over y_i > 0 of |y_i - y*_i| |r_i|;

where the rows of A that may be saturated are independent, y - y* is linear in d, and the bound is
linear in r.

Neither says anything where some class has hardly any jobs. There a box does: with S the resources
with y_i > 0, F = r_S, H = A_S diag(x) A_S^T its derivative and Y about H^{-1}, Krawczyk's condition

    |Y| |F| + sup |1 - Y H| w <= w,   the supremum over the box y_S +- w,

makes the box hold a root of F (R. E. Moore, SIAM J. Numer. Anal. 14 (1977) 611-615), which is y* if
the box is positive and all other resources have spare capacity throughout. On one resource r
increases in y, and y* is where its sign changes, also where it is about 0.
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
    """Relative duality gap, and a bound of |d|; every class has a load."""
    gap, scale = _gap(network, prices)
    wander = _from_gap(gap, network.jobs(prices))
    bounds = [wander, _from_residual(network, prices, wander), _from_box(network, prices)]
    if prices.size == 1:
        bounds.append(_from_signs(network, float(prices[0])))
    return gap / scale, np.min(bounds, axis=0) + _rounding(network, prices)


def _rounding(network: Network, prices: Floats) -> Floats:
    """Bound of the relative rounding error of x_j, and of loads that are quotients."""
    found: Floats = ROUNDING * (6.0 + (prices.size + 2.0) * (prices @ network.needs))
    return found


def _noise(network: Network, prices: Floats) -> Floats:
    """Bound of the rounding error of the residual, and of the capacities of rows left out."""
    shares = _rounding(network, prices) + 2.0 * ROUNDING * network.loads.size
    found: Floats = network.needs @ (network.jobs(prices) * shares) + 8.0 * ROUNDING * network.room
    return found


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
    noise = _noise(network, prices)
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


def _from_box(network: Network, prices: Floats) -> Floats:
    """Bound of |d| by a box of prices; infinite where none is found."""
    nothing = np.full(network.loads.size, np.inf)
    active = prices > 0.0
    jobs, noise = network.jobs(prices), _noise(network, prices)
    rows = network.needs[active]
    inverse = _about_inverse((rows * jobs) @ rows.T)
    if inverse is None:
        return nothing
    near = np.abs(inverse) @ (np.abs(network.spare(prices)) + noise)[active]
    width = 2.0 * near
    moved = width @ rows
    if not (moved <= 1.0).all() or not (width < prices[active]).all():
        return nothing
    low, high = ((rows * jobs * np.exp(side * moved)) @ rows.T for side in (-1.0, 1.0))
    spread = np.abs(np.eye(width.size) - inverse @ (0.5 * (low + high)))
    roundings = 4.0 * (jobs.size + width.size + 4.0) * ROUNDING
    spread += np.abs(inverse) @ (0.5 * (high - low) + roundings * high)
    most = network.needs @ (jobs * np.exp(moved)) * (1.0 + roundings) + noise
    holds = (near + spread @ width <= width).all() and (most < network.room)[~active].all()
    return moved * (1.0 + roundings) if holds else nothing


def _about_inverse(matrix: Floats) -> Floats | None:
    """Inverse of a positive definite matrix whose rows may be of any size; None if singular."""
    unit = np.sqrt(np.diag(matrix))
    if not (unit > 0.0).all():
        return None
    try:
        found: Floats = np.linalg.inv(matrix / np.outer(unit, unit)) / np.outer(unit, unit)
    except np.linalg.LinAlgError:
        return None
    return found if np.isfinite(found).all() else None


def _from_signs(network: Network, price: float) -> Floats:
    """Bound of |d| on one resource, between prices at which the residual has both signs."""
    width = ROUNDING * max(price, ROUNDING / float(network.needs.max()))
    while width * float(network.needs.max()) <= 1.0:
        below, above = np.array([max(price - width, 0.0)]), np.array([price + width])
        short = network.spare(below) + _noise(network, below) < 0.0
        left = network.spare(above) - _noise(network, above) > 0.0
        if left.all() and (below[0] == 0.0 or short.all()):
            moved: Floats = width * (1.0 + 4.0 * ROUNDING) * network.needs[0]
            return moved
        width *= 2.0
    return np.full(network.loads.size, np.inf)
