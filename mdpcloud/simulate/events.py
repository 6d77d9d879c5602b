"""A model under a policy, made ready for the event kernel: clocks, actions, moves, columns.

Every event has one clock. A control has one clock per mode and flow, whose rate is that of the flow
where the mode is in force and 0 elsewhere. Cost rates and measures are columns whose time integrals
are wanted; lump costs and counts of actions are added up as they occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.terms import condition_of, moves_of, read_field, shift_of
from mdpcloud.errors import InputError
from mdpcloud.model.calls import call
from mdpcloud.model.event import Action, Control, Event, Mode, Move
from mdpcloud.model.model import Model, is_count
from mdpcloud.model.space import Axes, Lattice, Reachable
from mdpcloud.simulate.columns import Column, Columns, Reader
from mdpcloud.simulate.decisions import (
    SPOT_CHECKS,
    answers,
    chances,
    flat_columns,
    is_asked_singly,
    rules_by_event,
)
from mdpcloud.simulate.events_program import Answer
from mdpcloud.simulate.events_tables import Tables
from mdpcloud.simulate.protocol import COST
from mdpcloud.simulate.separable import SeparableRule
from mdpcloud.simulate.single_action import single_action
from mdpcloud.simulate.tracing import PartialGrid, Touched, grid_over

__all__ = ["ClockPlan", "EventSimulation", "event_simulation"]

UNBOUNDED = 2**62  # cap of a coordinate that has none
LARGEST_BOX = 1 << 18  # points of a lattice in which a first state is looked for
FIRST_SIZE = 64  # values of a coordinate that the first tables hold

Array = NDArray[Any]


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
    """A clock: its rate, how its action is found, and the actions."""

    name: str
    rate: Column
    answer: int
    where: Column | None
    actions: list[ActionPlan]
    prices: list[Column] = field(default_factory=list)
    rule: Any = None

    @property
    def draws(self) -> bool:
        """Whether it needs uniform random numbers."""
        return self.answer == Answer.RANDOM or any(len(a.moves) > 1 for a in self.actions)


class EventSimulation:
    """A model under a policy; implements `mdpcloud.simulate.protocol.Simulation`.

    Attributes
    ----------
    model : Model
    clocks : list of ClockPlan
    columns : Columns
    start : tuple of int
        The state in which paths begin.
    caps : tuple of int
        Largest coordinates.
    inside : Column or None
        The condition of the space.
    names : tuple of str
    """

    def __init__(self, model: Model, policy: Any, start: Mapping[str, Any] | None) -> None:
        self.model = model
        self.axes: Axes = model.space.axes
        self.caps = _caps(model.space)
        self.start = start_state(model, start)
        self.columns = Columns(self.axes, self.start)
        self.inside = self._space_condition()
        self.clocks: list[ClockPlan] = []
        self._shares: dict[str, list[Column]] = {}
        self._cost: list[Column] = [
            self._sum(value, "cost rate") for value in model.cost_rate if _is_something(value)
        ]
        rules = rules_by_event(model, policy)
        for event in model.events:
            if isinstance(event, Event):
                self.clocks.append(self._event(event, rules.get(event.name)))
            else:
                self._control(event, rules.get(event.name))
        self._measures = {name: self._measure(name, m) for name, m in model.measures.items()}
        self.names: tuple[str, ...] = (COST, *model.measures)
        self._lock = Lock()
        self._tables: dict[tuple[int, ...], Tables] = {}
        self.shifts = self._constant_shifts()
        self._arrange()
        self.time_scale = self._time_scale()

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the coordinates, ``"node[0]"`` for members of a family."""
        return tuple(name if k is None else f"{name}[{k}]" for name, k in self.axes.flat)

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> Any:
        """A new replication; see the protocol."""
        from mdpcloud.simulate.events_path import EventPath

        return EventPath(self, seed, recorded)

    def tables(self, sizes: tuple[int, ...]) -> Tables:
        """The tables for coordinates below ``sizes``; paths share them."""
        with self._lock:
            if sizes not in self._tables:
                self._tables = {sizes: Tables(self, sizes)}
            return self._tables[sizes]

    @property
    def first_sizes(self) -> tuple[int, ...]:
        """Values of each coordinate that the first tables hold."""
        return tuple(
            min(cap + 1, max(FIRST_SIZE, 2 * x))
            for cap, x in zip(self.caps, self.start, strict=True)
        )

    # --- columns ----------------------------------------------------------------------------------

    def _field(self, value: Any, owner: str, *, summed: bool = False) -> Column:
        """Column of a number or function of x."""
        wanted = self._function(value, owner)
        key = id(value) if callable(wanted) else float(value)
        return self.columns.add(lambda grid: read_field(wanted, grid, owner), key, summed=summed)

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

    def _sum(self, value: Any, owner: str) -> Column:
        return self._field(value, owner, summed=True)

    def _space_condition(self) -> Column | None:
        where = getattr(self.model.space, "where", None)
        if where is None:
            return None
        return self.columns.add(lambda grid: _truth(call(where, grid.x, "where")), id(where))

    def _condition(self, choice: Action | Mode, owner: str) -> Column | None:
        if choice.allowed is None or choice.allowed is True:
            return None
        return self.columns.add(
            lambda grid: _truth(condition_of(choice.allowed, owner, grid)), id(choice.allowed)
        )

    # --- events -----------------------------------------------------------------------------------

    def _event(self, event: Event, rule: Any) -> ClockPlan:
        rate = self._field(event.rate, f"event {event.name!r}: rate")
        actions = [self._action(event, action) for action in event.actions]
        if len(actions) == 1:
            return ClockPlan(event.name, rate, Answer.FIXED, None, actions)
        if self._is_cheapest(event, rule):
            prices = [self._price(rule, k) for k in rule.order]
            return ClockPlan(event.name, rate, Answer.CHEAPEST, None, actions, prices, rule)
        if isinstance(rule, Mapping):
            for action, chance in zip(actions, chances(rule, event, self.model), strict=True):
                action.chance = self.columns.add(chance)
            return ClockPlan(event.name, rate, Answer.RANDOM, None, actions)
        answer = self._answer(event, rule)
        return ClockPlan(event.name, rate, Answer.COLUMN, answer, actions, rule=rule)

    def _is_cheapest(self, event: Event, rule: Any) -> bool:
        """Whether a rule chooses the component of least price, for which no table is needed."""
        return isinstance(rule, SeparableRule) and len(event.actions) == len(rule.order) + 1

    def _price(self, rule: SeparableRule, k: int) -> Column:
        axis = self.axes.position[rule.family, int(k)]

        def price(grid: PartialGrid) -> Any:
            if axis not in grid.seen:
                raise Touched(axis)
            jobs = grid.columns[axis]
            return rule.prices(int(k), int(jobs.max()))[jobs]

        return self.columns.add(price)

    def _answer(self, event: Event | Control, rule: Any) -> Column:
        """Column of the number of the action or mode that is taken."""
        if rule is None:
            return self.columns.add(single_action(event, self.caps, self._where))
        singly = callable(rule) and is_asked_singly(rule, event, self.axes, self._probe())
        return self.columns.add(answers(rule, event, singly, self.model), costly=singly)

    @property
    def _where(self) -> Callable[[Any], Any] | None:
        return getattr(self.model.space, "where", None)

    def _probe(self) -> NDArray[np.int64]:
        """Some states for trying a rule: the start first, and others near it."""
        draws = np.random.default_rng(0)
        near = [min(cap, x + 6) + 1 for cap, x in zip(self.caps, self.start, strict=True)]
        states = draws.integers(0, near, size=(SPOT_CHECKS, len(near)))
        states[0] = self.start
        if self.inside is not None:
            grid = grid_over(self.axes, range(len(self.axes)), states)
            good = np.broadcast_to(self.inside.read(grid), (len(states),)) == 1.0
            states = states[np.flatnonzero(good)]
        return states

    def _action(self, event: Event, action: Action) -> ActionPlan:
        owner = f"event {event.name!r}, action {action.name!r}"
        cost = self._field(action.cost, f"{owner}: cost") if _is_something(action.cost) else None
        moves = self._moves(action, owner)
        return ActionPlan(action.name, self._condition(action, owner), cost, moves=moves)

    def _moves(self, action: Action, owner: str) -> list[MovePlan]:
        moves = moves_of(action, self._at_start, owner)
        plans = []
        for j, move in enumerate(moves):
            if len(moves) == 1 and not callable(move.weight) and np.all(np.equal(move.weight, 1.0)):
                weight = None
            else:
                weight = self._of_move(action, owner, j, partial(self._weight, action, owner))
            plans.append(MovePlan(weight, self._shifts(action, owner, j, move)))
        return plans

    @cached_property
    def _at_start(self) -> PartialGrid:
        """The start state twice, as an array of states."""
        states = np.array([self.start, self.start], dtype=np.int64)
        return grid_over(self.axes, range(len(self.axes)), states)

    def _of_move(
        self, action: Action, owner: str, j: int, read: Callable[[Move, PartialGrid], Any]
    ) -> Column:
        """Column of something of the j-th move of an action, whose step may depend on x."""
        return self.columns.add(lambda grid: read(moves_of(action, grid, owner)[j], grid))

    def _weight(self, action: Action, owner: str, move: Move, grid: PartialGrid) -> Any:
        value = move.weight if callable(action.step) else self._function(move.weight, owner)
        return read_field(value, grid, owner)

    def _shifts(
        self, action: Action, owner: str, j: int, move: Move
    ) -> list[tuple[int, int | Column]]:
        found: list[tuple[int, int | Column]] = []
        for k, amount in enumerate(shift_of(move.step, owner, self._at_start)):
            if type(amount) is int and amount == 0:
                continue
            if callable(action.step) and (np.ndim(amount) or amount):
                read = partial(_amount, k, owner)
                found.append((k, self._of_move(action, owner, j, read)))
            elif np.ndim(amount):
                raise InputError(
                    f"{owner}: a step holds an array; write it as a function of x that returns it"
                )
            elif amount:
                found.append((k, int(amount)))
        return found

    # --- controls ---------------------------------------------------------------------------------

    def _control(self, control: Control, rule: Any) -> None:
        """The clocks of a control's flows; its modes' cost rates and shares of time."""
        shares = self._mode_shares(control, rule)
        self._shares[control.name] = [self.columns.add(share, summed=True) for share in shares]
        for mode, share in zip(control.modes, shares, strict=True):
            owner = f"control {control.name!r}, mode {mode.name!r}"
            if _is_something(mode.cost_rate):
                cost = self._function(mode.cost_rate, owner)
                costs = partial(_product, share, mode, cost, f"{owner}: cost rate")
                self._cost.append(self.columns.add(costs, summed=True))
            for flow in mode.flows:
                value = self._function(flow.rate, owner)
                rate = partial(_product, share, mode, value, f"{owner}: flow rate")
                step = Action(mode.name, flow.step)
                shifts = self._shifts(step, owner, 0, Move(1.0, flow.step))
                plan = ActionPlan(mode.name, moves=[MovePlan(None, shifts)])
                self.clocks.append(
                    ClockPlan(control.name, self.columns.add(rate), Answer.FIXED, None, [plan])
                )

    def _mode_shares(self, control: Control, rule: Any) -> list[Reader]:
        """Per mode a reader of the probability that it is in force."""
        if isinstance(rule, Mapping):
            return list(chances(rule, control, self.model))
        if len(control.modes) == 1:
            return [lambda grid: 1.0]
        column = self._answer(control, rule)
        return [partial(_is_mode, column.read, a) for a in range(len(control.modes))]

    # --- measures ---------------------------------------------------------------------------------

    def _measure(self, name: str, measure: Any) -> list[Column | ActionPlan]:
        if not is_count(measure):
            parts = measure if isinstance(measure, (list, tuple)) else [measure]
            return [self._sum(part, f"measure {name!r}") for part in parts]
        event, action = measure
        if event in self._shares:
            control = next(e for e in self.model.events if e.name == event)
            names = [mode.name for mode in control.modes]  # type: ignore[union-attr]
            return [self._shares[event][names.index(action)]]
        clock = next(clock for clock in self.clocks if clock.name == event)
        plan = next(plan for plan in clock.actions if plan.name == action)
        plan.counted = True
        return [plan]

    def parts(self) -> list[tuple[int, Column | ActionPlan | None]]:
        """What each of the names is the sum of; None stands for the lump costs, in the first."""
        listed: list[tuple[int, Column | ActionPlan | None]] = [(0, c) for c in self._cost]
        listed.append((0, None))
        for row, measure in enumerate(self._measures.values(), start=1):
            listed += [(row, part) for part in measure]
        return listed

    def _constant_shifts(self) -> Array:
        """Displacements (moves, axes) that do not depend on the state."""
        actions = [action for clock in self.clocks for action in clock.actions]
        moves = [move for action in actions for move in action.moves]
        found = np.zeros((len(moves), len(self.axes)), dtype=np.int64)
        for row, move in zip(found, moves, strict=True):
            for k, amount in move.shifts:
                row[k] = 0 if isinstance(amount, Column) else amount
        return found

    # --- the start --------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Arrange the columns; again where one reads more than it seemed to."""
        while True:
            self.columns.arrange()
            try:
                self.tables(self.first_sizes)
            except Touched:
                continue
            return

    def _time_scale(self) -> float:
        rates = [self._at_the_start(clock.rate) for clock in self.clocks]
        total = sum(rate for rate in rates if rate > 0)
        if not total > 0:
            raise InputError(
                f"nothing ever happens: all rates are 0 in the start state "
                f"{self.axes.describe(self.start)}"
            )
        return 1.0 / total

    def _at_the_start(self, column: Column) -> float:
        state = np.array([[self.start[k] for k in column.axes]], dtype=np.int64)
        return float(np.max(column.read(grid_over(self.axes, column.axes, state))))


