"""The right-hand side of the optimality equation as a function of a parameter.

The relative values and the actions are those of an optimum at the value of interest; what is left
to vary are the rates and costs of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError, MultichainError
from mdpcloud.solve.sensitivity.families import Family
from mdpcloud.solve.sensitivity.ties import Optimum, Tie, changes

__all__ = ["RightHandSide"]


class RightHandSide:
    """The right-hand side at fixed relative values and actions, by the value of the parameter.

    Parameters
    ----------
    optimum : Optimum
        At ``family.at``.
    ties : sequence of Tie
        Further actions whose effect is wanted.
    family : Family
    threads : int
    same_moves : bool
        Refuse models in which other moves are possible.
    """

    def __init__(
        self,
        optimum: Optimum,
        ties: Sequence[Tie],
        family: Family,
        threads: int,
        same_moves: bool,
    ) -> None:
        self.optimum, self.ties, self.family = optimum, ties, family
        self.threads, self.same_moves = threads, same_moves
        self._problems: dict[float, Any] = {family.at: optimum.problem}

    def reason_against(self, value: float) -> str | None:
        """Why there is no model at a value; None if there is one."""
        try:
            self._problem(value)
        except ValueError as error:
            return str(error)
        return None

    def __call__(self, value: float) -> Floats:
        """(1 + ties, n) array, see `mdpcloud.solve.sensitivity.ties.changes`."""
        optimum, problem = self.optimum, self._problem(value)
        if value != self.family.at:
            del self._problems[value]
        _check_same(optimum.problem, problem, self.family.name, value)
        if self.same_moves:
            _check_moves(optimum.problem, problem, self.family.name, value)
        choice = optimum.choice
        if (choice < 0).any():
            # A term that starts here is answered by its best action.
            best = problem.greedy(problem.pack(optimum.h), 0.0)
            choice = np.where(choice < 0, best, choice).astype(choice.dtype)
        return changes(problem, choice, optimum.h, self.ties)

    def _problem(self, value: float) -> Any:
        if value not in self._problems:
            model = self.family.build(value)
            self._problems[value] = compile_model(model, threads=self.threads)
        return self._problems[value]


def _terms(problem: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(term.name, term.actions) for term in problem.terms]


def _have_same_states(one: Any, other: Any) -> bool:
    columns = (getattr(problem, "columns", ()) for problem in (one, other))
    return all(np.array_equal(a, b) for a, b in zip(*columns, strict=True))


def _check_same(one: Any, other: Any, name: str, value: float) -> None:
    """Refuse a model with other states, events or allowed actions."""
    if not (_terms(one) == _terms(other) and one.n == other.n and _have_same_states(one, other)):
        raise InputError(
            f"at {name} = {value:g} the model has other states or events ({other.n} states, not "
            f"{one.n}); let the function build models on one box"
        )
    for e, term in enumerate(one.terms):
        if len(term.actions) == 1:
            continue
        (allowed, active), (allowed_there, active_there) = one.allowed(e), other.allowed(e)
        wrong = active & active_there & (allowed != allowed_there).any(axis=0)
        if wrong.any():
            state = int(np.argmax(wrong))
            raise InputError(
                f"at {name} = {value:g} other actions of {term.name!r} are allowed in state "
                f"{one.label(state)}: the optimum is no smooth function of {name}"
            )


def _moves(problem: Any) -> tuple[Any, ...]:
    """Which moves are possible: states, terms and actions of the rows, and their targets."""
    rows = problem.rows()
    moves = rows.transitions.sorted_indices()
    return rows.state, rows.term, rows.action, moves.indptr, moves.indices


def _check_moves(one: Any, other: Any, name: str, value: float) -> None:
    """Refuse other moves: they may join sets of states that the optimal actions never leave."""
    if not all(np.array_equal(a, b) for a, b in zip(_moves(one), _moves(other), strict=True)):
        raise MultichainError(
            f"the optimal actions lead to several sets of states that are never left, and at "
            f"{name} = {value:g} other moves are possible: they may join these sets"
        )
