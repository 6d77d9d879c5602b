"""Constraints on long-run averages, as linear inequalities for occupation measures.

A key of ``constraints`` is the name of a measure of the model, or two of them with a slash between
for their ratio: ``"abandonment_rate[0] / routing_rate[0]"`` is the part of node 0's jobs that
abandon. A ratio is multiplied out: N / D <= b becomes N - b D <= 0, which also holds where both
averages are 0. D must not be negative anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.row_table import Rows
from mdpcloud.errors import InputError
from mdpcloud.model.limit import limit_of
from mdpcloud.model.model import Model, is_count
from mdpcloud.plugins import did_you_mean
from mdpcloud.solve.constrained.occupation import Average
from mdpcloud.solve.measures import counted, rate_of

__all__ = ["Constraint", "constraints_of"]

LEAST_UNIT = 1e-6


@dataclass(frozen=True, eq=False)
class Constraint:
    """One side of a limit: sense (N - bound D) <= 0, or sense N <= sense bound without a D.

    Parameters
    ----------
    name : str
        The key.
    numerator : Average
    denominator : Average or None
    bound : float
    sense : int
        1 for at most, -1 for at least.
    unit : float
        What violations are measured in: the bound's size (times D's largest possible value), but at
        least a millionth of N's largest possible value, and that value where the bound is 0.
    """

    name: str
    numerator: Average
    denominator: Average | None
    bound: float
    sense: int
    unit: float

    @property
    def average(self) -> Average:
        """The left side."""
        if self.denominator is None:
            return self.numerator * self.sense
        return (self.numerator + self.denominator * -self.bound) * self.sense

    def size(self, rows: Rows) -> float:
        """Bound of the absolute values that the left side is summed from."""
        size = self.numerator.size(rows)
        if self.denominator is None:
            return size
        return size + abs(self.bound) * self.denominator.size(rows)

    @property
    def limit(self) -> float:
        """The right side."""
        return self.sense * self.bound if self.denominator is None else 0.0

    @property
    def label(self) -> str:
        """The constraint in a message."""
        return f"{self.name} {'<=' if self.sense > 0 else '>='} {self.bound:g}"

    @property
    def linear(self) -> str:
        """The constraint in a message, a ratio multiplied out."""
        if self.denominator is None:
            return self.label
        top, bottom = self.name.split("/", 1)
        sign = "<=" if self.sense > 0 else ">="
        return f"{top.strip()} - {self.bound:g} * {bottom.strip()} {sign} 0"


def constraints_of(model: Any, problem: Any, wanted: Mapping[str, Any]) -> list[Constraint]:
    """The constraints that a mapping from measures or ratios to limits describes.

    Raises
    ------
    InputError
        When a key names no measure, a limit is not one, a denominator can be negative, or the model
        has no measures.
    """
    if not isinstance(model, Model) or not model.measures:
        raise InputError(
            "constraints are on a model's named measures, and this one has none; give "
            "Model(..., measures={...})"
        )
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError(
            f"constraints is {wanted!r}; it must be a mapping from measures to limits, not empty"
        )
    found = []
    for key, value in wanted.items():
        limit = limit_of(value, f"the limit of {key!r}")
        names = _measures_of(key, model)
        averages = [_average(model, problem, name) for name in names]
        if len(averages) == 2 and averages[1].state.min() + averages[1].row.min(initial=0.0) < 0:
            raise InputError(
                f"constraint {key!r}: {names[1]!r} is negative in some state; what a ratio is "
                "divided by must be >= 0 everywhere"
            )
        for bound, sense in ((limit.at_most, 1), (limit.at_least, -1)):
            if bound is not None:
                found.append(_constraint(key, averages, float(bound), sense, problem.rows()))
    return found


def _constraint(
    key: str, averages: list[Average], bound: float, sense: int, rows: Any
) -> Constraint:
    top, bottom = averages[0], averages[1] if len(averages) == 2 else None
    unit = abs(bound) * (1.0 if bottom is None else bottom.size(rows))
    size = top.size(rows)
    unit = size if bound == 0.0 else max(unit, LEAST_UNIT * size)
    return Constraint(key, top, bottom, bound, sense, unit or 1.0)


def _measures_of(key: Any, model: Model) -> list[str]:
    """The measure that a key names, or the two of a ratio."""
    known = model.measures
    if key in known:
        return [key]
    if isinstance(key, str):
        cuts = [k for k, letter in enumerate(key) if letter == "/"]
        for k in cuts:
            names = [key[:k].strip(), key[k + 1 :].strip()]
            if all(name in known for name in names):
                return names
        for name in [key[: cuts[0]].strip(), key[cuts[0] + 1 :].strip()] if cuts else [key]:
            if name not in known:
                hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise InputError(f"constraint {key!r}: the model has no measure {name!r}{hint}")
    raise InputError(f"constraint {key!r} must be the name of a measure, or of two with a slash")


def _average(model: Model, problem: Any, name: str) -> Average:
    """A measure as rates per state and row."""
    measure, rows = model.measures[name], problem.rows()
    if is_count(measure):
        e, number = counted(measure, problem)
        taken = (rows.term == e) & (rows.action == number)
        return Average(np.zeros(problem.n), np.where(taken, rows.rate, 0.0))
    return Average(rate_of(measure, name, problem), np.zeros(rows.state.size))
