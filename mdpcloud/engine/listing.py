"""A compiled model written out as explicit rows, for direct solves and for structure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.program import NONE
from mdpcloud.engine.rows import Rows

if TYPE_CHECKING:
    from mdpcloud.engine.compiled import CompiledProblem

__all__ = ["list_rows", "open_actions", "state_cost_rate"]

Array = NDArray[Any]
BARRED = 1e200  # costs above this mark a forbidden action


def list_rows(problem: CompiledProblem) -> Rows:
    """Every (state, term, action) with positive rate that is allowed, with its targets; sorted."""
    from scipy import sparse

    program = problem.program
    parts = []
    for e in range(program.term_rate.size):
        rate = problem.field_values(program.term_rate[e])
        first, last = program.term_action[e], program.term_action[e + 1]
        parts += [
            _action_rows(problem, e, int(a - first), int(a), rate) for a in range(first, last)
        ]
    state, term, action, rate, cost = (np.concatenate([p[i] for p in parts]) for i in range(5))
    order = np.lexsort((action, term, state))
    stacked = sparse.vstack([p[5] for p in parts], format="csr")[order]
    return Rows(
        n=problem.n,
        cost_rate=state_cost_rate(problem),
        state=state[order].astype(np.int32),
        term=term[order].astype(np.int32),
        action=action[order].astype(np.int32),
        rate=rate[order],
        cost=cost[order],
        transitions=stacked,
        roundings=len(program.cost) + 3,
    )


def state_cost_rate(problem: CompiledProblem) -> Array:
    """Cost rate (n,) without lumps; its error is relative to it: parts of both signs may cancel."""
    fields = [problem.field_values(f) for f in problem.program.cost]
    if len(fields) > 1 and any((field < 0).any() for field in fields):
        return np.fromiter(map(math.fsum, zip(*fields, strict=True)), np.float64, problem.n)
    return np.asarray(sum(fields, np.zeros(problem.n)))


def open_actions(problem: CompiledProblem, a: int) -> Array:
    """Where action number a of the program may be taken: booleans (n,)."""
    program = problem.program
    open_ = np.ones(problem.n, dtype=bool)
    if program.action_cost[a] != NONE:
        open_ &= problem.field_values(program.action_cost[a]) < BARRED
    for j in range(program.action_move[a], program.action_move[a + 1]):
        weight = program.move_weight[j]
        leaves = problem.target_states(j) < 0
        if leaves.any():
            open_ &= ~leaves if weight == NONE else ~leaves | (problem.field_values(weight) == 0)
    return open_


def _action_rows(
    problem: CompiledProblem, e: int, number: int, a: int, rate: Array
) -> tuple[Any, ...]:
    from scipy import sparse

    program = problem.program
    n = problem.n
    open_ = open_actions(problem, a) & (rate > 0)
    row = program.term_choice[e]
    if problem.choice is not None and row != NONE:
        open_ &= problem.layout.unpack(problem.choice[row]) == number
    states = np.flatnonzero(open_)
    lump = np.zeros(n)
    if program.action_cost[a] != NONE:
        lump = problem.field_values(program.action_cost[a])
    where, to, flow = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
    for j in range(program.action_move[a], program.action_move[a + 1]):
        weight = program.move_weight[j]
        rates = rate if weight == NONE else rate * problem.field_values(weight)
        target = problem.target_states(j)
        used = np.flatnonzero((rates[states] > 0) & (target[states] != states))
        where.append(used)
        to.append(target[states[used]])
        flow.append(rates[states[used]])
    entries = (np.concatenate(flow), (np.concatenate(where), np.concatenate(to)))
    matrix = sparse.csr_array(sparse.coo_array(entries, shape=(states.size, n)))
    same = np.full(states.size, e)
    return (
        states,
        same,
        np.full(states.size, number),
        rate[states],
        rate[states] * lump[states],
        matrix,
    )
