"""Elimination without subtraction for equations with an M-matrix, and their residual.

The matrix is diag(row sums of R + e) - R with rates R >= 0 between the unknowns and rates e >= 0
out of them. Rates are stored by diagonals as in `mdpcloud.solve.stationary.kernels`.
"""

# mypy: ignore-errors

from __future__ import annotations

from mdpcloud.engine.jit import kernel
from mdpcloud.solve.transient.twofold_kernels import _fused, _plus


@kernel()
def eliminate(band, exits, pivots):
    """Factor the matrix; band and exits are overwritten. False if a pivot is 0.

    The diagonal is never formed by subtraction: it is the sum of the rates that are left
    (Grassmann, Taksar and Heyman 1985; O'Cinneide 1996; Alfa, Xue and Ye 2002).
    """
    m, b = band.shape[0], band.shape[1] // 2
    for k in range(m - 1, -1, -1):
        low = max(0, k - b)
        source = band[k, low - k + b : b]
        out = exits[k]
        for j in range(source.size):
            out += source[j]
        if not out > 0.0:
            return False
        pivots[k] = out
        for i in range(low, k):
            share = band[i, k - i + b] / out
            band[i, k - i + b] = share
            if share != 0.0:
                exits[i] += share * exits[k]
                target = band[i, low - i + b : k - i + b]
                for j in range(target.size):
                    target[j] += share * source[j]
    return True


@kernel()
def substitute(band, pivots, x):
    """Solve with the factors; x is the right side and becomes the solution."""
    m, b = band.shape[0], band.shape[1] // 2
    for k in range(m - 1, -1, -1):
        if x[k] != 0.0:
            for i in range(max(0, k - b), k):
                x[i] += band[i, k - i + b] * x[k]
    for k in range(m):
        flow = x[k]
        for i in range(max(0, k - b), k):
            flow += band[k, i - k + b] * x[i]
        x[k] = flow / pivots[k]


@kernel()
def collect(pointer, column, rate, inside, high, low):
    """Sum of the rates to the states inside, row by row, as high + low."""
    for x in range(high.size):
        total, rest = 0.0, 0.0
        for j in range(pointer[x], pointer[x + 1]):
            if inside[column[j]]:
                total, rest = _plus(total, rest, rate[j])
        high[x], low[x] = total, rest


@kernel()
def _take(total, rest, a, a_low, b, b_low):
    """total + rest - a b."""
    product = a * b
    error = _fused(a, b, -product) + (a * b_low + a_low * b)
    total, rest = _plus(total, rest, -product)
    return total, rest - error


@kernel()
def residuals(pointer, column, rate, exits, exits_low, right, right_low, x, x_low, left, size):
    """left = right - (matrix x), in twice the digits; size = the sum of the sizes of its terms.

    The error of left is below (terms + 10) 8 u^2 size, besides its own rounding.
    """
    for i in range(x.size):
        total, rest = right[i], right_low[i]
        total, rest = _take(total, rest, exits[i], exits_low[i], x[i], x_low[i])
        sizes = abs(right[i]) + exits[i] * abs(x[i])
        for j in range(pointer[i], pointer[i + 1]):
            y = column[j]
            change, lost = _plus(x[i], 0.0, -x[y])
            total, rest = _take(total, rest, rate[j], 0.0, change, lost + (x_low[i] - x_low[y]))
            sizes += rate[j] * (abs(x[i]) + abs(x[y]))
        left[i] = total + rest
        size[i] = sizes


@kernel()
def correct(x, x_low, change):
    """x + x_low += change."""
    for i in range(x.size):
        x[i], x_low[i] = _plus(x[i], x_low[i], change[i])
