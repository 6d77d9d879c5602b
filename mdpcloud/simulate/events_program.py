"""The arrays that the event kernel reads and writes.

The functions of a model are *columns*, gathered in *groups* of equal axes. The values of a group
stand in rows of ``data``, one row per combination of its coordinates; ``place[g]`` is where the row
of the present state begins. A change of one coordinate by s moves the places of the groups that
read it by s times a fixed amount, so a state is never numbered. Groups with too many combinations
are *remembered*: their rows are computed when a state is met first, and found again by hashing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NONE", "Answer", "EventProgram", "EventState", "Mark", "Stop", "Time"]

NONE = -1
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Answer:
    """How the action of an event is found: what ``clock_answer`` holds."""

    FIXED = 0
    """The first action."""
    COLUMN = 1
    """A column holds its number."""
    CHEAPEST = 2
    """One more than the winner of a tournament of prices; 0 where there is none."""
    RANDOM = 3
    """Columns hold the probabilities of the actions."""


class Stop:
    """Why the kernel returns."""

    DONE = 0
    PAUSE = 1
    """The events allowed per call have happened."""
    REFILL = 2
    """Random numbers are used up."""
    MISSING = 3
    """A remembered group has no row for the state."""
    BEYOND = 4
    """A coordinate is larger than the tables."""
    OUTSIDE = 5
    """The state is outside the space."""
    BARRED = 6
    """The action taken is not allowed."""
    UNDECIDED = 7
    """No action, or several where no rule was given."""
    INVALID = 8
    """A rate is negative or not finite."""
    NO_LAW = 9
    """The weights of an action's moves are no probabilities."""
    NOT_FINITE = 10
    """A cost rate, a measure or the share of a mode is not finite."""
    NO_PRICE = 11
    """A price is nan."""
    NO_COST = 12
    """A lump cost is not finite."""


class Mark:
    """Places in ``EventState.mark``."""

    CHANGED = 0
    """Groups that changed."""
    FIRED = 1
    """The clock of the last event, until its next time is set."""
    SEGMENT = 2
    """Segments done in this call of `advance`."""
    EVENTS = 3
    BEYOND = 4
    """Axis whose coordinate is larger than the tables, or NONE."""
    CLOCK = 5
    """The last event, for messages."""
    ACTION = 6
    GROUP = 7
    """Group that has no row, for Python to fill, or a value that is not finite."""
    SIZE = 8


class Time:
    """Places in ``EventState.now``."""

    NOW = 0
    """Since the origin, which is the beginning of the segment or lies in it."""
    STILL = 1
    """Since when nothing happens any more, from the start of the path; inf if things do."""
    BASE = 2
    """Beginning of the segment, from the start of the path."""
    ORIGIN = 3
    """From the beginning of the segment."""
    SIZE = 4


class EventProgram(NamedTuple):
    """G groups, d axes, E clocks, A actions, J moves, T tournaments; *first* arrays are one longer.

    A column is a pair of group and offset in its rows.
    """

    data: Floats
    remembered: NDArray[np.int8]  # (G,)
    suspect: NDArray[np.int8]  # (G,) whether values to be integrated may not be finite
    summed: Integers  # (G,) first columns of a row, whose time integrals are wanted
    total: Integers  # (G,) where these integrals are
    first_clock: Integers  # (G + 1,) clocks whose rates a group holds
    group_clock: Integers
    first_leaf: Integers  # (G + 1,) prices that a group holds
    leaf: Integers
    leaf_column: Integers
    leaf_tree: Integers
    first_axis: Integers  # (G + 1,) axes of a remembered group
    group_axis: Integers
    size: Integers  # (d,) coordinates that the tables hold
    cap: Integers  # (d,) largest coordinates of the space
    first_group: Integers  # (d + 1,) groups that read an axis
    axis_group: Integers
    axis_step: Integers  # change of place per unit of the coordinate
    axis_hash: NDArray[np.uint64]
    record: Integers  # (d,) row of records, or NONE
    clock_group: Integers  # (E,) rate
    clock_column: Integers
    clock_answer: Integers
    clock_where: Integers  # (E, 2) column of the answer, or the tournament
    clock_action: Integers  # (E + 1,)
    clock_draw: Integers  # (E,) row of uniforms, or NONE
    open_where: Integers  # (A, 2) column of the condition, or NONE
    chance_where: Integers  # (A, 2) column of the probability, or NONE
    cost_where: Integers  # (A, 2) column of the lump cost, or NONE
    counted: Integers  # (A,) where the action is counted, or NONE
    first_move: Integers  # (A + 1,)
    weight_where: Integers  # (J, 2) column of the weight, or NONE
    first_shift: Integers  # (J + 1,)
    shift_axis: Integers
    shift_where: Integers  # (., 2) column of the amount, or NONE
    inside: Integers  # (2,) column of the space's condition, or NONE
    tree_first: Integers  # (T + 1,)
    tree_margin: Floats
    tree_action: Integers  # action - 1 of each leaf
    lump: int  # where lump costs are added up


class EventState(NamedTuple):
    """What changes on one path."""

    x: Integers  # (d,)
    place: Integers  # (G,)
    hash: NDArray[np.uint64]  # (G,)
    since: Floats  # (G,) until when the integrals are complete
    total: Floats  # integrals, lump costs and counts in the present segment
    rate: Floats  # (E,) at present
    left: Floats  # (E,) unit-rate time to the next event of a clock of rate 0
    clocks: Floats  # tournament of the times of the next events
    trees: Floats  # tournaments of prices
    exponentials: Floats  # (E, B)
    used: Integers  # (E,)
    uniforms: Floats  # (U, B)
    drawn: Integers  # (U,)
    changed: Integers  # (G,)
    is_changed: NDArray[np.int8]  # (G,)
    amount: Integers  # of each shift
    now: Floats  # see Time
    mark: Integers
    slots: Integers  # entry of a hash, or NONE
    entries: Integers  # (., 3) group, place, first key
    keys: Integers  # coordinates of the entries
    record_since: Floats  # (R,)
    occupation: Floats  # (R, W) time per value in the present segment
    record_times: Floats  # (R, M)
    record_values: Integers  # (R, M)
    record_count: Integers  # (R,)
