"""The only action that an event may take, where no rule decides: "join if there is room"."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import condition_of, moves_of, read_field, shift_of
from mdpcloud.model.calls import call
from mdpcloud.model.event import Action, Control, Event, Flow, Mode, Move
from mdpcloud.model.model import choices_of
from mdpcloud.simulate.columns import Reader
from mdpcloud.simulate.tracing import PartialGrid

__all__ = ["NONE_ALLOWED", "SEVERAL_ALLOWED", "single_action"]

NONE_ALLOWED = -1.0
SEVERAL_ALLOWED = -2.0

Where = Callable[[Any], Any] | None
Function = Callable[[Any, str], Any]


def single_action(
    event: Event | Control, caps: Sequence[int], where: Where, function: Function
) -> Reader:
    """Reader of the number of the only allowed action; negative where there is not exactly one.

    Parameters
    ----------
    event : Event or Control
    caps : sequence of int
        Largest coordinates.
    where : function of x, or None
        The condition of the space.
    function : function of a value and its owner
        Turns arrays over the lattice into functions of x.
    """
    return partial(_number, event, _Space(tuple(caps), where, function))


class _Space(NamedTuple):
    """What is known of the space; see `single_action`."""

    caps: tuple[int, ...]
    where: Where
    function: Function


def _number(event: Event | Control, space: _Space, grid: PartialGrid) -> Any:
    choices: Sequence[Action | Mode] = choices_of(event)
    owner = f"{'event' if isinstance(event, Event) else 'control'} {event.name!r}"
    number = np.full(grid.shape, NONE_ALLOWED)
    for a, choice in enumerate(choices):
        open_ = _is_open(choice, f"{owner}, {choice.name!r}", space, grid)
        number = np.where(open_, np.where(number == NONE_ALLOWED, a, SEVERAL_ALLOWED), number)
    return number


def _is_open(
    choice: Action | Mode, owner: str, space: _Space, grid: PartialGrid
) -> NDArray[np.bool_]:
    condition = condition_of(choice.allowed, owner, grid)
    open_ = np.broadcast_to(True if condition is None else condition, grid.shape)
    for move in _moves(choice, owner, grid):
        leaves = _leaves(shift_of(move.step, owner, grid), space, grid)
        if leaves is not False:
            weight = move.weight
            if not callable(getattr(choice, "step", None)):
                weight = space.function(weight, owner)
            open_ = open_ & ~(leaves & (read_field(weight, grid, owner) > 0))
    return open_


def _moves(choice: Action | Mode, owner: str, grid: PartialGrid) -> Sequence[Move]:
    if isinstance(choice, Action):
        return moves_of(choice, grid, owner)
    flows: Sequence[Flow] = choice.flows
    return [Move(flow.rate, flow.step) for flow in flows]


def _leaves(shifts: Sequence[Any], space: _Space, grid: PartialGrid) -> NDArray[np.bool_] | bool:
    """Where a move leaves the space."""
    outside: NDArray[np.bool_] | bool = False
    columns = list(grid.columns)
    for k, amount in enumerate(shifts):
        if np.ndim(amount) == 0 and amount == 0:
            continue
        columns[k] = np.asarray(grid.column(k) + amount)
        outside = outside | (columns[k] < 0) | (columns[k] > space.caps[k])
        columns[k] = np.clip(columns[k], 0, space.caps[k])
    if space.where is None or outside is False:
        return outside
    target = dataclasses.replace(grid, columns=tuple(columns))
    return outside | ~np.asarray(call(space.where, target.x, "where"), dtype=bool)
