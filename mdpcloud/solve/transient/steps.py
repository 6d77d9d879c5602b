"""A chain as a stochastic matrix whose steps happen at a rate (uniformisation, Jensen 1953)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.engine.rows import Matrix
from mdpcloud.model.chain import MarkovChain
from mdpcloud.solve.transient.layout_kernels import (
    SIDE,
    count_shifts,
    fill_shifts,
    list_followers,
)
from mdpcloud.solve.transient.poisson import PoissonWeights, certain, poisson_weights
from mdpcloud.solve.transient.twofold_kernels import complements

__all__ = ["Steps"]

MARGIN = 1.0 + 2.0**-44
"""The rate of the steps over the computed largest rate, so that no exact one is larger."""


@dataclass(frozen=True, eq=False)
class Steps:
    """A chain as a stochastic matrix P whose steps happen at a rate.

    Parameters
    ----------
    rates : (n, n) CSR array
        Rates off the diagonal (discrete time: probabilities), rows are origins.
    rate : float
        L, 1/time; 1 in discrete time.
    discrete : bool
    divided : bool
        Whether rows were divided by their sums.
    """

    rates: Matrix
    rate: float
    discrete: bool
    divided: bool = False

    @classmethod
    def of(cls, chain: MarkovChain) -> Steps:
        """Uniformise a chain at its largest rate; rows of moves that sum to over 1 are divided."""
        out = np.asarray(chain.rates.sum(axis=1), np.float64).ravel()
        largest = float(out.max(initial=0.0))
        if not chain.discrete:
            return cls(chain.rates, MARGIN * largest if largest > 0.0 else 1.0, False)
        rates = chain.rates
        if largest > 1.0:
            rates = rates.copy()
            rates.data /= np.repeat(np.maximum(out, 1.0), np.diff(rates.indptr))
        return cls(rates, 1.0, True, largest > 1.0)

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.rates.shape[0])

    @cached_property
    def stay(self) -> tuple[Floats, Floats]:
        """Diagonal of P, (n,), correctly rounded, and what rounding left out; 0 where below 0."""
        high, low = self._complements
        return np.maximum(high, 0.0), np.where(high <= 0.0, 0.0, low)

    @property
    def defect(self) -> float:
        """By how much a row of P may miss that of the chain, whose probabilities sum to 1.

        The sum of absolute differences: what rows sum to above 1 (their decimals may, by a hair),
        and three roundings where they were divided.
        """
        high, low = self._complements
        above = float(-(high + low).min(initial=0.0))
        return 2.0 * above + (3.0 * UNIT_ROUNDOFF if self.divided else 0.0)

    @cached_property
    def _complements(self) -> tuple[Floats, Floats]:
        """1 less the moves' probabilities, (n,), as high + low."""
        high, low = np.empty(self.n), np.empty(self.n)
        complements(self.rates.indptr, self.rates.data, self.rate, high, low)
        return high, low

    def windows(self, times: Floats, tolerance: float) -> list[PoissonWeights]:
        """Weights of the numbers of steps by each time; the mass left out is small against L t."""
        if self.discrete:
            return [certain(int(t)) for t in times]
        means = [self.rate * float(t) for t in times]
        return [poisson_weights(mean, tolerance * min(1.0, mean)) for mean in means]

    def needed(self, time: float) -> float:
        """About how many products a time needs."""
        mean = self.rate * time
        return mean if self.discrete else mean + 7.0 * np.sqrt(mean) + 20.0

    def rounding(self, steps: float) -> float:
        """Bound of what rounding adds by so many products, the rounding of L t included."""
        longest = int(np.diff(self._inflow.indptr).max(initial=0))
        if longest > SIDE:
            longest = SIDE + longest // SIDE + 1
        each = self.defect if self.discrete else 2.0 * UNIT_ROUNDOFF
        return steps * (gamma(longest + 3) + each)

    @cached_property
    def _inflow(self) -> Matrix:
        """The rates by rows of what flows into a state."""
        return self.rates.T.tocsr()

    def layout(self, forward: bool) -> tuple[Any, Any]:
        """Matrix and blocks as `run_products` takes them."""
        rows = self._inflow if forward else self.rates
        pointer = rows.indptr.astype(np.int32, copy=False)
        origin = rows.indices.astype(np.int32, copy=False)
        rate = rows.data / self.rate
        count = -(-self.n // SIDE)
        stay = np.zeros(count * SIDE)
        stay[: self.n] = self.stay[0]
        shifts = np.empty(count, np.int64)
        count_shifts(pointer, origin, shifts)
        first = np.append(0, np.cumsum(np.maximum(shifts, 0)))
        shift, value = np.zeros(first[-1], np.int64), np.zeros(first[-1] * SIDE)
        shifted = shifts >= 0
        fill_shifts(pointer, origin, rate, first, shifted, shift, value)
        place = np.zeros(count + 1, np.int64)
        list_followers(pointer, origin, place, np.empty(0, np.int32))
        follower = np.empty(place[-1], np.int32)
        list_followers(pointer, origin, place, follower)
        return (pointer, origin, rate, stay), (first, shifted, shift, value, place, follower)
