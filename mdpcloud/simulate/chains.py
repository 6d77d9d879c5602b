"""Simulation of what is given by arrays: tabular models under a policy, and Markov chains.

The next state is found by bisection in the row's cumulative probabilities, states in the order of
their numbers, with the n-th uniform number of the path for its n-th jump: equal seeds couple the
paths of policies whose rows differ little. In discrete time a step may stay, and the state at time
t is that of step floor(t); in continuous time a chain stays for an exponential time of its own
stream. Averages over a segment are exact, whatever its length: c(x) dt is summed, jump by jump.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine import compile_model
from mdpcloud.engine.moves import Matrix, off_diagonal
from mdpcloud.engine.rules import policy_for
from mdpcloud.errors import InputError
from mdpcloud.model.chain import MarkovChain
from mdpcloud.model.matrices import row_sums
from mdpcloud.model.tabular import TabularModel
from mdpcloud.plugins import did_you_mean
from mdpcloud.simulate.chains_kernels import (
    ABSORBED,
    CHANGES,
    CLOCKS,
    DUE,
    EVENTS,
    PLACES,
    SEGMENT,
    STATE,
    USED,
    cumulate,
    travel,
)
from mdpcloud.simulate.protocol import COST, Absorption, Floats, Record
from mdpcloud.simulate.segments import Shares

__all__ = ["ChainSimulation", "chain_simulation"]

BUFFER = 1 << 14  # random numbers of a kind, drawn at a time: some 0.2 ms of simulation
MOST_CHANGES = 4096  # kept of a recorded path
MOST_STATES = 4096  # whose shares of time are kept per segment
VARIABLE = "state"


class Jumps(NamedTuple):
    """A chain as its kernels read it: row x is ``begin[x]:begin[x + 1]``.

    ``cumulative`` are the probabilities of the next state, summed; ``hold`` (n,) the mean time in a
    state, infinite where nothing leaves it; ``cost`` (n,) per unit of time.
    """

    begin: NDArray[np.int64]
    target: NDArray[np.int32]
    cumulative: Floats
    hold: Floats
    cost: Floats


@dataclass(frozen=True, eq=False)
class ChainSimulation:
    """A `Simulation` of a chain; its only name is ``"cost"``, its only variable ``"state"``.

    Attributes
    ----------
    jumps : Jumps
    start : int
        Where every path begins.
    discrete : bool
        Whether time is discrete.
    label : function from state number to str
        Names of the states in messages.
    sense : int
        -1 for a model given by rewards, which are its costs with the other sign, else 1.
    """

    jumps: Jumps
    start: int
    discrete: bool
    label: Callable[[int], str]
    sense: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """There are no measures."""
        return (COST,)

    @property
    def constants(self) -> frozenset[str]:
        """The cost, where it is the same in all states."""
        return frozenset([COST] if np.ptp(self.jumps.cost) == 0 else [])

    @property
    def variables(self) -> tuple[str, ...]:
        """The number of the state."""
        return (VARIABLE,)

    @property
    def time_scale(self) -> float:
        """A step; in continuous time the inverse of the mean rate of leaving a state."""
        hold = self.jumps.hold
        moving = hold[np.isfinite(hold)]
        return float(1.0 / np.mean(1.0 / moving)) if moving.size else 1.0

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> ChainPath:
        """A new replication from the start state.

        Raises
        ------
        InputError
            When something else than ``"state"`` is to be recorded, or there are too many states.
        """
        for name in recorded:
            _check_variable(name)
        n = self.jumps.hold.size
        if recorded and n > MOST_STATES:
            raise InputError(
                f"the chain has {n} states; {VARIABLE!r} can be recorded up to {MOST_STATES}"
            )
        return ChainPath(self, np.random.Generator(np.random.SFC64(seed)), bool(recorded))


class ChainPath:
    """A `Path` of a chain."""

    def __init__(
        self, simulation: ChainSimulation, rng: np.random.Generator, recorded: bool
    ) -> None:
        self._simulation, self._rng = simulation, rng
        start, hold = simulation.start, simulation.jumps.hold
        self._place, self._clock = np.zeros(PLACES, np.int64), np.zeros(CLOCKS)
        self._place[STATE], self._place[USED] = start, BUFFER
        self._clock[ABSORBED] = 0.0 if np.isinf(hold[start]) else np.nan
        wait = 1.0 if simulation.discrete else rng.standard_exponential()
        self._clock[DUE] = np.inf if np.isinf(hold[start]) else wait * hold[start]
        self._uniforms, self._waits = np.empty(BUFFER), np.ones(BUFFER)
        self._length, self._done, self._before = 0.0, 0, 0.0
        self._times = np.zeros(MOST_CHANGES if recorded else 0)
        self._values = np.full(self._times.size, start)
        self._place[CHANGES] = 1
        self._shares = Shares()

    @property
    def events(self) -> int:
        """Steps (also those that stay) or jumps so far."""
        return int(self._place[EVENTS])

    @property
    def absorbed(self) -> Absorption | None:
        """When it came to a state that nothing leaves, if it did."""
        time = float(self._clock[ABSORBED])
        if np.isnan(time):
            return None
        return Absorption(time, self._simulation.label(int(self._place[STATE])))

    def advance(self, segments: int, length: float) -> Floats:
        """Averages of the cost per unit of time over the next segments, (segments, 1)."""
        if length != self._length:
            self._before += self._done * self._length
            self._length, self._done = length, 0
        jumps, place, clock = self._simulation.jumps, self._place, self._clock
        averages = np.empty(segments)
        occupation = np.zeros((segments, jumps.hold.size if self._times.size else 0))
        place[SEGMENT] = 0
        while place[SEGMENT] < segments:
            if place[USED] == BUFFER:
                self._refill()
            travel(
                jumps,
                self._uniforms,
                self._waits,
                place,
                clock,
                averages,
                occupation,
                self._times,
                self._values,
                self._done,
                self._before,
                length,
            )
        self._done += segments
        self._shares.add(occupation)
        return averages[:, None]

    def _refill(self) -> None:
        self._rng.random(out=self._uniforms)
        if not self._simulation.discrete:
            self._rng.standard_exponential(out=self._waits)
        self._place[USED] = 0

    def record(self, name: str) -> Record:
        """The first changes of the state and its shares of time.

        Raises
        ------
        InputError
            When it was not recorded.
        """
        _check_variable(name)
        if not self._times.size:
            raise InputError(f"{name!r} was not recorded; name it when the path is made")
        changes = int(self._place[CHANGES])
        return Record(
            self._times[:changes].copy(),
            self._values[:changes].copy(),
            self._shares.all(),
        )

    def join(self, count: int) -> None:
        """Record shares of time over ``count`` segments each."""
        self._shares.join(count)


def chain_simulation(model: Any, policy: Any = None, start: int | None = None) -> ChainSimulation:
    """Make a tabular model under a policy, or a Markov chain, ready to run.

    Parameters
    ----------
    model : TabularModel or MarkovChain
        A Markov chain costs nothing.
    policy : Policy, Solution or what `mdpcloud.policy` takes
        Deterministic or randomised; None for a Markov chain and where nothing is decided.
    start : int, default 0
        Number of the state in which every path begins.

    Raises
    ------
    InputError
        When the policy does not fit the model or changes with time, the start is no state, or the
        rates out of a state sum to no finite number.

    Examples
    --------
    >>> from mdpcloud.model.chain import markov_chain
    >>> simulation = chain_simulation(markov_chain(rates=([0, 1], [1, 0], [2.0, 3.0])))
    >>> simulation.names, simulation.variables, simulation.time_scale
    (('cost',), ('state',), 0.4)
    """
    if isinstance(model, MarkovChain):
        if policy is not None:
            raise InputError("a Markov chain has no decisions; leave the policy out")
        return _of_chain(model, _start(start, model.n))
    if not isinstance(model, TabularModel):
        raise InputError(f"{model!r} is neither a tabular model nor a Markov chain")
    problem: Any = compile_model(model)
    if policy is None:
        if problem.terms[0].decision:
            raise InputError("the model has decisions; give the policy to be simulated")
        policy = {}
    chosen = policy_for(problem, policy)
    choice = chosen.choice(problem)
    fixed = problem.mixed(choice) if chosen.randomised else problem.under(choice)
    generator, cost = fixed.chain()
    moves = off_diagonal(generator, np.arange(problem.n, dtype=np.int32))
    jumps = _jumps(moves, cost, np.maximum(1.0 - row_sums(moves), 0.0))
    return ChainSimulation(jumps, _start(start, problem.n), True, problem.label, model.sense)


def _of_chain(chain: MarkovChain, start: int) -> ChainSimulation:
    stay = np.zeros(chain.n)
    if chain.discrete:
        stay = np.where(chain.stay, np.maximum(1.0 - row_sums(chain.rates), 0.0), 0.0)
    jumps = _jumps(chain.rates, np.zeros(chain.n), stay if chain.discrete else None)
    return ChainSimulation(jumps, start, chain.discrete, chain.label)


def _jumps(moves: Matrix, cost: Floats, stay: Floats | None) -> Jumps:
    """The arrays of the kernels, from the moves to other states and the probabilities of staying.

    Rows are divided by their sums once. Without probabilities of staying, time is continuous.
    """
    out = row_sums(moves)
    if not np.isfinite(out).all():
        state = int(np.argmin(np.isfinite(out)))
        raise InputError(f"the rates out of state {state} sum to {out[state]}; scale time")
    with np.errstate(divide="ignore", over="ignore"):
        hold = 1.0 / out if stay is None else np.where(out > 0.0, 1.0, np.inf)
    steps = moves.copy() if stay is None else sparse.csr_array(moves + sparse.diags_array(stay))
    steps.eliminate_zeros()
    steps.sort_indices()
    begin, target = steps.indptr.astype(np.int64), steps.indices.astype(np.int32)
    cumulate(begin, steps.data)
    return Jumps(begin, target, steps.data, hold, np.ascontiguousarray(cost, np.float64))


def _start(start: Any, n: int) -> int:
    if start is None:
        return 0
    if isinstance(start, bool) or not isinstance(start, (int, np.integer)) or not 0 <= start < n:
        raise InputError(f"start is {start!r}; it must be the number of a state, 0 to {n - 1}")
    return int(start)


def _check_variable(name: str) -> None:
    if name != VARIABLE:
        hint = did_you_mean(name, (VARIABLE,)) or f"; there is {VARIABLE!r}"
        raise InputError(f"a chain has no state variable {name!r}{hint}")