def event_simulation(
    model: Model, policy: Any = None, start: Mapping[str, Any] | None = None
) -> EventSimulation:
    """A model under a policy, ready to be simulated; its states are never enumerated.

    Parameters
    ----------
    model : Model
    policy : what `mdpcloud.policy` takes, a Policy, a Solution, or None
        None where nothing is to be decided.
    start : mapping from axis to a coordinate, optional
        Where paths begin; by default at a Reachable's start, or the first point of a Lattice.

    Raises
    ------
    InputError
        When the policy does not fit the model, the start is no state, or nothing ever happens.
    """
    return EventSimulation(model, policy, start)


def start_state(model: Model, start: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Coordinates of the state in which paths begin."""
    space = model.space
    if start is not None:
        given = Axes(start, "start")
        if given.flat != space.axes.flat:
            raise InputError(
                f"start has the coordinates {list(given.values)}; the model has "
                f"{list(space.axes.values)}"
            )
        return _checked_start(model, given.sizes)
    if isinstance(space, Reachable):
        return space.axes.sizes
    return _checked_start(model, _first_inside(space))


def _first_inside(space: Lattice) -> tuple[int, ...]:
    origin = (0,) * len(space.axes)
    if space.where is None or _is_inside(space, origin):
        return origin
    if np.prod(np.array(space.shape, dtype=np.float64)) > LARGEST_BOX:
        raise InputError("the origin is no state of the space; give a start")
    inside = space.inside()
    place = int(np.argmax(inside))  # type: ignore[arg-type]
    return tuple(int(k) for k in np.unravel_index(place, space.shape))


def _checked_start(model: Model, state: Sequence[int]) -> tuple[int, ...]:
    space = model.space
    if isinstance(space, Lattice):
        beyond = any(x > cap for x, cap in zip(state, space.axes.sizes, strict=True))
        if beyond or not _is_inside(space, state):
            raise InputError(f"the start {space.axes.describe(state)} is no state of the space")
    return tuple(state)


def _is_inside(space: Lattice, state: Sequence[int]) -> bool:
    if space.where is None:
        return True
    columns = [np.array([x], dtype=np.int64) for x in state]
    return bool(np.all(call(space.where, space.axes.state(columns), "where")))


def _caps(space: Lattice | Reachable) -> tuple[int, ...]:
    if isinstance(space, Lattice):
        return tuple(space.axes.sizes)
    return (UNBOUNDED,) * len(space.axes)


def _entries(array: Array, first: int, x: Any) -> Array:
    """Entries of an array over the last axes of a lattice, of which ``first`` are left out."""
    columns = flat_columns(x)[first:]
    place = [c if n > 1 else 0 for c, n in zip(columns, array.shape, strict=True)]
    return np.asarray(array[tuple(place)])


def _truth(value: Any) -> Any:
    return np.asarray(value, dtype=bool).astype(np.float64)


def _is_something(value: Any) -> bool:
    return callable(value) or bool(np.any(value))


def _amount(k: int, owner: str, move: Move, grid: PartialGrid) -> Any:
    return shift_of(move.step, owner, grid)[k]


def _is_mode(read: Reader, number: int, grid: PartialGrid) -> Any:
    """1 where a mode is in force, 0 where another one is, nan where none is."""
    chosen = np.asarray(read(grid))
    return np.where(chosen < 0, np.nan, chosen == number)


def _product(share: Reader, mode: Mode, value: Any, owner: str, grid: PartialGrid) -> Any:
    """A rate of a mode where it is in force, 0 elsewhere; nan where it is not allowed."""
    part = np.asarray(share(grid), dtype=np.float64)
    rates = read_field(value, grid, owner)
    allowed = condition_of(mode.allowed, owner, grid)
    found = np.where(part == 0.0, 0.0, part * rates)
    return found if allowed is None else np.where((part > 0) & ~allowed, np.nan, found)
