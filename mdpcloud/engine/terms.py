"""A model's functions evaluated on a grid of states, with every check that needs their values.

On a lattice the coordinates are an open mesh, so a rate that depends on one coordinate comes back
with as many numbers as that coordinate has values; on enumerated states they are columns. Nothing
here depends on which: arrays broadcast over ``Grid.shape``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.event import Action, Control, Event, Flow, Mode, Move, Step
from mdpcloud.model.space import Axes

__all__ = [
    "Choice",
    "Grid",
    "Term",
    "Transition",
    "choose_terms",
    "evaluate_field",
    "evaluate_terms",
]

Array = NDArray[Any]
WEIGHT_TOLERANCE = 1e-12  # how far an event's probabilities may miss the sum 1, per move


@dataclass(frozen=True, eq=False)
class Grid:
    """Where functions are evaluated: coordinates that broadcast to ``shape``."""

    axes: Axes
    columns: tuple[Array, ...]
    shape: tuple[int, ...]
    inside: Array | None = None  # booleans of shape ``shape``; None: all

    @property
    def x(self) -> Any:
        """The named tuple that rate functions take."""
        return self.axes.state(self.columns)

    def first(self, where: Array) -> tuple[int, ...] | None:
        """Index of the first inside point at which ``where`` (broadcasting) holds, or None."""
        if not where.any():
            return None
        full = np.broadcast_to(where, self.shape)
        if self.inside is not None:
            full = full & self.inside
        place = int(np.argmax(full))
        index = tuple(int(k) for k in np.unravel_index(place, self.shape))
        return index if full[index] else None

    def describe(self, index: tuple[int, ...]) -> str:
        """The state at an index, for messages."""
        point = [np.broadcast_to(column, self.shape)[index] for column in self.columns]
        return self.axes.describe(point)


@dataclass(eq=False)
class Transition:
    """A move: weight (broadcasting, 0-d if constant) and displacement per flat axis."""

    weight: Array
    shift: list[Any]

    @property
    def constant(self) -> bool:
        """Whether the displacement is the same in every state."""
        return all(np.ndim(amount) == 0 for amount in self.shift)


@dataclass(eq=False)
class Choice:
    """An action or mode with its numbers; ``allowed`` is the user's condition, or None."""

    name: str
    cost: Array
    allowed: Array | None
    moves: list[Transition]


@dataclass(eq=False)
class Term:
    """A term of the optimality equation."""

    name: str
    rate: Array
    choices: list[Choice]
    control: bool


def evaluate_terms(events: Sequence[Event | Control], grid: Grid) -> list[Term]:
    """Every event and control evaluated on the grid.

    Raises
    ------
    InputError
        When a rate or weight is negative or not finite, a cost is not finite, a function does not
        broadcast, or an event's probabilities do not sum to 1; the message names the event and the
        state.
    """
    return [_event(e, grid) if isinstance(e, Event) else _control(e, grid) for e in events]


def _event(event: Event, grid: Grid) -> Term:
    owner = f"event {event.name!r}"
    rate = evaluate_field(event.rate, grid, f"{owner}: rate", nonnegative=True)
    choices = [
        _action(action, f"{owner}, action {action.name!r}", grid) for action in event.actions
    ]
    return Term(event.name, rate, choices, control=False)


def _action(action: Action, owner: str, grid: Grid) -> Choice:
    cost = evaluate_field(action.cost, grid, f"{owner}: cost")
    steps = _call(action.step, grid, f"{owner}: step") if callable(action.step) else action.step
    if steps is None:
        moves = []
    elif isinstance(steps, Step):
        moves = [Transition(np.array(1.0), grid.axes.displacement(steps.amounts, owner))]
    else:
        moves = [_move(move, owner, grid) for move in steps]
    return Choice(action.name, cost, _condition(action.allowed, owner, grid), moves)


def _move(move: Any, owner: str, grid: Grid) -> Transition:
    if not isinstance(move, Move):
        raise InputError(
            f"{owner}: {move!r} is not a Move; a step is a Step, several Moves, or a function"
        )
    weight = evaluate_field(move.weight, grid, f"{owner}: weight", nonnegative=True)
    amounts = move.step.amounts if move.step is not None else {}
    return Transition(weight, grid.axes.displacement(amounts, owner))


def _control(control: Control, grid: Grid) -> Term:
    choices = [
        _mode(mode, f"control {control.name!r}, mode {mode.name!r}", grid) for mode in control.modes
    ]
    return Term(control.name, np.array(1.0), choices, control=True)


def _mode(mode: Mode, owner: str, grid: Grid) -> Choice:
    cost = evaluate_field(mode.cost_rate, grid, f"{owner}: cost rate")
    moves = [_flow(flow, owner, grid) for flow in mode.flows]
    return Choice(mode.name, cost, _condition(mode.allowed, owner, grid), moves)


def _flow(flow: Flow, owner: str, grid: Grid) -> Transition:
    weight = evaluate_field(flow.rate, grid, f"{owner}: flow rate", nonnegative=True)
    return Transition(weight, grid.axes.displacement(flow.step.amounts, owner))


