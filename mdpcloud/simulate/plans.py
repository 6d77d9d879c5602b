"""Clocks, actions and moves of a model, with the columns that hold their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mdpcloud.model.event import Control
from mdpcloud.simulate.columns import Column
from mdpcloud.simulate.events_program import Answer

__all__ = ["ActionPlan", "ClockPlan", "MovePlan"]


@dataclass(eq=False)
class MovePlan:
    """A move: weight, None for 1, and what it adds to which axis."""

    weight: Column | None
    shifts: list[tuple[int, int | Column]]


@dataclass(eq=False)
class ActionPlan:
    """An action: its condition, lump cost and probability, None for none of them, and moves."""

    name: str
    condition: Column | None = None
    cost: Column | None = None
    chance: Column | None = None
    moves: list[MovePlan] = field(default_factory=list)
    counted: bool = False


@dataclass(eq=False)
class ClockPlan:
    """A clock: its rate, how its action is found, and the actions.

    ``where`` holds the number of the action, ``prices`` those of a tournament, in the order of the
    rule; ``control`` is the one whose flow the clock is.
    """

    name: str
    rate: Column
    answer: int
    actions: list[ActionPlan]
    where: Column | None = None
    prices: list[Column] = field(default_factory=list)
    rule: Any = None
    control: Control | None = None

    @property
    def draws(self) -> bool:
        """Whether it needs uniform random numbers."""
        moves = [move for action in self.actions for move in action.moves]
        return self.answer == Answer.RANDOM or any(move.weight is not None for move in moves)
