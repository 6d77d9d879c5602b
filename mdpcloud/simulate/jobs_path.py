"""One replication of the job-level simulation: the arrays of its kernels, and what they ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.simulate.horizon import spawned
from mdpcloud.simulate.jobs_codes_kernels import (
    ANSWER,
    ARRIVAL,
    ARRIVALS,
    BEFORE,
    CLOCKS,
    COUNTS,
    DONE,
    EVENTS,
    FREE,
    FULL,
    LENGTH,
    NODE,
    NONE,
    PATIENCE,
    PAUSE,
    PRICES,
    SEGMENT,
    SERVICES,
    SLOTS,
    UNIFORMS,
    USED_ARRIVALS,
    USED_UNIFORMS,
    WIDTH,
)
from mdpcloud.simulate.jobs_kernels import run
from mdpcloud.simulate.jobs_state import (
    NEVER_FULL,
    ArrayOfFloats,
    ArrayOfInts,
    Draws,
    Jobs,
    Pools,
    Trace,
    more_jobs,
    no_jobs,
)
from mdpcloud.simulate.protocol import Absorption, Floats, Record
from mdpcloud.simulate.segments import Shares

if TYPE_CHECKING:
    from mdpcloud.simulate.jobs import JobSimulation

__all__ = ["JobPath", "random_streams"]

MOST_EVENTS = (
    200_000  # of one call of the kernel, some tenth of a second: then interrupts are heard
)
FIRST_SLOTS = 256
BUFFER = 4096  # random numbers of a kind, drawn at a time
BUFFERED = 1 << 19  # of all nodes together
SMALLEST_BUFFER = 64
MOST_CHANGES = 4096  # kept of a recorded node
FIRST_WIDTH = 64  # jobs whose shares of time are kept at first


class JobPath:
    """A `Path` of the routing system; it is never absorbed."""

    def __init__(
        self,
        simulation: JobSimulation,
        seed: np.random.SeedSequence,
        recorded: Mapping[str, int],
    ) -> None:
        self._simulation = simulation
        n = len(simulation.pools)
        streams = random_streams(seed)
        self._arrivals, self._uniforms = next(streams), next(streams)
        self._own = [(next(streams), next(streams)) for _ in range(n)]
        self._pools = _empty_pools(simulation)
        self._jobs: Jobs = no_jobs(FIRST_SLOTS)
        self._draws = _no_draws(n)
        self._filled = np.zeros((2, n), np.int64)
        self._choice = simulation.chooser.start()
        self._recorded = {name: r for r, name in enumerate(recorded)}
        self._trace = _empty_trace(n, list(recorded.values()))
        self._counts = np.zeros(COUNTS, np.int64)
        self._counts[USED_ARRIVALS] = self._counts[USED_UNIFORMS] = BUFFER
        self._clock = np.zeros(CLOCKS)
        self._clock[ARRIVAL] = self._wait(1)[0]
        self._occupation: NDArray[np.float64] = np.zeros((0, 0, 0))
        self._shares = [Shares() for _ in recorded]
        self._given: dict[int, Callable[[int], None]] = {
            ARRIVALS: self._give_arrivals,
            UNIFORMS: self._give_uniforms,
            SERVICES: self._give_services,
            PATIENCE: self._give_patience,
            PRICES: self._give_choice,
            ANSWER: self._give_choice,
            SLOTS: self._give_slots,
            WIDTH: self._give_width,
            FULL: self._refuse,
            PAUSE: lambda _: None,
        }

    @property
    def events(self) -> int:
        """Arrivals, services and losses so far."""
        return int(self._counts[EVENTS])

    @property
    def absorbed(self) -> Absorption | None:
        """None: jobs never cease to arrive."""
        return None

    @property
    def jobs(self) -> ArrayOfInts:
        """Jobs present at each node, (n,)."""
        return self._pools.jobs.copy()

    def advance(self, segments: int, length: float) -> Floats:
        """Averages per unit of time over the next segments, (segments, C).

        Raises
        ------
        InputError
            When the rule takes an action that is not allowed.
        """
        recorded = len(self._recorded)
        totals = np.zeros((segments, 5, len(self._pools.jobs)))
        self._occupation = np.zeros(
            (segments if recorded else 0, recorded, self._trace.occupation.shape[1])
        )
        self._clock[LENGTH], self._counts[SEGMENT] = length, 0
        while segments > 0:
            wanted = run(
                self._pools,
                self._jobs,
                self._draws,
                self._choice,
                self._trace,
                self._counts,
                self._clock,
                totals,
                self._occupation,
                MOST_EVENTS,
            )
            if wanted == DONE:
                break
            self._given[wanted](int(self._counts[NODE]))
        self._clock[BEFORE] += segments * length
        for r, shares in enumerate(self._shares):
            shares.add(self._occupation[:, r] / length)
        return self._simulation.averages(totals, length)

    def drawn(self) -> NDArray[np.int64]:
        """Services and patience drawn so far, at each node: (2, n)."""
        size = self._draws.services.shape[1]
        unused = size - np.array([self._draws.used_services, self._draws.used_patience])
        return np.asarray(self._filled * size - unused, np.int64)

    def record(self, name: str) -> Record:
        """What was recorded of the jobs at a node.

        Raises
        ------
        InputError
            When it was not recorded.
        """
        if name not in self._recorded:
            self._simulation.number(name)
            raise InputError(f"{name!r} was not recorded; name it when the path is made")
        r = self._recorded[name]
        changes = int(self._trace.changes[r])
        occupation = self._shares[r].all()
        reached = 1 + int(np.flatnonzero(occupation.any(axis=0)).max(initial=0))
        return Record(
            self._trace.times[r, :changes].copy(),
            self._trace.values[r, :changes].copy(),
            occupation[:, :reached],
        )

    def join(self, count: int) -> None:
        """Record shares of time over ``count`` segments each."""
        for shares in self._shares:
            shares.join(count)

    # --- what the kernel asks for -----------------------------------------------------------------

    def _wait(self, n: int) -> ArrayOfFloats:
        return self._arrivals.standard_exponential(n) / self._simulation.arrival_rate

    def _give_arrivals(self, _: int) -> None:
        self._draws.arrivals[:] = self._wait(BUFFER)
        self._counts[USED_ARRIVALS] = 0

    def _give_uniforms(self, _: int) -> None:
        self._uniforms.random(out=self._draws.uniforms)
        self._counts[USED_UNIFORMS] = 0

    def _give_services(self, k: int) -> None:
        row = self._draws.services[k]
        row[:] = self._simulation.pools[k].service.sample(self._own[k][0], row.size)
        self._draws.used_services[k] = 0
        self._filled[0, k] += 1

    def _give_patience(self, k: int) -> None:
        patience, row = self._simulation.pools[k].patience, self._draws.patience[k]
        assert patience is not None
        row[:] = patience.sample(self._own[k][1], row.size)
        self._draws.used_patience[k] = 0
        self._filled[1, k] += 1

    def _give_choice(self, k: int) -> None:
        chooser = self._simulation.chooser
        self._choice = chooser.provide(self._choice, self._pools.jobs, k)

    def _give_slots(self, _: int) -> None:
        self._jobs, self._counts[FREE] = more_jobs(self._jobs, int(self._counts[FREE]))

    def _give_width(self, _: int) -> None:
        old, here = self._trace.occupation, self._occupation
        self._trace = self._trace._replace(occupation=np.pad(old, ((0, 0), (0, old.shape[1]))))
        self._occupation = np.pad(here, ((0, 0), (0, 0), (0, old.shape[1])))

    def _refuse(self, k: int) -> None:
        state = tuple(self._pools.jobs.tolist())
        shown = f"{state}" if len(state) <= 8 else f"with {state[k]} jobs at node {k}"
        raise InputError(
            f"the rule takes action 'node {k}' in state {shown}, where it is not allowed: the room "
            f"is {self._simulation.pools[k].room}"
        )


def random_streams(seed: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """Independent generators; the seed is left as it was, so that it can be used again."""
    for place in itertools.count():
        yield np.random.Generator(np.random.SFC64(spawned(seed, place)))


def _empty_pools(simulation: JobSimulation) -> Pools:
    pools = simulation.pools
    n = len(pools)
    counts, integrals = np.zeros((3, n), np.int64), np.zeros((3, n))
    return Pools(
        to_end=simulation.to_end,
        servers=np.array([pool.servers for pool in pools]),
        room=np.array([NEVER_FULL if pool.room is None else pool.room for pool in pools]),
        impatient=np.array([pool.patience is not None for pool in pools]),
        jobs=counts[0],
        first=np.full(n, NONE, np.int32),
        last=np.full(n, NONE, np.int32),
        since=integrals[0],
        jobs_time=integrals[1],
        busy_time=integrals[2],
        routed=counts[1],
        lost=counts[2],
    )


def _no_draws(n: int) -> Draws:
    """Buffers of used numbers; their size depends on the number of nodes alone."""
    size = min(max(BUFFERED // n, SMALLEST_BUFFER), BUFFER)
    return Draws(
        arrivals=np.zeros(BUFFER),
        uniforms=np.zeros(BUFFER),
        services=np.zeros((n, size)),
        patience=np.zeros((n, size)),
        used_services=np.full(n, size),
        used_patience=np.full(n, size),
    )


def _empty_trace(n: int, nodes: list[int]) -> Trace:
    count = len(nodes)
    number = np.full(n, NONE, np.int32)
    number[nodes] = np.arange(count)
    return Trace(
        number=number,
        occupation=np.zeros((count, FIRST_WIDTH)),
        times=np.zeros((count, MOST_CHANGES)),
        values=np.zeros((count, MOST_CHANGES), np.int64),
        changes=np.ones(count, np.int64),
    )
