"""Compiled loops over explicit rows.

A state's rows are ``first[x] ... first[x+1]``, those of one term adjacent; the moves of row l are
``indptr[l] ... indptr[l+1]``. Every function gets the same seven arrays in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Pointers = NDArray[np.unsignedinteger[Any]]
Targets = NDArray[np.uint32]


@kernel(fastmath=True)
def sweep(
    first: Longs,
    term: Ints,
    cost_rate: Floats,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    h: Floats,
    out: Floats,
    step: float,
    shift: float,
    discount: float,
) -> tuple[float, float]:
    """Back up once: out = h + step (v - shift); the smallest and the largest v."""
    low, high = 1e300, -1e300
    for x in range(cost_rate.size):
        here = h[x]
        v = cost_rate[x] - discount * here
        row, end = first[x], first[x + 1]
        while row < end:
            e = term[row]
            best = 1e300
            while row < end and term[row] == e:
                acc = cost[row]
                for j in range(indptr[row], indptr[row + 1]):
                    acc += weights[j] * (h[indices[j]] - here)
                best = min(best, acc)
                row += 1
            v += best
        out[x] = here + step * (v - shift)
        low = min(low, v)
        high = max(high, v)
    return low, high


@kernel()
def enclose(
    first: Longs,
    term: Ints,
    cost_rate: Floats,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    h: Floats,
    lower: Floats,
    upper: Floats,
    discount: float,
    roundings: int,
) -> bool:
    """Write proved bounds on every v(x) into lower and upper; False if a value is not finite.

    Lemma. Let y = y_1 + ... + y_m be computed so that each term meets at most K < 2**26 roundings,
    and M = |y_1| + ... + |y_m| likewise. Then |fl(y) - y| <= gamma_K M and M <= (1 + gamma_K) fl(M)
    (Higham, section 3.1). With e = fl(g fl(M)) and g = gamma_{K+6}, subtracting once more gives
    fl(fl(y) - e) <= fl(y) - e + u (|fl(y)| + e) <= y, because (1 - u)^3 g is at least
    (gamma_K + u (1 + gamma_K)) (1 + gamma_K) for such K. A product that underflows is off by at
    most 2**-1075, so e also gets 2**-1074 for each product that may have done so. The same holds
    for the upper end.

    The lemma is used per row (difference, product, m additions, and the roundings the stored
    entries had before: K = m + 2 + roundings), where the minimum over rows is taken of both ends,
    and per state (one addition per term, the product and the difference of the discount).
    """
    unit, tiny = 2.0**-53, 2.0**-1074
    for x in range(cost_rate.size):
        here = h[x]
        low = cost_rate[x]
        high = low
        size = abs(low)
        terms = 0
        row, end = first[x], first[x + 1]
        while row < end:
            e = term[row]
            best_low, best_high = np.inf, np.inf
            while row < end and term[row] == e:
                acc = cost[row]
                magnitude = abs(acc)
                small = 0
                count = indptr[row + 1] - indptr[row]
                for j in range(indptr[row], indptr[row + 1]):
                    difference = h[indices[j]] - here
                    product = weights[j] * difference
                    acc += product
                    magnitude += abs(product)
                    if abs(product) < 1e-290 and difference != 0.0:
                        small += 1
                if not np.isfinite(acc):
                    return False
                k = count + roundings + 8
                if 0.0 < magnitude < 1e-290:
                    small += 4
                error = k * unit / (1.0 - (k + 1) * unit) * magnitude + small * tiny
                best_low = min(best_low, acc - error)
                best_high = min(best_high, acc + error)
                row += 1
            low += best_low
            high += best_high
            size += max(abs(best_low), abs(best_high))
            terms += 1
        gone = discount * here
        size += abs(gone)
        hidden = abs(gone) < 1e-290 and discount != 0.0 and here != 0.0
        small = 5 if hidden or 0.0 < size < 1e-290 else 0
        k = terms + roundings + 8
        error = k * unit / (1.0 - (k + 1) * unit) * size + small * tiny
        lower[x] = (low - gone) - error
        upper[x] = (high - gone) + error
        if not (np.isfinite(lower[x]) and np.isfinite(upper[x])):
            return False
    return True


@kernel()
def best_rows(
    first: Longs,
    term: Ints,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    h: Floats,
    margin: float,
    chosen: Longs,
) -> None:
    """Write the first row within margin of the best of each group of rows, group by group."""
    values = np.empty(0)
    group = 0
    for x in range(first.size - 1):
        here = h[x]
        begin, end = first[x], first[x + 1]
        if values.size < end - begin:
            values = np.empty(2 * (end - begin))
        row = begin
        while row < end:
            e = term[row]
            start = row
            best = np.inf
            while row < end and term[row] == e:
                acc = cost[row]
                for j in range(indptr[row], indptr[row + 1]):
                    acc += weights[j] * (h[indices[j]] - here)
                values[row - begin] = acc
                best = min(best, acc)
                row += 1
            chosen[group] = start
            while values[chosen[group] - begin] > best + margin:
                chosen[group] += 1
            group += 1


@kernel()
def count_stays(indptr: Pointers, indices: Targets, state: Ints) -> int:
    """How many moves lead back to the state of their row."""
    stays = 0
    for row in range(state.size):
        here = state[row]
        for j in range(indptr[row], indptr[row + 1]):
            stays += indices[j] == here
    return stays


@kernel()
def drop_stays(
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    state: Ints,
    begins: Pointers,
    targets: Ints,
    kept: Floats,
) -> None:
    """Copy the matrix into the last three arrays without the moves that `count_stays` counts."""
    k = 0
    for row in range(state.size):
        here = state[row]
        begins[row] = k
        for j in range(indptr[row], indptr[row + 1]):
            if indices[j] != here:
                targets[k] = indices[j]
                kept[k] = weights[j]
                k += 1
    begins[state.size] = k


@kernel()
def prune(
    group: Ints,
    left: Ints,
    back_indptr: Longs,
    back_rows: Ints,
    row_state: Ints,
    row_alive: NDArray[np.bool_],
    state_alive: NDArray[np.bool_],
    stack: Ints,
    size: int,
) -> None:
    """Remove dead states (the first `size` of stack) and what can no longer avoid them.

    A row into a dead state dies; a group (state and term) without a live row kills its state.
    ``left[g]`` counts the live rows of group g.
    """
    while size > 0:
        size -= 1
        dead = stack[size]
        for j in range(back_indptr[dead], back_indptr[dead + 1]):
            row = back_rows[j]
            if not row_alive[row]:
                continue
            row_alive[row] = False
            left[group[row]] -= 1
            origin = row_state[row]
            if left[group[row]] == 0 and state_alive[origin]:
                state_alive[origin] = False
                stack[size] = origin
                size += 1
