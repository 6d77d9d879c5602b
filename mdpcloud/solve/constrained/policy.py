"""From an occupation measure to a randomised policy, its averages, and their correction.

In states that the chain visits, the policy takes the rows of a term in proportion to their weights;
elsewhere it follows a policy given, here that of the priced problem, or the shortest way to the
states visited where otherwise there would be several recurrent classes. The weights carry the
program's tolerance, so the averages miss their limits by that much. One Newton step on the few
probabilities that are neither 0 nor 1 repairs it: moving a small part d of a state's decision from
row a to row b changes the average of r by

    d pi(x) [ r_b - r_a + (A_b - A_a) h_r ],

h_r being the relative values of r (Cao, Stochastic Learning and Optimization, 2007, section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.structure import closed_classes, moves_graph, towards
from mdpcloud.errors import MultichainError
from mdpcloud.solve.chains import SingularChainError
from mdpcloud.solve.constrained.occupation import Average, Occupation
from mdpcloud.solve.fixed import FixedResult, FixedSolver
from mdpcloud.solve.limits import Monitor

__all__ = ["average_under", "evaluated", "mixture_of", "moved", "shares_of"]

Longs: TypeAlias = NDArray[np.int64]

UNIT_ROUNDOFF = 2.0**-53


def shares_of(problem: RowsProblem, found: Occupation, otherwise: Longs) -> Floats:
    """Probability of each row (L,) within its state and term.

    Parameters
    ----------
    problem : RowsProblem
    found : Occupation
    otherwise : (groups,) array
        Row of each state and term that the chain does not visit.

    Raises
    ------
    MultichainError
        When the occupation measure is spread over several recurrent classes.
    """
    rows = problem.table
    visited = found.law > found.noise
    weight = np.where(found.weight > found.noise[rows.state], found.weight, 0.0)
    total = np.add.reduceat(weight, rows.groups) if weight.size else weight
    known = visited[rows.state[rows.groups]] & (total > 0.0)
    share = np.zeros(weight.size)
    here = known[rows.group]
    share[here] = weight[here] / total[rows.group[here]]
    share[otherwise[~known]] = 1.0
    if len(_classes(problem, share)) > 1:
        share = _led_back(rows, share, visited, known)
        _refuse_classes(problem, share)
    return share


def _classes(problem: RowsProblem, share: Floats) -> list[NDArray[np.int32]]:
    return closed_classes(moves_graph(problem.mixed(mixture_of(problem, share)).table))


def _led_back(
    rows: Rows, share: Floats, visited: NDArray[np.bool_], known: NDArray[np.bool_]
) -> Floats:
    """Let states not visited take a row of the shortest way to those that are."""
    ahead = towards(moves_graph(rows), np.flatnonzero(visited))
    row = np.repeat(np.arange(rows.state.size), np.diff(rows.transitions.indptr))
    nearer = row[(rows.transitions.indices == ahead[rows.state[row]]) & ~known[rows.group[row]]]
    _, first = np.unique(rows.state[nearer], return_index=True)
    chosen = nearer[first]
    share = np.where(np.isin(rows.group, rows.group[chosen]), 0.0, share)
    share[chosen] = 1.0
    return share


def _refuse_classes(problem: RowsProblem, share: Floats) -> None:
    classes = _classes(problem, share)
    if len(classes) > 1:
        first, second = (problem.label(int(states[0])) for states in classes[:2])
        raise MultichainError(
            f"the best occupation measure is spread over {len(classes)} recurrent classes, such as "
            f"those of states {first} and {second}, that its policy does not connect; no "
            "stationary policy has these averages from every initial state"
        )


def mixture_of(problem: RowsProblem, share: Floats) -> list[Floats]:
    """The engine's randomised choice: per term the probabilities (actions, n)."""
    rows = problem.table
    mixture = []
    for e, term in enumerate(problem.terms):
        here = rows.term == e
        table = np.zeros((len(term.actions), rows.n))
        table[rows.action[here], rows.state[here]] = share[here]
        mixture.append(table)
    return mixture


