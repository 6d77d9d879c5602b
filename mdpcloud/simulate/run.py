"""The replications of a simulation, advanced in turns by whole segments."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate import diagnostics, stopping, warm_up
from mdpcloud.simulate.estimates import estimate
from mdpcloud.simulate.horizon import Horizon, events_per_time, spawned
from mdpcloud.simulate.protocol import COST, Floats, Path, RearrangedError, Simulation
from mdpcloud.simulate.result import Estimate
from mdpcloud.simulate.segments import Cuts, cut, joined

__all__ = ["Run"]

Progress: TypeAlias = Callable[[int, float, float], None]

MOST_SEGMENTS = 1000
LEAST_SEGMENTS = 100
MOST_NUMBERS = 5_000_000  # kept of all series
LARGEST = 1e290  # averages whose sums may overflow
ROUND = 0.5  # seconds: about the time between two looks at limits and interrupts


class Run:
    """A simulation while it runs.

    Parameters
    ----------
    simulation : Simulation
    seed : SeedSequence
    horizon : Horizon
    recorded : sequence of str
        State variables.

    Attributes
    ----------
    series : (R, S, C) array
        What has been simulated.
    parts : int
        Of how many segments of the paths a segment consists.
    status : str
        See `mdpcloud.simulate.result.SimulationResult`.
    """

    def __init__(
        self,
        simulation: Simulation,
        seed: np.random.SeedSequence,
        horizon: Horizon,
        recorded: Sequence[str] = (),
    ) -> None:
        self.simulation, self.seed, self.horizon = simulation, seed, horizon
        listed = (recorded,) if isinstance(recorded, str) else recorded
        self.recorded = tuple(dict.fromkeys(listed))
        for name in self.recorded:
            if name not in simulation.variables:
                there = did_you_mean(str(name), simulation.variables)
                raise InputError(
                    f"paths: there is no state variable {name!r}"
                    f"{there or f'; there are {list(simulation.variables[:20])}'}"
                )
        self.started = time.perf_counter()
        self.sense = int(getattr(simulation, "sense", 1))
        self.status = "done"
        self.most_time = self._most_time()
        self.paths = self._new_paths()
        numbers = horizon.replications * len(simulation.names)
        wanted = int(np.clip(MOST_NUMBERS // numbers, LEAST_SEGMENTS, MOST_SEGMENTS))
        self.series: Floats = np.zeros((horizon.replications, 0, len(simulation.names)))
        self._cuts = self._cut(wanted)
        self.parts = 1
        self._round = 1
        self._workers: Any = None

    def _new_paths(self) -> list[Path]:
        return [
            self.simulation.path(spawned(self.seed, r), self.recorded)
            for r in range(self.horizon.replications)
        ]

    def _most_time(self) -> float:
        """Time to simulate in each replication, at most."""
        horizon = self.horizon
        if horizon.time is not None:
            return float(horizon.time)
        most = horizon.most_events / (horizon.replications * self._rate)
        if not isinstance(horizon.warm_up, str) and horizon.warm_up >= most:
            raise InputError(
                f"warm_up is {horizon.warm_up:g}, and {horizon.most_events} events are about "
                f"{most:.3g} of time in each of {horizon.replications} replications: nothing is "
                "left; give more events"
            )
        return most

    # --- what is known ----------------------------------------------------------------------------

    @property
    def events(self) -> int:
        """Events of all replications."""
        return sum(path.events for path in self.paths)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def segment(self) -> float:
        """Length of a segment (time)."""
        return self._cuts.length * self.parts

    @property
    def done(self) -> float:
        """Time simulated in each replication."""
        return float(self.series.shape[1] * self.segment)

    @property
    def absorbed(self) -> int:
        """Replications that have ended in a state that nothing leaves."""
        return sum(path.absorbed is not None for path in self.paths)

    @property
    def dropped(self) -> int:
        """Segments to leave out at the beginning."""
        count = int(self.series.shape[1])
        if self.absorbed == len(self.paths):
            return min(count - 1, self._settled())
        if isinstance(self.horizon.warm_up, str):
            return min(warm_up.common(self.series), count - 1)
        return min(count - 1, int(np.ceil(self.horizon.warm_up / self.segment * (1 - 1e-12))))

    def _settled(self) -> int:
        """Segments until the last replication is absorbed."""
        last = max(path.absorbed.time for path in self.paths if path.absorbed is not None)
        return int(np.ceil(last / self.segment))

    @property
    def gain(self) -> Estimate:
        """The cost so far."""
        return estimate(self.series[:, self.dropped :, 0] * self.sense)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the interval of the cost should not be trusted."""
        if self.absorbed:
            return ()
        if COST in self.constants:
            return self.own_doubts
        return (*diagnostics.doubts(self.series[:, :, 0], self.dropped), *self.own_doubts)

    @property
    def constants(self) -> frozenset[str]:
        """Averages that the simulation knows to be constant."""
        return frozenset(getattr(self.simulation, "constants", ()))

    @property
    def own_doubts(self) -> tuple[str, ...]:
        """What the simulation itself says against the intervals."""
        own = getattr(self.simulation, "doubts", None)
        return () if own is None else tuple(own(self.paths))

    # --- work -------------------------------------------------------------------------------------

    def go(self, progress: Progress | None = None) -> None:
        """Simulate until the horizon, a limit or an interrupt.

        Raises
        ------
        KeyboardInterrupt
            Where it comes before anything is known.
        """
        jobs = min(self.horizon.n_jobs, len(self.paths))
        try:
            with Parallel(n_jobs=jobs, prefer="threads") as self._workers:
                if self.horizon.half_width is None:
                    self._until(self._cuts.count, progress)
                else:
                    self._until_narrow(self.horizon.half_width, progress)
                self._let_absorbed_settle()
        except KeyboardInterrupt:
            if self.series.shape[1] < 2:
                raise
            self.status = "interrupted"
        if self.absorbed and self.status == "done":
            self.status = "absorbed"

    def _until_narrow(self, target: float, progress: Progress | None) -> None:
        """Prolong the run until the interval is narrow enough."""
        self._until(self._cuts.wanted, progress)
        while self.status == "done" and self.absorbed < len(self.paths):
            longer = stopping.longer(self.gain, target, bool(self.doubts))
            if longer == 1.0:
                return
            if self._pieces >= self._cuts.count:
                self.status = "half_width"
                return
            self._until(int(np.ceil(longer * self._pieces)), progress)

    @cached_property
    def _rate(self) -> float:
        """Events per unit of time in one replication, from a pilot run."""
        return events_per_time(self.simulation, self.seed, self.horizon.most_events)

    def _cut(self, wanted: int) -> Cuts:
        rate = vars(self).get("_rate", 1.0 / self.simulation.time_scale)
        events = self.most_time * rate * self.horizon.replications
        discrete = bool(getattr(self.simulation, "discrete", False))
        return cut(self.most_time, wanted, events, len(self.simulation.names), discrete)

    @property
    def _pieces(self) -> int:
        """Shortest segments so far."""
        return int(self.series.shape[1]) * self.parts

    def _until(self, pieces: int, progress: Progress | None) -> None:
        """Advance until there are that many pieces, a limit is met, or all are absorbed."""
        pieces = min(pieces, self._cuts.count)
        while (missing := pieces - self._pieces) > 0 and self.absorbed < len(self.paths):
            limit = self.horizon.time_limit
            if limit is not None and self.elapsed > limit and self.series.shape[1] > 1:
                self.status = "time_limit"
                return
            room = 2 * self._cuts.wanted - self.series.shape[1]
            left = max(1, (self._cuts.count - self._pieces) // self.parts)
            self._advance(min(self._round, -(-missing // self.parts), room, left))
            self._join_segments()
            if progress is not None:
                gain = self.gain
                progress(self.events, gain.lower, gain.upper)

    def _join_segments(self) -> None:
        """Join pairs of segments when there are twice as many as wanted."""
        if self.series.shape[1] == 2 * self._cuts.wanted:
            for path in self.paths:
                path.join(2)
            self.series = joined(self.series, 2)
            self.parts *= 2

    def _segments(self, count: int) -> Floats:
        """The next segments of every replication."""
        pieces, length = count * self.parts, self._cuts.length
        found = self._workers(delayed(_advanced)(path, pieces, length) for path in self.paths)
        if any(rows is None for rows in found):
            raise RearrangedError
        rows = np.stack(found)
        if not np.abs(rows).max(initial=0.0) < LARGEST:
            raise InputError(f"averages of {LARGEST:g} and more cannot be estimated")
        return joined(rows, self.parts)

    def _let_absorbed_settle(self) -> None:
        """Have at least one segment after all replications are absorbed."""
        if self.absorbed == len(self.paths) and self._settled() >= self.series.shape[1]:
            self._advance(self._settled() + 1 - self.series.shape[1])

    def _advance(self, segments: int) -> None:
        """Advance every replication, and choose the length of the next round."""
        began = time.perf_counter()
        try:
            rows = self._segments(segments)
        except RearrangedError:
            simulation: Any = self.simulation
            simulation.rearrange()
            self.paths = self._new_paths()
            for path in self.paths:
                path.join(self.parts)
            segments += self.series.shape[1]
            self.series = self.series[:, :0]
            return self._advance(segments)
        self.series = np.concatenate([self.series, rows], axis=1)
        took = max(time.perf_counter() - began, 1e-9)
        self._round = int(np.clip(segments * ROUND / took, 1, 2 * segments))


def _advanced(path: Path, segments: int, length: float) -> Floats | None:
    """Averages of the next segments; None where paths have to be started anew.

    An exception would leave other paths of the round running.
    """
    try:
        return path.advance(segments, length)
    except RearrangedError:
        return None
