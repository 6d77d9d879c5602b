"""A certified bound of the single-arm problem's optimum at a price.

For any values h, the least right-hand side over states and actions

    low = min over x, a of  [ c_a + p w_a + Q_a h - alpha h ](x)

bounds the optimum from below: the gain is at least low, the discounted cost from x at least
h(x) + low / alpha (Odoni 1969, MacQueen 1966). Here h belongs to a policy that is optimal or nearly
so; whether it is decides only how close the bound is.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mdpcloud.criteria import AverageCost, Discounted
from mdpcloud.engine.moves import off_diagonal, picked
from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.errors import SolveError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.single_arm import equations, factored
from mdpcloud.model.matrices import Floats, as_matrix, interleaved
from mdpcloud.solve.limits import Goal, Monitor
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.reward import value_bounds

__all__ = ["floor_of", "least_cost"]

UNIT = 2.0**-53
WIDE = 1e-11  # width of the right-hand sides, over the costs, from which values are improved
TOLERANCE = 1e-11


def least_cost(
    arm: Arm,
    price: float,
    active: NDArray[np.bool_],
    criterion: AverageCost | Discounted,
    start: Floats | None,
) -> float:
    """A number below the optimum of cost + price work, rounding included.

    Parameters
    ----------
    arm : Arm
    price : float
    active : (n,) bool array
        Where a policy is active that is optimal at this price.
    criterion : AverageCost or Discounted
    start : (n,) array or None
        Law of the first state, for discounted cost.
    """
    alpha = criterion.rate_for(arm.discrete)
    costs = arm.costs + price * arm.work
    problem = _problem(arm, costs)
    h = _values(arm, active, np.where(active, costs[1], costs[0]), alpha)
    paid = float((np.abs(arm.costs) + abs(price) * np.abs(arm.work)).max())
    found, width = _below(problem, h, paid, criterion, start)
    if width > WIDE * paid:
        better, _ = _below(problem, _improved(problem, h, alpha), paid, criterion, start)
        found = max(found, better)
    return found


def _below(
    problem: RowsProblem,
    h: Floats,
    paid: float,
    criterion: AverageCost | Discounted,
    start: Floats | None,
) -> tuple[float, float]:
    """The bound that values h give, and how far their right-hand sides differ.

    `paid` is the largest cost and payment of a state together.
    """
    alpha = criterion.rate_for(problem.discrete)
    low, high = problem.certify(h, discount=alpha)
    width = high - low
    low -= 4.0 * UNIT * (paid + abs(low))  # the roundings of costs, and of this line
    if start is None:
        return low, width
    lower, _ = value_bounds(h, low, high, criterion, alpha)
    return _mean_below(start, lower), width


def _improved(problem: RowsProblem, h: Floats, alpha: float) -> Floats:
    """Values by policy iteration, which also finds its way where rates are many decades apart."""
    goal = Goal(TOLERANCE, problem.cost_scale, alpha)
    outcome = PolicyIteration().run(problem, goal, Monitor(), problem.pack(h))
    return problem.unpack(outcome.h)


def floor_of(number: Fraction) -> float:
    """A float that is at most this number, and next to it."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def _mean_below(law: Floats, lower: Floats) -> float:
    """A number below the mean of `lower`."""
    support = np.flatnonzero(law)
    pairs = zip(law[support].tolist(), lower[support].tolist(), strict=True)
    return floor_of(sum((Fraction(p) * Fraction(v) for p, v in pairs), Fraction(0)))


def _values(arm: Arm, active: NDArray[np.bool_], costs: Floats, alpha: float) -> Floats:
    """Values h of a policy, 0 in state 0 (discounted: but for a constant).

    Where rounding hides them all are 0, from which values can be improved.
    """
    matrix = equations(arm, active, alpha)
    try:
        solve, _ = factored(matrix)
    except SolveError:
        return np.zeros(arm.n)
    with np.errstate(over="ignore", invalid="ignore"):
        values = solve(costs)
        values = values + solve(costs - matrix @ values)
    values[0] = 0.0
    return np.asarray(values) if np.isfinite(values).all() else np.zeros(arm.n)


def _problem(arm: Arm, costs: Floats) -> RowsProblem:
    """The single-arm problem as rows: two per state, one where the state is not free."""
    allowed = np.stack([arm.free | ~arm.forced, arm.free | arm.forced], axis=1).ravel()
    rows = np.flatnonzero(allowed)
    state = (rows // 2).astype(np.int32)
    blocks = [as_matrix(matrix, "moves") for matrix in arm.moves]
    table = Rows(
        n=arm.n,
        cost_rate=np.zeros(arm.n),
        state=state,
        term=np.zeros(rows.size, np.int32),
        action=(rows % 2).astype(np.int32),
        rate=np.ones(rows.size),
        cost=costs.T.ravel()[rows],
        transitions=off_diagonal(picked(interleaved(blocks), rows), state),
    )
    return RowsProblem(table, (TermInfo("arm", ("passive", "active"), True),), arm.discrete)
