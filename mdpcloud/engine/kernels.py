"""Kernels of the compiled form: Bellman sweeps, their certificate, greedy choices.

One source serves both forms of a compiled model. Cells of the value array are processed block by block; the
values at the target of a move are a slice of the array (lattice form, ``targets is None``: a constant offset)
or are gathered (indexed form: one target column per move). Numba compiles each case apart, because a
``None`` argument prunes the other branch; so it does for ``choice`` (fixed actions instead of the minimum).

Cells outside the space hold `FAR`, which no minimum ever takes, so box edges, regions and forbidden actions
need no branches and the kernels no infinities. See `mdpcloud.engine.program` for the arrays.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from mdpcloud.engine.jit import kernel

FAR = 1e300
FAST = {"nnan", "nsz", "arcp", "contract", "afn", "reassoc"}
UNIT_ROUNDOFF = 2.0**-53
NONE = -1


@kernel(fastmath=FAST)
def _scalar(p, f, b):
    """A field that is one number in block b; no field is 0."""
    return 0.0 if f == NONE else p.data[p.start[f, b]]


@kernel(fastmath=FAST)
def _begin(acc, here, p, b, discount):
    """acc = cost rate - discount * h, for the cells of block b."""
    constant = 0.0
    started = False
    for f in p.cost:
        start = p.start[f, b]
        if not p.vector[f]:
            constant += p.data[start]
        elif not started:
            acc[:] = p.data[start : start + acc.size]
            started = True
        else:
            more = p.data[start : start + acc.size]
            for i in range(acc.size):
                acc[i] += more[i]
    if not started:
        acc[:] = constant
    elif constant != 0.0:
        for i in range(acc.size):
            acc[i] += constant
    if discount != 0.0:
        for i in range(acc.size):
            acc[i] -= discount * here[i]


@kernel(fastmath=FAST)
def _at_target(h, p, targets, j, b, buffer):
    """Values at the targets of move j for the cells of block b: a view, or gathered into buffer."""
    base = p.base[b]
    size = p.size[b]
    if targets is None:
        first = base + p.offset[j]
        return h[first : first + size]
    column = targets[j, base : base + size]
    for i in range(size):
        buffer[i] = h[column[i]]
    return buffer[:size]


@kernel(fastmath=FAST)
def _add_flow(acc, here, there, p, rate, b):
    """acc += rate * (there - here), the share of a term with one plain step."""
    start = p.start[rate, b]
    if p.vector[rate]:
        factors = p.data[start : start + acc.size]
        for i in range(acc.size):
            acc[i] += factors[i] * (there[i] - here[i])
    else:
        factor = p.data[start]
        for i in range(acc.size):
            acc[i] += factor * (there[i] - here[i])


@kernel(fastmath=FAST)
def _add_two_flows(acc, here, first, second, p, rate, other, b):
    """Two flows in one pass, where both rates vary inside the block."""
    start = p.start[rate, b]
    factors = p.data[start : start + acc.size]
    start = p.start[other, b]
    others = p.data[start : start + acc.size]
    for i in range(acc.size):
        acc[i] += factors[i] * (first[i] - here[i]) + others[i] * (second[i] - here[i])


@kernel(fastmath=FAST)
def _add_flows(acc, here, h, p, targets, b, buffers):
    """The terms with one plain step and no cost."""
    pending = NONE
    for e in p.flow:
        rate = p.term_rate[e]
        move = p.action_move[p.term_action[e]]
        if not p.vector[rate]:
            _add_flow(acc, here, _at_target(h, p, targets, move, b, buffers[0]), p, rate, b)
        elif pending == NONE:
            pending = e
        else:
            second = p.action_move[p.term_action[pending]]
            one = _at_target(h, p, targets, move, b, buffers[0])
            two = _at_target(h, p, targets, second, b, buffers[1])
            _add_two_flows(acc, here, one, two, p, rate, p.term_rate[pending], b)
            pending = NONE
    if pending != NONE:
        move = p.action_move[p.term_action[pending]]
        there = _at_target(h, p, targets, move, b, buffers[0])
        _add_flow(acc, here, there, p, p.term_rate[pending], b)


@kernel(fastmath=FAST)
def _source(h, here, p, targets, a, b, buffer):
    """Values after plain action a: at its target, or here when it does not move."""
    if p.action_move[a + 1] == p.action_move[a]:
        return here
    return _at_target(h, p, targets, p.action_move[a], b, buffer)


@kernel(fastmath=FAST)
def _least_of_four(best, s0, s1, s2, s3, c0, c1, c2, c3):
    for i in range(best.size):
        best[i] = min(min(s0[i] + c0, s1[i] + c1), min(s2[i] + c2, s3[i] + c3))


@kernel(fastmath=FAST)
def _chosen_of_four(best, s0, s1, s2, s3, c0, c1, c2, c3, chosen, number):
    for i in range(best.size):
        value = s0[i] + c0
        value = s1[i] + c1 if chosen[i] == number + 1 else value
        value = s2[i] + c2 if chosen[i] == number + 2 else value
        value = s3[i] + c3 if chosen[i] == number + 3 else value
        best[i] = value if chosen[i] >= number else best[i]


@kernel(fastmath=FAST)
def _plain_values(h, here, p, targets, choice, e, b, best, buffers):
    """best = min (or choice) over plain actions of k_a + h(y_a), four actions a pass."""
    first = p.term_action[e]
    last = p.term_action[e + 1]
    for a in range(first, last, 4):
        a1 = min(a + 1, last - 1)
        a2 = min(a + 2, last - 1)
        a3 = min(a + 3, last - 1)
        s0 = _source(h, here, p, targets, a, b, buffers[0])
        s1 = _source(h, here, p, targets, a1, b, buffers[1])
        s2 = _source(h, here, p, targets, a2, b, buffers[2])
        s3 = _source(h, here, p, targets, a3, b, buffers[3])
        c0 = _scalar(p, p.action_cost[a], b)
        c1 = _scalar(p, p.action_cost[a1], b)
        c2 = _scalar(p, p.action_cost[a2], b)
        c3 = _scalar(p, p.action_cost[a3], b)
        if choice is not None:
            chosen = choice[p.term_choice[e], p.base[b] : p.base[b] + best.size]
            _chosen_of_four(best, s0, s1, s2, s3, c0, c1, c2, c3, chosen, a - first)
        elif a == first:
            _least_of_four(best, s0, s1, s2, s3, c0, c1, c2, c3)
        else:
            rest = buffers[4, : best.size]
            _least_of_four(rest, s0, s1, s2, s3, c0, c1, c2, c3)
            for i in range(best.size):
                best[i] = min(best[i], rest[i])


@kernel(fastmath=FAST)
def _action_value(h, here, p, targets, a, b, value, buffer):
    """value = k_a + sum_j w_aj (h(y_j) - h(x)) for the cells of block b."""
    cost = p.action_cost[a]
    if cost != NONE and p.vector[cost]:
        start = p.start[cost, b]
        value[:] = p.data[start : start + value.size]
    else:
        value[:] = _scalar(p, cost, b)
    for j in range(p.action_move[a], p.action_move[a + 1]):
        there = _at_target(h, p, targets, j, b, buffer)
        weight = p.move_weight[j]
        if weight == NONE:
            for i in range(value.size):
                value[i] += there[i] - here[i]
        else:
            _add_flow(value, here, there, p, weight, b)


@kernel(fastmath=FAST)
def _general_values(h, here, p, targets, choice, e, b, best, buffers):
    """best = min (or choice) over actions of k_a + sum_j w_aj (h(y_j) - h(x))."""
    first = p.term_action[e]
    value = buffers[1, : best.size]
    _action_value(h, here, p, targets, first, b, best, buffers[0])
    for a in range(first + 1, p.term_action[e + 1]):
        _action_value(h, here, p, targets, a, b, value, buffers[0])
        if choice is None:
            for i in range(best.size):
                best[i] = min(best[i], value[i])
        else:
            chosen = choice[p.term_choice[e], p.base[b] : p.base[b] + best.size]
            for i in range(best.size):
                best[i] = value[i] if chosen[i] == a - first else best[i]


@kernel(fastmath=FAST)
def _add_product(acc, p, f, b, values):
    start = p.start[f, b]
    if p.vector[f]:
        rate = p.data[start : start + acc.size]
        for i in range(acc.size):
            acc[i] += rate[i] * values[i]
    else:
        factor = p.data[start]
        for i in range(acc.size):
            acc[i] += factor * values[i]


@kernel(fastmath=FAST)
def _block(h, p, targets, choice, b, discount, acc, best, buffers):
    """acc = right-hand side of the optimality equation, less discount * h, for the cells of block b."""
    here = h[p.base[b] : p.base[b] + acc.size]
    _begin(acc, here, p, b, discount)
    _add_flows(acc, here, h, p, targets, b, buffers)
    for e in p.plain_term:
        _plain_values(h, here, p, targets, choice, e, b, best, buffers)
        _add_flow(acc, here, best, p, p.term_rate[e], b)
    for e in p.general_term:
        _general_values(h, here, p, targets, choice, e, b, best, buffers)
        _add_product(acc, p, p.term_rate[e], b, best)


@kernel(fastmath=FAST)
def _fill_gaps(target, first, last, runs_first, runs_last, source, constant):
    """Set the cells of a block that no run covers: to the source where there is one, else to a constant."""
    place = 0
    for k in range(first, last):
        for i in range(place, runs_first[k]):
            target[i] = constant if source is None else source[i]
        place = runs_last[k]
    for i in range(place, target.size):
        target[i] = constant if source is None else source[i]


@kernel(fastmath=FAST)
def _write(here, result, acc, keep, step, shift, low, high):
    """result = keep * here + step (acc - shift); bounds of acc."""
    for i in range(acc.size):
        low = min(low, acc[i])
        high = max(high, acc[i])
        result[i] = keep * here[i] + step * (acc[i] - shift)
    return low, high


@kernel(fastmath=FAST)
def sweep_blocks(h, out, p, targets, choice, first, last, keep, step, shift, discount):
    """One sweep over the blocks first..last-1; the least and the largest right-hand side v.

    It sets out = keep * h + step * (v - shift); cells outside the space keep what h holds there.
    """
    work = np.empty((7, p.width))
    low = FAR
    high = -FAR
    for b in range(first, last):
        if p.run[b] == p.run[b + 1]:
            continue
        m = p.size[b]
        acc = work[0, :m]
        _block(h, p, targets, choice, b, discount, acc, work[1, :m], work[2:])
        here = h[p.base[b] : p.base[b] + m]
        result = out[p.base[b] : p.base[b] + m]
        inside = acc[p.run_first[p.run[b]]]
        _fill_gaps(acc, p.run[b], p.run[b + 1], p.run_first, p.run_last, None, inside)
        low, high = _write(here, result, acc, keep, step, shift, low, high)
        _fill_gaps(result, p.run[b], p.run[b + 1], p.run_first, p.run_last, here, 0.0)
    return low, high


@kernel(fastmath=FAST)
def sweeps(h, out, p, targets, choice, count, keep, step, shift, discount, target, recentre):
    """Up to count sweeps, h and out in turn, until high - low <= target.

    With ``recentre`` the middle of the last bounds is subtracted, so that relative values stay small.
    Returns (sweeps done, low, high, whether the last result is in out).
    """
    low = -FAR
    high = FAR
    done = 0
    for n in range(count):
        if n % 2 == 0:
            low, high = sweep_blocks(h, out, p, targets, choice, 0, p.size.size, keep, step, shift, discount)
        else:
            low, high = sweep_blocks(out, h, p, targets, choice, 0, p.size.size, keep, step, shift, discount)
        done = n + 1
        if recentre:
            shift = 0.5 * (low + high)
        if high - low <= target or not high - low < FAR:
            break
    return done, low, high, done % 2 == 1


@kernel(fastmath=FAST, parallel=True)
def sweeps_parallel(h, out, p, targets, choice, count, keep, step, shift, discount, target, recentre):
    """As `sweeps`, the blocks split in as many chunks as threads."""
    chunks = get_num_threads()
    blocks = p.size.size
    lows = np.empty(chunks)
    highs = np.empty(chunks)
    low = -FAR
    high = FAR
    done = 0
    for n in range(count):
        source = h if n % 2 == 0 else out
        result = out if n % 2 == 0 else h
        for c in prange(chunks):
            lows[c], highs[c] = sweep_blocks(
                source,
                result,
                p,
                targets,
                choice,
                c * blocks // chunks,
                (c + 1) * blocks // chunks,
                keep,
                step,
                shift,
                discount,
            )
        low = lows.min()
        high = highs.max()
        done = n + 1
        if recentre:
            shift = 0.5 * (low + high)
        if high - low <= target or not high - low < FAR:
            break
    return done, low, high, done % 2 == 1


# The kernels below run in plain order, without fastmath: they decide what is certified.


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
        there = cell + p.offset[j] if targets is None else targets[j, cell]
        flow = h[there] - h[cell]
        if p.move_weight[j] != NONE:
            flow *= _entry(p, p.move_weight[j], b, i)
        value += flow
        size += abs(flow)
    return value, size


@kernel()
def _state_bounds(h, p, targets, choice, b, i, discount):
    """Right-hand side at one state and the sum of absolute values that its rounding error is tied to."""
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
        if choice is not None and last - first > 1:
            first += choice[p.term_choice[e], p.base[b] + i]
            last = first + 1
        best = FAR
        best_size = 0.0
        for a in range(first, last):
            value, value_size = _value_and_size(h, p, targets, a, b, i)
            best = min(best, value)
            if value < 1e200:
                best_size = max(best_size, value_size)
        total += rate * best
        size += rate * best_size
    return total, size


@kernel()
def certify(h, p, targets, choice, discount):
    """Bounds of the right-hand side over all states, widened by its rounding error; (low, high, finite).

    A state's value is a sum of at most ``p.depth`` rounded additions and products of the model's float64
    numbers, each difference h(y) - h(x) rounded once, so its error is at most gamma_depth times the sum of
    absolute values (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1); a minimum errs by no
    more than the largest error among its members. Both the sum of absolute values and the widening are
    rounded too: doubling gamma covers them.
    """
    gamma = 2.0 * p.depth * UNIT_ROUNDOFF / (1.0 - p.depth * UNIT_ROUNDOFF)
    low = FAR
    high = -FAR
    finite = True
    for b in range(p.size.size):
        for k in range(p.run[b], p.run[b + 1]):
            for i in range(p.run_first[k], p.run_last[k]):
                total, size = _state_bounds(h, p, targets, choice, b, i, discount)
                if not np.isfinite(total) or not np.isfinite(size):
                    finite = False
                error = gamma * size
                low = min(low, total - error)
                high = max(high, total + error)
    return low, high, finite


@kernel()
def greedy(h, p, targets, choice, margin):
    """Write into choice (multi-action terms, cells) the first action within margin of the best.

    Where the term's rate is 0 the entry stays as it is.
    """
    for b in range(p.size.size):
        for k in range(p.run[b], p.run[b + 1]):
            for i in range(p.run_first[k], p.run_last[k]):
                for e in range(p.term_rate.size):
                    row = p.term_choice[e]
                    if row != NONE and _entry(p, p.term_rate[e], b, i) > 0.0:
                        choice[row, p.base[b] + i] = _first_best(h, p, targets, e, b, i, margin)


@kernel()
def _first_best(h, p, targets, e, b, i, margin):
    first = p.term_action[e]
    last = p.term_action[e + 1]
    best = FAR
    for a in range(first, last):
        value, _ = _value_and_size(h, p, targets, a, b, i)
        best = min(best, value)
    for a in range(first, last):
        value, _ = _value_and_size(h, p, targets, a, b, i)
        if value <= best + margin:
            return a - first
    return 0
