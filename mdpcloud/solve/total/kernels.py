"""Compiled loops of shortest-path problems: searches, values of rows, elimination, sweeps.

Values are pairs of arrays, high + low, so that differences of close values keep their digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@kernel()
def search_back(
    indptr: Longs,
    rows: Ints,
    row_state: Ints,
    row_alive: Bools,
    level: Ints,
    order: Ints,
    size: int,
) -> int:
    """Search backwards, breadth first, from the first `size` states of order; how many there are.

    ``rows[indptr[y]:indptr[y + 1]]`` are the rows with a move to y. ``level`` is the distance, to
    begin with 0 at the first states and negative elsewhere.
    """
    head = 0
    while head < size:
        y = order[head]
        head += 1
        for j in range(indptr[y], indptr[y + 1]):
            row = rows[j]
            x = row_state[row]
            if row_alive[row] and level[x] < 0:
                level[x] = level[y] + 1
                order[size] = x
                size += 1
    return size


@kernel()
def head_for(
    order: Ints,
    level: Ints,
    first: Longs,
    group: Ints,
    cost_rate: Floats,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    chosen: Longs,
    values: Floats,
) -> None:
    """Choose the rows that come nearer to level 0: per state the one that most surely does.

    The other terms of the state take the row of the largest rate forwards less that backwards.
    Values are those of a process that stays where it is instead of moving backwards.
    """
    for i in range(order.size):
        x = order[i]
        best, share = -1, 0.0
        row, end = first[x], first[x + 1]
        while row < end:
            g, most = group[row], -np.inf
            while row < end and group[row] == g:
                near, far = 0.0, 0.0
                for j in range(indptr[row], indptr[row + 1]):
                    if level[indices[j]] < level[x]:
                        near += weights[j]
                    elif level[indices[j]] > level[x]:
                        far += weights[j]
                if near - far > most:
                    most = near - far
                    chosen[g] = row
                total = near + far
                if near > 0.0 and near / total > share:
                    best, share = row, near / total
                row += 1
        chosen[group[best]] = best
        rate, ahead = 0.0, cost_rate[x]
        for row in range(first[x], first[x + 1]):
            if chosen[group[row]] == row:
                ahead += cost[row]
                for j in range(indptr[row], indptr[row + 1]):
                    if level[indices[j]] < level[x]:
                        rate += weights[j]
                        ahead += weights[j] * values[indices[j]]
        values[x] = ahead / rate


@kernel()
def row_values(
    state: Ints,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    high: Floats,
    low: Floats,
    factor: float,
    roundings: int,
    value: Floats,
    error: Floats,
) -> None:
    """Compute factor k_l + sum_y A_ly (u(y) - u(x)) of every row, u = high + low, and its error.

    The bound is that of `mdpcloud.engine.rows_kernels.enclose` for two terms per move; each meets
    its difference, the product, the sum of both parts and one addition per move.
    """
    unit, tiny = 2.0**-53, 2.0**-1074
    for row in range(cost.size):
        x = state[row]
        acc = factor * cost[row]
        magnitude = abs(acc)
        small = 0
        for j in range(indptr[row], indptr[row + 1]):
            y = indices[j]
            first, second = high[y] - high[x], low[y] - low[x]
            product = weights[j] * (first + second)
            acc += product
            magnitude += abs(weights[j]) * (abs(first) + abs(second))
            if abs(product) < 1e-290 and (first != 0.0 or second != 0.0):
                small += 3
        k = indptr[row + 1] - indptr[row] + roundings + 11
        if 0.0 < magnitude < 1e-290:
            small += 4
        value[row] = acc
        error[row] = k * unit / (1.0 - (k + 1) * unit) * magnitude + small * tiny


@kernel()
def state_bounds(
    first: Longs,
    term: Ints,
    cost_rate: Floats,
    shift: Floats,
    factor: float,
    value: Floats,
    error: Floats,
    roundings: int,
    lower: Floats,
    upper: Floats,
) -> bool:
    """Bound factor c + shift + sum_e min_l value_l per state; False if one is not finite."""
    unit, tiny = 2.0**-53, 2.0**-1074
    finite = True
    for x in range(cost_rate.size):
        base = factor * cost_rate[x]
        low, high = base + shift[x], base + shift[x]
        size = abs(base) + abs(shift[x])
        terms = 0
        row, end = first[x], first[x + 1]
        while row < end:
            e = term[row]
            best_low, best_high = np.inf, np.inf
            while row < end and term[row] == e:
                best_low = min(best_low, value[row] - error[row])
                best_high = min(best_high, value[row] + error[row])
                row += 1
            low += best_low
            high += best_high
            size += max(abs(best_low), abs(best_high))
            terms += 1
        k = terms + roundings + 11
        widening = k * unit / (1.0 - (k + 1) * unit) * size + (5 * tiny if size > 0.0 else 0.0)
        lower[x], upper[x] = low - widening, high + widening
        finite = finite and np.isfinite(lower[x]) and np.isfinite(upper[x])
    return finite


@kernel()
def improve_rows(
    first: Longs,
    term: Ints,
    base: Floats,
    value: Floats,
    error: Floats,
    scale: Floats,
    chosen: Longs,
) -> int:
    """Exchange the chosen row of each group for the best one where that is surely better.

    Rows are compared by scale_l (base(x) + value_l). Returns how many were exchanged.
    """
    group, changed = 0, 0
    for x in range(first.size - 1):
        row, end = first[x], first[x + 1]
        while row < end:
            e, kept = term[row], chosen[group]
            bar = scale[kept] * (base[x] + value[kept] - error[kept])
            best, least = kept, scale[kept] * (base[x] + value[kept])
            while row < end and term[row] == e:
                here = scale[row] * (base[x] + value[row])
                if here < least and here + scale[row] * error[row] < bar:
                    best, least = row, here
                row += 1
            if best != kept:
                chosen[group] = best
                changed += 1
            group += 1
    return changed


@kernel()
def eliminate(rates: Floats, leaving: Floats, out: Floats) -> bool:
    """Eliminate the states of a chain from the last to the first, without a subtraction.

    Grassmann, Taksar and Heyman (1985), for a chain that ends: ``rates`` (m, m) between its states,
    ``leaving`` (m,) into the end. The lower part of rates keeps the moves of each state when it is
    eliminated, the upper part the multipliers. False where a state is not left.
    """
    for k in range(out.size - 1, -1, -1):
        total = leaving[k]
        for j in range(k):
            total += rates[k, j]
        out[k] = total
        if not (total > 0.0 and np.isfinite(total)):
            return False
        for i in range(k):
            share = rates[i, k] / total
            rates[i, k] = share
            if share > 0.0:
                leaving[i] += share * leaving[k]
                for j in range(k):
                    if j != i:
                        rates[i, j] += share * rates[k, j]
    return True


@kernel()
def substitute(rates: Floats, out: Floats, right: Floats) -> None:
    """Solve with what `eliminate` left, in place; every operation keeps the sign of the right."""
    for k in range(out.size - 1, 0, -1):
        for i in range(k):
            right[i] += rates[i, k] * right[k]
    for k in range(out.size):
        total = right[k]
        for j in range(k):
            total += rates[k, j] * right[j]
        right[k] = total / out[k]


@kernel()
def relax(
    order: Ints,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    out: Floats,
    right: Floats,
    values: Floats,
) -> None:
    """Sweep once over a chain (Gauss-Seidel), in place: out v = M v + right, state by state."""
    for i in range(order.size):
        x = order[i]
        total = right[x]
        for j in range(indptr[x], indptr[x + 1]):
            total += weights[j] * values[indices[j]]
        values[x] = total / out[x]


@kernel()
def relax_best(
    order: Ints,
    first: Longs,
    term: Ints,
    cost_rate: Floats,
    cost: Floats,
    indptr: Longs,
    indices: Ints,
    weights: Floats,
    leaving: Floats,
    values: Floats,
) -> float:
    """Sweep once over the optimality equation (Gauss-Seidel), in place; the largest change.

    A state with one term gets its best value given the others, one with several terms a Newton step
    towards it.
    """
    largest = 0.0
    for i in range(order.size):
        x = order[i]
        here, begin, end = values[x], first[x], first[x + 1]
        single = term[begin] == term[end - 1]
        step, rate, total = np.inf, 0.0, cost_rate[x]
        row = begin
        while row < end:
            e = term[row]
            best, left = np.inf, 0.0
            while row < end and term[row] == e:
                acc = cost[row]
                for j in range(indptr[row], indptr[row + 1]):
                    acc += weights[j] * (values[indices[j]] - here)
                if single and leaving[row] > 0.0:
                    step = min(step, (total + acc) / leaving[row])
                if acc < best:
                    best, left = acc, leaving[row]
                row += 1
            if not single:
                total += best
                rate += left
        if not single:
            step = total / rate if rate > 0.0 else 0.0
        if np.isfinite(step):
            values[x] = here + step
            largest = max(largest, abs(step))
    return largest
