"""Passes over the vectors of an extrapolation; cells outside the space never differ."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.engine.vector_kernels import FAST


@kernel(fastmath=FAST)
def remember(start, h, image, residual, change, turn, more):
    """Set image and residual; their changes go to ``change`` and ``turn``, if there are any."""
    for i in range(h.size):
        f = h[i] - start[i]
        if more:
            change[i] = h[i] - image[i]
            turn[i] = f - residual[i]
        image[i] = h[i]
        residual[i] = f


@kernel(fastmath=FAST)
def _sums(a, b):
    mixed = 0.0
    first = 0.0
    second = 0.0
    for i in range(a.size):
        mixed += a[i] * b[i]
        first += a[i]
        second += b[i]
    return mixed, first, second


@kernel()
def products(rows, row, last, count, states):
    """Covariances (times states) of one row with the first ``count``, and of these with last."""
    new = np.empty(count)
    right = np.empty(count)
    for j in range(count):
        mixed, first, second = _sums(rows[j], rows[row])
        new[j] = mixed - first * second / states
        mixed, first, second = _sums(rows[j], last)
        right[j] = mixed - first * second / states
    return new, right


@kernel(fastmath=FAST)
def extrapolate(h, rows, weights):
    """h -= sum of weights times rows."""
    for j in range(weights.size):
        row = rows[j]
        weight = weights[j]
        for i in range(h.size):
            h[i] -= weight * row[i]
