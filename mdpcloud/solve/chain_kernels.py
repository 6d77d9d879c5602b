"""Passes over vectors of an iterative solve, and walks on a chain given by rows.

Each pass reads and writes every vector once. The vectors are zero outside the space.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.engine.kernels import SEED, uniform
from mdpcloud.engine.vector_kernels import FAST, least, most


@kernel(fastmath=FAST)
def dot(a, b):
    """a'b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=FAST)
def dots(a, b):
    """a'b and a'a."""
    mixed = 0.0
    own = 0.0
    for i in range(a.size):
        mixed += a[i] * b[i]
        own += a[i] * a[i]
    return mixed, own


@kernel(fastmath=FAST)
def subtract(a, factor, b):
    """a -= factor * b."""
    for i in range(a.size):
        a[i] -= factor * b[i]


@kernel(fastmath=FAST)
def advance(x, residual, direction, turned, shadow, alpha, omega):
    """x += alpha * direction + omega * residual, then residual -= omega * turned.

    Returns shadow'residual and the least and the largest residual.
    """
    total = 0.0
    low = 0.0
    high = 0.0
    for i in range(x.size):
        r = residual[i]
        x[i] += alpha * direction[i] + omega * r
        r -= omega * turned[i]
        residual[i] = r
        total += shadow[i] * r
        low = least(low, r)
        high = most(high, r)
    return total, low, high


@kernel(fastmath=FAST)
def redirect(direction, residual, image, beta, omega):
    """direction = residual + beta * (direction - omega * image)."""
    for i in range(direction.size):
        direction[i] = residual[i] + beta * (direction[i] - omega * image[i])


@kernel()
def walk(pointer, column, rate, start, jumps):
    """The state where a walk on a generator in CSR form spends most time in its second half.

    It begins in ``start``; a state that is never left is returned at once.
    """
    spent = np.zeros(pointer.size - 1)
    x = start
    seed = SEED
    for n in range(jumps):
        total = 0.0
        for j in range(pointer[x], pointer[x + 1]):
            if column[j] != x:
                total += rate[j]
        if not total > 0.0:
            return x
        if 2 * n >= jumps:
            spent[x] += 1.0 / total
        seed, share = uniform(seed)
        left = share * total
        y = x
        for j in range(pointer[x], pointer[x + 1]):
            if column[j] != x and rate[j] > 0.0:
                y = column[j]
                left -= rate[j]
                if left < 0.0:
                    break
        x = y
    return int(np.argmax(spent))