def _condition(allowed: Any, owner: str, grid: Grid) -> Array | None:
    if allowed is None or allowed is True:
        return None
    value = _call(allowed, grid, f"{owner}: allowed") if callable(allowed) else allowed
    return _broadcast(np.asarray(value, dtype=bool), grid, f"{owner}: allowed")


def evaluate_field(value: Any, grid: Grid, owner: str, *, nonnegative: bool = False) -> Array:
    """A number or function as a float64 array that broadcasts over the grid, checked inside it.

    Entries that belong only to points outside the space are set to 0 when they are not valid.
    """
    result = _call(value, grid, owner) if callable(value) else value
    try:
        array = np.array(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{owner}: {result!r} is not a number or an array of numbers") from None
    array = _broadcast(array, grid, owner)
    bad = ~np.isfinite(array)
    if nonnegative:
        bad |= array < 0
    index = grid.first(bad)
    if index is not None:
        wrong = np.broadcast_to(array, grid.shape)[index]
        allowed = "finite and >= 0" if nonnegative else "finite"
        raise InputError(
            f"{owner} is {wrong} in state {grid.describe(index)}; it must be {allowed}"
        )
    if bad.any():
        array[bad] = 0.0
    return array


def _broadcast(array: Array, grid: Grid, owner: str) -> Array:
    try:
        fits = np.broadcast_shapes(array.shape, grid.shape) == grid.shape
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{owner} has shape {array.shape}, which does not broadcast over the states "
            f"{grid.shape}; "
            "compute it from the coordinates of x alone"
        )
    if array.ndim and array.size == 1:
        return array.reshape(())
    if array.ndim and array.ndim < len(grid.shape):
        return array.reshape((1,) * (len(grid.shape) - array.ndim) + array.shape)
    return array


def _call(function: Callable[[Any], Any], grid: Grid, owner: str) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(grid.x)
    except ValueError as error:
        if "truth value" not in str(error):
            raise
        raise InputError(
            f"{owner}: the function does not broadcast ({error}); x holds arrays, so write "
            "np.where for if, "
            "np.minimum for min, & for and"
        ) from error


def check_probabilities(term: Term, choice: Choice, taken: Array, grid: Grid) -> None:
    """Refuse an event's action whose probabilities do not sum to 1 where it may be taken."""
    if term.control or not choice.moves:
        return
    total: Array = np.zeros(())
    for move in choice.moves:
        total = total + move.weight
    wrong = np.abs(total - 1.0) > WEIGHT_TOLERANCE * max(1, len(choice.moves))
    if not wrong.any():
        return
    index = grid.first(wrong & taken)
    if index is not None:
        value = np.broadcast_to(total, grid.shape)[index]
        raise InputError(
            f"event {term.name!r}, action {choice.name!r}: the weights of its moves sum to {value} "
            "in state "
            f"{grid.describe(index)}; they must sum to 1"
        )


def choose_terms(
    terms: list[Term], leaves: Callable[[Transition], Array], grid: Grid
) -> list[list[Array]]:
    """Where each action of each term may be taken: booleans that broadcast over the grid.

    Parameters
    ----------
    terms : list of Term
    leaves : function
        Where a transition leaves the space.
    grid : Grid

    Raises
    ------
    InputError
        When a term with positive rate has no allowed action in some state.
    """
    return [_allowed(term, leaves, grid) for term in terms]


def _allowed(term: Term, leaves: Callable[[Transition], Array], grid: Grid) -> list[Array]:
    masks: list[Array] = []
    stuck: Array = np.asarray(term.rate > 0)
    for choice in term.choices:
        mask: Array = np.array(True) if choice.allowed is None else choice.allowed
        for move in choice.moves:
            mask = mask & ~(leaves(move) & (move.weight > 0))
        check_probabilities(term, choice, mask & (term.rate > 0), grid)
        masks.append(mask)
        if stuck.any():
            stuck = stuck & ~mask
    index = grid.first(stuck)
    if index is not None:
        raise InputError(_stuck_message(term, index, grid))
    return masks


def _stuck_message(term: Term, index: tuple[int, ...], grid: Grid) -> str:
    kind = "control" if term.control else "event"
    rate = np.broadcast_to(term.rate, grid.shape)[index]
    state = grid.describe(index)
    if len(term.choices) > 1:
        names = ", ".join(repr(choice.name) for choice in term.choices)
        return (
            f"{kind} {term.name!r} has rate {rate} but no allowed action in state {state}: each of "
            f"{names} "
            "leaves the space or is not allowed there"
        )
    moves = term.choices[0].moves
    shift = [np.broadcast_to(a, grid.shape)[index] for a in moves[0].shift] if moves else []
    return (
        f"{kind} {term.name!r} has rate {rate} in state {state}, where its step "
        f"{grid.axes.describe(shift)} "
        "leaves the space; give it rate 0 there, or an action that stays"
    )
