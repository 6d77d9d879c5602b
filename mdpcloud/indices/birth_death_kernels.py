"""Loops over the states of birth-death arms, with bounds of every rounding error.

The equations are those of `mdpcloud.indices.birth_death`. A block is a tuple ((rho, shift, spread),
sigma, q, v): rho 2^shift is its rate, known up to a factor exp(+-spread); q and v are the cost and
work of the next state less the averages of the block, each as high + low with an absolute error, as
is sigma, the rate plus that back from the next state less that onward from it. A rate is 0 only
where it is so exactly; one that would underflow is carried with its exponent. Bounds of relative
errors are those of first order times (1 + e), which holds for e < 1 as exp(e) - 1 <= e (1 + e);
rounding of the bounds themselves is covered by `SAFETY`.

`given` counts the rounding errors that every number of the arm may have itself: 0 to take them as
they are, 1 if they stand for decimals. Numbers that are equal stay so.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from mdpcloud.engine.jit import kernel
from mdpcloud.solve.transient.twofold_kernels import _fused, _plus

UNIT = 2.0**-53  # rounding error of one operation
LITTLE = 2.0**-1040  # more than what underflow takes from a few products
SMALL_RATE = 2.0**-500  # below it the exponent is kept apart
LEAST_RATE = 2.0**-900  # stands for all smaller rates, with an error as large
LEAST_SHIFT = -900
LEAST_TOTAL = 2.0**-960  # of Z, below which the policy counts as multichain
SAFETY = 1.0 + 2.0**-20
LOST = 2.0**-10  # spread at which the rates have no digits worth speaking of

CERTIFIED, MULTICHAIN, NO_MARGIN, DISORDER = 0, 1, 2, 3
EITHER = -1.0  # error of a state whose actions are the same
LEVEL = (0.0, 0.0, 0.0)
START = (1.0, 0, 0.0), (0.0, 0.0, math.inf), LEVEL, LEVEL  # nothing lies before the first state


@kernel()
def _difference(a, b, given):
    """a - b as high + low, with the error that comes with them."""
    found = a - b
    part = found - a
    return found, (a - (found - part)) - (b + part), _doubt(a, b, given)


@kernel()
def _doubt(a, b, given):
    """Error of a - b that comes with the numbers."""
    return 0.0 if a == b else given * UNIT * (abs(a) + abs(b))


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
def _factors(rates, before, after, given):
    """Factors of the differences before and after a state and of its own, with their errors.

    X - Dd rhoR, X + Db rhoL and X + d1 rhoR + b0 rhoL + rhoL rhoR; the last is b1 sigmaR + d0
    sigmaL + sigmaL sigmaR, and the better one of both is taken.
    """
    b0, b1, d0, d1, left, left_error, right, right_error = rates
    (before, before_error), (after, after_error) = before, after
    cross, more, less = _cross(b0, b1, d0, d1), b0 - b1, d0 - d1
    first, second = cross - less * right, cross + more * left
    cross_doubt = 2.0 * given * UNIT * (d1 * b0 + b1 * d0)
    first_error = 5.0 * UNIT * (abs(cross) + abs(less) * right) + abs(less) * right_error
    first_error += cross_doubt + _doubt(d0, d1, given) * right
    second_error = 5.0 * UNIT * (abs(cross) + abs(more) * left) + abs(more) * left_error
    second_error += cross_doubt + _doubt(b0, b1, given) * left
    weight = d1 * right + b0 * left + left * right
    own = cross + weight
    own_error = 8.0 * UNIT * (abs(cross) + weight) + cross_doubt + given * UNIT * weight
    own_error += (d1 + left + left_error) * right_error + (b0 + right) * left_error
    parts = b1 * after, d0 * before, before * after
    error = (8.0 + given) * UNIT * (abs(parts[0]) + abs(parts[1]) + abs(parts[2]))
    error += (b1 + abs(before) + before_error) * after_error + (d0 + abs(after)) * before_error
    if error < own_error:
        own, own_error = parts[0] + parts[1] + parts[2], error
    return (
        (first, first_error + LITTLE),
        (second, second_error + LITTLE),
        (own, own_error + LITTLE),
    )


@kernel()
def _weighed(factors, before, after, gap):
    """Value of activity times Z, and its error."""
    (first, first_error), (second, second_error), (own, own_error) = factors
    (before, before_error), (after, after_error), (gap, gap_error) = before, after, gap
    value = first * before + second * after + own * gap
    error = 6.0 * UNIT * (abs(first * before) + abs(second * after) + abs(own * gap))
    error += abs(first) * before_error + first_error * (abs(before) + before_error)
    error += abs(second) * after_error + second_error * (abs(after) + after_error)
    return value, error + abs(own) * gap_error + own_error * (abs(gap) + gap_error) + LITTLE


@kernel()
def _cross(b0, b1, d0, d1):
    """d1 b0 - b1 d0 within two rounding errors (Kahan's difference of products)."""
    product = b1 * d0
    return _fused(d1, b0, -product) + _fused(-b1, d0, product)


@kernel()
def _meets(onward, back, left, right):
    """Whether a state joins its two sides into one recurrent class."""
    if left < 0.0 or right < 0.0:
        return False
    return (back > 0.0 and right > 0.0) or (left > 0.0 and (onward > 0.0 or right > 0.0))


@kernel()
def _turns(rates):
    """Whether marginal work may fall as more states before (after) this one become active.

    It does where Db (d1 + rhoL) > Dd b1 (where Db d0 > Dd (b0 + rhoR), as fewer do).
    """
    b0, b1, d0, d1, left, left_error, right, right_error = rates
    more, less = b0 - b1, d0 - d1
    rise, fall = more * (d1 + left), less * b1
    active = rise - fall + 8.0 * UNIT * (abs(rise) + abs(fall)) + abs(more) * left_error
    rise, fall = more * d0, less * (b0 + right)
    passive = rise - fall + 8.0 * UNIT * (abs(rise) + abs(fall)) + abs(less) * right_error
    return active > 0.0, passive > 0.0


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


@kernel()
def _with_state(block, alpha, onward, back, cost, work, k, after, given):
    """The block with state k, seen from the state after it."""
    drift_step = _drift_step(alpha, onward[k], back[k], onward[after], back[after], given)
    cost_step = _difference(cost[after], cost[k], given)
    work_step = _difference(work[after], work[k], given)
    return _advance(block, alpha, onward[k], back[k], drift_step, cost_step, work_step, given)


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
def threshold_indices(alpha, onward, back, costs, work, step, given, beyond, ordered, found):
    """Index of every state under the policy that is active before it and passive from it on.

    Parameters
    ----------
    beyond : (n, 9) array
        `far_blocks` of the passive action.
    ordered : bool
        Whether to stop at an index that exceeds an earlier one by more than both errors.
    found : (4, n) array
        Filled with indices, errors, marginal costs and marginal work.

    Returns
    -------
    status, turns_active, turns_passive
        `CERTIFIED` if marginal work is positive, or why not; and whether some state's marginal work
        may fall as more, or fewer, states become active.
    """
    n = work.shape[1]
    k = 0 if step > 0 else n - 1
    rows = onward[1], back[1], costs[1], work[1]
    block = START
    least, least_error = math.inf, 0.0
    turns_active, turns_passive = False, False
    for position in range(n):
        far = _seen_back(beyond, k)
        b0, b1, d0, d1 = onward[0, k], onward[1, k], back[0, k], back[1, k]
        if not (_meets(b0, d0, block[0][0], far[0][0]) and _meets(b1, d1, block[0][0], far[0][0])):
            return MULTICHAIN, True, True
        if block[0][2] > LOST or far[0][2] > LOST:
            return NO_MARGIN, True, True
        cost_gap = _difference(costs[0, k], costs[1, k], given)
        work_gap = _difference(work[0, k], work[1, k], given)
        if b0 == b1 and d0 == d1:
            saved, saved_error = _rounded(cost_gap)
            done, done_error = _rounded(work_gap)
            done, total = -done, 1.0
        else:
            left, left_error = _rate(block)
            right, right_error = _rate(far)
            rates = (b0, b1, d0, d1, left, left_error, right, right_error)
            factors = _factors(rates, _rounded(block[1]), far[1], given)
            saved, saved_error = _weighed(factors, _rounded(block[2]), far[2], _rounded(cost_gap))
            done, done_error = _weighed(factors, _rounded(block[3]), far[3], _rounded(work_gap))
            done = -done
            total = d0 * right + b0 * left + left * right
            turn_active, turn_passive = _turns(rates)
            turns_active, turns_passive = (
                turns_active or turn_active,
                turns_passive or turn_passive,
            )
        if b0 == b1 and d0 == d1 and done == 0.0:
            found[0, k] = math.copysign(math.inf, saved)
            found[1, k] = EITHER if saved == 0.0 else 0.0
        else:
            sure = done - SAFETY * done_error
            if not (sure > 0.0 and total >= LEAST_TOTAL):
                return NO_MARGIN, True, True
            index = saved / done
            error = SAFETY * (saved_error + abs(index) * done_error) / sure
            if not error < math.inf:
                return NO_MARGIN, True, True
            found[0, k], found[1, k] = index, error + 4.0 * UNIT * abs(index)
        found[2, k], found[3, k] = saved / total, done / total
        if ordered and found[1, k] >= 0.0:
            if found[0, k] > least and not found[0, k] - least <= found[1, k] + least_error:
                return DISORDER, True, True
            if found[0, k] < least:
                least, least_error = found[0, k], found[1, k]
        if position < n - 1:
            block = _with_state(block, alpha, *rows, k, k + step, given)
            k += step
    return CERTIFIED, turns_active, turns_passive


@kernel()
def _less(difference, gap):
    value = difference[0] - gap[0]
    return value, difference[1] + gap[1] + UNIT * abs(value)


@kernel()
def _turned(sigma, rates, given):
    """Sigma of a block with the state's rates under the other action."""
    b0, b1, d0, d1 = rates[0], rates[1], rates[2], rates[3]
    more, less = b0 - b1, d0 - d1
    size = abs(sigma[0]) + abs(more) + abs(less)
    error = sigma[1] + _doubt(b0, b1, given) + _doubt(d0, d1, given) + 4.0 * UNIT * size
    return sigma[0] + more - less, error


@kernel()
def work_is_marginal(alpha, onward, back, work, step, given, action, beyond):
    """Whether marginal work is positive in every state under the policy of one action.

    `beyond` are the blocks of `far_blocks` under that action. What is seen from the state under it
    is turned into what the equations see: active before, passive after.
    """
    n = work.shape[1]
    k = 0 if step > 0 else n - 1
    rows = onward[action], back[action], work[action], work[action]
    block = START
    for position in range(n):
        far = _seen_back(beyond, k)
        b0, b1, d0, d1 = onward[0, k], onward[1, k], back[0, k], back[1, k]
        gap = _rounded(_difference(work[0, k], work[1, k], given))
        if not (b0 == b1 and d0 == d1):
            left, left_error = _rate(block)
            right, right_error = _rate(far)
            rates = (b0, b1, d0, d1, left, left_error, right, right_error)
            before, after = _rounded(block[3]), far[3]
            sigma_before, sigma_after = _rounded(block[1]), far[1]
            if action == 1:
                after, sigma_after = _less(after, gap), _turned(sigma_after, rates, given)
            else:
                before, sigma_before = _less(before, gap), _turned(sigma_before, rates, given)
            factors = _factors(rates, sigma_before, sigma_after, given)
            done, error = _weighed(factors, before, after, gap)
            if not -done > SAFETY * error:
                return False
        elif gap[0] > 0.0:
            return False
        if position < n - 1:
            block = _with_state(block, alpha, *rows, k, k + step, given)
            k += step
    return True


@kernel()
def put_in_order(values, errors, step, allowance):
    """Make the index nonincreasing along the steps, where it is so within its errors.

    Errors above the allowance excuse nothing. States whose actions are the same take the value
    before them, or after them at the start.

    Returns
    -------
    int
        Number of states that were out of order within the errors; -1 if one is beyond.
    """
    n = values.size
    first, last = (0, n) if step > 0 else (n - 1, -1)
    least, error, unset, moved = math.inf, 0.0, 0, 0
    some = False
    for k in range(first, last, step):
        if errors[k] < 0.0:
            values[k], errors[k] = least, error
            unset += 0 if some else 1
        elif values[k] > least:
            if not values[k] - least <= min(errors[k] + error, allowance):
                return -1
            values[k], errors[k] = least, max(error, errors[k])
            moved += 1
        else:
            least, error, some = values[k], errors[k], True
    start = first + unset * step
    for k in range(first, start, step):
        values[k] = values[start] if some else 0.0
        errors[k] = errors[start] if some else 0.0
    return moved
