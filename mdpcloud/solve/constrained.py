"""Constrained problems: the least long-run average cost with long-run averages within limits.

The linear program of occupation measures (`mdpcloud.solve.occupation`) with one inequality per
limit gives multipliers and a randomised policy (Altman, Constrained Markov Decision Processes,
1999, chapter 4). Both are then certified from outside the program:

- below, by the optimum of the problem in which the multipliers are prices
  (`mdpcloud.solve.constrained_dual`), which no policy within the limits can undercut;
- above, by evaluating the policy: its cost and its averages have certified bounds, after a Newton
  step that puts the averages just inside their limits (`mdpcloud.solve.constrained_policy`).

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
from mdpcloud.engine.structure import end_components
from mdpcloud.errors import MultichainError, SolveError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.constrained_dual import priced_bound
from mdpcloud.solve.constrained_measures import Standing, put_inside
from mdpcloud.solve.constrained_policy import mixture_of, shares_of
from mdpcloud.solve.constrained_report import InfeasibleError, message_of, report_of
from mdpcloud.solve.constrained_terms import Constraint, constraints_of
from mdpcloud.solve.highs import Unsolved
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.occupation import Average, Occupation, OccupationProgram
from mdpcloud.solve.result import Solution

__all__ = ["ConstrainedSolution", "RandomisedState", "solve_constrained"]

EVALUATION = 1e-4  # of the tolerance: relative width of the bounds of the policy's averages
PRICING = 1e-2  # of the tolerance: relative width of the bounds of the priced optimum
EASED = 1e-9  # of a constraint's unit: how far a limit that can just be met is relaxed


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


@dataclass(frozen=True, eq=False)
class ConstrainedSolution(Solution):
    """The optimum within limits; attributes of `Solution`, and what follows.

    ``bounds`` are the certified lower bound of every policy within the limits and the certified
    upper bound of this policy's cost; ``values`` are relative values under the multipliers' prices.

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
        to a `Limit`. See `mdpcloud.solve.constrained_terms`.
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
        `mdpcloud.solve.occupation.MOST_ROWS` rows.
    InfeasibleError
        When no policy meets the constraints; it carries an `Infeasibility`.
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
    _refuse_components(explicit)
    try:
        found = _occupation(explicit, wanted, tolerance, monitor)
    except Stopped as stop:
        raise SolveError(f"{stop.status.value}: the linear program is not solved") from None
    return _certified(explicit, problem.shape, wanted, found, tolerance, monitor)


def _refuse_components(problem: RowsProblem) -> None:
    parts = end_components(problem.table)
    if parts.count > 1:
        firsts = [problem.label(int(parts.states(k)[0])) for k in range(2)]
        raise MultichainError(
            f"the model has {parts.count} end components (sets of states that a policy can stay "
            f"in), such as those of states {firsts[0]} and {firsts[1]}; what is best within limits "
            "then depends on the initial state and need not be a stationary policy: solve each "
            "part as a model of its own"
        )


def _occupation(
    problem: RowsProblem, wanted: Sequence[Constraint], tolerance: float, monitor: Monitor
) -> Occupation:
    """The program's solution, with limits relaxed a little where they can only just be met."""
    rows = problem.table
    program, cost = OccupationProgram(rows), Average(rows.cost_rate, rows.cost)
    try:
        return program.minimise(cost, [(c.average, c.limit) for c in wanted], monitor=monitor)
    except Unsolved as error:
        report = report_of(problem, program, wanted, monitor)
        missed = report.violation[1]
        if report.violation[0] > 0.0 and missed > 0.5 * tolerance:
            raise InfeasibleError(message_of(report), report) from None
        eased = [(c.average, c.limit + (missed + EASED) * c.unit) for c in wanted]
        try:
            return program.minimise(cost, eased, monitor=monitor)
        except Unsolved:
            raise SolveError(str(error), report) from None


def _certified(
    problem: RowsProblem,
    shape: tuple[int, ...],
    wanted: Sequence[Constraint],
    found: Occupation,
    tolerance: float,
    monitor: Monitor,
) -> ConstrainedSolution:
    rows = problem.table
    cost = Average(rows.cost_rate, rows.cost)
    prices, start = found.multipliers, found.values
    priced = priced_bound(problem, cost, wanted, prices, start, PRICING * tolerance, monitor)
    share = shares_of(problem, found, problem.chosen(priced.choice))
    reached = put_inside(problem, wanted, share, found, EVALUATION * tolerance, monitor)
    lower, upper = priced.low, max(reached.cost.high, priced.low)
    monitor.report(lower, upper)
    width = Goal(tolerance, problem.cost_scale).width(lower, upper)
    return ConstrainedSolution(
        gains=np.full(rows.n, 0.5 * (lower + upper)),
        bounds=(lower, upper),
        values=priced.values - priced.values[int(np.argmax(found.law))],
        policy=_policy(problem, shape, reached.share),
        status=_status(reached, upper - lower <= width, tolerance),
        iterations=monitor.iterations,
        solver="occupation_measures",
        elapsed=monitor.elapsed,
        multipliers=_multipliers(reached, prices),
        measures=_measures(reached),
        slack=_slack(reached),
        randomised=tuple(_randomised(problem, reached.share)),
    )


def _status(reached: Standing, closed: bool, tolerance: float) -> Status:
    if closed and reached.violation <= tolerance:
        return Status.CONVERGED
    return Status.STALLED if reached.status is Status.CONVERGED else reached.status


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
