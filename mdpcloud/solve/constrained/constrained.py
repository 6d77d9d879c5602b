"""Constrained problems: the least long-run average cost with long-run averages within limits.

The linear program of occupation measures (`mdpcloud.solve.constrained.occupation`) with one
inequality per limit gives multipliers and a randomised policy (Altman, Constrained Markov Decision
Processes, 1999, chapter 4). Both are then certified from outside the program:

- below, by the optimum of the problem in which the multipliers are prices
  (`mdpcloud.solve.constrained.dual`), which no policy within the limits can undercut;
- above, by evaluating the policy: its cost and its averages have certified bounds, after a Newton
  step that puts the averages just inside their limits (`mdpcloud.solve.constrained.policy`).

A basic solution randomises in at most as many states as there are constraints. It stops when the
bounds meet the tolerance and no limit is missed by more than the tolerance times its unit; where
``slack`` is not negative, none is missed at all.

With several end components the best occupation measure may be a mixture of policies that stay
apart, which no stationary policy reaches from one initial state; such models are refused, and so is
a program whose solution has several recurrent classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats, choice_dtype
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.errors import SolveError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.constrained.dual import cut_short, priced_bound
from mdpcloud.solve.constrained.highs import Unsolved
from mdpcloud.solve.constrained.measures import Standing, put_inside
from mdpcloud.solve.constrained.occupation import Average, Occupation
from mdpcloud.solve.constrained.policy import mixture_of, shares_of
from mdpcloud.solve.constrained.program import (
    Guess,
    law_of_chain,
    occupation,
    refuse_components,
    unconstrained,
)
from mdpcloud.solve.constrained.terms import Constraint, constraints_of
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.result import Solution

__all__ = ["ConstrainedSolution", "RandomisedState", "solve_constrained"]

EVALUATION = 1e-4  # of the tolerance: relative width of the bounds of the policy's averages
PRICING = 1e-2  # of the tolerance: relative width of the bounds of the priced optimum
SCALINGS = 3  # of the linear program at most


@dataclass(frozen=True)
class RandomisedState:
    """Where the policy randomises.

    Attributes
    ----------
    decision : str
    state : int
    label : str
        The state's name.
    probabilities : mapping of str to float
        Of the actions taken.
    """

    decision: str
    state: int
    label: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedSolution(Solution):
    """The optimum within limits; attributes of `Solution`, and what follows.

    ``bounds`` are the certified lower bound of every policy within the limits and the certified
    upper bound of this policy's cost, inf if the policy misses a limit by more than the tolerance;
    ``values`` are relative values under the multipliers' prices.

    Attributes
    ----------
    multipliers : mapping of str to float
        Per constraint what the least cost falls by per unit by which its limit is relaxed, >= 0.
        For a ratio: per unit of the ratio. Where the least cost has a kink at the limit, it is one
        of the slopes between those of its two sides.
    measures : mapping of str to (lower, upper)
        Certified bounds of each constrained average or ratio under the policy. A ratio is left out
        where what it is divided by cannot be told from 0.
    slack : mapping of str to float
        By how much each limit is kept, certified; negative if it may be missed by that much. Of a
        ratio N / D that of N - bound D.
    randomised : tuple of RandomisedState
        Where the policy randomises.
    """

    multipliers: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    slack: Mapping[str, float] = field(default_factory=dict)
    randomised: tuple[RandomisedState, ...] = ()


def solve_constrained(
    model: Any,
    constraints: Mapping[str, Any],
    *,
    tolerance: float = 1e-6,
    monitor: Monitor | None = None,
    threads: int = 1,
) -> ConstrainedSolution:
    """The least long-run average cost with averages of the model's measures within limits.

    Parameters
    ----------
    model : Model
        With named measures.
    constraints : mapping
        Name of a measure, or ``"a / b"`` for the ratio of two, to what it is at most (a number) or
        to a `Limit`. See `mdpcloud.solve.constrained.terms`.
    tolerance : float
        Relative width of the bounds; and how far a limit may be missed, as a part of its unit (the
        limit's size; for a ratio times the largest possible value of what it is divided by; the
        measure's largest possible value where the limit is 0).
    monitor : Monitor, optional
    threads : int

    Returns
    -------
    ConstrainedSolution

    Raises
    ------
    InputError
        When a constraint or the model is wrong, or there are more than
        `mdpcloud.solve.constrained.occupation.MOST_ROWS` rows.
    InfeasibleError
        Of `mdpcloud.solve.constrained.report`: when no policy meets the constraints, which is
        proved; it carries an `Infeasibility`.
    MultichainError
        When no stationary policy may be best: several end components, or a solution with several
        recurrent classes.
    SolveError
        When the linear program was not solved within the limits of the monitor.

    Examples
    --------
    A job refused costs 1, and there may be half a job present on average. Refusing every third job
    that finds one present does it; a hundredth of a job more would save 0.004:

    >>> import mdpcloud as mc
    >>> join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=1.0)
    >>> arrival = mc.Event("arrival", 0.5, [join, lost])
    >>> service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    >>> queue = mc.Model(mc.Lattice({"jobs": 3}), [arrival, service], measures={
    ...     "jobs": lambda x: x.jobs})
    >>> found = solve_constrained(queue, {"jobs": 0.5})
    >>> round(found.gain, 9), round(found.multipliers["jobs"], 9)
    (0.1, 0.4)
    >>> [(state.label, round(state.probabilities["lost"], 9)) for state in found.randomised]
    [('(jobs=1)', 0.333333333)]
    """
    monitor = Monitor() if monitor is None else monitor
    problem = compile_model(model, threads=threads)
    wanted = constraints_of(model, problem, constraints)
    explicit = RowsProblem(problem.rows(), problem.terms, problem.discrete, problem.label)
    refuse_components(explicit)
    try:
        guess = unconstrained(problem, explicit, monitor)
        return _first_success(explicit, problem.shape, wanted, guess, tolerance, monitor)
    except Stopped as stop:
        raise SolveError(f"{stop.status.value}: the linear program is not solved") from None


def _first_success(
    problem: RowsProblem,
    shape: tuple[int, ...],
    wanted: Sequence[Constraint],
    guess: Guess,
    tolerance: float,
    monitor: Monitor,
) -> ConstrainedSolution:
    """The solution by the program scaled by the law expected, then by the law that it finds."""
    best: ConstrainedSolution | None = None
    for _ in range(SCALINGS):
        try:
            found = occupation(problem, wanted, guess, tolerance, monitor)
        except (Stopped, KeyboardInterrupt):
            if best is None:
                raise
            return best
        except Unsolved:
            guess = Guess()
            continue
        solution, share = _certified(problem, shape, wanted, found, tolerance, monitor)
        best = solution if best is None else min(best, solution, key=_badness)
        if best.status is not Status.STALLED:
            return best
        guess = Guess(law_of_chain(problem.mixed(mixture_of(problem, share))))
    if best is None:
        raise SolveError("HiGHS did not solve the linear program, in any scaling")
    return best


def _badness(solution: ConstrainedSolution) -> tuple[bool, float]:
    lower, upper = solution.bounds
    return min(solution.slack.values()) < 0.0, upper - lower


def _certified(
    problem: RowsProblem,
    shape: tuple[int, ...],
    wanted: Sequence[Constraint],
    found: Occupation,
    tolerance: float,
    monitor: Monitor,
) -> tuple[ConstrainedSolution, Floats]:
    """The program's multipliers and policy with their bounds, and the policy by rows."""
    rows = problem.table
    cost = Average(rows.cost_rate, rows.cost)
    prices, start = found.multipliers, found.values
    priced = priced_bound(problem, cost, wanted, prices, start, PRICING * tolerance, monitor)
    share = shares_of(problem, found, problem.chosen(priced.choice))
    reached = put_inside(problem, wanted, share, found, EVALUATION * tolerance, monitor)
    lower, upper, gain = _bounds(priced.low, reached, tolerance)
    monitor.report(lower, upper)
    closed = upper - lower <= Goal(tolerance, problem.cost_scale).width(lower, upper)
    solution = ConstrainedSolution(
        gains=np.full(rows.n, gain),
        bounds=(lower, upper),
        values=priced.values - priced.values[int(np.argmax(found.law))],
        policy=_policy(problem, shape, reached.share),
        status=Status.CONVERGED
        if closed
        else cut_short(priced.status, reached.status) or Status.STALLED,
        iterations=monitor.iterations,
        solver="occupation_measures",
        elapsed=monitor.elapsed,
        multipliers=_multipliers(reached, prices),
        measures=_measures(reached),
        slack=_slack(reached),
        randomised=tuple(_randomised(problem, reached.share)),
    )
    return solution, reached.share


