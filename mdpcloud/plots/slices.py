"""Policies on a slice of the state space: one or two coordinates free, the others fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.rules import action_numbers
from mdpcloud.model.policy import Policy
from mdpcloud.model.space import Axes, Lattice

__all__ = ["NOTHING", "Slice", "free_axes", "policy_on", "rule_on", "space_caps"]

Array = NDArray[Any]
FAMILY = "node"  # the axis family whose members are nodes with jobs
MOST_NAMED = 4  # fixed coordinates in a title
NOTHING = -1  # where nothing is decided, or nothing is known


@dataclass(frozen=True)
class Slice:
    """Part of a state space; its states are numbered like a compiled problem's.

    Attributes
    ----------
    axes : Axes
        Names of all coordinates.
    free : tuple of int
        Positions of the free coordinates.
    shape : tuple of int
        Number of values of each free coordinate, 0 ... shape - 1.
    fixed : tuple of int
        Value of every coordinate; those of the free ones are not used.
    """

    axes: Axes
    free: tuple[int, ...]
    shape: tuple[int, ...]
    fixed: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of states."""
        return int(np.prod(self.shape))

    def state(self, index: Any) -> Any:
        """The named tuple of coordinates of a state (int) or of several (slice)."""
        columns = [column[index] for column in self._columns]
        return self.axes.state([int(c) if np.ndim(c) == 0 else c for c in columns])

    @cached_property
    def _columns(self) -> list[Array]:
        columns = [np.full(self.n, value) for value in self.fixed]
        for k, coordinate in zip(self.free, np.indices(self.shape), strict=True):
            columns[k] = coordinate.ravel()
        return columns

    def label(self, state: int) -> str:
        """The state's coordinates, for messages."""
        return str(self.state(state))

    def coordinate(self, which: int) -> str:
        """What a free coordinate counts, such as ``jobs at node 0``."""
        name, member = self.axes.flat[self.free[which]]
        if name == FAMILY:
            return f"jobs at node {member or 0}"
        return name if member is None else f"{name} {member}"

    def where(self) -> str:
        """The fixed coordinates, such as ``, with 10 jobs at node 2``; empty if there are none."""
        held = [
            _held(*self.axes.flat[k], value)
            for k, value in enumerate(self.fixed)
            if k not in self.free
        ]
        named = [*held[:MOST_NAMED], "..."] if len(held) > MOST_NAMED else held
        return f", with {', '.join(named)}" if named else ""


def _held(name: str, member: int | None, value: int) -> str:
    if name == FAMILY:
        return f"{value} job{'s' * (value != 1)} at node {member or 0}"
    return f"{name} {value}" if member is None else f"{name} {member} at {value}"


def free_axes(axes: Axes) -> tuple[int, ...]:
    """Positions of the two coordinates to draw: nodes first; one if there is one.

    Examples
    --------
    >>> free_axes(Axes({"phase": 1, "node": (3, 4, 5)}, "cap"))
    (1, 2)
    """
    order = sorted(range(len(axes)), key=lambda k: axes.flat[k][0] != FAMILY)
    return tuple(order[:2])


def space_caps(model: Any) -> tuple[int, ...]:
    """The largest value of every coordinate of a model's space."""
    if isinstance(model.space, Lattice):
        return model.space.axes.sizes
    return tuple(int(column.max()) for column in _columns(model))


def policy_on(part: Slice, policy: Policy, decision: str, model: Any) -> Array:
    """Actions of a deterministic policy on a slice, -1 outside the model's states."""
    table = policy.table(decision)
    found = np.full(part.shape, NOTHING, dtype=np.int64)
    if isinstance(model.space, Lattice) and policy.shape == model.space.shape:
        inside = table[
            tuple(slice(None) if k in part.free else v for k, v in enumerate(part.fixed))
        ]
        inside = inside if part.free == tuple(sorted(part.free)) else inside.T
        inside = inside[tuple(slice(size) for size in part.shape)]
        found[tuple(slice(size) for size in inside.shape)] = inside
        return found
    columns = _columns(model)
    kept = np.ones(table.size, dtype=bool)
    for k, column in enumerate(columns):
        kept &= (
            column < part.shape[part.free.index(k)] if k in part.free else column == part.fixed[k]
        )
    found[tuple(columns[k][kept] for k in part.free)] = table[kept]
    return found


def rule_on(part: Slice, term: TermInfo, rule: Callable[[Any], Any]) -> Array:
    """Action numbers of a rule on a slice, -1 where it has no answer.

    A rule was evaluated on a box of its own, and need not know what to do beyond it.
    """
    try:
        numbers = action_numbers(part, term, rule)  # type: ignore[arg-type]
    except Exception:
        numbers = np.array([_one(part, term, rule, state) for state in range(part.n)])
    known = (numbers >= 0) & (numbers < len(term.actions))
    return np.where(known, numbers, NOTHING).reshape(part.shape)


def _one(part: Slice, term: TermInfo, rule: Callable[[Any], Any], state: int) -> int:
    try:
        action = rule(part.state(state))
        return term.actions.index(action) if isinstance(action, str) else int(action)
    except Exception:
        return NOTHING


def _columns(model: Any) -> list[Array]:
    from mdpcloud.engine import compile_model

    problem: Any = compile_model(model)
    return list(problem.columns)
