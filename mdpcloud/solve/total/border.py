"""What the user says of total cost, and what is said when it has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdpcloud.engine.rows import Rows, RowsProblem
from mdpcloud.engine.structure import closed_classes, moves_graph, path, reachable
from mdpcloud.errors import InputError
from mdpcloud.solve.chains import SingularChainError
from mdpcloud.solve.fixed import FixedSolver
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.selection import selected_states
from mdpcloud.solve.total.structure import Bools

__all__ = ["check_reached", "refuse_if_earning", "refuse_improper", "targets_of"]

NAMED = 4  # states of a class that a message names


def targets_of(problem: Any, table: Rows, targets: Any) -> Bools:
    """Where the process ends, (n,).

    Raises
    ------
    InputError
        When the targets are no states, or there is none.
    """
    chosen = _at_rest(table) if targets is None else selected_states(targets, problem, "targets")
    if chosen.any():
        return chosen
    raise InputError(
        "the process never ends: in every state something moves or costs; say where it ends with "
        "mdpcloud.TotalCost(targets=...)"
    )


def _at_rest(table: Rows) -> Bools:
    """States that nothing leaves, whatever is done, and that cost nothing."""
    busy = (np.diff(table.transitions.indptr) > 0) | (table.cost != 0.0)
    rest: Bools = table.cost_rate == 0.0
    rest[table.state[busy]] = False
    return rest


def check_reached(problem: Any, table: Rows, targets: Bools, states: Bools) -> None:
    """Raise `InputError` when no state but the targets has a policy that reaches them for certain.

    Parameters
    ----------
    targets, states : (n,) bool arrays
        The targets, and the states with such a policy.
    """
    if targets.all() or (states & ~targets).any():
        return
    start = int(np.argmax(~targets))
    graph = moves_graph(table.select(np.flatnonzero(~targets[table.state])))
    lost = ~reachable(graph.T.tocsr(), np.flatnonzero(targets))
    trap = np.flatnonzero(reachable(graph, start) & lost)
    raise InputError(
        f"no policy reaches the targets with probability 1 from state {problem.label(start)}: "
        f"whatever it does, the process may come to {_names(problem, trap)}, from where no target "
        "can be reached"
    )


def refuse_improper(problem: Any, table: Rows, targets: Bools, start: int) -> None:
    """Raise `InputError` for a policy that does not reach the targets for certain from a state.

    Parameters
    ----------
    table : Rows
        Of the policy.
    """
    graph = moves_graph(table.select(np.flatnonzero(~targets[table.state])))
    found = reachable(graph, start)
    kept = [c for c in closed_classes(graph) if found[c[0]] and not targets[c[0]]]
    way = path(graph, start, np.isin(np.arange(table.n), kept[0])) or [start]
    by = f" (from there by {_names(problem, way[1:])})" if len(way) > 1 else ""
    raise InputError(
        f"the policy does not reach the targets with probability 1 from state "
        f"{problem.label(start)}: it may stay for ever in {_names(problem, kept[0])}{by}"
    )


def refuse_if_earning(
    problem: Any, fixed: RowsProblem, states: Bools, members: Any, sense: int
) -> None:
    """Raise `InputError` when a policy can stay for ever where it earns.

    Parameters
    ----------
    fixed : RowsProblem
        The policy.
    states : (n,) bool array
        From where it does not reach the end for certain.
    members : function of states of the policy's problem
        The states of the model that they stand for.
    """
    table = fixed.table
    for kept in closed_classes(moves_graph(table)):
        if states[kept[0]]:
            everything = np.ones(table.state.size, np.bool_)
            piece = RowsProblem(table.restrict(kept, everything), fixed.terms)
            try:
                gain = FixedSolver(1e-6, 0.0, Monitor()).solve(piece)
            except SingularChainError:
                continue
            if gain.high < 0.0:
                raise InputError(
                    f"the total {'cost' if sense == 1 else 'reward'} is unbounded: the process can "
                    f"stay in {_names(problem, members(kept))} as long as it likes, at "
                    f"{sense * 0.5 * (gain.low + gain.high):.6g} per "
                    f"{'step' if problem.discrete else 'unit of time'}"
                )


def _names(problem: Any, states: Sequence[int] | Any) -> str:
    named = ", ".join(problem.label(int(x)) for x in states[:NAMED])
    more = len(states) - NAMED
    return f"state{'s' if len(states) > 1 else ''} {named}" + (
        f" and {more} more" if more > 0 else ""
    )
