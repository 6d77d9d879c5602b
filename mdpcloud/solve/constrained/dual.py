"""Lower bounds by prices: what no policy that meets the constraints can undercut.

For prices p >= 0 of averages A_j with limits b_j, every policy that meets A_j <= b_j costs at least

    min over all policies of ( C + sum_j p_j A_j ) - sum_j p_j b_j            (Lagrange),

because the sum added is then <= 0. The minimum is an ordinary problem with changed costs, and its
certificate (one sweep) makes this a bound that holds whatever the prices are, for policies that
look at the past as well. Without the cost C, a positive value proves that no policy meets the
constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.constrained.occupation import Average
from mdpcloud.solve.constrained.terms import Constraint
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.policy_iteration import PolicyIteration

__all__ = ["Priced", "cut_short", "go_on", "priced_bound", "with_costs"]

UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Priced:
    """The optimum of a problem whose costs contain prices.

    Attributes
    ----------
    low, high : float
        Certified bounds of the optimum less the limits' price, cost/time.
    values : (n,) array
        Relative values.
    choice : (n_terms, n) array
        Its policy.
    status : Status
        How it ended; that what is asked for could not be reached is no matter.
    """

    low: float
    high: float
    values: Floats
    choice: Choice
    status: Status


def priced_bound(
    problem: RowsProblem,
    cost: Average,
    constraints: Sequence[Constraint],
    prices: Floats,
    start: Floats,
    tolerance: float,
    monitor: Monitor,
) -> Priced:
    """Minimise the cost plus the priced averages, with certified bounds.

    Parameters
    ----------
    problem : RowsProblem
    cost : Average
    constraints : sequence of Constraint
    prices : (K,) array
        >= 0.
    start : (n,) array
        Relative values to start from.
    tolerance : float
        Relative; what cannot be reached is left as it is.
    """
    rows, total = problem.table, cost
    size, paid = cost.size(rows), 0.0
    for price, constraint in zip(prices, constraints, strict=True):
        total = total + constraint.average * float(price)
        size += float(price) * constraint.size(rows)
        paid += float(price) * constraint.limit
    changed = with_costs(problem, total)
    goal = Goal(tolerance, changed.cost_scale or 1.0)
    outcome = PolicyIteration(warm_up=1).run(changed, goal, monitor, changed.pack(start))
    certificate = outcome.certificate
    slack = UNIT_ROUNDOFF * (
        4.0 * (len(constraints) + len(problem.terms) + rows.roundings + 4) * size
        + 4.0 * (len(constraints) + 1) * float(np.abs(prices) @ _limits(constraints))
        + abs(certificate.low)
        + abs(certificate.high)
    )
    return Priced(
        certificate.low - paid - slack,
        certificate.high - paid + slack,
        changed.unpack(outcome.h),
        certificate.choice,
        outcome.status,
    )


def _limits(constraints: Sequence[Constraint]) -> Floats:
    return np.array([abs(constraint.limit) for constraint in constraints])


def with_costs(problem: RowsProblem, average: Average) -> RowsProblem:
    """The same problem with an average in the place of its cost."""
    table = replace(problem.table, cost_rate=average.state, cost=average.row)
    return replace(problem, table=table)


def cut_short(*statuses: Status) -> Status | None:
    """The first status of what a limit or the user ended, None if there is none."""
    free = (Status.CONVERGED, Status.STALLED, Status.PRECISION)
    return next((status for status in statuses if status not in free), None)


def go_on(status: Status) -> None:
    """Raise `Stopped` or KeyboardInterrupt where a limit or the user ended a solve."""
    ended = cut_short(status)
    if ended is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if ended is not None:
        raise Stopped(ended)
