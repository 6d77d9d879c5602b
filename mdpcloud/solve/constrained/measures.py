"""How a policy stands to its limits: certified bounds of the averages, ratios and excesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.constrained.dual import cut_short
from mdpcloud.solve.constrained.occupation import Occupation
from mdpcloud.solve.constrained.policy import evaluated, moved
from mdpcloud.solve.constrained.terms import Constraint
from mdpcloud.solve.fixed import FixedResult
from mdpcloud.solve.limits import Monitor, Status

__all__ = ["Standing", "put_inside"]

ROUNDS = 4  # Newton steps at most
INSIDE = 1e-13  # of a constraint's unit: how far inside its limit a Newton step aims
ROUNDING = 4.0 * 2.0**-53

Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Standing:
    """A policy's cost, and how it stands to each constraint.

    Attributes
    ----------
    share : (L,) array
        The policy: the probability of each row.
    cost : FixedResult
    parts : sequence of (FixedResult, FixedResult or None)
        Per constraint the averages N and D of `Constraint`.
    """

    constraints: Sequence[Constraint]
    share: Floats
    cost: FixedResult
    parts: Sequence[tuple[FixedResult, FixedResult | None]]

    @property
    def status(self) -> Status:
        """How the evaluations ended, if one was cut short; else converged."""
        every = [self.cost, *(r for pair in self.parts for r in pair if r is not None)]
        return cut_short(*(result.status for result in every)) or Status.CONVERGED

    def excess(self, j: int) -> Bounds:
        """Certified bounds of the left side of constraint j less its right side."""
        constraint, (top, bottom) = self.constraints[j], self.parts[j]
        bound = constraint.bound
        if bottom is None:
            taken = bound, bound
        else:
            taken = (
                min(bound * bottom.low, bound * bottom.high),
                max(bound * bottom.low, bound * bottom.high),
            )
        low, high = top.low - taken[1], top.high - taken[0]
        slack = ROUNDING * max(abs(top.low), abs(top.high), *map(abs, taken))
        return (low - slack, high + slack) if constraint.sense > 0 else (-high - slack, slack - low)

    def relative_values(self, j: int) -> Floats:
        """Relative values (n,) of the left side of constraint j."""
        constraint, (top, bottom) = self.constraints[j], self.parts[j]
        values = top.values if bottom is None else top.values - constraint.bound * bottom.values
        return constraint.sense * values

    def measure(self, j: int) -> Bounds | None:
        """Certified bounds of the average or ratio; None where its divisor may be 0."""
        top, bottom = self.parts[j]
        if bottom is None:
            return top.low, top.high
        if not bottom.low > 0.0:
            return None
        low = top.low / (bottom.high if top.low > 0.0 else bottom.low)
        high = top.high / (bottom.low if top.high > 0.0 else bottom.high)
        return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))

    @property
    def violation(self) -> float:
        """Largest excess, in units of the constraints; at most 0 where all limits are kept."""
        return max(self.excess(j)[1] / c.unit for j, c in enumerate(self.constraints))


def standing(
    problem: RowsProblem,
    constraints: Sequence[Constraint],
    share: Floats,
    tolerance: float,
    monitor: Monitor,
) -> Standing:
    """Evaluate a policy."""
    averages = [
        average
        for constraint in constraints
        for average in (constraint.numerator, constraint.denominator)
        if average is not None
    ]
    cost, found = evaluated(problem, share, averages, tolerance, monitor)
    left = iter(found)
    parts = [(next(left), None if c.denominator is None else next(left)) for c in constraints]
    return Standing(constraints, share, cost, parts)


def put_inside(
    problem: RowsProblem,
    constraints: Sequence[Constraint],
    share: Floats,
    found: Occupation,
    tolerance: float,
    monitor: Monitor,
) -> Standing:
    """Evaluate a policy, and correct it until its averages are inside their limits.

    Where the randomised states do not suffice for that, the policy that misses them least.
    """
    best = standing(problem, constraints, share, tolerance, monitor)
    for _ in range(ROUNDS):
        if best.violation <= 0.0:
            break
        trial = standing(problem, constraints, _corrected(problem, best, found), tolerance, monitor)
        if not trial.violation < best.violation:
            break
        best = trial
    return best


def _corrected(problem: RowsProblem, now: Standing, found: Occupation) -> Floats:
    """The policy after a Newton step on the constraints that bind or are missed."""
    excesses = [now.excess(j) for j in range(len(now.constraints))]
    binding = [
        j for j, (_, high) in enumerate(excesses) if high > 0.0 or found.multipliers[j] > 0.0
    ]
    changes = [
        -0.5 * (low + high) - 2.0 * (high - low) - INSIDE * now.constraints[j].unit
        for j, (low, high) in ((j, excesses[j]) for j in binding)
    ]
    averages = [(now.constraints[j].average, now.relative_values(j)) for j in binding]
    return moved(problem.table, now.share, found.law, averages, np.array(changes))
