"""From a model and the rules of its events to clocks, actions, moves and columns.

Every event has one clock. A control has one clock per mode and flow, whose rate is that of the flow
times the share of the mode: 1 where it is in force, 0 elsewhere, or a probability. Cost rates and
measures are columns whose time integrals are wanted; lump costs and counts of actions are added up
as they occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import condition_of, moves_of, read_field, shift_of
from mdpcloud.errors import InputError
from mdpcloud.model.calls import call
from mdpcloud.model.event import Action, Control, Event, Mode, Move
from mdpcloud.model.model import Model, is_count
from mdpcloud.model.space import Lattice
from mdpcloud.simulate.columns import Column, Columns, Reader
from mdpcloud.simulate.decisions import (
    SPOT_CHECKS,
    answers,
    chances,
    is_asked_singly,
)
from mdpcloud.simulate.events_program import Answer
from mdpcloud.simulate.plans import ActionPlan, ClockPlan, MovePlan
from mdpcloud.simulate.separable import SeparableRule
from mdpcloud.simulate.single_action import single_action
from mdpcloud.simulate.starts import caps_of, states_near
from mdpcloud.simulate.state_arrays import flat_columns
from mdpcloud.simulate.tracing import PartialGrid, grid_over

__all__ = ["Part", "Planner"]

Array = NDArray[Any]
Part = Column | ActionPlan | None
"""What an average is made of: a column's integral, a count of an action, or the lump costs."""

SUM_TOLERANCE = 1e-9  # how far probabilities may miss the sum 1


