"""The optimal actions of a model at an optimum, and the best and worst of their averages.

At relative values h of an optimal policy an action is *optimal* where it attains the minimum of the
optimality equation. Actions are compared one term at a time, which is exact: the right-hand side is
a sum over the terms. Two actions count as equal where their difference is within a margin: a part
of the gain, the rounding, and what the solve left uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.structure import end_components
from mdpcloud.errors import MultichainError, SolveError
from mdpcloud.solve.certificate import rounding_margin
from mdpcloud.solve.chains import SingularChainError
from mdpcloud.solve.fixed import FixedResult, FixedSolver
from mdpcloud.solve.limits import Goal, Monitor, Status
from mdpcloud.solve.multichain import Multichain, multichain
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["Optimum", "Tie", "changes", "find_ties", "have_several_sets", "least_average", "settle"]

Bools = NDArray[np.bool_]
EVALUATION = 1e-10  # relative tolerance of the relative values
EQUAL = 1e-9  # of the gain
SAFETY = 10.0  # over the estimated effect of the relative values' error
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Tie:
    """An action of a term that is as good as the chosen one, and in which states, (n,)."""

    term: int
    action: int
    states: Bools


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal policy with its relative values.

    Attributes
    ----------
    problem : Problem
    choice : (terms, n) array
    h : (n,) array
    low, high : float
        Certified bounds of the policy's gain, cost/time.
    """

    problem: Any
    choice: Choice
    h: Floats
    low: float
    high: float

    @property
    def gain(self) -> float:
        """The middle of the bounds."""
        return 0.5 * (self.low + self.high)


def settle(problem: Any, choice: Choice, monitor: Monitor) -> Optimum:
    """Improve a nearly optimal policy until no action is better by more than the margin.

    Raises
    ------
    MultichainError
        When a policy on the way has several recurrent classes.
    SolveError
        When one cannot be evaluated.
    """
    for _ in range(ROUNDS):
        found = _evaluated(problem, choice, monitor)
        optimum = Optimum(problem, choice, found.values, found.low, found.high)
        better = _improved(optimum)
        if better is None:
            return optimum
        choice = better
    raise SolveError("no policy was found that nothing improves by more than rounding")


def _evaluated(problem: Any, choice: Choice, monitor: Monitor) -> FixedResult:
    try:
        found = FixedSolver(EVALUATION, 0.0, monitor).solve(problem.under(choice))
    except SingularChainError as error:
        raise MultichainError(
            "the optimal policy has several recurrent classes, so that the gain may depend on the "
            "initial state as soon as the parameter changes"
        ) from error
    if found.status not in (Status.CONVERGED, Status.PRECISION):
        raise SolveError(f"the optimal policy could not be evaluated: {found.status.value}")
    return found


def _improved(optimum: Optimum) -> Choice | None:
    """The policy with better actions where there are any, else None."""
    choice, margin = optimum.choice.copy(), _margin(optimum)
    best = np.full(choice.shape, -margin)
    for e, a, states in _others(optimum):
        change = changes(optimum.problem, optimum.choice, optimum.h, [Tie(e, a, states)])[1]
        better = states & (change < best[e])
        best[e, better], choice[e, better] = change[better], a
    return None if np.array_equal(choice, optimum.choice) else choice


def _others(optimum: Optimum) -> list[tuple[int, int, Bools]]:
    """Per term and action, the states in which it is allowed and not chosen."""
    found = []
    for e, term in enumerate(optimum.problem.terms):
        if term.decision:
            allowed, active = optimum.problem.allowed(e)
            found += [
                (e, a, allowed[a] & active & (optimum.choice[e] != a))
                for a in range(len(term.actions))
            ]
    return found


def _margin(optimum: Optimum) -> float:
    rounding = rounding_margin(optimum.problem, optimum.h)
    return EQUAL * abs(optimum.gain) + SAFETY * (optimum.high - optimum.low + rounding)


def changes(problem: Any, choice: Choice, h: Floats, ties: Sequence[Tie]) -> Floats:
    """The right-hand side at h, and how it changes under each of the other actions alone.

    Returns
    -------
    (1 + ties, n) array
        Cost/time: first c + Q h of the choice, then what each action adds to it.
    """
    found = np.zeros((1 + len(ties), problem.n))
    found[0] = _right_hand_side(problem, choice, h)
    for k, tie in enumerate(ties, start=1):
        other = choice.copy()
        other[tie.term, tie.states] = tie.action
        found[k] = _right_hand_side(problem, other, h) - found[0]
    return found


