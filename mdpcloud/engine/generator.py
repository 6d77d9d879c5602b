"""The rates of a compiled model under a policy as a sparse matrix, with no other copy of them.

An explicit listing of a model's rows takes several times the memory of the result; here the moves
are evaluated one by one, on large models twice: they are counted, then put in their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.generator_kernels import count_moves, place_moves
from mdpcloud.engine.problem import Choice, Floats, Mixture
from mdpcloud.engine.program import NONE
from mdpcloud.engine.rows import Matrix

if TYPE_CHECKING:
    from mdpcloud.engine.compiled import CompiledProblem

__all__ = ["rates_under"]

KEPT = 10_000  # states up to which the moves are kept between the two passes


def rates_under(problem: CompiledProblem, choice: Choice | Mixture | None) -> Matrix:
    """Rates off the diagonal under a choice, 1/time; rows are origins, columns targets.

    Parameters
    ----------
    problem : CompiledProblem
    choice : (n_terms, n) integer array, or per term the probabilities (n_actions, n), or None
        What every term does in every state; None for a problem without decisions.

    Returns
    -------
    (n, n) CSR array
        Sorted, all entries positive, equal places added up.
    """
    from scipy import sparse

    n = problem.n
    kept = list(_moves(problem, choice)) if n <= KEPT else None
    counts = np.zeros(n, np.int32)
    for rate, target in kept or _moves(problem, choice):
        count_moves(rate, target, counts)
    pointers = np.zeros(n + 1, np.int32)
    np.cumsum(counts, out=pointers[1:])
    targets, rates = np.empty(pointers[-1], np.int32), np.empty(pointers[-1])
    place = pointers[:-1].copy()
    for rate, target in kept or _moves(problem, choice):
        place_moves(rate, target, place, targets, rates)
    matrix = sparse.csr_array((rates, targets, pointers), shape=(n, n))
    matrix.sum_duplicates()
    return matrix


def _moves(
    problem: CompiledProblem, choice: Choice | Mixture | None
) -> Iterator[tuple[Floats, NDArray[np.int32]]]:
    """Rate (n,), 0 where the action is not taken, and target (n,) of each move of each action."""
    program = problem.program
    for e in range(program.term_rate.size):
        rate = problem.field_values(program.term_rate[e])
        first, last = program.term_action[e], program.term_action[e + 1]
        for a in range(first, last):
            taken = rate * _share(problem, choice, e, int(a - first))
            for j in range(program.action_move[a], program.action_move[a + 1]):
                weight = program.move_weight[j]
                moved = taken if weight == NONE else taken * problem.field_values(weight)
                target = problem.target_states(j).astype(np.int32, copy=False)
                yield np.where(target < 0, 0.0, moved), target


def _share(problem: CompiledProblem, choice: Any, e: int, action: int) -> Any:
    """How often a term takes an action, per state."""
    if choice is None:
        choice = problem.choice
        row = problem.program.term_choice[e]
        if row == NONE or choice is None:
            return 1.0
        return problem.layout.unpack(choice[row]) == action
    if isinstance(choice, np.ndarray):
        return choice[e] == action
    return choice[e][action] / np.sum(choice[e], axis=0).clip(min=1e-300)
