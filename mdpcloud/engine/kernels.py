"""Kernels that take any compiled model: state by state, action by action, move by move.

They run in plain order, without fastmath, and decide what is certified. Sweeps over large models
are written and compiled for the model's structure (`mdpcloud.engine.fused`); those here are the
second method, and the first on small models.

Cells outside the space hold `FAR`, which no minimum ever takes, so box edges, regions and forbidden
actions need no branches and the kernels no infinities. See `mdpcloud.engine.program` for the
arrays. Numba compiles each kernel once: both forms of a model and fixed actions differ in the sizes
of arrays alone (``targets`` has no row in the lattice form, ``choice`` none where the minimum is
taken).
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.engine.vector_kernels import FAR

UNIT_ROUNDOFF = 2.0**-53
NONE = -1
LOOSE = 1e-9  # of the sum of absolute values: more than the rounding of any value
DEAR = 1e3  # times the best action's size: from here on it is worth asking who may be best
SEED = np.uint64(88172645463325252)  # any but 0


@kernel()
def _entry(p, f, b, i):
    start = p.start[f, b]
    return p.data[start + i] if p.vector[f] else p.data[start]


@kernel()
def _value_and_size(h, p, targets, a, b, i):
    """k_a + sum_j w_aj (h(y) - h(x)) at cell i of block b, and the same sum of absolute values."""
    cell = p.base[b] + i
    value = 0.0
    if p.action_cost[a] != NONE:
        value = _entry(p, p.action_cost[a], b, i)
    size = abs(value)
    for j in range(p.action_move[a], p.action_move[a + 1]):
        there = cell + p.offset[j] if len(targets) == 0 else targets[j, cell]
        flow = h[there] - h[cell]
        if p.move_weight[j] != NONE:
            flow *= _entry(p, p.move_weight[j], b, i)
        value += flow
        size += abs(flow)
    return value, size


@kernel()
def _right_side(h, p, targets, choice, b, i, discount):
    """Right-hand side at one state, and the sum of absolute values that bounds its rounding."""
    here = h[p.base[b] + i]
    total = -discount * here
    size = abs(total)
    for f in p.cost:
        cost = _entry(p, f, b, i)
        total += cost
        size += abs(cost)
    for e in range(p.term_rate.size):
        rate = _entry(p, p.term_rate[e], b, i)
        if rate == 0.0:
            continue
        first = p.term_action[e]
        last = p.term_action[e + 1]
        if len(choice) > 0 and last - first > 1:
            first += choice[p.term_choice[e], p.base[b] + i]
            last = first + 1
        best, largest = _best_and_size(h, p, targets, first, last, b, i)
        total += rate * best
        size += rate * largest
    return total, size


@kernel()
def _best_and_size(h, p, targets, first, last, b, i):
    """Least value of some actions, and the largest size of those that may have it.

    Action a may have it if value_a - error_a <= value_b + error_b for every b; `LOOSE` times a size
    is more than any error.
    """
    best = FAR
    own = 0.0
    largest = 0.0
    reach = FAR
    for a in range(first, last):
        value, size = _value_and_size(h, p, targets, a, b, i)
        if value < best:
            best = value
            own = size
        if value < 1e200:
            largest = max(largest, size)
            reach = min(reach, value + LOOSE * size)
    if largest > DEAR * own:
        largest = own
        for a in range(first, last):
            value, size = _value_and_size(h, p, targets, a, b, i)
            if value - LOOSE * size <= reach:
                largest = max(largest, size)
    return best, largest


@kernel()
def sweeps(h, out, p, targets, choice, count, keep, step, shift, discount, target, recentre):
    """Up to count sweeps, h and out in turn, until high - low <= target.

    A sweep sets out = keep * h + step * (v - shift), v being the right-hand side; cells outside the
    space keep what h holds there. With ``recentre`` the middle of the last bounds is subtracted, so
    that relative values stay small. Returns (sweeps done, low, high).
    """
    low = -FAR
    high = FAR
    done = 0
    while done < count and high - low > target:
        low = FAR
        high = -FAR
        for b in range(p.size.size):
            for i in range(p.size[b]):
                if p.inside[p.mask[b] + i]:
                    v, _ = _right_side(h, p, targets, choice, b, i, discount)
                    low = min(low, v)
                    high = max(high, v)
                    x = p.base[b] + i
                    out[x] = keep * h[x] + step * (v - shift)
        h, out = out, h
        done += 1
        if recentre:
            shift = 0.5 * (low + high)
        if not high - low < FAR:
            break
    return done, low, high


@kernel()
def certify(h, p, targets, choice, discount):
    """Bounds of the right-hand side, widened by its rounding error; (low, high, finite).

    A state's value is a sum of at most ``p.depth`` rounded additions and products of the model's
    float64 numbers, each difference h(y) - h(x) rounded once, so its error is at most gamma_depth
    times the sum of absolute values (Higham, Accuracy and Stability of Numerical Algorithms, lemma
    3.1); a minimum errs by no more than the largest error among the members that may attain it.
    Both the sum of absolute values and the widening are rounded too: doubling gamma covers them.
    """
    gamma = 2.0 * p.depth * UNIT_ROUNDOFF / (1.0 - p.depth * UNIT_ROUNDOFF)
    low = FAR
    high = -FAR
    finite = True
    for b in range(p.size.size):
        for i in range(p.size[b]):
            if p.inside[p.mask[b] + i]:
                total, size = _right_side(h, p, targets, choice, b, i, discount)
                if not np.isfinite(total) or not np.isfinite(size):
                    finite = False
                error = gamma * size
                low = min(low, total - error)
                high = max(high, total + error)
    return low, high, finite


@kernel()
def greedy(h, p, targets, choice, margin):
    """Write into choice (terms, states) the first action within margin of the best.

    The margin is cost/time: of rate times action value. Where the term's rate is 0 the entry stays
    as it is.
    """
    values = np.empty(p.action_cost.size)
    state = 0
    for b in range(p.size.size):
        for i in range(p.size[b]):
            if p.inside[p.mask[b] + i]:
                for e in range(p.term_rate.size):
                    rate = _entry(p, p.term_rate[e], b, i)
                    if rate > 0.0 and p.term_choice[e] == NONE:
                        choice[e, state] = 0
                    elif rate > 0.0:
                        best = _first_best(h, p, targets, e, b, i, margin / rate, values)
                        choice[e, state] = best
                state += 1


@kernel()
def spread(p, f, out):
    """Write a field into out, one number per state."""
    state = 0
    for b in range(p.size.size):
        for i in range(p.size[b]):
            if p.inside[p.mask[b] + i]:
                out[state] = _entry(p, f, b, i)
                state += 1


@kernel()
def _first_best(h, p, targets, e, b, i, margin, values):
    first = p.term_action[e]
    last = p.term_action[e + 1]
    best = FAR
    for a in range(first, last):
        values[a], _ = _value_and_size(h, p, targets, a, b, i)
        best = min(best, values[a])
    for a in range(first, last):
        if values[a] <= best + margin:
            return a - first
    return 0


@kernel()
def uniform(seed):
    """Next state of a generator (xorshift, Marsaglia 2003), and a random number in [0, 1)."""
    seed ^= seed << np.uint64(13)
    seed ^= seed >> np.uint64(7)
    seed ^= seed << np.uint64(17)
    return seed, float(seed >> np.uint64(11)) * 2.0**-53


@kernel()
def walk(p, targets, choice, start, jumps):
    """Cells that a walk under fixed actions visits in its second half, and how long it stays there.

    It begins in the cell ``start``; one that is never left is returned at once.
    """
    half = jumps // 2
    cells = np.empty(jumps - half, np.int64)
    stays = np.empty(jumps - half)
    x = start
    seed = SEED
    for n in range(jumps):
        total, _ = _pass(p, targets, choice, x, FAR)
        if not total > 0.0:
            return np.array([x]), np.ones(1)
        if n >= half:
            cells[n - half] = x
            stays[n - half] = 1.0 / total
        seed, share = uniform(seed)
        _, x = _pass(p, targets, choice, x, share * total)
    return cells, stays


@kernel()
def _pass(p, targets, choice, x, left):
    """Add up the rates of the moves out of cell x until they exceed left: sum and last target."""
    b = np.searchsorted(p.base, x, side="right") - 1
    i = x - p.base[b]
    total = 0.0
    y = x
    for e in range(p.term_rate.size):
        a = p.term_action[e]
        if len(choice) > 0 and p.term_action[e + 1] - a > 1:
            a += max(0, choice[p.term_choice[e], x])
        rate = _entry(p, p.term_rate[e], b, i)
        for j in range(p.action_move[a], p.action_move[a + 1]):
            flow = rate
            if p.move_weight[j] != NONE:
                flow *= _entry(p, p.move_weight[j], b, i)
            there = x + p.offset[j] if len(targets) == 0 else targets[j, x]
            if flow > 0.0 and there != x and total <= left:
                total += flow
                y = there
    return total, y
