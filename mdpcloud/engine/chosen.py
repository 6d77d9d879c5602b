"""Numbers of an uncontrolled problem: its cost rate, and the moves out of one state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.program import NONE

if TYPE_CHECKING:
    from mdpcloud.engine.compiled import CompiledProblem

__all__ = ["cost_rate", "lump_rate", "moves_from"]


def cost_rate(problem: CompiledProblem) -> Floats:
    """Cost rate (n,) with the lump costs of the chosen actions, cost/time."""
    total = lump_rate(problem)
    for f in problem.program.cost:
        total += problem.field_values(f)
    return total


def lump_rate(problem: CompiledProblem) -> Floats:
    """Rate (n,) of the lump costs of the chosen actions, cost/time."""
    program = problem.program
    total = np.zeros(problem.n)
    for e in range(program.term_rate.size):
        rate = problem.field_values(program.term_rate[e])
        number = _chosen(problem, e)
        for a in range(program.term_action[e], program.term_action[e + 1]):
            if program.action_cost[a] != NONE:
                taken = (rate > 0) & (number == a - program.term_action[e])
                lump = problem.field_values(program.action_cost[a])
                total[taken] += rate[taken] * lump[taken]
    return total


def _chosen(problem: CompiledProblem, e: int) -> NDArray[Any]:
    """Number of the chosen action of a term in every state."""
    row = problem.program.term_choice[e]
    if problem.choice is None or row == NONE:
        return np.zeros(problem.n, dtype=np.int8)
    return np.asarray(problem.layout.unpack(problem.choice[row]))


def moves_from(problem: CompiledProblem, cell: int) -> tuple[NDArray[np.int64], Floats]:
    """Targets (cells) and rates of the moves out of a cell, 1/time."""
    p = problem.program
    block = int(np.searchsorted(p.base, cell, side="right")) - 1

    def entry(f: int) -> float:
        place = cell - p.base[block] if p.vector[f] else 0
        return float(p.data[p.start[f, block] + place])

    targets, rates = [], []
    for e, row in enumerate(p.term_choice):
        a = p.term_action[e]
        if problem.choice is not None and row != NONE:
            a += max(0, problem.choice[row, cell])
        for j in range(p.action_move[a], p.action_move[a + 1]):
            weight = 1.0 if p.move_weight[j] == NONE else entry(p.move_weight[j])
            indexed = len(problem.layout.targets) > 0
            targets.append(problem.layout.targets[j, cell] if indexed else cell + p.offset[j])
            rates.append(entry(p.term_rate[e]) * weight)
    return np.array(targets, dtype=np.int64), np.array(rates)
