"""One replication of a model: its state, its random numbers, and what the kernel cannot do alone.

The kernel returns when it needs more random numbers, larger tables or the rows of a state that a
remembered group has not met before; these are provided here, and it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.simulate import events_kernels as kernels
from mdpcloud.simulate.columns import Column
from mdpcloud.simulate.events_program import NONE, EventProgram, EventState, Mark, Stop, Time
from mdpcloud.simulate.events_tables import Tables
from mdpcloud.simulate.faults import explain
from mdpcloud.simulate.horizon import spawned
from mdpcloud.simulate.protocol import Absorption, Floats, RearrangedError, Record
from mdpcloud.simulate.remembered import FIRST_SLOTS, Remembered
from mdpcloud.simulate.segments import Shares
from mdpcloud.simulate.tournament_kernels import tournament
from mdpcloud.simulate.tracing import Touched

if TYPE_CHECKING:
    from mdpcloud.simulate.events import EventSimulation

__all__ = ["EventPath"]

AT_ONCE = 1 << 18  # events per call of the kernel
BUFFER = 1 << 20  # random numbers in all buffers together
LARGEST_BUFFER, SMALLEST_BUFFER = 4096, 64
CHANGES = 4096  # recorded changes of a variable
MOST_VALUES = 4096  # of a recorded variable

Integers = NDArray[np.int64]


class EventPath:
    """A replication; implements `mdpcloud.simulate.protocol.Path`.

    Parameters
    ----------
    simulation : EventSimulation
    seed : SeedSequence
    recorded : sequence of str
        State variables.
    """

    def __init__(
        self, simulation: EventSimulation, seed: np.random.SeedSequence, recorded: Sequence[str]
    ) -> None:
        self.simulation = simulation
        self.recorded = [simulation.variables.index(name) for name in recorded]
        self._names = list(recorded)
        clocks = simulation.plan.clocks
        self._clock_streams = [_stream(seed, 0, e) for e in range(len(clocks))]
        self._draw_streams = [_stream(seed, 1, e) for e, clock in enumerate(clocks) if clock.draws]
        self._use(simulation.tables(simulation.first_sizes))
        self.state = self._first_state()
        self._shares = [Shares() for _ in self.recorded]
        self._place_all()

    # --- the protocol -----------------------------------------------------------------------------

    @property
    def events(self) -> int:
        """Events so far."""
        return int(self.state.mark[Mark.EVENTS])

    @property
    def absorbed(self) -> Absorption | None:
        """Where the path ended, if it did."""
        since = float(self.state.now[Time.STILL])
        if since == np.inf:
            return None
        return Absorption(since, self.simulation.axes.describe(self.state.x.tolist()))

    def advance(self, segments: int, length: float) -> Floats:
        """Averages per segment; see the protocol.

        Raises
        ------
        InputError
            When an event or action is not possible in the state that the path has come to.
        RearrangedError
            When the path has to be started anew, as a function reads more than it seemed to.
        """
        self.state.mark[Mark.SEGMENT] = 0
        rows = np.zeros((segments, self.tables.totals))
        stays = np.zeros((segments, len(self.recorded), self.state.occupation.shape[1]))
        while True:
            stop = kernels.run(self.program, self.state, rows, stays, float(length), AT_ONCE)
            if stop == Stop.DONE:
                break
            if stop == Stop.REFILL:
                self._refill()
            elif stop in (Stop.MISSING, Stop.BEYOND):
                self._provide(stop)
                stays = _wider(stays, self.state.occupation.shape[1])
            elif stop != Stop.PAUSE:
                raise explain(self, stop)
        for shares, stay in zip(self._shares, np.moveaxis(stays, 1, 0), strict=True):
            shares.add(stay)
        return np.asarray((self.tables.combination @ rows.T).T)

    def record(self, name: str) -> Record:
        """What was recorded of a state variable."""
        r = self._names.index(name)
        count = int(self.state.record_count[r])
        return Record(
            self.state.record_times[r, :count].copy(),
            self.state.record_values[r, :count].copy(),
            self._shares[r].all(),
        )

    def join(self, count: int) -> None:
        """Record shares of time over ``count`` segments each."""
        for shares in self._shares:
            shares.join(count)

    # --- state ------------------------------------------------------------------------------------

    def _use(self, tables: Tables, began: int = 0) -> None:
        """Use tables from an event on."""
        self.tables = tables
        self.program: EventProgram = tables.program._replace(record=self._record_rows())
        self.remembered = Remembered(self, began)

    def _first_state(self) -> EventState:
        simulation, p = self.simulation, self.program
        groups, clocks, axes = len(self.tables.groups), len(simulation.plan.clocks), len(p.cap)
        buffer = int(np.clip(BUFFER // clocks, SMALLEST_BUFFER, LARGEST_BUFFER))
        recorded = len(self.recorded)
        state = EventState(
            x=np.array(simulation.start, dtype=np.int64),
            place=np.zeros(groups, dtype=np.int64),
            hash=np.zeros(groups, dtype=np.uint64),
            since=np.zeros(groups),
            total=np.zeros(self.tables.totals),
            rate=np.full(clocks, -1.0),
            left=np.array([stream.standard_exponential() for stream in self._clock_streams]),
            clocks=tournament(np.full(clocks, np.inf)),
            trees=np.full(int(p.tree_first[-1]), np.inf),
            exponentials=np.zeros((clocks, buffer)),
            used=np.full(clocks, buffer, dtype=np.int64),
            uniforms=np.zeros((len(self._draw_streams), buffer)),
            drawn=np.full(len(self._draw_streams), buffer, dtype=np.int64),
            changed=np.zeros(groups, dtype=np.int64),
            is_changed=np.zeros(groups, dtype=np.int8),
            amount=self._amounts(),
            now=np.array([0.0, np.inf, 0.0, 0.0]),
            mark=np.zeros(Mark.SIZE, dtype=np.int64),
            slots=np.full(FIRST_SLOTS, NONE, dtype=np.int64),
            entries=np.zeros((FIRST_SLOTS, 3), dtype=np.int64),
            keys=np.zeros(FIRST_SLOTS * axes, dtype=np.int64),
            record_since=np.zeros(recorded),
            occupation=np.zeros((recorded, self._width())),
            record_times=np.zeros((recorded, CHANGES)),
            record_values=np.zeros((recorded, CHANGES), dtype=np.int64),
            record_count=np.ones(recorded, dtype=np.int64),
        )
        state.record_values[:, 0] = state.x[self.recorded]
        state.mark[Mark.FIRED] = NONE
        return state

    def _width(self) -> int:
        """Values of the recorded variables that there is room for."""
        width = max((self.tables.sizes[k] for k in self.recorded), default=1)
        if width > MOST_VALUES:
            raise InputError(
                f"paths: a variable can be recorded up to {MOST_VALUES - 1}, no further"
            )
        return width

    def _record_rows(self) -> Integers:
        rows = np.full(len(self.tables.sizes), NONE, dtype=np.int64)
        rows[self.recorded] = np.arange(len(self.recorded))
        return rows

    def _amounts(self) -> Integers:
        """Amount of every shift; 0 where a column holds it."""
        shifts = [shift for move in self.simulation.plan.moves for shift in move.shifts]
        return np.array([0 if isinstance(n, Column) else n for _, n in shifts], dtype=np.int64)

    def _place_all(self) -> None:
        """Find the places of all groups anew, and let all of them count as changed."""
        s, groups = self.state, len(self.tables.groups)
        s.place[:] = self.tables.places(s.x)
        for g, group in enumerate(self.tables.groups):
            s.hash[g] = self.tables.hashes(g, s.x[None, list(group.axes)])[0]
        s.slots[:] = NONE
        s.changed[:] = np.arange(groups)
        s.is_changed[:] = 1
        s.mark[Mark.CHANGED], s.mark[Mark.BEYOND] = groups, NONE

    def forget(self) -> None:
        """Drop what is remembered of groups without a table."""
        self.remembered.forget()
        self._place_all()

    # --- what the kernel asks for -----------------------------------------------------------------

    def _refill(self) -> None:
        """Draw random numbers wherever less than half of a buffer is left."""
        s = self.state
        for e in np.flatnonzero(2 * s.used >= s.exponentials.shape[1]):
            left = _to_front(s.exponentials[e], int(s.used[e]))
            self._clock_streams[e].standard_exponential(out=s.exponentials[e, left:])
            s.used[e] = 0
        for u in np.flatnonzero(2 * s.drawn >= s.uniforms.shape[1]):
            left = _to_front(s.uniforms[u], int(s.drawn[u]))
            self._draw_streams[u].random(out=s.uniforms[u, left:])
            s.drawn[u] = 0

    def _provide(self, stop: int) -> None:
        """Rows or tables that the kernel lacks."""
        try:
            if stop == Stop.MISSING:
                self.remembered.meet(int(self.state.mark[Mark.GROUP]))
            else:
                self._grow()
        except Touched:
            raise RearrangedError from None

    def _grow(self) -> None:
        """Let the tables hold larger coordinates."""
        s, caps = self.state, self.simulation.caps
        sizes = tuple(
            size if x < size else min(cap + 1, max(2 * size, int(x) + 1))
            for x, size, cap in zip(s.x, self.tables.sizes, caps, strict=True)
        )
        self._use(self.simulation.tables(sizes), self.events)
        self.state = s._replace(occupation=_wider(s.occupation, self._width()))
        self._place_all()


def _stream(seed: np.random.SeedSequence, kind: int, number: int) -> np.random.Generator:
    """The random numbers of one purpose."""
    return np.random.Generator(np.random.SFC64(spawned(seed, kind, number)))


def _to_front(row: NDArray[np.float64], used: int) -> int:
    """Move what is left of a buffer to its front; how much that is."""
    left = row.size - used
    row[:left] = row[used:].copy()
    return left


def _wider(array: Any, width: int) -> Any:
    """An array whose last axis is longer, filled with 0."""
    if array.shape[-1] >= width:
        return array
    padded = np.zeros((*array.shape[:-1], width))
    padded[..., : array.shape[-1]] = array
    return padded
