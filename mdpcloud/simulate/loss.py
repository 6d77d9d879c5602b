"""Simulation of loss networks under complete sharing, by a kernel of their own.

Whatever fits is accepted, so that no rule is asked and no state is remembered: an event takes
some 50 ns, however many states there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.simulate.loss_kernels import DUE, EVENTS, PLACES, SEGMENT, TIMES, USED, share
from mdpcloud.simulate.protocol import COST, Absorption, Floats, Path, Record, Simulation

__all__ = ["LossSimulation", "Network"]

BUFFER = 1 << 14  # random numbers of a kind, drawn at a time


class Network(NamedTuple):
    """Rates (J,), their sum, requirements (K, J) and capacities (K,), as the kernel reads them."""

    arrivals: Floats
    services: Floats
    arriving: float
    needs: NDArray[np.int64]
    capacities: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        arrivals: Sequence[float],
        services: Sequence[float],
        needs: Sequence[Sequence[int]],
        capacities: Sequence[int],
    ) -> Network:
        """From checked numbers.

        Raises
        ------
        InputError
            When nothing ever arrives.
        """
        rates = np.array(arrivals, dtype=float)
        if not rates.sum() > 0.0:
            raise InputError("nothing ever happens: all arrival rates are 0 and there are no jobs")
        room = np.array(capacities, dtype=np.int64)
        rows = np.array(needs, dtype=np.int64)
        return cls(rates, np.array(services, dtype=float), float(rates.sum()), rows, room)


@dataclass(frozen=True, eq=False)
class LossSimulation:
    """A `Simulation` of a loss network that is empty at first.

    Attributes
    ----------
    network : Network
    costs : (J,) array
        Of a lost job of each class.
    general : function
        Makes a simulation of the same model that can record its state.
    """

    network: Network
    costs: Floats
    general: Callable[[], Simulation]

    @property
    def names(self) -> tuple[str, ...]:
        """The cost, and per class the rate of lost jobs and the jobs present."""
        classes = range(self.costs.size)
        pairs = ((f"rejection_rate[{j}]", f"mean_jobs[{j}]") for j in classes)
        return (COST, *(name for pair in pairs for name in pair))

    @property
    def constants(self) -> frozenset[str]:
        """The cost, where losses are free."""
        return frozenset([COST] if not self.costs.any() else [])

    @property
    def variables(self) -> tuple[str, ...]:
        """Jobs of each class."""
        return tuple(f"jobs[{j}]" for j in range(self.costs.size))

    @property
    def time_scale(self) -> float:
        """Mean time between arrivals."""
        return 1.0 / self.network.arriving

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> Path:
        """A new replication; where something is recorded, by the general simulation."""
        if recorded:
            return self.general().path(seed, recorded)
        return LossPath(self, np.random.Generator(np.random.SFC64(seed)))


class LossPath:
    """A `Path` of a loss network."""

    def __init__(self, simulation: LossSimulation, rng: np.random.Generator) -> None:
        self._simulation, self._rng = simulation, rng
        network = simulation.network
        self._jobs = np.zeros(network.arrivals.size, dtype=np.int64)
        self._free = network.capacities.copy()
        self._place, self._clock = np.zeros(PLACES, dtype=np.int64), np.zeros(TIMES)
        self._place[USED] = BUFFER
        self._clock[DUE] = rng.standard_exponential() / network.arriving
        self._uniforms, self._waits = np.empty(BUFFER), np.empty(BUFFER)
        self._sums = np.zeros((2, self._jobs.size))

    @property
    def events(self) -> int:
        """Arrivals and departures so far."""
        return int(self._place[EVENTS])

    @property
    def absorbed(self) -> Absorption | None:
        """Never."""
        return None

    def advance(self, segments: int, length: float) -> Floats:
        """Averages of the cost and the measures over the next segments."""
        network = self._simulation.network
        averages = np.empty((segments, 2, self._jobs.size))
        self._place[SEGMENT] = 0
        while self._place[SEGMENT] < segments:
            if self._place[USED] == BUFFER:
                self._refill()
            share(
                network,
                self._jobs,
                self._free,
                self._place,
                self._clock,
                self._uniforms,
                self._waits,
                self._sums,
                averages,
                length,
            )
        averages /= length
        averages[:, 0] *= network.arrivals
        cost = averages[:, 0] @ self._simulation.costs
        measures = averages.transpose(0, 2, 1).reshape(segments, -1)
        found: Floats = np.column_stack([cost, measures])
        return found

    def _refill(self) -> None:
        self._rng.random(out=self._uniforms)
        self._rng.standard_exponential(out=self._waits)
        self._place[USED] = 0

    def record(self, name: str) -> Record:
        """Nothing is recorded on these paths."""
        raise InputError(f"{name!r} was not recorded")

    def join(self, count: int) -> None:
        """Nothing is recorded that could be joined."""
