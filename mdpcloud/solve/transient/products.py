"""Laws of a chain at several times as sums of products with one stochastic matrix.

Uniformisation (Jensen 1953): with L >= every rate out of a state and P = I + Q / L,

    p(t) = sum_k w_k p(0) P^k,    int_0^t p(s) c ds = (1 / L) sum_k P(N > k) p(0) P^k c,

N being Poisson with mean L t and probabilities w_k. All terms are positive, all times share the
products. In discrete time P is given, and w_k = 1 at k = t. The other direction, P^k u, gives
expectations from every state at once.

The error is bounded in the norm that P does not increase (the sum for laws, the maximum for
expectations), so that what is lost in one product is at most that in the end:

- the weights miss a mass, and are rounded (`mdpcloud.solve.transient.poisson`);
- each product rounds every entry by gamma_(d + 3) relatively, d being the longest sum;
- blocks of states whose sum (maximum) is below what the budget leaves are set to 0;
- when v_(k + 1) and v_k differ by so little that all products to come could not change more than
  the budget, v_k stands for what follows: ||v P^j - v|| <= j ||v P - v||.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import gamma
from mdpcloud.solve.transient.kernels import run_products
from mdpcloud.solve.transient.layout_kernels import SIDE
from mdpcloud.solve.transient.poisson import PoissonWeights
from mdpcloud.solve.transient.steps import Steps

__all__ = ["TINY", "Steps", "Sums", "sum_products"]

SHARE = 0.1
"""Part of the tolerance that each of weights, dropped blocks and an early end may take."""

TINY = 1e-290
"""What is smaller may be lost to underflow."""

PIECE = 3e8
"""Multiplications without a chance of an interrupt, less than a second."""

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
        arrays = _frames(windows), sums, padded, dots, lost, (budget, budget), forward
        end, change, vector = _in_pieces(matrix, blocks, vector, arrays, last)
        for total, window in zip(sums, windows, strict=True):
            total += window.weights[max(end + 1 - window.first, 0) :].sum() * vector[SIDE:-SIDE]
        dots[:, end + 1 :] = dots[:, end : end + 1]
        change = MEASURED * change + lost[end] - lost[end - 1] if end < last else 0.0
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


def _in_pieces(
    matrix: Any, blocks: Any, vector: Floats, arrays: tuple[Any, ...], last: int
) -> tuple[int, float, Floats]:
    """All products, some at a time, so that an interrupt is heard in between."""
    piece = 1 + int(PIECE / (matrix[2].size + matrix[3].size))
    begin = 0
    while True:
        until = min(begin + piece, last)
        end, change, vector = run_products(matrix, blocks, vector, *arrays, begin, until, last)
        if end == last or change < np.inf:
            return end, change, vector
        begin = end


def _frames(windows: list[PoissonWeights]) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    first = np.array([window.first for window in windows], np.int64)
    sizes = [window.weights.size for window in windows]
    pointer = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return first, pointer, np.concatenate([window.weights for window in windows])
