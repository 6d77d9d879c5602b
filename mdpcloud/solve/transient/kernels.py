"""Products v' = v G of a vector with a stochastic matrix, many in a row, on the active states only.

Blocks and rows are those of `mdpcloud.solve.transient.layout_kernels`. Vectors have a block of
zeros at both ends, so that shifted loops stay inside; states of a block that do not exist have rate
0. A block is active where the vector is not zero.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.engine.vector_kernels import load
from mdpcloud.solve.transient.layout_kernels import SIDE

PERIOD = 32  # products between two looks at the distance between neighbouring vectors
ORDER = {"reassoc", "contract", "nsz"}  # sums in any order; the bounds of the caller allow it


@kernel(fastmath=ORDER)
def _shifted_block(b, first, shift, value, stay, v, out):
    """One block of a product, entries by shift."""
    target = out[(b + 1) * SIDE : (b + 2) * SIDE]
    source = v[(b + 1) * SIDE : (b + 2) * SIDE]
    rate = stay[b * SIDE : (b + 1) * SIDE]
    for i in range(SIDE):
        target[i] = rate[i] * source[i]
    for s in range(first[b], first[b + 1]):
        begin = (b + 1) * SIDE + shift[s]
        source = v[begin : begin + SIDE]
        rate = value[s * SIDE : (s + 1) * SIDE]
        for i in range(SIDE):
            target[i] += rate[i] * source[i]


@kernel()
def _inflow(start, end, origin, rate, v):
    total = 0.0
    for j in range(start, end):
        total += load(rate, j) * load(v, load(origin, j) + SIDE)
    return total


@kernel()
def _rows_block(b, pointer, origin, rate, stay, v, out):
    """One block of a product, entries by rows; long rows are summed piece by piece."""
    n = pointer.size - 1
    for y in range(b * SIDE, min(n, (b + 1) * SIDE)):
        total = stay[y] * v[y + SIDE]
        start, end = pointer[y], pointer[y + 1]
        while end - start > SIDE:
            total += _inflow(start, start + SIDE, origin, rate, v)
            start += SIDE
        out[y + SIDE] = total + _inflow(start, end, origin, rate, v)


@kernel(fastmath=ORDER)
def _add(target, weight, source):
    for i in range(target.size):
        target[i] += weight * source[i]


@kernel(fastmath=ORDER)
def _product(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=ORDER)
def _mass(block):
    total = 0.0
    for i in range(block.size):
        total += block[i]
    return total


@kernel()
def _peak(block):
    most = 0.0
    for i in range(block.size):
        most = max(most, block[i])
    return most


@kernel(fastmath=ORDER)
def _distance(a, b):
    total = 0.0
    for i in range(a.size):
        total += abs(a[i] - b[i])
    return total


@kernel()
def _gap(a, b):
    most = 0.0
    for i in range(a.size):
        most = max(most, abs(a[i] - b[i]))
    return most


@kernel()
def _reach(active, live, first, follower, stamp, k, found):
    """List the blocks that the product can reach from the first ``live`` active ones."""
    blocks = first.size - 1
    if live == blocks:
        for b in range(blocks):
            found[b] = b
        return blocks
    count = 0
    for i in range(live):
        a = active[i]
        for j in range(first[a], first[a + 1]):
            b = follower[j]
            if stamp[b] != k:
                stamp[b] = k
                found[count] = b
                count += 1
    return count


@kernel()
def _open_windows(k, windows, number, weight):
    """Windows that contain k, and their weights there."""
    start, pointer, weights = windows
    count = 0
    for t in range(start.size):
        place = k - start[t]
        if 0 <= place < pointer[t + 1] - pointer[t]:
            number[count] = t
            weight[count] = weights[pointer[t] + place]
            count += 1
    return count


@kernel()
def add_active(k, v, active, windows, sums, costs, dots):
    """Add v_k to the sums whose windows contain k; dots[:, k] = costs v_k."""
    number, weight = np.empty(len(sums), np.int64), np.empty(len(sums))
    count = _open_windows(k, windows, number, weight)
    for b in active:
        block = v[(b + 1) * SIDE : (b + 2) * SIDE]
        for i in range(count):
            _add(sums[number[i], b * SIDE : (b + 1) * SIDE], weight[i], block)
        for m in range(len(costs)):
            dots[m, k] += _product(costs[m, b * SIDE : (b + 1) * SIDE], block)


@kernel()
def multiply_active(matrix, blocks, v, other, active, found, reached, room, by_mass):
    """Write the product of v on the blocks found to other, and 0 where it is small.

    Parameters
    ----------
    active : (blocks,) array
        The blocks that are active afterwards.
    found, reached : (blocks,) array, int
        The blocks that the product reaches; those set to 0 are at the front in the end.
    room : float
        What may be set to 0, in the norm.

    Returns
    -------
    (live, dropped, lost) : numbers of active blocks and of those set to 0, and what they held.
    """
    pointer, origin, rate, stay = matrix
    first, shifted, shift, value = blocks[:4]
    limit = room / reached if by_mass else room
    lost = 0.0
    live, dropped = 0, 0
    for i in range(reached):
        b = found[i]
        if shifted[b]:
            _shifted_block(b, first, shift, value, stay, v, other)
        else:
            _rows_block(b, pointer, origin, rate, stay, v, other)
        block = other[(b + 1) * SIDE : (b + 2) * SIDE]
        size = _mass(block) if by_mass else _peak(block)
        if size <= limit:
            lost = lost + size if by_mass else max(lost, size)
            block[:] = 0.0
            found[dropped] = b
            dropped += 1
        else:
            active[live] = b
            live += 1
    return live, dropped, lost


@kernel()
def change_of(v, other, by_mass):
    """Distance of two vectors: the sum or the maximum of the differences."""
    return _distance(v, other) if by_mass else _gap(v, other)


@kernel()
def active_blocks(v, active):
    """List the blocks in which v is not 0; their number."""
    live = 0
    for b in range(active.size):
        if _peak(v[(b + 1) * SIDE : (b + 2) * SIDE]) > 0.0:
            active[live] = b
            live += 1
    return live


@kernel()
def run_products(
    matrix, blocks, v, windows, sums, costs, dots, lost, limits, by_mass, begin, end, products
):
    """Products begin + 1 ... end of all, each v_k added to the sums whose windows contain k.

    Parameters
    ----------
    matrix : (pointer, origin, rate, stay)
        Row y lists what flows into y; stay (blocks * SIDE,).
    blocks : (shift_first, shifted, shift, value, follower_first, follower)
    v : array
        v_begin between two blocks of zeros; overwritten.
    windows : (start, pointer, weights)
    sums, costs, dots : (T, blocks * SIDE), (m, blocks * SIDE), (m, products + 1) arrays
        dots[:, k] = costs v_k; sums and dots are 0 at first.
    lost : (products + 1,) array
        What has been set to 0 before v_k, in the norm (sum or maximum).
    limits : (budget, settle)
        Of lost, and of the change still to come at which the products end.
    by_mass : bool
        Whether the norm is the sum.

    Returns
    -------
    (k, change, v_k) : the last product made, and the distance of its vector to the one before if it
        was the last because so little was to come, else infinity.
    """
    follower_first, follower = blocks[4:]
    count = follower_first.size - 1
    other = np.zeros_like(v)
    active, found = np.empty(count, np.int32), np.empty(count, np.int32)
    stamp = np.full(count, -1)
    live = active_blocks(v, active)
    budget, settle = limits
    if begin == 0:
        add_active(0, v, active[:live], windows, sums, costs, dots)
    for k in range(begin + 1, end + 1):
        reached = _reach(active, live, follower_first, follower, stamp, k, found)
        room = budget * k / products - lost[k - 1]
        live, dropped, gone = multiply_active(
            matrix, blocks, v, other, active, found, reached, room, by_mass
        )
        lost[k] = lost[k - 1] + gone
        change = change_of(v, other, by_mass) if k % PERIOD == 0 else np.inf
        for i in range(dropped):
            v[(found[i] + 1) * SIDE : (found[i] + 2) * SIDE] = 0.0
        v, other = other, v
        add_active(k, v, active[:live], windows, sums, costs, dots)
        if k < products and (products - k) * change <= settle:
            return k, change, v
    return end, np.inf, v
