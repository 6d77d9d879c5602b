"""Why constraints cannot be met: which conflict, by how much, and what each could reach alone.

The least common violation t is that of the elastic program: least t such that every constraint is
missed by at most t times its unit. The duals of that program are prices that prove it
(`mdpcloud.solve.constrained.dual`): the constraints with a positive price conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.errors import SolveError
from mdpcloud.solve.constrained.dual import go_on, priced_bound
from mdpcloud.solve.constrained.occupation import Average, OccupationProgram
from mdpcloud.solve.constrained.terms import Constraint
from mdpcloud.solve.limits import Monitor

__all__ = ["Infeasibility", "InfeasibleError", "message_of", "report_of"]

NOTHING = 1e-9  # of a best value: shown as 0
PRICED = 1e-9  # of the sum of prices times units: smaller parts take no part in a conflict
REPORT_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Infeasibility:
    """Why no policy meets the constraints.

    Attributes
    ----------
    conflict : tuple of str
        Constraints that cannot be met together.
    violation : (lower, upper)
        Least t such that each constraint is missed by at most t times its unit: the lower end is
        certified, and positive, which proves that there is no policy; the upper end is what the
        linear program reaches. The unit is the size of the limit (for a ratio, times the largest
        possible value of what it is divided by), or the largest possible value of the measure where
        the limit is 0.
    alone : mapping of str to (lower, upper)
        Per constraint certified bounds of the best value that the measure has under any policy: the
        least one for "at most", the largest for "at least". A ratio N / D <= b appears as
        N - b D <= 0.
    """

    conflict: tuple[str, ...]
    violation: tuple[float, float]
    alone: Mapping[str, tuple[float, float]]


class InfeasibleError(SolveError):
    """No policy meets the constraints; ``partial`` is an `Infeasibility`."""


def report_of(
    problem: RowsProblem,
    program: OccupationProgram,
    constraints: Sequence[Constraint],
    monitor: Monitor,
) -> Infeasibility:
    """The least common violation, the conflict, and the best value of each measure alone."""
    units = np.array([constraint.unit for constraint in constraints])
    elastic = program.least_violation(
        [(c.average, c.limit) for c in constraints], list(units), monitor=monitor
    )
    prices, nothing = elastic.multipliers, _nothing(problem)
    total = float(units @ prices)
    if total > 0.0:
        prices = prices / total
    proof = priced_bound(
        problem, nothing, constraints, prices, elastic.values, REPORT_TOLERANCE, monitor
    )
    go_on(proof.status)
    lower = proof.low / (float(units @ prices) * (1.0 + 1e-15)) if total > 0.0 else 0.0
    conflict = prices * units > PRICED
    return Infeasibility(
        conflict=tuple(c.label for c, part in zip(constraints, conflict, strict=True) if part),
        violation=(
            lower,
            max(lower, _reached(problem, constraints, units, elastic.law, elastic.weight)),
        ),
        alone={c.linear: _best(problem, c, monitor) for c in constraints},
    )


def _nothing(problem: RowsProblem) -> Average:
    return Average(np.zeros(problem.n), np.zeros(problem.table.state.size))


def _reached(
    problem: RowsProblem,
    constraints: Sequence[Constraint],
    units: Floats,
    law: Floats,
    weight: Floats,
) -> float:
    """The violation of an occupation measure."""
    missed = [c.average.state @ law + c.average.row @ weight - c.limit for c in constraints]
    return max(0.0, float((np.array(missed) / units).max()))


def _best(problem: RowsProblem, constraint: Constraint, monitor: Monitor) -> tuple[float, float]:
    """Certified bounds of the least value of a constraint's left side, in the measure's sign."""
    price, limit = np.ones(1), constraint.limit
    found = priced_bound(
        problem,
        _nothing(problem),
        [constraint],
        price,
        np.zeros(problem.n),
        REPORT_TOLERANCE,
        monitor,
    )
    low, high = found.low + limit, found.high + limit
    return (low, high) if constraint.sense > 0 else (-high, -low)


def message_of(report: Infeasibility) -> str:
    """The report in words."""
    alone = "; ".join(f"{label}: {_best_value(*ends)}" for label, ends in report.alone.items())
    return (
        f"no policy meets the constraints; in conflict: {', '.join(report.conflict)}. Every policy "
        f"misses one of them by {100.0 * report.violation[0]:.4g} % of its limit at least (of its "
        f"largest value, for a limit of 0). The best value of each alone: {alone}"
    )


def _best_value(low: float, high: float) -> str:
    """A number where its bounds agree in six digits."""
    if max(abs(low), abs(high)) <= NOTHING:
        return "0"
    return f"{low:.6g}" if high - low <= 1e-6 * abs(low) else f"{low:.6g} to {high:.6g}"
