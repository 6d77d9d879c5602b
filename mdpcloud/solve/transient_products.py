"""Laws of a chain at several times as sums of products with one stochastic matrix.

Uniformisation (Jensen 1953): with L >= every rate out of a state and P = I + Q / L,

    p(t) = sum_k w_k p(0) P^k,    int_0^t p(s) c ds = (1 / L) sum_k P(N > k) p(0) P^k c,

N being Poisson with mean L t and probabilities w_k. All terms are positive, all times share the
products. In discrete time P is given, and w_k = 1 at k = t. The other direction, P^k u, gives
expectations from every state at once.

The error is bounded in the norm that P does not increase (the sum for laws, the maximum for
expectations), so that what is lost in one product is at most that in the end:

- the weights miss a mass, and are rounded (`mdpcloud.solve.poisson`);
- each product rounds every entry by gamma_(d + 3) relatively, d being the longest sum;
- blocks of states whose sum (maximum) is below what the budget leaves are set to 0;
- when v_(k + 1) and v_k differ by so little that all products to come could not change more than
  the budget, v_k stands for what follows: ||v P^j - v|| <= j ||v P - v||.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.engine.rows import Matrix
from mdpcloud.model.chain import MarkovChain
from mdpcloud.solve.poisson import PoissonWeights, certain, poisson_weights
from mdpcloud.solve.transient_kernels import (
    SIDE,
    count_shifts,
    fill_shifts,
    list_followers,
    run_products,
)
from mdpcloud.solve.transient_twofold_kernels import complements

__all__ = ["TINY", "Steps", "Sums", "sum_products"]

SHARE = 0.1
"""Part of the tolerance that each of weights, dropped blocks and an early end may take."""

TINY = 1e-290
"""What is smaller may be lost to underflow."""

MARGIN = 1.0 + 2.0**-44
"""The rate of the steps over the computed largest rate, so that no exact one is larger."""

MEASURED = 1.0 + 1e-6
"""A computed distance of vectors, times this, is at least the exact one."""


@dataclass(frozen=True, eq=False)
class Sums:
    """What `sum_products` and its alternative return.

    Parameters
    ----------
    values : (T, n) array
        Laws, or expectations from every state.
    error : (T,) array
        Bound of the norm of their errors.
    costs, cost_error : (m, T) arrays
        Accumulated costs and bounds of their errors.
    products : int
        Products of a vector, or of a matrix, with a matrix.
    """

    values: Floats
    error: Floats
    costs: Floats
    cost_error: Floats
    products: int


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
    """

    rates: Matrix
    rate: float
    discrete: bool

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
        return cls(rates, 1.0, True)

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.rates.shape[0])

    @cached_property
    def stay(self) -> tuple[Floats, Floats]:
        """Diagonal of P, (n,), correctly rounded, and what rounding left out."""
        high, low = np.empty(self.n), np.empty(self.n)
        complements(self.rates.indptr, self.rates.data, self.rate, high, low)
        low[high <= 0.0] = 0.0
        return np.maximum(high, 0.0), low

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
        return steps * (gamma(longest + 3) + (0.0 if self.discrete else 2.0 * UNIT_ROUNDOFF))

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


def sum_products(
    steps: Steps,
    start: Floats,
    times: Floats,
    costs: Floats,
    tolerance: float,
    *,
    forward: bool = True,
) -> Sums:
    """Return laws (or expectations) at several times and the costs accumulated by then.

    Parameters
    ----------
    steps : Steps
    start : (n,) array
        Law at time 0, or with ``forward=False`` the function whose expectation is taken; >= 0.
    times : (T,) array
        Any order; whole numbers in discrete time.
    costs : (m, n) array
        Cost rates; none with ``forward=False``.
    tolerance : float
        What weights, dropped blocks and an early end may add to rounding is 0.3 of it.
    """
    windows = steps.windows(times, SHARE * tolerance / 2.0)
    run = _Run.make(steps, start, windows, costs, SHARE * tolerance, forward)
    error = np.array([run.error(window) for window in windows])
    pairs = [[run.cost(m, window) for window in windows] for m in range(len(costs))]
    priced = np.array(pairs).reshape(len(costs), times.size, 2)
    return Sums(run.values, error, priced[..., 0], priced[..., 1], run.products)


@dataclass(frozen=True, eq=False)
class _Run:
    """The products made for some windows.

    ``lost`` (K + 1,) is the error of v_k by blocks dropped and rounding, ``dots`` (m, K + 1) holds
    c v_k; from the product ``end`` on every v_k was taken to be the same, and ``change`` (with the
    rounding in ``lost``) bounds the distance of neighbours from there on.
    """

    steps: Steps
    values: Floats
    dots: Floats
    lost: Floats
    largest: Floats
    end: int
    change: float
    products: int

    @classmethod
    def make(
        cls,
        steps: Steps,
        start: Floats,
        windows: list[PoissonWeights],
        costs: Floats,
        budget: float,
        forward: bool,
    ) -> _Run:
        matrix, blocks = steps.layout(forward)
        last = max(window.last for window in windows)
        width = matrix[3].size
        vector = np.zeros(width + 2 * SIDE)
        vector[SIDE : SIDE + steps.n] = start
        sums, padded = np.zeros((len(windows), width)), np.zeros((len(costs), width))
        padded[:, : steps.n] = costs
        dots, lost = np.zeros((len(costs), last + 1)), np.zeros(last + 1)
        frames = _frames(windows)
        options = (budget, budget, forward, last)
        end, change, vector = run_products(
            matrix, blocks, vector, frames, sums, padded, dots, lost, *options
        )
        for total, window in zip(sums, windows, strict=True):
            total += window.weights[max(end + 1 - window.first, 0) :].sum() * vector[SIDE:-SIDE]
        dots[:, end + 1 :] = dots[:, end : end + 1]
        change = MEASURED * change + (lost[end] - lost[end - 1] if end < last else 0.0)
        lost[end + 1 :] = lost[end]
        lost += np.arange(last + 1) * steps.rounding(1.0)
        largest = np.abs(costs).max(axis=1, initial=0.0)
        values = sums[:, : steps.n]
        return cls(steps, values, dots, lost, largest, end, change, end)

    def error(self, window: PoissonWeights) -> float:
        """Bound of the error of a law."""
        inside = self._behind(slice(window.first, window.last + 1))
        missed = float(window.weights @ inside)
        return missed + window.error + gamma(window.weights.size + 2)

    def cost(self, m: int, window: PoissonWeights) -> tuple[float, float]:
        """An accumulated cost and a bound of its error."""
        exceeding = window.exceeding()
        inside = slice(0, exceeding.size)
        value = float((exceeding * self.dots[m, inside]).sum())
        summed = gamma(SIDE + self.steps.n // SIDE + 3) + gamma(256)
        missed = float(exceeding @ self._behind(inside)) + summed * float(exceeding.sum())
        missed += window.rounding * float(exceeding[window.first :].sum())
        missed += 2.0 * window.outside * exceeding.size + window.beyond
        scale = 1.0 / self.steps.rate
        return scale * value, scale * float(self.largest[m]) * missed + TINY * bool(missed)

    def _behind(self, inside: slice) -> Floats:
        """Bound of the error of v_k for the steps k of a window."""
        late = np.maximum(np.arange(inside.start, inside.stop) - self.end, 0)
        return np.asarray(self.lost[inside] + late * self.change, np.float64)


def _frames(windows: list[PoissonWeights]) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    first = np.array([window.first for window in windows], np.int64)
    sizes = [window.weights.size for window in windows]
    pointer = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return first, pointer, np.concatenate([window.weights for window in windows])
