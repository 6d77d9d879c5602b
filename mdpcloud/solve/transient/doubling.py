"""Laws of small stiff chains by scaling and squaring without subtraction.

M_0 = exp(h Q) is summed from the powers of the uniformised P = I + Q / L (Horner, positive terms;
Xue and Ye, Computing exponentials of essentially non-negative matrices entrywise to high relative
accuracy, 2013), and M_(i + 1) = M_i M_i. A time t = (b_0 + 2 b_1 + 4 b_2 + ...) h + r, r < h, needs
the factors M_i with b_i = 1, and a few products for r. Accumulated costs follow with U_i, the
integral of exp(s Q) over s from 0 to 2^i h, from U_(i + 1) c = U_i c + M_i U_i c.

Every squaring at most doubles relative errors, so that those of M_0 grow in proportion to L t. The
matrices are therefore held with twice the digits of float64 (a relative error near 1e-30 at first),
which makes entries accurate for L t up to about 1e14, however small they are: only positive numbers
are added and multiplied. In discrete time M_0 = P; where rounded probabilities do not sum to 1
exactly, errors grow with the number of steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF, gamma
from mdpcloud.solve.transient.products import TINY, Sums, sum_products
from mdpcloud.solve.transient.steps import Steps
from mdpcloud.solve.transient.twofold_kernels import add_diagonal, multiply, shares, step_rows

__all__ = ["sum_by_doubling"]

LARGEST_MEAN = 1.0 / 16.0
"""Of L h."""

TERMS = 16
"""Highest power of P in M_0; what follows is below LARGEST_MEAN**17 / 17! < 1e-34."""

TRUNCATED = 1e-34

REST_TOLERANCE = 1e-30
"""Of the few products for the rests."""


@dataclass(frozen=True, eq=False)
class _Power:
    """M_i as high + low, with a bound of the norm of its error."""

    high: Floats
    low: Floats
    error: float

    def squared(self) -> _Power:
        """M_(i + 1)."""
        n = self.high.shape[0]
        high, low = np.empty((n, n)), np.empty((n, n))
        multiply(self.high, self.low, self.high, self.low, high, low)
        return _Power(high, low, 2.01 * self.error + _one_product(n))


def sum_by_doubling(
    steps: Steps,
    start: Floats,
    times: Floats,
    costs: Floats,
    *,
    forward: bool = True,
) -> Sums:
    """As `sum_products`, for some hundred states and any rates; about n^3 per doubling."""
    base, whole, rest = _split(steps, times)
    sums = sum_products(steps, start, rest, costs, REST_TOLERANCE, forward=forward)
    values, error = sums.values.copy(), sums.error.copy()
    priced, slack = sums.costs.copy(), sums.cost_error.copy()
    power, spent = _first(steps, base), _Spent.first(steps, base, costs)
    levels = max(whole).bit_length()
    for level in range(levels):
        for t, count in enumerate(whole):
            if count >> level & 1:
                priced[:, t] += spent.values @ values[t]
                slack[:, t] += TINY + spent.error + spent.largest * (error[t] + gamma(steps.n + 2))
                high = power.high
                values[t] = values[t] @ high if forward else high @ values[t]
                error[t] += power.error + gamma(steps.n + 3)
        if level + 1 < levels:
            spent, power = spent.doubled(power), power.squared()
    return Sums(values, error, priced, slack, sums.products + levels)


def _split(steps: Steps, times: Floats) -> tuple[Fraction, list[int], Floats]:
    """Base h, and each time as a whole number of h and a rest."""
    base = Fraction(1)
    if not steps.discrete:
        longest = float(times.max())
        mean = max(steps.rate * longest, LARGEST_MEAN)
        base = Fraction(longest or 1.0) / 2 ** math.ceil(math.log2(mean / LARGEST_MEAN))
    whole = [math.floor(Fraction(t) / base) for t in times.tolist()]
    rest = [float(Fraction(t) - w * base) for t, w in zip(times.tolist(), whole, strict=True)]
    return base, whole, np.array(rest)


def _first(steps: Steps, base: Fraction) -> _Power:
    """M_0."""
    n, rates = steps.n, steps.rates
    share, share_low = np.empty(rates.nnz), np.empty(rates.nnz)
    shares(rates.data, steps.rate, share, share_low)
    matrix = (rates.indptr, rates.indices, share, share_low, *steps.stay)
    total, rest = np.zeros((n, n)), np.zeros((n, n))
    weights = [(0.0, 0.0), (1.0, 0.0)] if steps.discrete else _weights(steps, base)
    add_diagonal(total, rest, *weights[-1])
    for weight in weights[-2::-1]:
        before = total.copy(), rest.copy()
        step_rows(*matrix, *before, total, rest)
        add_diagonal(total, rest, *weight)
    error = TRUNCATED + 2.0 * len(weights) * _one_product(n) + len(weights) * steps.defect
    return _Power(total, rest, error)


def _weights(steps: Steps, base: Fraction) -> list[tuple[float, float]]:
    """Poisson probabilities of 0 ... TERMS steps within the base, as high + low."""
    with localcontext() as context:
        context.prec = 50
        rate = Fraction(steps.rate) * base
        mean = Decimal(rate.numerator) / Decimal(rate.denominator)
        weight, weights = (-mean).exp(), []
        for k in range(TERMS + 1):
            weights.append((float(weight), float(weight - Decimal(float(weight)))))
            weight = weight * mean / (k + 1)
    return weights


def _one_product(n: int) -> float:
    return (n + 8.0) ** 2 * UNIT_ROUNDOFF**2 + n * TINY


@dataclass(frozen=True, eq=False)
class _Spent:
    """Costs U_i c (m, n) of the time 2^i h from each state.

    ``largest`` (m,) is max |c| times that time, ``error`` (m,) bounds the error.
    """

    values: Floats
    largest: Floats
    error: Floats

    @classmethod
    def first(cls, steps: Steps, base: Fraction, costs: Floats) -> _Spent:
        """U_0 c = (1 / L) sum_k P(N > k) P^k c, or c in discrete time."""
        largest = np.abs(costs).max(axis=1, initial=0.0) * float(base)
        if steps.discrete:
            return cls(costs, largest, 0.0 * largest)
        weights = np.array([high for high, _ in _weights(steps, base)])
        values: Any = np.zeros(costs.T.shape)
        for exceeding in np.cumsum(weights[:0:-1]):
            onward = steps.rates @ values / steps.rate
            values = exceeding * costs.T + steps.stay[0][:, None] * values + onward
        rounding = steps.rounding(TERMS) + gamma(4 * TERMS)
        return cls(values.T / steps.rate, largest, largest * rounding)

    def doubled(self, power: _Power) -> _Spent:
        """U_(i + 1) c."""
        rounding = power.error + gamma(power.high.shape[0] + 4)
        return _Spent(
            self.values + self.values @ power.high.T,
            2.0 * self.largest,
            2.0 * self.error + self.largest * rounding,
        )
