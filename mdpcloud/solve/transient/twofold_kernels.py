"""Arithmetic with twice the digits of float64: numbers high + low, |low| <= u |high|.

Sums and products keep their rounding errors (Dekker 1971; Ogita, Rump and Oishi, Accurate sum and
dot product, 2005): a product of matrices with entries >= 0 has entrywise relative errors below
(n + 4)^2 u^2. No kernel here may be compiled with fastmath, which would optimise the errors away.
"""

# mypy: ignore-errors

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from mdpcloud.engine.jit import kernel


@intrinsic
def _fused(context, a, b, c):
    """a * b + c, rounded once."""

    def emit(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), emit


@kernel()
def _plus(high, low, a):
    """high + low + a."""
    total = high + a
    part = total - high
    low += (high - (total - part)) + (a - part)
    high = total + low
    return high, low - (high - total)


@kernel()
def complements(pointer, rate, scale, high, low):
    """1 - (sum of a row) / scale, as high + low; the scale is a power of two or the row exceeds it.

    Where the sum is larger than the scale the complement is 0 or, but for rounding, negative.
    """
    for x in range(high.size):
        total, rest = 0.0, 0.0
        for j in range(pointer[x], pointer[x + 1]):
            total, rest = _plus(total, rest, -rate[j])
        share = total / scale
        error = _fused(-share, scale, total)
        high[x], low[x] = _plus(share, (error + rest) / scale, 1.0)


@kernel()
def shares(rate, scale, high, low):
    """rate / scale, as high + low."""
    for j in range(rate.size):
        share = rate[j] / scale
        high[j] = share
        low[j] = _fused(-share, scale, rate[j]) / scale


@kernel()
def _add_row(a, a_low, b, b_low, total, rest):
    """total + rest += a b for a row b; what rounding loses goes to the rest."""
    for j in range(b.size):
        product = a * b[j]
        error = _fused(a, b[j], -product) + (a * b_low[j] + a_low * b[j])
        before = total[j]
        after = before + product
        part = after - before
        total[j] = after
        rest[j] += ((before - (after - part)) + (product - part)) + error


@kernel()
def _settle(total, rest):
    for j in range(total.size):
        high = total[j] + rest[j]
        rest[j] -= high - total[j]
        total[j] = high


@kernel()
def multiply(a, a_low, b, b_low, total, rest):
    """total + rest = a b for square matrices with entries >= 0."""
    n = a.shape[0]
    for i in range(n):
        row, row_low = total[i], rest[i]
        row[:] = 0.0
        row_low[:] = 0.0
        for k in range(n):
            if a[i, k] != 0.0:
                _add_row(a[i, k], a_low[i, k], b[k], b_low[k], row, row_low)
        _settle(row, row_low)


@kernel()
def step_rows(pointer, column, share, share_low, stay, stay_low, a, a_low, total, rest):
    """total + rest = P a, P a sparse matrix with the diagonal stay."""
    for x in range(a.shape[0]):
        row, row_low = total[x], rest[x]
        row[:] = 0.0
        row_low[:] = 0.0
        _add_row(stay[x], stay_low[x], a[x], a_low[x], row, row_low)
        for j in range(pointer[x], pointer[x + 1]):
            y = column[j]
            _add_row(share[j], share_low[j], a[y], a_low[y], row, row_low)
        _settle(row, row_low)


@kernel()
def add_diagonal(total, rest, value, value_low):
    """total + rest += a multiple of the identity."""
    for i in range(total.shape[0]):
        high, low = _plus(total[i, i], rest[i, i], value)
        total[i, i], rest[i, i] = _plus(high, low, value_low)
