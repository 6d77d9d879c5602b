"""Measures of a model as rates: of the states, or counts of an action."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.model.model import Model, is_count

__all__ = ["counted", "measure_rates", "rate_of"]


def measure_rates(model: Any, problem: Any, choice: Any) -> dict[str, Floats]:
    """The rate (n,) whose long-run average each measure is, under a choice."""
    if not isinstance(model, Model):
        return {}
    known: dict[int, Floats] = {}
    return {name: _under(m, name, problem, choice, known) for name, m in model.measures.items()}


def _under(measure: Any, name: str, problem: Any, choice: Any, known: dict[int, Floats]) -> Floats:
    if not is_count(measure):
        return rate_of(measure, name, problem, known)
    e, number = counted(measure, problem)
    taken = choice[e] == number if isinstance(choice, np.ndarray) else choice[e][number]
    return np.asarray(problem.field_values(problem.program.term_rate[e]) * taken)


def counted(measure: Any, problem: Any) -> tuple[int, int]:
    """Numbers of the term and the action that a measure counts."""
    event, action = measure
    e = next(k for k, term in enumerate(problem.terms) if term.name == event)
    return e, problem.terms[e].actions.index(action)


def rate_of(
    measure: Any, name: str, problem: Any, known: dict[int, Floats] | None = None
) -> Floats:
    """The rate (n,) of a measure that counts nothing.

    ``known`` keeps what its functions gave, by identity, for other measures of the same model.
    """
    known = {} if known is None else known
    parts = measure if isinstance(measure, (list, tuple)) else [measure]
    for part in parts:
        if id(part) not in known:
            known[id(part)] = problem.field(part, f"measure {name!r}")
    return reduce(np.add, [known[id(part)] for part in parts] or [np.zeros(problem.n)])
