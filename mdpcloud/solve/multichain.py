"""Optimal long-run average cost when it depends on the initial state.

The problem is split into its maximal end components (`mdpcloud.engine.structure`). Within component
k the optimum is one number g_k. What is left is a stopping problem in which each component is one
state:

    u(k) = min( g_k, min_l sum_y p_l(y) u(y) ),

l running over the rows that leave the component and p_l being where they go when they do (inside,
the policy can return to the state of l until that happens), and for a state x in no component

    0 = sum_e min_l sum_y A_ly ( u(y) - u(x) ).

No set of states is closed under any choice in this problem, so that every policy comes to a stop,
and the solution is unique (`mdpcloud.solve.leaving` bounds it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Choice, Floats, Problem
from mdpcloud.engine.rows import Matrix, Rows, RowsProblem
from mdpcloud.engine.structure import EndComponents, end_components, moves_graph, towards
from mdpcloud.solve.leaving import Stopping

__all__ = ["ComponentSolver", "Multichain", "multichain", "outer_choice"]

ComponentSolver: TypeAlias = Callable[[RowsProblem], tuple[float, float, Floats, Choice]]
"""Solves a problem whose states all communicate.

Returns certified lower and upper bounds of its optimal average cost, relative values (m,), and a
choice (n_terms, m) whose average cost is at most the upper bound.
"""

Longs: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Multichain:
    """Optimal average costs state by state.

    Parameters
    ----------
    lower, upper : (n,) arrays
        Certified bounds on the optimal average cost from each state, cost/time.
    choice : (n_terms, n) array
        A policy whose average cost from every state is at most the upper bound.
    values : (n,) array
        Relative values within each component, 0 outside.
    components : EndComponents
        The maximal end components.
    stays : (n_components,) bool array
        Whether the policy remains in the component once it is there.
    """

    lower: Floats
    upper: Floats
    choice: Choice
    values: Floats
    components: EndComponents
    stays: NDArray[np.bool_]


def multichain(problem: Problem, solve_component: ComponentSolver) -> Multichain:
    """Solve a problem whose optimal average cost may depend on the initial state.

    Of an uncontrolled problem it is the average cost of each recurrent class, and from a transient
    state their mean with the probabilities of ending there.

    Parameters
    ----------
    problem : Problem
        Its rows are used.
    solve_component : function
        See `ComponentSolver`. It is not called for components of a single state.

    Returns
    -------
    Multichain

    Raises
    ------
    SolveError
        What solve_component raises, or a stopping problem that cannot be factored.
    """
    table = problem.rows()
    parts = end_components(table)
    inside = _solve_inside(problem, table, parts, solve_component)
    stopping = Stopping.build(table, parts)
    lower = stopping.lower_bound(inside.lower)
    upper, rows = stopping.upper_bound(inside.upper)
    chosen = rows[rows >= 0]
    exits = chosen[parts.label[table.state[chosen]] >= 0]
    stays = np.ones(parts.count, np.bool_)
    stays[parts.label[table.state[exits]]] = False
    choice = outer_choice(problem, table, parts, chosen, exits)
    settled = np.flatnonzero((parts.label >= 0) & stays[parts.label])
    choice[:, settled] = inside.choice[:, settled]
    number = stopping.number
    return Multichain(lower[number], upper[number], choice, inside.values, parts, stays)


@dataclass(frozen=True, eq=False)
class _Inside:
    """Bounds per component, (K,); values (n,) and choice (n_terms, n) of states in components."""

    lower: Floats
    upper: Floats
    values: Floats
    choice: Choice


def _solve_inside(
    problem: Problem, table: Rows, parts: EndComponents, solve_component: ComponentSolver
) -> _Inside:
    """Solve every component; those of a single state all at once."""
    staying = RowsProblem(table.select(np.flatnonzero(parts.inside)), problem.terms)
    lower, upper = np.empty(parts.count), np.empty(parts.count)
    values, choice = np.zeros(table.n), staying.greedy(np.zeros(table.n), 0.0)
    size = np.bincount(parts.label[parts.label >= 0], minlength=parts.count)
    alone = np.flatnonzero(parts.label >= 0)
    alone = alone[size[parts.label[alone]] == 1]
    low, high = staying.enclose(values)
    lower[parts.label[alone]], upper[parts.label[alone]] = low[alone], high[alone]
    for k in np.flatnonzero(size > 1):
        states = parts.states(int(k))
        piece = _component(problem, table, states, parts)
        lower[k], upper[k], values[states], choice[:, states] = solve_component(piece)
    return _Inside(lower, upper, values, choice)


def _component(problem: Problem, table: Rows, states: Longs, parts: EndComponents) -> RowsProblem:
    return RowsProblem(
        table.restrict(states, parts.inside),
        problem.terms,
        problem.discrete,
        lambda x: problem.label(int(states[x])),
    )


def outer_choice(
    problem: Problem, table: Rows, parts: EndComponents, chosen: Longs, exits: Longs
) -> Choice:
    """Return the chosen rows, and in components that are left moves towards the exit."""
    ahead = towards(_inside_graph(table, parts), table.state[exits])
    row = np.repeat(np.arange(table.state.size), np.diff(table.transitions.indptr))
    nearer = parts.inside[row] & (table.transitions.indices == ahead[table.state[row]])
    nearer_rows = row[nearer]
    picked = np.full(table.groups.size, -1, np.int64)
    for rows in (np.flatnonzero(parts.inside), _first_per_state(table, nearer_rows), chosen):
        picked[table.group[rows[::-1]]] = rows[::-1]
    explicit = RowsProblem(table, problem.terms)
    return explicit.choice_of(picked)


def _first_per_state(table: Rows, rows: Longs) -> Longs:
    _, first = np.unique(table.state[rows], return_index=True)
    return rows[first]


def _inside_graph(table: Rows, parts: EndComponents) -> Matrix:
    return moves_graph(table.select(np.flatnonzero(parts.inside)))
