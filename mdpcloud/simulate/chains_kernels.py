"""Kernels that run Markov chains in steps or in continuous time.

Every jump takes one uniform number and, in continuous time, one exponential one, from arrays that
the caller fills; a kernel returns when they are used up, and goes on where it stopped. Nothing is
allocated here, so the kernels are compiled without numba's counting of references (``_nrt``).
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel

# Entries of `place`, whole numbers, and of `clock`, times within the segment but for the last.
STATE, SEGMENT, USED, EVENTS, CHANGES, PLACES = range(6)
REACHED, DUE, SPENT, ABSORBED, CLOCKS = range(5)


@kernel(_nrt=False)
def cumulate(begin, weights):
    """Turn the weights of each row into cumulative probabilities; the last one is 1."""
    for x in range(begin.size - 1):
        total = 0.0
        for j in range(begin[x], begin[x + 1]):
            total += weights[j]
            weights[j] = total
        for j in range(begin[x], begin[x + 1]):
            weights[j] /= total
        if begin[x + 1] > begin[x]:
            weights[begin[x + 1] - 1] = 1.0


@kernel(_nrt=False)
def _next_state(chain, x, uniform):
    """The first state of row x whose cumulative probability is above a number in [0, 1)."""
    low, high = chain.begin[x], chain.begin[x + 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if chain.cumulative[middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return chain.target[low]


@kernel(_nrt=False)
def travel(
    chain,
    uniforms,
    waits,
    place,
    clock,
    averages,
    occupation,
    times,
    values,
    done,
    before,
    length,
):
    """Go on through the segments of `averages` until they are done or the numbers used up.

    Parameters
    ----------
    chain : Jumps
    uniforms, waits : (B,) arrays
        In [0, 1), and exponential of mean 1 (in discrete time: 1).
    place : (PLACES,) int64 array
    clock : (CLOCKS,) array
    averages : (S,) array
    occupation : (S, n) array
        No columns where nothing is recorded; then `times` and `values` are not touched.
    times, values : (M,) arrays
        The first changes.
    done : int
        Segments of this length before the first of `averages`.
    before : float
        Time before those.
    length : float
        Of a segment.
    """
    x = place[STATE]
    segment, used, events = place[SEGMENT], place[USED], place[EVENTS]
    reached, due, spent = clock[REACHED], clock[DUE], clock[SPENT]
    records = occupation.shape[1] > 0
    while segment < averages.size:
        while due < length and used < uniforms.size:
            spent += chain.cost[x] * (due - reached)
            if records:
                occupation[segment, x] += due - reached
            reached = due
            y = _next_state(chain, x, uniforms[used])
            now = before + (done + segment) * length + reached
            if records and y != x and place[CHANGES] < times.size:
                times[place[CHANGES]], values[place[CHANGES]] = now, y
                place[CHANGES] += 1
            x = y
            due = reached + chain.hold[x] * waits[used]
            if chain.hold[x] == np.inf:
                due = np.inf  # also where the wait is 0
                clock[ABSORBED] = now
            used += 1
            events += 1
        if due < length:
            break
        spent += chain.cost[x] * (length - reached)
        averages[segment] = spent / length
        if records:
            occupation[segment, x] += length - reached
            for value in range(occupation.shape[1]):
                occupation[segment, value] /= length
        due, reached, spent = due - length, 0.0, 0.0
        segment += 1
    place[STATE], place[SEGMENT], place[USED], place[EVENTS] = x, segment, used, events
    clock[REACHED], clock[DUE], clock[SPENT] = reached, due, spent