class Planner:
    """Makes the plans of a model, and collects its columns.

    Parameters
    ----------
    model : Model
    rules : mapping from event or control to its rule
    start : sequence of int
        A state of the space, in which functions are tried.

    Attributes
    ----------
    columns : Columns
    clocks : list of ClockPlan
    inside : Column or None
        The condition of the space.
    averages : list of lists of Part
        The cost and the measures, as sums.
    """

    def __init__(self, model: Model, rules: Mapping[str, Any], start: Sequence[int]) -> None:
        self.model, self.rules, self.start = model, rules, tuple(start)
        self.columns = Columns(model.space.axes, start)
        self.clocks: list[ClockPlan] = []
        self._shares: dict[str, list[Column]] = {}
        self._where: Callable[[Any], Any] | None = getattr(model.space, "where", None)
        self.inside = self._space_condition()
        cost: list[Part] = [None]
        cost += [self._sum(v, "cost rate") for v in model.cost_rate if _is_something(v)]
        for event in model.events:
            rule = rules.get(event.name)
            if isinstance(event, Event):
                self.clocks.append(self._event(event, rule))
            else:
                cost += self._control(event, rule)
        measures = [self._measure(name, measure) for name, measure in model.measures.items()]
        self.averages: list[list[Part]] = [cost, *measures]

    @property
    def actions(self) -> list[ActionPlan]:
        """The actions of all clocks, in the order of the clocks."""
        return [action for clock in self.clocks for action in clock.actions]

    @property
    def moves(self) -> list[MovePlan]:
        """The moves of all actions, in the order of the actions."""
        return [move for action in self.actions for move in action.moves]

    def is_constant(self, part: Part) -> bool:
        """Whether a part of an average is the same all the time."""
        if isinstance(part, Column):
            return not part.axes
        return part is None and not self._has_lump_costs

    @cached_property
    def _has_lump_costs(self) -> bool:
        return any(action.cost is not None for action in self.actions)

    # --- columns ----------------------------------------------------------------------------------

    def _field(self, value: Any, owner: str, *, summed: bool = False) -> Column:
        """Column of a number or function of x."""
        wanted = self._function(value, owner)
        key = ("field", id(value) if callable(wanted) else float(value))
        read = partial(_read, wanted, owner)
        return self.columns.add(read, owner, key, summed=summed)

    def _sum(self, value: Any, owner: str) -> Column:
        return self._field(value, owner, summed=True)

    def _function(self, value: Any, owner: str) -> Any:
        """A number or a function of x; arrays over a lattice become functions."""
        if callable(value) or not np.ndim(value):
            return value
        space = self.model.space
        if not isinstance(space, Lattice) or np.ndim(value) > len(space.shape):
            raise InputError(f"{owner} is an array; a simulation needs a function of x")
        array = np.asarray(value, dtype=np.float64)
        first = len(space.shape) - array.ndim
        expected = space.shape[first:]
        if any(n not in (1, size) for n, size in zip(array.shape, expected, strict=True)):
            raise InputError(f"{owner} has shape {array.shape}; the lattice has {space.shape}")
        return partial(_entries, array, first)

    def _space_condition(self) -> Column | None:
        where = self._where
        if where is None:
            return None
        return self.columns.add(lambda grid: _truth(call(where, grid.x, "where")), "where")

    def _condition(self, choice: Action, owner: str) -> Column | None:
        if choice.allowed is None or choice.allowed is True:
            return None
        key = ("condition", id(choice.allowed))
        return self.columns.add(
            lambda grid: _truth(condition_of(choice.allowed, owner, grid)), owner, key
        )

    # --- events -----------------------------------------------------------------------------------

    def _event(self, event: Event, rule: Any) -> ClockPlan:
        owner = f"event {event.name!r}"
        rate = self._field(event.rate, f"{owner}: rate")
        actions = [self._action(event, action) for action in event.actions]
        if len(actions) == 1:
            return ClockPlan(event.name, rate, Answer.FIXED, actions)
        if isinstance(rule, SeparableRule) and len(actions) == len(rule.order) + 1:
            prices = [self._price(rule, int(k), owner) for k in rule.order]
            return ClockPlan(event.name, rate, Answer.CHEAPEST, actions, prices=prices, rule=rule)
        if isinstance(rule, Mapping):
            for action, chance in zip(actions, chances(rule, event, self.model), strict=True):
                action.chance = self.columns.add(chance, f"{owner}: probability")
            return ClockPlan(event.name, rate, Answer.RANDOM, actions)
        where = self._answer(event, rule, owner)
        return ClockPlan(event.name, rate, Answer.COLUMN, actions, where, rule=rule)

    def _price(self, rule: SeparableRule, k: int, owner: str) -> Column:
        axis = self.model.space.axes.position[rule.family, k]

        def price(grid: PartialGrid) -> Any:
            jobs = grid.column(axis)
            return rule.prices(k, int(jobs.max()))[jobs]

        return self.columns.add(price, f"{owner}: price")

    def _answer(self, event: Event | Control, rule: Any, owner: str) -> Column:
        """Column of the number of the action or mode that is taken."""
        if rule is None:
            caps = caps_of(self.model)
            read = single_action(event, caps, self._where, self._function)
            return self.columns.add(read, owner)
        axes = self.model.space.axes
        singly = callable(rule) and is_asked_singly(rule, event, axes, self._probe)
        return self.columns.add(answers(rule, event, singly, self.model), owner, costly=singly)

    @cached_property
    def _probe(self) -> NDArray[np.int64]:
        return states_near(self.model, self.start, SPOT_CHECKS)

    def _action(self, event: Event, action: Action) -> ActionPlan:
        owner = f"event {event.name!r}, action {action.name!r}"
        cost = self._field(action.cost, f"{owner}: cost") if _is_something(action.cost) else None
        moves = self._moves(action, owner)
        return ActionPlan(action.name, self._condition(action, owner), cost, moves=moves)

    def _moves(self, action: Action, owner: str) -> list[MovePlan]:
        moves = moves_of(action, self._at_start, owner)
        sure = len(moves) == 1 and _is_one(moves[0].weight)
        return [
            MovePlan(
                None if sure else self._weight(action, owner, j),
                self._shifts(action, owner, j, move),
            )
            for j, move in enumerate(moves)
        ]

    @cached_property
    def _at_start(self) -> PartialGrid:
        """The start state twice, as an array of states."""
        states = np.array([self.start, self.start], dtype=np.int64)
        return grid_over(self.model.space.axes, range(len(self.start)), states)

    def _weight(self, action: Action, owner: str, j: int) -> Column:
        """Column of the weight of the j-th move of an action, whose step may depend on x."""

        def read(grid: PartialGrid) -> Any:
            weight = moves_of(action, grid, owner)[j].weight
            value = weight if callable(action.step) else self._function(weight, owner)
            return read_field(value, grid, owner)

        return self.columns.add(read, f"{owner}: weight")

    def _shifts(
        self, action: Action, owner: str, j: int, move: Move
    ) -> list[tuple[int, int | Column]]:
        """What the j-th move of an action adds to which axis."""
        found: list[tuple[int, int | Column]] = []
        for k, amount in enumerate(shift_of(move.step, owner, self._at_start)):
            if type(amount) is int and amount == 0:
                continue
            if callable(action.step):
                read = partial(_amount, action, owner, j, k)
                found.append((k, self.columns.add(read, f"{owner}: step")))
            elif np.ndim(amount):
                raise InputError(
                    f"{owner}: a step holds an array; write it as a function of x that returns it"
                )
            else:
                found.append((k, int(amount)))
        return found

    # --- controls ---------------------------------------------------------------------------------

    def _control(self, control: Control, rule: Any) -> list[Column]:
        """Add the clocks of a control's flows; the columns of its modes' cost rates."""
        owner = f"control {control.name!r}"
        shares, costly = self._mode_shares(control, rule, owner)
        add = partial(self.columns.add, costly=costly)
        self._shares[control.name] = [add(share, owner, summed=True) for share in shares]
        costs: list[Column] = []
        for mode, share in zip(control.modes, shares, strict=True):
            place = f"{owner}, mode {mode.name!r}"
            if _is_something(mode.cost_rate):
                cost = partial(_product, share, self._function(mode.cost_rate, place), place)
                costs.append(add(cost, f"{place}: cost rate", summed=True))
            for flow in mode.flows:
                rate = partial(_product, share, self._function(flow.rate, place), place)
                shifts = self._shifts(Action(mode.name, flow.step), place, 0, Move(1.0, flow.step))
                plan = ActionPlan(mode.name, moves=[MovePlan(None, shifts)])
                column = add(rate, f"{place}: flow rate")
                self.clocks.append(
                    ClockPlan(control.name, column, Answer.FIXED, [plan], control=control)
                )
        return costs

    def _mode_shares(self, control: Control, rule: Any, owner: str) -> tuple[list[Reader], bool]:
        """Per mode the probability that it is in force, and whether it is asked state by state."""
        count, costly = len(control.modes), False
        if isinstance(rule, Mapping):
            readers = chances(rule, control, self.model)
            shares: list[Reader] = [partial(_share, readers, a) for a in range(count)]
        elif count == 1:
            shares = [lambda grid: 1.0]
        else:
            column = self._answer(control, rule, owner)
            costly = column.costly
            shares = [partial(_is_mode, column.read, a) for a in range(count)]
        return [
            partial(_where_allowed, share, mode, owner)
            for share, mode in zip(shares, control.modes, strict=True)
        ], costly

    # --- measures ---------------------------------------------------------------------------------

    def _measure(self, name: str, measure: Any) -> list[Part]:
        if not is_count(measure):
            parts = measure if isinstance(measure, (list, tuple)) else [measure]
            return [self._sum(part, f"measure {name!r}") for part in parts]
        event, action = measure
        if event in self._shares:
            control: Any = next(e for e in self.model.events if e.name == event)
            names = [mode.name for mode in control.modes]
            return [self._shares[event][names.index(action)]]
        clock = next(clock for clock in self.clocks if clock.name == event)
        plan = next(plan for plan in clock.actions if plan.name == action)
        plan.counted = True
        return [plan]


