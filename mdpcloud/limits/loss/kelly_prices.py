"""Prices that may be those of a loss network's large-scale limit.

They are what `mdpcloud.limits.loss.kelly_certificate` judges. cvxpy gives a few digits, and
Newton's method on the resources with a price the others, until the residual no longer falls. If
those are not good enough, the saturated resources may be others: a few are all tried.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.loss.kelly_certificate import Network

__all__ = ["candidates", "dual_prices", "link_price"]

STEPS = 60  # of Newton's method
HALVINGS = 30
FREE = 1e-4  # prices below it are first taken for 0 where there is spare capacity
MOST_TRIED = 6  # resources whose subsets are tried
TINY_SHARE = 1e-12  # of a change of prices: rounding

Floats: TypeAlias = NDArray[np.float64]


def candidates(network: Network) -> Iterator[Floats]:
    """Prices that may be the best ones, the likely ones first."""
    rows = network.room.size
    if rows == 1:
        yield np.array([link_price(network)])
        return
    start = _start(network)
    first = _polished(network, start)
    yield first
    yield _polished(network, _independent(network, first))
    for size in range(1, rows + 1 if rows <= MOST_TRIED else 1):
        for chosen in map(list, combinations(range(rows), size)):
            part = Network(network.loads, network.needs[chosen], network.room[chosen])
            prices = np.zeros(rows)
            alone = np.array([link_price(part)]) if size == 1 else _polished(part, start[chosen])
            prices[chosen] = alone
            yield prices


def _start(network: Network) -> Floats:
    """Prices by cvxpy; 0 where that fails, as at loads over many orders of magnitude."""
    try:
        return dual_prices(network)
    except SolveError:
        return np.zeros(network.room.size)


def _independent(network: Network, prices: Floats) -> Floats:
    """Prices with the same sums A^T y and no higher a cost c y on independent resources."""
    prices = prices.copy()
    while True:
        active = np.flatnonzero(prices > 0.0)
        rows = network.needs[active]
        if np.linalg.matrix_rank(rows) == active.size:
            return prices
        change = np.linalg.svd(rows.T)[2][-1]  # of prices, without effect on the sums
        if network.room[active] @ change > 0.0:
            change = -change
        with np.errstate(divide="ignore"):
            steps = np.where(change < -TINY_SHARE, prices[active] / -change, np.inf)
        prices[active] = np.maximum(prices[active] + steps.min() * change, 0.0)
        prices[active[steps.argmin()]] = 0.0


def link_price(network: Network) -> float:
    """The price of one resource."""
    from scipy.optimize import brentq

    def excess(y: float) -> float:
        return -float(network.spare(np.array([y]))[0])

    if excess(0.0) <= 0.0:
        return 0.0
    used = (network.needs[0] > 0.0) & (network.loads > 0.0)
    surplus = float(np.log(network.loads @ network.needs[0] / network.room[0]))
    largest = surplus / float(network.needs[0, used].min())
    return float(brentq(excess, 0.0, 1.01 * largest + 1e-15, xtol=1e-300, rtol=1e-15))


def dual_prices(network: Network) -> Floats:
    """The prices by cvxpy, to a few digits; SolveError where it fails."""
    import cvxpy

    cp: Any = cvxpy

    unit = float(network.room.max())
    prices = cp.Variable(network.room.size, nonneg=True)
    jobs = (network.loads / unit) @ cp.exp(-network.needs.T @ prices)
    problem = cp.Problem(cp.Minimize(jobs + (network.room / unit) @ prices))
    try:
        with warnings.catch_warnings():  # of inaccurate digits, which are not relied on
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=cp.CLARABEL)
    except cp.SolverError as error:
        raise SolveError(f"cvxpy did not solve the dual problem: {error}") from None
    if prices.value is None:
        raise SolveError(f"cvxpy did not solve the dual problem: {problem.status}")
    found: Floats = np.maximum(np.asarray(prices.value, dtype=float), 0.0)
    return found


def _polished(network: Network, prices: Floats) -> Floats:
    """Newton's method on the resources in use, as long as the residual falls."""
    prices = np.where((prices < FREE) & (network.spare(prices) > 0.0), 0.0, prices)
    residual = _residual(network, prices)
    for _ in range(STEPS):
        step = _newton_step(network, prices)
        for halving in range(HALVINGS):
            other = np.maximum(prices + 0.5**halving * step, 0.0)
            after = _residual(network, other)
            if after < residual:
                break
        else:
            return prices
        prices, residual = other, after
    return prices


def _newton_step(network: Network, prices: Floats) -> Floats:
    spare = network.spare(prices)
    free = (prices > 0.0) | (spare < 0.0)
    rows = network.needs[free]
    slope = (rows * network.jobs(prices)) @ rows.T
    step = np.zeros(prices.size)
    step[free] = -np.linalg.lstsq(slope, spare[free], rcond=None)[0]
    return step


def _residual(network: Network, prices: Floats) -> float:
    """Largest relative violation of the conditions of optimality."""
    spare = network.spare(prices) / network.room
    return float(np.where(prices > 0.0, np.abs(spare), np.maximum(-spare, 0.0)).max())
