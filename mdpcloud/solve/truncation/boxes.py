"""Boxes of states that grow, and what is solved on them.

A box is given by its caps, one largest coordinate per axis; what is looked for is said in
`mdpcloud.solve.truncation.truncation`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.errors import InputError
from mdpcloud.model.model import Model
from mdpcloud.solve.evaluate import evaluate
from mdpcloud.solve.limits import Monitor, Progress, check_tolerance
from mdpcloud.solve.optimise import solve
from mdpcloud.solve.result import Evaluation, Solution

__all__ = [
    "LARGEST",
    "REASONS",
    "Budget",
    "Caps",
    "Found",
    "Growth",
    "Work",
    "checked_start",
    "growth_of",
    "near_growing_edges",
    "on_growing_boxes",
    "states_of",
    "with_rule",
]

Caps: TypeAlias = tuple[int, ...]
Growth: TypeAlias = float | Callable[[Caps], Sequence[int]]
Found: TypeAlias = Solution | Evaluation

LARGEST = 5_000_000  # states beyond which a box no longer grows
LEAST_SHARE = 0.1  # of the time limit, for every solve: what is quick is not left out
REASONS = {
    "time": "time limit",
    "iterations": "iteration limit",
    "interrupted": "interrupted",
    "precision": "finer than float64 can certify",
    "stalled": "the bounds stopped closing",
    "too_many_states": "the next box is larger than allowed",
}


@dataclass(frozen=True)
class Budget:
    """A time limit (seconds), for all that follows."""

    limit: float | None
    started: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float | None:
        """Seconds until the limit, a tenth of it where it is near or past; None without one."""
        if self.limit is None:
            return None
        return max(self.limit - (time.perf_counter() - self.started), LEAST_SHARE * self.limit)

    @property
    def over(self) -> bool:
        """Whether the limit is past."""
        return self.limit is not None and time.perf_counter() - self.started > self.limit


class Boxed(Protocol):
    """What was found on a box."""

    @property
    def caps(self) -> Caps:
        """Its caps."""
        ...

    @property
    def states(self) -> int:
        """Number of states of that box."""
        ...


T = TypeVar("T", bound=Boxed)


def on_growing_boxes(
    attempt: Callable[[Caps, T | None], tuple[T, str | None]],
    start: Caps,
    grow: Callable[[Caps, T], Caps],
    largest: int,
) -> tuple[T, str]:
    """Try growing boxes until an attempt says how it ended, or the next box is too large.

    Parameters
    ----------
    attempt : function of caps and of what was found so far
        Returns what is known now, and None or a status that ends the growth.
    start : tuple of int
    grow : function of caps and of what was found
    largest : int
        States.
    """
    caps: Caps = start
    found: T | None = None
    while True:
        found, status = attempt(caps, found)
        if status is not None:
            return found, status
        grown = grow(caps, found)
        if not any(new > old for new, old in zip(grown, caps, strict=True)):
            raise InputError(f"grow turns the caps {caps} into {grown}; some of them must increase")
        if found.states * states_of(grown) > largest * states_of(found.caps):
            return found, "too_many_states"
        caps = grown


def states_of(caps: Sequence[int]) -> int:
    """Number of states of a full box."""
    return math.prod(cap + 1 for cap in caps)


@dataclass(frozen=True)
class Work:
    """How to solve a model, or to evaluate a rule on it; arguments of `mdpcloud.solve`."""

    tolerance: float
    solver: Any
    threads: int
    progress: Progress | None
    budget: Budget

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        Monitor(time_limit=self.budget.limit)

    def run(self, model: Any, rule: Any, before: Found | None) -> tuple[Found, Any]:
        """The optimum, or the cost of a rule, and the compiled model.

        A partial result is returned, not raised. ``before`` is what was found on a smaller box.
        """
        model = _without_measures(model)
        problem: Any = compile_model(model)
        if rule is None and not any(term.decision for term in problem.terms):
            rule = {}
        if rule is None:
            return self._solved(model, _extended(before, problem.shape)), problem
        return self._evaluated(model, rule), problem

    def _solved(self, model: Any, start: Floats | None) -> Found:
        return solve(
            model,
            solver=self.solver,
            tolerance=self.tolerance,
            start=start,
            time_limit=self.budget.left,
            threads=self.threads,
            progress=self.progress,
            strict=False,
        )

    def _evaluated(self, model: Any, rule: Any) -> Found:
        return evaluate(
            model,
            rule,
            tolerance=self.tolerance,
            time_limit=self.budget.left,
            threads=self.threads,
            progress=self.progress,
            strict=False,
        )


def _without_measures(model: Any) -> Any:
    if not isinstance(model, Model):
        return model
    return Model(model.space, model.events, cost_rate=model.cost_rate)


def with_rule(built: Any) -> tuple[Any, Any]:
    """A model, and the rule to be evaluated on it: None where the optimum is wanted."""
    if isinstance(built, tuple):
        if len(built) != 2:
            raise InputError(
                f"a pair (model, rule) or a model must be built, not {len(built)} things"
            )
        return built
    return built, None


def _extended(found: Found | None, shape: tuple[int, ...]) -> Floats | None:
    """Relative values of a smaller box, continued at their edges; None where there is none."""
    if found is None or len(found.policy.shape) != len(shape):
        return None
    values = found.values.reshape(found.policy.shape)
    pad = [(0, size - n) for size, n in zip(shape, values.shape, strict=True)]
    if any(more < 0 for _, more in pad):
        return None
    return np.pad(values, pad, mode="edge").ravel()


def growth_of(grow: Growth) -> Callable[[Caps], Caps]:
    """The next caps by the caps: a factor and 2 more, or as the function says."""
    if callable(grow):
        return lambda caps: tuple(grow(caps))
    if isinstance(grow, bool) or not isinstance(grow, Real) or not grow > 1:
        raise InputError(f"grow is {grow!r}; it must be a factor > 1, or a function of the caps")
    return lambda caps: tuple(math.ceil(grow * cap) + 2 for cap in caps)


def checked_start(start: Sequence[int]) -> Caps:
    """Caps of a first box; an `InputError` where they are none."""
    caps = tuple(start) if isinstance(start, Sequence | np.ndarray) else ()
    if not caps or not all(isinstance(cap, (int, np.integer)) and cap >= 0 for cap in caps):
        raise InputError(f"start is {start!r}; it must hold the caps of the first box, integers")
    return tuple(int(cap) for cap in caps)


def near_growing_edges(before: Sequence[NDArray[Any]], columns: Sequence[NDArray[Any]]) -> Any:
    """Which states are within one step of an edge that grew.

    Parameters
    ----------
    before, columns : sequences of arrays
        Coordinates of the states of the box before, and of this one: a column per axis.

    Returns
    -------
    (n,) bool array
        Where a coordinate whose largest value grew can be increased by one at most without leaving
        the states.
    """
    shape = [int(column.max()) + 3 for column in columns]
    known = np.sort(np.ravel_multi_index([np.asarray(c) for c in columns], shape))
    near = np.zeros(known.size, np.bool_)
    for axis, column in enumerate(columns):
        if before and int(column.max()) == int(before[axis].max()):
            continue
        beyond = [c + 2 if k == axis else c for k, c in enumerate(columns)]
        there = np.ravel_multi_index(beyond, shape)
        place = np.minimum(np.searchsorted(known, there), known.size - 1)
        near |= known[place] != there
    return near
