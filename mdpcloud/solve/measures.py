"""Measures of a model as rates: of the states, or counts of an action."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.model.model import Model, is_count

__all__ = ["counted", "measure_rates", "rate_of"]


def measure_rates(model: Any, problem: Any, choice: Any) -> dict[str, Floats]:
    """The rate (n,) whose long-run average each measure is, under a choice."""
    if not isinstance(model, Model):
        return {}
    return {name: _under(m, name, problem, choice) for name, m in model.measures.items()}


def _under(measure: Any, name: str, problem: Any, choice: Any) -> Floats:
    if not is_count(measure):
        return rate_of(measure, name, problem)
    e, number = counted(measure, problem)
    taken = choice[e] == number if isinstance(choice, np.ndarray) else choice[e][number]
    return np.asarray(problem.field_values(problem.program.term_rate[e]) * taken)


def counted(measure: Any, problem: Any) -> tuple[int, int]:
    """Numbers of the term and the action that a measure counts."""
    event, action = measure
    e = next(k for k, term in enumerate(problem.terms) if term.name == event)
    return e, problem.terms[e].actions.index(action)


def rate_of(measure: Any, name: str, problem: Any) -> Floats:
    """The rate (n,) of a measure that counts nothing."""
    parts = measure if isinstance(measure, (list, tuple)) else [measure]
    total = sum((problem.field(part, f"measure {name!r}") for part in parts), np.zeros(problem.n))
    return np.asarray(total, np.float64)
