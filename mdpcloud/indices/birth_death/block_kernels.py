"""Recursion along the states of a birth-death arm, with bounds of every rounding error.

The equations are those of `mdpcloud.indices.birth_death`. A block is a tuple ((rho, shift, spread),
sigma, q, v): rho 2^shift is its rate, known up to a factor exp(+-spread); q and v are the cost and
work of the next state less the averages of the block, each as high + low with an absolute error, as
is sigma, the rate plus that back from the next state less that onward from it. A rate is 0 only
where it is so exactly; one that would underflow is carried with its exponent. Bounds of relative
errors are those of first order times (1 + e), which holds for e < 1 as exp(e) - 1 <= e (1 + e);
rounding of the bounds themselves is left to those who use them.

`given` counts the rounding errors that every number of the arm may have itself: 0 to take them as
they are, 1 if they stand for decimals. Numbers that are equal stay so.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from mdpcloud.engine.jit import kernel
from mdpcloud.solve.transient.twofold_kernels import _plus

UNIT = 2.0**-53  # rounding error of one operation
LITTLE = 2.0**-1040  # more than what underflow takes from a few products
SMALL_RATE = 2.0**-500  # below it the exponent is kept apart
LEAST_RATE = 2.0**-900  # stands for all smaller rates, with an error as large
LEAST_SHIFT = -900
LEVEL = (0.0, 0.0, 0.0)
START = (1.0, 0, 0.0), (0.0, 0.0, math.inf), LEVEL, LEVEL  # nothing lies before the first state


@kernel()
def _doubt(a, b, given):
    """Error of a - b that comes with the numbers."""
    return 0.0 if a == b else given * UNIT * (abs(a) + abs(b))


@kernel()
def _difference(a, b, given):
    """a - b as high + low, with the error that comes with them."""
    found = a - b
    part = found - a
    return found, (a - (found - part)) - (b + part), _doubt(a, b, given)


@kernel()
def _drift_step(alpha, onward, back, onward_next, back_next, given):
    """By how much the drift falls from a state to the next, plus alpha."""
    fall, rise = _difference(onward, onward_next, given), _difference(back_next, back, given)
    high, low = _plus(fall[0], fall[1] + rise[1], rise[0])
    high, low = _plus(high, low, alpha)
    error = 8.0 * UNIT * UNIT * (abs(fall[0]) + abs(rise[0]) + alpha)
    return high, low, error + fall[2] + rise[2]


@kernel()
def _averaged(difference, shares, step):
    """step + keep times a difference, whose digits beyond float64 are kept.

    If keep is near 1 what is spilt is taken away, which hardly rounds.
    """
    high, low, error = difference
    keep, spill, keep_error, spill_error = shares
    size = abs(high) + abs(step[0])
    if size == 0.0:
        return difference
    if keep < 0.5:
        high, low = keep * high, keep * low
        slip = abs(high) * keep_error
    else:
        slip = abs(high) * spill * spill_error
        high, low = _plus(high, low - spill * low, -spill * high)
    high, low = _plus(high, low + step[1], step[0])
    error = keep * (1.0 + keep_error) * error + slip + 8.0 * UNIT * UNIT * size + LITTLE + step[2]
    return high, low, error


@kernel()
def _advance(block, alpha, onward, back, drift_step, cost_step, work_step, given):
    """The block with one more state; the steps lead from that state to the next.

    rho <- alpha + onward rho / (rho + back), q <- cost_step + q back / (rho + back), likewise v and
    sigma. A negative rho says that the states before can neither be reached nor left.
    """
    (rho, shift, spread), sigma, q, v = block
    if rho < 0.0 or (rho == 0.0 and back == 0.0):
        return (-1.0, 0, 0.0), sigma, q, v
    if back == 0.0:
        flow, change, shift = onward, given * UNIT, 0
        sigma, q, v = drift_step, cost_step, work_step
    else:
        true = rho if shift == 0 else math.ldexp(rho, shift)
        inverse = 1.0 / (true + back)
        keep, spill, wide = back * inverse, true * inverse, spread * (1.0 + spread)
        own = (5.0 + 2.0 * given) * UNIT
        loose, change = spill * wide + own, keep * wide + own
        flow = onward * inverse * rho
        shares = (keep, spill, loose, change)
        sigma = _averaged(sigma, shares, drift_step)
        q, v = _averaged(q, shares, cost_step), _averaged(v, shares, work_step)
    if alpha > 0.0:
        rho = alpha + flow
        share = flow / rho
        return (rho, 0, share * change * (1.0 + change) + 2.0 * UNIT), sigma, q, v
    if flow == 0.0:
        return (0.0, 0, 0.0), sigma, q, v
    if shift != 0 or flow < SMALL_RATE:
        flow, exponent = math.frexp(flow)
        shift += exponent
        if shift > -500:
            flow, shift = math.ldexp(flow, shift), 0
    return (flow, shift, change), sigma, q, v


@kernel()
def _with_state(block, alpha, onward, back, cost, work, k, after, given):
    """The block with state k, seen from the state after it."""
    drift_step = _drift_step(alpha, onward[k], back[k], onward[after], back[after], given)
    cost_step = _difference(cost[after], cost[k], given)
    work_step = _difference(work[after], work[k], given)
    return _advance(block, alpha, onward[k], back[k], drift_step, cost_step, work_step, given)


@kernel()
def _rate(block):
    """Rate of a block and its absolute error."""
    rho, shift, spread = block[0]
    if rho <= 0.0:
        return 0.0, 0.0
    if shift < LEAST_SHIFT:
        return LEAST_RATE, LEAST_RATE
    if shift != 0:
        rho = math.ldexp(rho, shift)
    return rho, rho * spread * (1.0 + spread)


@kernel()
def _rounded(difference):
    """A difference in float64, and its error."""
    return difference[0], difference[2] + abs(difference[1])


@kernel()
def _seen_back(blocks, k):
    """A block of `far_blocks`: averages of the block less those of the state."""
    rate, sigma = (blocks[k, 0], int(blocks[k, 1]), blocks[k, 2]), (blocks[k, 3], blocks[k, 4])
    return rate, sigma, (-blocks[k, 5], blocks[k, 6]), (-blocks[k, 7], blocks[k, 8])


@kernel()
def far_blocks(alpha, onward, back, cost, work, step, given, found):
    """The block beyond every state, under one action, seen from the last state on.

    found[k] = (rho, shift, spread, sigma, its error, q, its error, v, its error).
    """
    n = cost.size
    k = n - 1 if step > 0 else 0
    block = START
    for position in range(n):
        found[k, 0], found[k, 1], found[k, 2] = block[0]
        found[k, 3], found[k, 4] = _rounded(block[1])
        found[k, 5], found[k, 6] = _rounded(block[2])
        found[k, 7], found[k, 8] = _rounded(block[3])
        if position < n - 1:
            block = _with_state(block, alpha, back, onward, cost, work, k, k - step, given)
            k -= step
