"""Loops over the states of birth-death arms, with bounds of every rounding error.

The equations are those of `mdpcloud.indices.birth_death`. A block is a tuple (rho, shift, spread,
q, q_error, v, v_error): rho 2^shift is its rate, known up to a factor exp(+-spread); q and v are
the cost and work of the next state less the averages of the block, with absolute errors. A rate is
0 only where it is so exactly; one that would underflow is carried with its exponent. Bounds of
relative errors are those of first order times (1 + e), which holds for e < 1 as exp(e) - 1 <= e (1
+ e); rounding of the bounds themselves is covered by `SAFETY`.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from mdpcloud.engine.jit import kernel
from mdpcloud.solve.transient.twofold_kernels import _fused

UNIT = 2.0**-53  # rounding error of one operation
LITTLE = 2.0**-1040  # more than what underflow takes from a few products
SMALL_RATE = 2.0**-500  # below it the exponent is kept apart
LEAST_RATE = 2.0**-900  # stands for all smaller rates, with an error as large
LEAST_SHIFT = -900
LEAST_TOTAL = 2.0**-960  # of Z, below which the policy counts as multichain
SAFETY = 1.0 + 2.0**-20
LOST = 2.0**-10  # spread at which the rates have no digits worth speaking of

CERTIFIED, MULTICHAIN, NO_MARGIN = 0, 1, 2


@kernel()
def _advance(block, alpha, onward, back, cost_step, work_step):
    """The block with one more state; the steps lead from that state to the next.

    rho <- alpha + onward rho / (rho + back), q <- cost_step + q back / (rho + back). A negative rho
    says that the states before can neither be reached nor left.
    """
    rho, shift, spread, q, q_error, v, v_error = block
    if rho < 0.0 or (rho == 0.0 and back == 0.0):
        return -1.0, 0, spread, q, q_error, v, v_error
    if back == 0.0:
        flow, change, shift = onward, 0.0, 0
        q, q_error = cost_step, UNIT * abs(cost_step)
        v, v_error = work_step, UNIT * abs(work_step)
    else:
        true = rho if shift == 0 else math.ldexp(rho, shift)
        inverse = 1.0 / (true + back)
        keep = back * inverse
        loose = true * inverse * spread * (1.0 + spread) + 5.0 * UNIT
        flow = onward * inverse * rho
        change = keep * spread * (1.0 + spread) + 5.0 * UNIT
        q_error = keep * (q_error + (abs(q) + q_error) * loose)
        v_error = keep * (v_error + (abs(v) + v_error) * loose)
        q, v = cost_step + keep * q, work_step + keep * v
        q_error += UNIT * (abs(cost_step) + abs(q)) + LITTLE
        v_error += UNIT * (abs(work_step) + abs(v)) + LITTLE
    if alpha > 0.0:
        rho = alpha + flow
        share = flow / rho
        return rho, 0, share * change * (1.0 + change) + 2.0 * UNIT, q, q_error, v, v_error
    if flow == 0.0:
        return 0.0, 0, 0.0, q, q_error, v, v_error
    if shift != 0 or flow < SMALL_RATE:
        flow, exponent = math.frexp(flow)
        shift += exponent
        if shift > -500:
            flow, shift = math.ldexp(flow, shift), 0
    return flow, shift, change, q, q_error, v, v_error


@kernel()
def _rate(block):
    """Rate of a block and its absolute error."""
    rho, shift, spread = block[0], block[1], block[2]
    if rho <= 0.0:
        return 0.0, 0.0
    if shift < LEAST_SHIFT:
        return LEAST_RATE, LEAST_RATE
    if shift != 0:
        rho = math.ldexp(rho, shift)
    return rho, rho * spread * (1.0 + spread)


@kernel()
def _weighed(rates, cross, before, before_error, after, after_error, gap):
    """Value of activity times Z, and its error.

    X (before + gap + after) + Db rhoL after - Dd rhoR before + weight gap.
    """
    b0, b1, d0, d1, left, left_error, right, right_error = rates
    more, less = b0 - b1, d0 - d1
    weight = d1 * right + b0 * left + left * right
    through = before + gap + after
    value = cross * through + more * left * after - less * right * before + weight * gap
    sizes = abs(cross * through) + abs(more * left * after) + abs(less * right * before)
    total = abs(before) + abs(gap) + abs(after)
    error = 10.0 * UNIT * (sizes + weight * abs(gap))
    error += abs(cross) * UNIT * (4.0 * total) + LITTLE * (1.0 + total)
    wide, high = left + left_error, right + right_error
    first = abs(cross) + abs(less) * right
    second = abs(cross) + abs(more) * left
    error += before_error * (abs(cross - less * right) + 4.0 * UNIT * first)
    error += after_error * (abs(cross + more * left) + 4.0 * UNIT * second)
    error += (before_error * abs(less) + abs(less * before - d1 * gap)) * right_error
    error += 4.0 * UNIT * (abs(less * before) + d1 * abs(gap)) * right_error
    error += (after_error * abs(more) + abs(more * after + b0 * gap)) * left_error
    error += 4.0 * UNIT * (abs(more * after) + b0 * abs(gap)) * left_error
    error += abs(gap) * (wide * right_error + high * left_error) + UNIT * abs(gap) * weight
    return value, error


@kernel()
def _cross(b0, b1, d0, d1):
    """d1 b0 - b1 d0 with two more roundings than none (Kahan's difference of products)."""
    product = b1 * d0
    return _fused(d1, b0, -product) + _fused(-b1, d0, product)


@kernel()
def _meets(onward, back, left, right):
    """Whether a state joins its two sides into one recurrent class."""
    if left < 0.0 or right < 0.0:
        return False
    return (back > 0.0 and right > 0.0) or (left > 0.0 and (onward > 0.0 or right > 0.0))


@kernel()
def far_blocks(alpha, onward, back, cost, work, step, found):
    """The block beyond every state, under one action, seen from the last state on.

    found[k] = (rho, shift, spread, q, q_error, v, v_error).
    """
    n = cost.size
    k = n - 1 if step > 0 else 0
    block = (1.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for _ in range(n):
        for field in range(7):
            found[k, field] = 0.0
        found[k, 0], found[k, 1], found[k, 2] = block[0], block[1], block[2]
        found[k, 3], found[k, 4], found[k, 5], found[k, 6] = block[3], block[4], block[5], block[6]
        follower = k - step
        if 0 <= follower < n:
            block = _advance(
                block,
                alpha,
                back[k],
                onward[k],
                cost[follower] - cost[k],
                work[follower] - work[k],
            )
        k = follower


@kernel()
def threshold_indices(
    alpha, onward, back, costs, work, step, beyond, values, errors, marginal_cost, marginal_work
):
    """Index of every state under the policy that is active before it and passive from it on.

    Returns
    -------
    status, state
        `CERTIFIED`, or why not and where.
    """
    n = values.size
    k = 0 if step > 0 else n - 1
    block = (1.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for _ in range(n):
        far = (
            beyond[k, 0],
            int(beyond[k, 1]),
            beyond[k, 2],
            -beyond[k, 3],
            beyond[k, 4],
            -beyond[k, 5],
            beyond[k, 6],
        )
        b0, b1, d0, d1 = onward[0, k], onward[1, k], back[0, k], back[1, k]
        if not (_meets(b0, d0, block[0], far[0]) and _meets(b1, d1, block[0], far[0])):
            return MULTICHAIN, k
        if block[2] > LOST or far[2] > LOST:
            return NO_MARGIN, k
        cost_gap, work_gap = costs[0, k] - costs[1, k], work[0, k] - work[1, k]
        if b0 == b1 and d0 == d1:
            saved, saved_error = cost_gap, UNIT * abs(cost_gap)
            done, done_error = -work_gap, UNIT * abs(work_gap)
            total = 1.0
        else:
            left, left_error = _rate(block)
            right, right_error = _rate(far)
            rates = (b0, b1, d0, d1, left, left_error, right, right_error)
            cross = _cross(b0, b1, d0, d1)
            saved, saved_error = _weighed(
                rates, cross, block[3], block[4], far[3], far[4], cost_gap
            )
            done, done_error = _weighed(rates, cross, block[5], block[6], far[5], far[6], work_gap)
            done = -done
            total = d0 * right + b0 * left + left * right
        if saved == 0.0 and done == 0.0 and b0 == b1 and d0 == d1:
            values[k], errors[k] = math.inf, 0.0
            marginal_cost[k], marginal_work[k] = 0.0, 0.0
        else:
            sure = done - SAFETY * done_error
            if not (sure > 0.0 and total >= LEAST_TOTAL):
                return NO_MARGIN, k
            values[k] = saved / done
            errors[k] = SAFETY * (saved_error + abs(values[k]) * done_error) / sure
            errors[k] += 2.0 * UNIT * abs(values[k])
            marginal_cost[k], marginal_work[k] = saved / total, done / total
        follower = k + step
        if 0 <= follower < n:
            block = _advance(
                block,
                alpha,
                b1,
                d1,
                costs[1, follower] - costs[1, k],
                work[1, follower] - work[1, k],
            )
        k = follower
    return CERTIFIED, -1


@kernel()
def extreme_margins(alpha, onward, back, costs, work, step, action, beyond):
    """Whether activity is work in every state under the policy that always takes one action.

    `beyond` are the blocks of `far_blocks` under that action.
    """
    n = work.shape[1]
    k = 0 if step > 0 else n - 1
    block = (1.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for _ in range(n):
        far = (
            beyond[k, 0],
            int(beyond[k, 1]),
            beyond[k, 2],
            0.0,
            0.0,
            -beyond[k, 5],
            beyond[k, 6],
        )
        b0, b1, d0, d1 = onward[0, k], onward[1, k], back[0, k], back[1, k]
        same = b0 == b1 and d0 == d1
        gap = work[0, k] - work[1, k]
        if same:
            if gap > 0.0:
                return k
        else:
            left, left_error = _rate(block)
            right, right_error = _rate(far)
            rates = (b0, b1, d0, d1, left, left_error, right, right_error)
            before, before_error, after, after_error = block[5], block[6], far[5], far[6]
            if action == 1:
                after -= gap
                after_error += UNIT * (abs(after) + abs(gap))
            else:
                before -= gap
                before_error += UNIT * (abs(before) + abs(gap))
            done, error = _weighed(
                rates, _cross(b0, b1, d0, d1), before, before_error, after, after_error, gap
            )
            if not -done > SAFETY * error:
                return k
        follower = k + step
        if 0 <= follower < n:
            block = _advance(
                block,
                alpha,
                onward[action, k],
                back[action, k],
                0.0,
                work[action, follower] - work[action, k],
            )
        k = follower
    return -1


@kernel()
def put_in_order(values, errors, step):
    """Make the index nonincreasing along the steps, where it is so within its errors.

    States whose actions are the same (inf) take the value before them, or after them at the start.
    Returns the first state that is out of order, or -1.
    """
    n = values.size
    k = 0 if step > 0 else n - 1
    least, error, unset = math.inf, 0.0, 0
    for position in range(n):
        if values[k] == math.inf:
            if least == math.inf:
                unset = position + 1
            values[k], errors[k] = least, error
        elif values[k] > least:
            if values[k] - least > errors[k] + error:
                return k
            values[k], errors[k] = least, max(error, errors[k])
        else:
            least, error = values[k], errors[k]
        k += step
    first = unset * step if step > 0 else n - 1 + unset * step
    for position in range(unset):
        k = position * step if step > 0 else n - 1 + position * step
        values[k] = values[first] if unset < n else 0.0
        errors[k] = errors[first] if unset < n else 0.0
    return -1