def _read(value: Any, owner: str, grid: PartialGrid) -> Any:
    return read_field(value, grid, owner)


def _entries(array: Array, first: int, x: Any) -> Array:
    """Entries of an array over the last axes of a lattice, of which ``first`` are left out."""
    columns = flat_columns(x)[first:]
    place = [c if n > 1 else 0 for c, n in zip(columns, array.shape, strict=True)]
    return np.asarray(array[tuple(place)])


def _truth(value: Any) -> Any:
    return np.asarray(value, dtype=bool).astype(np.float64)


def _is_something(value: Any) -> bool:
    return callable(value) or bool(np.any(value))


def _is_one(weight: Any) -> bool:
    return not callable(weight) and np.ndim(weight) == 0 and float(weight) == 1.0


def _amount(action: Action, owner: str, j: int, k: int, grid: PartialGrid) -> Any:
    """What the j-th move of an action adds to axis k."""
    return shift_of(moves_of(action, grid, owner)[j].step, owner, grid)[k]


def _share(readers: Sequence[Reader], number: int, grid: PartialGrid) -> Any:
    """One of several probabilities; nan where they are none."""
    found = [np.asarray(read(grid), dtype=np.float64) for read in readers]
    valid = np.abs(sum(found) - 1.0) <= SUM_TOLERANCE
    for one in found:
        valid = valid & (one >= 0)
    return np.where(valid, found[number], np.nan)


def _is_mode(read: Reader, number: int, grid: PartialGrid) -> Any:
    """1 where a mode is in force, 0 where another one is, nan where none is."""
    chosen = np.asarray(read(grid))
    return np.where(chosen < 0, np.nan, chosen == number)


def _where_allowed(share: Reader, mode: Mode, owner: str, grid: PartialGrid) -> Any:
    """A share, nan where the mode is in force and not allowed."""
    part = np.asarray(share(grid), dtype=np.float64)
    allowed = condition_of(mode.allowed, owner, grid)
    return part if allowed is None else np.where((part > 0) & ~allowed, np.nan, part)


def _product(share: Reader, value: Any, owner: str, grid: PartialGrid) -> Any:
    """A rate of a mode where it is in force, 0 elsewhere."""
    part = np.asarray(share(grid), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(part == 0.0, 0.0, part * read_field(value, grid, owner))