def evaluated(
    problem: RowsProblem,
    share: Floats,
    averages: Sequence[Average],
    tolerance: float,
    monitor: Monitor,
) -> tuple[FixedResult, list[FixedResult]]:
    """Values and certified bounds of a policy's cost and of averages under it.

    Raises
    ------
    MultichainError
        When its chain cannot be told from one with several recurrent classes.
    """
    fixed = problem.mixed(mixture_of(problem, share))
    solver = FixedSolver(tolerance, 0.0, monitor)
    try:
        cost = solver.solve(fixed)
        rates = [average_under(problem.table, share, average) for average in averages]
        found = [solver.solve(fixed.with_cost(rate)) for rate in rates]
    except SingularChainError as error:
        raise MultichainError(
            "the chain of the randomised policy falls into several classes as far as float64 can "
            "tell; no stationary policy found has the averages wanted from every initial state"
        ) from error
    rounded = [_rounded(r, problem, a) for r, a in zip(found, averages, strict=True)]
    return cost, rounded


def average_under(rows: Rows, share: Floats, average: Average) -> Floats:
    """The rate (n,) whose average it is under a policy."""
    lumps = np.bincount(rows.state, share * average.row, minlength=rows.n)
    return np.asarray(average.state + lumps, np.float64)


def _rounded(result: FixedResult, problem: RowsProblem, average: Average) -> FixedResult:
    """Bounds widened by the rounding of `average_under`."""
    operations = len(problem.terms) + max((len(t.actions) for t in problem.terms), default=0) + 4
    slack = operations * UNIT_ROUNDOFF * average.size(problem.table)
    return FixedResult(result.values, result.low - slack, result.high + slack, result.status)


def moved(
    rows: Rows,
    share: Floats,
    law: Floats,
    averages: Sequence[tuple[Average, Floats]],
    changes: Floats,
) -> Floats:
    """Shares moved within the randomised states such that averages change by these amounts.

    Parameters
    ----------
    rows : Rows
    share : (L,) array
    law : (n,) array
        The stationary law, roughly.
    averages : sequence of (Average, (n,) array)
        Averages and their relative values.
    changes : (K,) array
        Least squares where there are fewer probabilities than averages.
    """
    taken, given = _directions(rows, share)
    if taken.size == 0 or not changes.size:
        return share
    slopes = np.array([_slopes(rows, average, h) for average, h in averages])
    slopes = law[rows.state[taken]] * (slopes[:, taken] - slopes[:, given])
    sizes = np.abs(slopes).max(axis=1)
    sizes[sizes == 0.0] = 1.0
    step = np.linalg.lstsq(slopes / sizes[:, None], changes / sizes)[0]
    step = np.clip(step, -share[taken], None)
    result = share.copy()
    np.add.at(result, taken, step)
    np.subtract.at(result, given, step)
    result = np.clip(result, 0.0, 1.0)
    total = np.add.reduceat(result, rows.groups)
    return np.asarray(result / total[rows.group])


def _directions(rows: Rows, share: Floats) -> tuple[Longs, Longs]:
    """Rows taken with a probability below 1, and the likeliest row of the same state and term."""
    best = np.maximum.reduceat(share, rows.groups) if share.size else share
    likeliest = np.flatnonzero(share == best[rows.group])
    _, first = np.unique(rows.group[likeliest], return_index=True)
    leader = likeliest[first]
    others = np.flatnonzero((share > 0.0) & (leader[rows.group] != np.arange(share.size)))
    return others, leader[rows.group[others]]


def _slopes(rows: Rows, average: Average, h: Floats) -> Floats:
    """r_l + A_l h of each row (L,)."""
    out = np.asarray(rows.transitions.sum(axis=1), np.float64).ravel()
    return np.asarray(average.row + rows.transitions @ h - out * h[rows.state])
