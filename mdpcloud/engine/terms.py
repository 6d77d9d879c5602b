"""A model's functions evaluated on a grid of states, with every check that needs their values.

On a lattice the coordinates are an open mesh, so a rate that depends on one coordinate comes back
with as many numbers as that coordinate has values; on enumerated states they are columns. Nothing
here depends on which: arrays broadcast over ``Grid.shape``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.calls import call
from mdpcloud.model.event import Action, Control, Event, Flow, Mode, Move, Step
from mdpcloud.model.space import Axes

__all__ = [
    "Choice",
    "Grid",
    "Term",
    "Transition",
    "choose_terms",
    "condition_of",
    "evaluate_field",
    "evaluate_terms",
    "moves_of",
    "read_field",
    "shift_of",
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
    moves = [_move(move, owner, grid) for move in moves_of(action, grid, owner)]
    return Choice(action.name, cost, condition_of(action.allowed, owner, grid), moves)


def moves_of(action: Action, grid: Grid, owner: str) -> Sequence[Move]:
    """The moves of an action, which may be a function of x."""
    steps = call(action.step, grid.x, f"{owner}: step") if callable(action.step) else action.step
    if steps is None:
        return ()
    if isinstance(steps, Step):
        return (Move(1.0, steps),)
    moves = (steps,) if isinstance(steps, Move) else steps
    if not isinstance(moves, Sequence) or not all(isinstance(move, Move) for move in moves):
        raise InputError(
            f"{owner}: step is {steps!r}; allowed are None, a step, several Moves, or a function "
            "of x that returns one of these"
        )
    return moves


def _move(move: Move, owner: str, grid: Grid) -> Transition:
    weight = evaluate_field(move.weight, grid, f"{owner}: weight", nonnegative=True)
    return Transition(weight, shift_of(move.step, owner, grid))


def shift_of(step: Any, owner: str, grid: Grid) -> list[Any]:
    """Integer displacement per flat axis, broadcasting over the grid."""
    if step is not None and not isinstance(step, Step):
        raise InputError(f"{owner}: {step!r} is not a step; write mdpcloud.step(axis=+1)")
    amounts: Mapping[str, Any] = step.amounts if step is not None else {}
    return [_amount(value, owner, grid) for value in grid.axes.displacement(amounts, owner)]


def _amount(value: Any, owner: str, grid: Grid) -> Any:
    if type(value) is int:
        return value
    array = np.asarray(value)
    whole = array.dtype.kind == "f" and np.array_equal(array, np.round(array))
    if not whole and array.dtype.kind not in "biu":
        raise InputError(
            f"{owner}: a step's amount is {value!r}; amounts are integers, or arrays of integers "
            "from a step that is a function of x"
        )
    array = _broadcast(array.astype(np.int64), grid, f"{owner}: a step's amount")
    return array if array.ndim else int(array)


def _control(control: Control, grid: Grid) -> Term:
    choices = [
        _mode(mode, f"control {control.name!r}, mode {mode.name!r}", grid) for mode in control.modes
    ]
    return Term(control.name, np.array(1.0), choices, control=True)


def _mode(mode: Mode, owner: str, grid: Grid) -> Choice:
    cost = evaluate_field(mode.cost_rate, grid, f"{owner}: cost rate")
    moves = [_flow(flow, owner, grid) for flow in mode.flows]
    return Choice(mode.name, cost, condition_of(mode.allowed, owner, grid), moves)


def _flow(flow: Flow, owner: str, grid: Grid) -> Transition:
    weight = evaluate_field(flow.rate, grid, f"{owner}: flow rate", nonnegative=True)
    return Transition(weight, shift_of(flow.step, owner, grid))


def condition_of(allowed: Any, owner: str, grid: Grid) -> Array | None:
    """The user's condition of an action or mode as booleans, None where there is none."""
    if allowed is None or allowed is True:
        return None
    value = call(allowed, grid.x, f"{owner}: allowed") if callable(allowed) else allowed
    return _broadcast(np.asarray(value, dtype=bool), grid, f"{owner}: allowed")


def evaluate_field(value: Any, grid: Grid, owner: str, *, nonnegative: bool = False) -> Array:
    """A number or function as a float64 array that broadcasts over the grid, checked inside it.

    Entries that belong only to points outside the space are set to 0 when they are not valid.
    """
    array = read_field(value, grid, owner)
    bad = ~np.isfinite(array)
    if nonnegative:
        bad |= array < 0
    if not bad.any():
        return array
    index = grid.first(bad)
    if index is not None:
        wrong = np.broadcast_to(array, grid.shape)[index]
        allowed = "finite and >= 0" if nonnegative else "finite"
        raise InputError(
            f"{owner} is {wrong} in state {grid.describe(index)}; it must be {allowed}"
        )
    array[bad] = 0.0
    return array


def read_field(value: Any, grid: Grid, owner: str) -> Array:
    """A number or function as a float64 array that broadcasts over the grid, whatever it holds."""
    result = call(value, grid.x, owner) if callable(value) else value
    if result is None or np.asarray(result).dtype.kind not in "biufO":
        raise InputError(f"{owner} is {result!r}; it must be a number or an array of numbers")
    return _broadcast(np.array(result, dtype=np.float64), grid, owner)


def _broadcast(array: Array, grid: Grid, owner: str) -> Array:
    if array.ndim == 0:
        return array
    try:
        fits = np.broadcast_shapes(array.shape, grid.shape) == grid.shape
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{owner} has shape {array.shape}, which does not broadcast over the states "
            f"{grid.shape}; compute it from the coordinates of x alone"
        )
    if array.size == 1:
        return array.reshape(())
    if array.ndim < len(grid.shape):
        return array.reshape((1,) * (len(grid.shape) - array.ndim) + array.shape)
    return array


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
            f"in state {grid.describe(index)}; they must sum to 1"
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
        raise InputError(_stuck_message(term, leaves, index, grid))
    return masks


def _stuck_message(
    term: Term, leaves: Callable[[Transition], Array], index: tuple[int, ...], grid: Grid
) -> str:
    def there(array: Any) -> Any:
        return np.broadcast_to(array, grid.shape)[index]

    kind = "control" if term.control else "event"
    has = f"{kind} {term.name!r} has rate {there(term.rate)}"
    state = grid.describe(index)
    out = [m for m in term.choices[0].moves if there(leaves(m)) and there(m.weight) > 0]
    if len(term.choices) == 1 and out:
        shift = grid.axes.describe([there(amount) for amount in out[0].shift])
        return (
            f"{has} in state {state}, where its step {shift} leaves the space; give it rate 0 "
            "there, or an action that stays"
        )
    names = ", ".join(repr(choice.name) for choice in term.choices)
    return (
        f"{has} but no allowed action in state {state}: each of {names} leaves the space or is not "
        "allowed there"
    )