def _right_hand_side(problem: Any, choice: Choice, h: Floats) -> Floats:
    fixed = problem.under(choice)
    out = fixed.pack(np.zeros(problem.n))
    fixed.flow(fixed.pack(h), out)
    total: Floats = fixed.unpack(fixed.cost_work()) + fixed.unpack(out)
    return total


def find_ties(optimum: Optimum, rough: Floats, rough_width: float) -> list[Tie]:
    """Every other action that is as good as the chosen one.

    Parameters
    ----------
    optimum : Optimum
    rough : (n,) array
        Less exact relative values; how much they change an action's advantage tells how exact the
        better ones are.
    rough_width : float
        Width of the bounds that ``rough`` gave, cost/time.
    """
    problem, choice = optimum.problem, optimum.choice
    share = SAFETY * min(1.0, (optimum.high - optimum.low) / max(rough_width, 1e-300))
    margin, ties = _margin(optimum), []
    for e, a, states in _others(optimum):
        candidate = Tie(e, a, states)
        change = changes(problem, choice, optimum.h, [candidate])[1]
        drift = np.abs(change - changes(problem, choice, rough, [candidate])[1])
        tied = states & (change <= margin + share * drift)
        if tied.any():
            ties.append(Tie(e, a, tied))
    return ties


# --- averages over the optimal actions ------------------------------------------------------------


def least_average(
    optimum: Optimum, ties: Sequence[Tie], rates: Floats, tolerance: float
) -> tuple[float, float, Choice, int]:
    """The least long-run average of rates under policies that take optimal actions only.

    Parameters
    ----------
    optimum : Optimum
    ties : sequence of Tie
    rates : (1 + ties, n) array
        As `changes` returns: under the choice, and what each tied action adds.
    tolerance : float
        Relative.

    Returns
    -------
    low, high : float
        Certified bounds.
    choice : (terms, n) array
        A policy that attains the upper bound from ``state``.
    state : int

    Raises
    ------
    SolveError
        When the bounds did not close.
    """
    restricted = _restricted(optimum, ties, rates)
    found = multichain(restricted, _ComponentSolver(tolerance, restricted.cost_scale))
    state = int(np.argmin(found.upper))
    return float(found.lower.min()), float(found.upper[state]), _whole(found, optimum), state


def _restricted(optimum: Optimum, ties: Sequence[Tie], rates: Floats) -> RowsProblem:
    """The problem of the optimal actions alone, with other costs."""
    problem = optimum.problem
    table = problem.rows()
    keep = table.action == optimum.choice[table.term, table.state]
    cost = np.zeros(table.state.size)
    for tie, rate in zip(ties, rates[1:], strict=True):
        here = (table.term == tie.term) & (table.action == tie.action) & tie.states[table.state]
        keep |= here
        cost[here] = rate[table.state[here]]
    rows = replace(table, cost_rate=rates[0], cost=cost).select(np.flatnonzero(keep))
    return RowsProblem(rows, problem.terms, problem.discrete, problem.label)


def have_several_sets(optimum: Optimum, ties: Sequence[Tie]) -> bool:
    """Whether optimal actions lead to several sets of states that they never leave.

    Raises
    ------
    MultichainError
        When no other actions lead from one to another.
    """
    if not ties:
        return False
    restricted = _restricted(optimum, ties, np.zeros((1 + len(ties), optimum.problem.n)))
    if end_components(restricted.rows()).count == 1:
        return False
    if end_components(optimum.problem.rows()).count > 1:
        raise MultichainError(
            "the optimal actions lead to several sets of states that are never left, between which "
            "there is no way: the derivative depends on the initial state"
        )
    return True


@dataclass(frozen=True)
class _ComponentSolver:
    """Bounds of a component in which all states communicate."""

    tolerance: float
    scale: float

    def __call__(self, piece: RowsProblem) -> tuple[float, float, Floats, Choice]:
        goal = Goal(self.tolerance, self.scale or 1.0)
        start = piece.pack(np.zeros(piece.n))
        outcome = PolicyIteration().run(piece, goal, Monitor(), start)
        if outcome.status is Status.STALLED:
            outcome = ValueIteration().run(piece, goal, Monitor(), outcome.h)
        if outcome.status not in (Status.CONVERGED, Status.PRECISION):
            raise SolveError(f"the one-sided derivatives: {outcome.status.value}")
        certificate = outcome.certificate
        return certificate.low, certificate.high, piece.unpack(outcome.h), certificate.choice


def _whole(found: Multichain, optimum: Optimum) -> Choice:
    """A choice of the whole problem: -1 where a term's rate is zero."""
    return np.where(optimum.choice < 0, -1, found.choice).astype(optimum.choice.dtype)
