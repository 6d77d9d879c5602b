"""The tables of a simulation for coordinates below some sizes, and the kernel's program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.simulate.columns import Column, ColumnError, Group
from mdpcloud.simulate.events_program import NONE, Answer, EventProgram

if TYPE_CHECKING:
    from mdpcloud.simulate.planning import Part, Planner
    from mdpcloud.simulate.plans import ClockPlan

__all__ = ["Tables"]

Integers = NDArray[np.int64]
NOWHERE = (NONE, NONE)


class Tables:
    """Tables of the columns of a simulation.

    Parameters
    ----------
    plan : Planner
    caps : tuple of int
        Largest coordinates of the space.
    sizes : tuple of int
        Coordinates that the tables hold: 0 to size - 1.

    Attributes
    ----------
    base : (groups,) int array
        Where the rows of each tabulated group begin.
    steps : list of mapping from axis to int
        Change of place per unit of a coordinate, per group.
    totals : int
        Number of totals that the kernel adds up.
    lump : int
        Which of them are the lump costs.
    program : EventProgram
    """

    def __init__(self, plan: Planner, caps: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.plan, self.caps, self.sizes = plan, caps, sizes
        self.groups = plan.columns.groups
        self._fill()
        summed = np.array([group.summed for group in self.groups], dtype=np.int64)
        self.first_total = np.concatenate([[0], np.cumsum(summed)])[:-1]
        self.lump = int(summed.sum())
        counted = [action for action in plan.actions if action.counted]
        self._counts = {id(a): self.lump + 1 + n for n, a in enumerate(counted)}
        self.totals = self.lump + 1 + len(counted)
        self.program = self._program(summed)

    @cached_property
    def combination(self) -> sparse.csr_array:
        """Matrix (names, totals): the cost and the measures as sums of totals."""
        averages = self.plan.averages
        places = [(row, self._total(p)) for row, parts in enumerate(averages) for p in parts]
        rows, totals = np.array(places, dtype=np.int64).T
        shape = (len(averages), self.totals)
        return sparse.coo_array((np.ones(len(places)), (rows, totals)), shape=shape).tocsr()

    def _total(self, part: Part) -> int:
        """Total of a column, of how often an action is taken, or of the lump costs."""
        if part is None:
            return self.lump
        if isinstance(part, Column):
            return int(self.first_total[part.group]) + part.place
        return self._counts[id(part)]

    @cached_property
    def shifts(self) -> Integers:
        """Displacements (moves, axes) that do not depend on the state."""
        moves = self.plan.moves
        found = np.zeros((len(moves), len(self.caps)), dtype=np.int64)
        for row, move in zip(found, moves, strict=True):
            for k, amount in move.shifts:
                row[k] = 0 if isinstance(amount, Column) else amount
        return found

    def places(self, x: Integers) -> Integers:
        """Places of the groups in a state; of remembered groups 0."""
        found = self.base.copy()
        for g, steps in enumerate(self.steps):
            found[g] += sum(int(x[k]) * step for k, step in steps.items())
        return found

    def _fill(self) -> None:
        """Tabulate; a group's rows stand one after the other, its last axis fastest."""
        parts: list[NDArray[np.float64]] = []
        self.remembered = np.zeros(len(self.groups), dtype=np.int8)
        self.base = np.zeros(len(self.groups), dtype=np.int64)
        self.steps: list[dict[int, int]] = []
        filled = 0
        for g, group in enumerate(self.groups):
            table = self._table(group)
            self.steps.append({} if table is None else self._steps(group))
            self.remembered[g] = table is None
            if table is not None:
                self.base[g] = filled
                parts.append(table.ravel())
                filled += table.size
        self.data = np.concatenate([*parts, np.zeros(1)])

    def _table(self, group: Group) -> NDArray[np.float64] | None:
        """Rows of a group; None where there are too many, or a function fails in some state."""
        if not group.is_tabulated(self.sizes):
            return None
        try:
            return self.plan.columns.table(group, self.sizes)
        except ColumnError:
            return None

    def _suspects(self) -> NDArray[np.int8]:
        """Which groups may hold a value to be integrated that is not finite."""
        found = self.remembered.copy()
        for g, group in enumerate(self.groups):
            if not self.remembered[g]:
                cells = math.prod(self.sizes[k] for k in group.axes)
                last = self.base[g] + cells * len(group.columns)
                rows = self.data[self.base[g] : last].reshape(cells, -1)
                found[g] = not np.isfinite(rows[:, : group.summed]).all()
        return found

    def _steps(self, group: Group) -> dict[int, int]:
        step, steps = len(group.columns), {}
        for k in reversed(group.axes):
            steps[k] = step
            step *= self.sizes[k]
        return steps

    def _program(self, summed: Integers) -> EventProgram:
        clocks = self.plan.clocks
        actions, moves = self.plan.actions, self.plan.moves
        shifts = [shift for move in moves for shift in move.shifts]
        cheapest = [clock for clock in clocks if clock.answer == Answer.CHEAPEST]
        trees = [_leaves(len(clock.prices)) for clock in cheapest]
        draws = np.cumsum([clock.draws for clock in clocks]) - 1
        return EventProgram(
            data=self.data,
            remembered=self.remembered,
            suspect=self._suspects(),
            summed=summed,
            total=self.first_total,
            **self._of_groups(clocks, cheapest),
            **self._of_axes(),
            clock_group=_integers(clock.rate.group for clock in clocks),
            clock_column=_integers(clock.rate.place for clock in clocks),
            clock_answer=_integers(clock.answer for clock in clocks),
            clock_where=_pairs(_where_of(clock, cheapest) for clock in clocks),
            clock_action=_first(len(clock.actions) for clock in clocks),
            clock_draw=np.where([clock.draws for clock in clocks], draws, NONE),
            open_where=_pairs(_place(action.condition) for action in actions),
            chance_where=_pairs(_place(action.chance) for action in actions),
            cost_where=_pairs(_place(action.cost) for action in actions),
            counted=_integers(self._counts.get(id(action), NONE) for action in actions),
            first_move=_first(len(action.moves) for action in actions),
            weight_where=_pairs(_place(move.weight) for move in moves),
            first_shift=_first(len(move.shifts) for move in moves),
            shift_axis=_integers(k for k, _ in shifts),
            shift_where=_pairs(
                _place(amount) if isinstance(amount, Column) else NOWHERE for _, amount in shifts
            ),
            inside=_integers(_place(self.plan.inside)),
            tree_first=_first(2 * leaves for leaves in trees),
            tree_margin=np.array([float(clock.rule.margin) for clock in cheapest]),
            tree_action=_tree_actions(cheapest, trees),
            lump=self.lump,
        )

    def _of_groups(self, clocks: Sequence[ClockPlan], cheapest: Sequence[ClockPlan]) -> Any:
        """Which clocks and prices each group holds."""
        held: list[list[int]] = [[] for _ in self.groups]
        for e, clock in enumerate(clocks):
            held[clock.rate.group].append(e)
        prices: list[list[tuple[int, int, int]]] = [[] for _ in self.groups]
        for t, clock in enumerate(cheapest):
            for leaf, column in enumerate(clock.prices):
                prices[column.group].append((leaf, column.place, t))
        leaves = [one for group in prices for one in group]
        axes = [g.axes if r else () for g, r in zip(self.groups, self.remembered, strict=True)]
        return {
            "first_clock": _first(map(len, held)),
            "group_clock": _integers(e for group in held for e in group),
            "first_leaf": _first(map(len, prices)),
            "leaf": _integers(leaf for leaf, _, _ in leaves),
            "leaf_column": _integers(column for _, column, _ in leaves),
            "leaf_tree": _integers(tree for _, _, tree in leaves),
            "first_axis": _first(map(len, axes)),
            "group_axis": _integers(k for group in axes for k in group),
        }

    def _of_axes(self) -> Any:
        """Which groups read each axis."""
        readers: list[list[int]] = [[] for _ in self.sizes]
        for g, group in enumerate(self.groups):
            for k in group.axes:
                readers[k].append(g)
        pairs = [(k, g) for k, groups in enumerate(readers) for g in groups]
        steps = _integers(self.steps[g].get(k, 0) for k, g in pairs)
        return {
            "size": _integers(self.sizes),
            "cap": _integers(self.caps),
            "record": np.full(len(self.sizes), NONE, dtype=np.int64),
            "first_group": _first(map(len, readers)),
            "axis_group": _integers(g for _, g in pairs),
            "axis_step": steps,
            "axis_hash": np.array([self.multiplier(k, g) for k, g in pairs], dtype=np.uint64),
        }

    def hashes(self, g: int, states: Integers) -> NDArray[np.uint64]:
        """Hashes of states (n, axes of the group) in a group."""
        terms = states.astype(np.uint64) * self._multipliers[g]
        return np.asarray(terms.sum(axis=1, dtype=np.uint64))

    @cached_property
    def _multipliers(self) -> list[NDArray[np.uint64]]:
        return [
            np.array([self.multiplier(k, g) for k in group.axes], dtype=np.uint64)
            for g, group in enumerate(self.groups)
        ]

    @staticmethod
    def multiplier(axis: int, group: int) -> int:
        """Odd number by which a coordinate enters the hash of a group (SplitMix64's increment)."""
        mixed = ((axis + 1) * 0x9E3779B97F4A7C15 + (group + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        mixed = ((mixed ^ (mixed >> 30)) * 0x94D049BB133111EB) & (2**64 - 1)
        return (mixed ^ (mixed >> 31)) | 1


def _leaves(prices: int) -> int:
    """Leaves of the tournament of that many prices: the next power of 2."""
    return 1 << max(0, prices - 1).bit_length()


def _tree_actions(cheapest: Sequence[ClockPlan], trees: Sequence[int]) -> Integers:
    """Per leaf the number of its component."""
    found: list[int] = []
    for clock, leaves in zip(cheapest, trees, strict=True):
        order = [int(k) for k in clock.rule.order]
        found += order + [NONE] * (leaves - len(order))
    return _integers(found)


def _where_of(clock: ClockPlan, cheapest: Sequence[ClockPlan]) -> tuple[int, int]:
    """Column of the answer, or number of the tournament."""
    if clock.answer == Answer.CHEAPEST:
        return next(t for t, one in enumerate(cheapest) if one is clock), NONE
    return _place(clock.where)


def _place(column: Column | None) -> tuple[int, int]:
    return NOWHERE if column is None else column.where


def _integers(values: Iterable[int]) -> Integers:
    return np.array(list(values), dtype=np.int64)


def _pairs(values: Iterable[tuple[int, int]]) -> Integers:
    return np.array(list(values), dtype=np.int64).reshape(-1, 2)


def _first(counts: Iterable[int]) -> Integers:
    return np.concatenate([[0], np.cumsum(np.array(list(counts), dtype=np.int64))]).astype(np.int64)