def _bounds(lower: float, reached: Standing, tolerance: float) -> tuple[float, float, float]:
    """Bounds and gain; a policy that misses a limit by too much bounds nothing from above."""
    low, high = reached.cost.low, max(reached.cost.high, lower)
    if reached.violation > tolerance:
        return lower, np.inf, 0.5 * (low + reached.cost.high)
    return lower, high, 0.5 * (lower + high)


def _multipliers(reached: Standing, prices: Floats) -> dict[str, float]:
    """Prices per unit of each limit; of a ratio's, times what it is divided by."""
    found: dict[str, float] = {}
    for j, constraint in enumerate(reached.constraints):
        bottom = reached.parts[j][1]
        per_unit = 1.0 if bottom is None else max(0.5 * (bottom.low + bottom.high), 0.0)
        found[constraint.name] = found.get(constraint.name, 0.0) + float(prices[j]) * per_unit
    return found


def _measures(reached: Standing) -> dict[str, tuple[float, float]]:
    pairs = ((c.name, reached.measure(j)) for j, c in enumerate(reached.constraints))
    return {name: bounds for name, bounds in pairs if bounds is not None}


def _slack(reached: Standing) -> dict[str, float]:
    found: dict[str, float] = {}
    for j, constraint in enumerate(reached.constraints):
        kept = -reached.excess(j)[1]
        found[constraint.name] = min(kept, found.get(constraint.name, kept))
    return found


def _policy(problem: RowsProblem, shape: tuple[int, ...], share: Floats) -> Policy:
    """Action numbers of each decision; probabilities of those that are randomised somewhere."""
    tables = mixture_of(problem, share)
    actions: dict[str, Any] = {}
    for e, term in enumerate(problem.terms):
        if term.decision:
            table = tables[e]
            pure = np.where(table.any(axis=0), table.argmax(axis=0), -1)
            mixed = ((table > 0.0) & (table < 1.0)).any()
            actions[term.name] = table if mixed else pure.astype(choice_dtype(problem.terms))
    names = {term.name: term.actions for term in problem.terms if term.decision}
    return Policy(actions, names, shape)


def _randomised(problem: RowsProblem, share: Floats) -> Iterator[RandomisedState]:
    rows = problem.table
    for group in np.unique(rows.group[(share > 0.0) & (share < 1.0)]):
        here = np.flatnonzero((rows.group == group) & (share > 0.0))
        term, state = problem.terms[rows.term[here[0]]], int(rows.state[here[0]])
        taken = {term.actions[rows.action[row]]: float(share[row]) for row in here}
        yield RandomisedState(term.name, state, problem.label(state), taken)
