"""Loops over the states of a birth-death arm that find its index and its order.

The equations are those of `mdpcloud.indices.birth_death`; rounding of the error bounds themselves
is covered by `SAFETY`.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from mdpcloud.engine.jit import kernel
from mdpcloud.indices.birth_death.block_kernels import (
    LITTLE,
    START,
    UNIT,
    _difference,
    _doubt,
    _rate,
    _rounded,
    _seen_back,
    _with_state,
)
from mdpcloud.solve.transient.twofold_kernels import _fused

LEAST_TOTAL = 2.0**-960  # of Z, below which the policy counts as multichain
LEAST_NUMBER = 2.0**-1074  # more than a quotient loses when it underflows
SAFETY = 1.0 + 2.0**-20
LOST = 2.0**-10  # spread at which the rates have no digits worth speaking of

CERTIFIED, MULTICHAIN, NO_MARGIN, DISORDER = 0, 1, 2, 3
EITHER = -1.0  # error of a state whose actions are the same


@kernel()
def _cross(b0, b1, d0, d1):
    """d1 b0 - b1 d0 within two rounding errors (Kahan's difference of products)."""
    product = b1 * d0
    return _fused(d1, b0, -product) + _fused(-b1, d0, product)


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

    Notes
    -----
    Two neighbours that tie within their errors may change in the other order. The policies are
    others then, and so are the indices, but not by more than the errors unless marginal work falls
    on the way to these policies; there nothing is certified.
    """
    n = work.shape[1]
    k = 0 if step > 0 else n - 1
    rows = onward[1], back[1], costs[1], work[1]
    block = START
    least, least_error = math.inf, 0.0
    turns_active, turns_passive = False, False
    least_turns = False
    for position in range(n):
        far = _seen_back(beyond, k)
        turn_active, turn_passive = False, False
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
            done, total, own = -done, 1.0, 1.0
        else:
            left, left_error = _rate(block)
            right, right_error = _rate(far)
            rates = (b0, b1, d0, d1, left, left_error, right, right_error)
            factors = _factors(rates, _rounded(block[1]), far[1], given)
            saved, saved_error = _weighed(factors, _rounded(block[2]), far[2], _rounded(cost_gap))
            done, done_error = _weighed(factors, _rounded(block[3]), far[3], _rounded(work_gap))
            done = -done
            total = d0 * right + b0 * left + left * right
            own = d1 * right + b1 * left + left * right
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
            if not (sure > 0.0 and total >= LEAST_TOTAL and own >= LEAST_TOTAL):
                return NO_MARGIN, True, True
            index = saved / done
            error = SAFETY * (saved_error + abs(index) * done_error) / sure
            if not error < math.inf:
                return NO_MARGIN, True, True
            found[0, k], found[1, k] = index, error + 4.0 * UNIT * abs(index) + LEAST_NUMBER
        found[2, k], found[3, k] = saved / own, done / own
        if found[1, k] >= 0.0:
            tied = abs(found[0, k] - least) <= found[1, k] + least_error
            if ordered and found[0, k] > least and not tied:
                return DISORDER, True, True
            if tied and (least_turns or turn_passive):
                return NO_MARGIN, True, True
            if found[0, k] < least:
                least, least_error, least_turns = found[0, k], found[1, k], turn_active
            elif tied:
                least_turns = turn_active
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
