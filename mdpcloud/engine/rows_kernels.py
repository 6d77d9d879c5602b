"""Compiled loops over explicit rows.

The groups of a state (a group has the rows of one term) are ``first[x] ... first[x+1]``, the rows
of a group ``begin[g] ... begin[g+1]``, the moves of row l ``indptr[l] ... indptr[l+1]``; groups,
rows and moves are numbered through, so a sweep counts them up. Every function gets the same seven
arrays in the same order. Counters and targets are unsigned: a signed index is checked for
wrap-around, which took a third of the time.
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


ONE = np.uint64(1)
HELD = 30  # sweeps under one policy at most
CLOSED = 0.05  # bracket at which they end, as part of the one they began with


@kernel(fastmath=True)
def _sweep(
    first: Longs,
    begin: Longs,
    cost_rate: Floats,
    cost: Floats,
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    h: Floats,
    out: Floats,
    chosen: Targets,
    step: float,
    shift: float,
    discount: float,
) -> tuple[float, float]:
    """Back up once: out = h + step (v - shift); the smallest and the largest v, and the rows."""
    low, high = 1e300, -1e300
    group, row, j = np.uint64(0), np.uint64(0), np.uint64(0)
    for x in range(cost_rate.size):
        here = h[x]
        v = cost_rate[x] - discount * here
        stop = np.uint64(first[x + 1])
        while group < stop:
            end = np.uint64(begin[group + ONE])
            best, arg = 1e300, row
            while row < end:
                acc = cost[row]
                last = np.uint64(indptr[row + ONE])
                while j < last:
                    acc += weights[j] * (h[indices[j]] - here)
                    j += ONE
                arg = row if acc < best else arg
                best = min(best, acc)
                row += ONE
            v += best
            chosen[group] = arg
            group += ONE
        out[x] = here + step * (v - shift)
        low = min(low, v)
        high = max(high, v)
    return low, high


@kernel(fastmath=True)
def _held_sweep(
    first: Longs,
    cost_rate: Floats,
    cost: Floats,
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    h: Floats,
    out: Floats,
    chosen: Targets,
    step: float,
    shift: float,
    discount: float,
) -> tuple[float, float]:
    """The same under the policy of the chosen rows."""
    low, high = 1e300, -1e300
    group = np.uint64(0)
    for x in range(cost_rate.size):
        here = h[x]
        v = cost_rate[x] - discount * here
        stop = np.uint64(first[x + 1])
        while group < stop:
            row = np.uint64(chosen[group])
            v += cost[row]
            j, last = np.uint64(indptr[row]), np.uint64(indptr[row + ONE])
            while j < last:
                v += weights[j] * (h[indices[j]] - here)
                j += ONE
            group += ONE
        out[x] = here + step * (v - shift)
        low = min(low, v)
        high = max(high, v)
    return low, high


@kernel()
def sweeps(
    first: Longs,
    begin: Longs,
    cost_rate: Floats,
    cost: Floats,
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    h: Floats,
    out: Floats,
    chosen: Targets,
    count: int,
    step: float,
    shift: float,
    discount: float,
    target: float,
    recentre: bool,
    held: int,
) -> tuple[int, float, float]:
    """Sweep up to count >= 1 times, h and out in turn, until high - low <= target.

    With held > 0 up to so many sweeps after each one keep its policy (modified policy iteration,
    Puterman and Shin 1978): they read one row per group. They end when the bracket under that
    policy is a twentieth of that of its full sweep; the last sweep is a full one, and low and high
    are those of the last full one. Where the bracket did not shrink, fewer are held.
    """
    done, low, high, best = 0, 0.0, 0.0, np.inf
    while done < count:
        low, high = _sweep(
            first,
            begin,
            cost_rate,
            cost,
            indptr,
            indices,
            weights,
            h,
            out,
            chosen,
            step,
            shift,
            discount,
        )
        h, out = out, h
        done += 1
        if high - low <= target:
            break
        if recentre:
            shift = 0.5 * (low + high)
        if high - low >= best:
            held //= 2
        best = min(best, high - low)
        left, width = min(held, count - done - 1), high - low
        while left > 0 and width > CLOSED * (high - low):
            below, above = _held_sweep(
                first,
                cost_rate,
                cost,
                indptr,
                indices,
                weights,
                h,
                out,
                chosen,
                step,
                shift,
                discount,
            )
            h, out = out, h
            done += 1
            left -= 1
            width = above - below
            shift = 0.5 * (below + above)
    return done, low, high


@kernel()
def enclose(
    first: Longs,
    begin: Longs,
    cost_rate: Floats,
    cost: Floats,
    indptr: Pointers,
    indices: Targets,
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
    most 2**-1075. Where fl(M) >= 1e-290 one more rounding in g covers 2**26 of them; below, e gets
    2**-1074 for each product that may have underflowed. The same holds for the upper end.

    The lemma is used per row (difference, product, m additions, and the roundings the stored
    entries had before: K = m + 2 + roundings), where the minimum over rows is taken of both ends,
    and per state (one addition per term, the product and the difference of the discount).
    """
    unit, tiny = 2.0**-53, 2.0**-1074
    group, row, j = np.uint64(0), np.uint64(0), np.uint64(0)
    for x in range(cost_rate.size):
        here = h[x]
        low = cost_rate[x]
        high = low
        size = abs(low)
        stop = np.uint64(first[x + 1])
        terms = first[x + 1] - first[x]
        while group < stop:
            group += ONE
            end = np.uint64(begin[group])
            best_low, best_high = np.inf, np.inf
            while row < end:
                acc = cost[row]
                magnitude = abs(acc)
                last = np.uint64(indptr[row + ONE])
                count = np.int64(last - j)
                while j < last:
                    product = weights[j] * (h[indices[j]] - here)
                    acc += product
                    magnitude += abs(product)
                    j += ONE
                if not np.isfinite(acc):
                    return False
                k = count + roundings + 9
                small = 0
                if magnitude < 1e-290:
                    small = 4 if magnitude > 0.0 else 0
                    for i in range(count):
                        small += h[indices[last - ONE - np.uint64(i)]] != here
                error = k * unit / (1.0 - (k + 1) * unit) * magnitude + small * tiny
                best_low = min(best_low, acc - error)
                best_high = min(best_high, acc + error)
                row += ONE
            low += best_low
            high += best_high
            size += max(abs(best_low), abs(best_high))
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
    begin: Longs,
    cost_rate: Floats,
    cost: Floats,
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    h: Floats,
    margin: float,
    chosen: Longs,
) -> None:
    """Write the first row within margin of the best of each group of rows, group by group."""
    values = np.empty(0)
    row, j = np.uint64(0), np.uint64(0)
    for x in range(cost_rate.size):
        here = h[x]
        for group in range(first[x], first[x + 1]):
            start, size = begin[group], begin[group + 1] - begin[group]
            if values.size < size:
                values = np.empty(2 * size)
            best = np.inf
            for k in range(size):
                acc = cost[row]
                last = np.uint64(indptr[row + ONE])
                while j < last:
                    acc += weights[j] * (h[indices[j]] - here)
                    j += ONE
                values[k] = acc
                best = min(best, acc)
                row += ONE
            k = 0
            while values[k] > best + margin:
                k += 1
            chosen[group] = start + k


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
