"""Simulation of a model by its events, each with a clock and random numbers of its own.

The clock of event e runs through a Poisson process of rate 1 at the speed r_e(x), so its next event
is at the time t with  left_e = int r_e(x(s)) ds; a change of the rate only rescales what is left
(next reaction method: Gibson and Bruck 2000, J. Phys. Chem. A 104, 1876-1889). As every clock has a
stream of its own, paths of two policies from equal seeds stay together as far as they can (common
reaction paths: Rathinam, Sheppard and Khammash 2010, J. Chem. Phys. 132, 034103).

The kernel draws no random numbers: it uses up buffers and returns when one is empty, when a table
has to grow, and when something is wrong (`mdpcloud.simulate.events_program.Stop`); it goes on where
it was when called again. The kernels allocate nothing, so they are compiled without numba's count
of references (``_nrt``), which would take twenty times as long as all the rest; `at` and `put` read
and write entries whose index is known not to be negative, which saves a quarter of the time.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.entry_kernels import at, put
from mdpcloud.engine.jit import kernel
from mdpcloud.simulate.tournament_kernels import change_price, winner

__all__ = ["find_entry", "free_slot", "run"]

NONE = -1
FIXED, COLUMN, CHEAPEST, RANDOM = range(4)
DONE, PAUSE, REFILL, MISSING, BEYOND, OUTSIDE, BARRED, UNDECIDED, INVALID = range(9)
NO_LAW, NOT_FINITE, NO_PRICE, NO_COST = range(9, 13)
CHANGED, FIRED, SEGMENT, EVENTS, AXIS, CLOCK, ACTION, GROUP = range(8)
NOW, STILL, BASE, ORIGIN = range(4)
SHORT = 2.0**-20  # of the time since the origin: a stay that would lose digits
NEVER_SET = -1.0  # the rate of a clock whose next time is not known


@kernel(_nrt=False)
def run(p, s, rows, stays, length, most):
    """Simulate until the rows are full, at most ``most`` events.

    Parameters
    ----------
    p : EventProgram
    s : EventState
    rows : (S, totals) array
        Filled with the totals of each segment over its length.
    stays : (S, R, W) array
        Filled with the share of time at each value of the recorded variables.
    length : float
        Of a segment (time).
    most : int

    Returns
    -------
    int
        A code of `Stop`.
    """
    mark, now, clocks = s.mark, s.now, s.clocks
    leaves = clocks.size // 2
    last = at(mark, EVENTS) + most
    while True:
        code = _settle(p, s)
        if code != DONE:
            return code
        while at(mark, SEGMENT) < rows.shape[0] and not at(clocks, 1) < length - at(now, ORIGIN):
            if at(clocks, 1) == np.inf and at(now, STILL) == np.inf:
                put(now, STILL, at(now, BASE) + at(now, ORIGIN) + at(now, NOW))
            _close(p, s, rows, stays, length)
        if at(mark, SEGMENT) == rows.shape[0]:
            return DONE
        if at(mark, EVENTS) >= last:
            return PAUSE
        if at(clocks, 1) - at(now, NOW) < SHORT * at(now, NOW):
            _rebase(p, s)
        e = winner(clocks, 0.0)
        draw = at(p.clock_draw, e)
        if at(s.used, e) == s.exponentials.shape[1]:
            return REFILL
        if draw != NONE and at(s.drawn, draw) + 2 > s.uniforms.shape[1]:
            return REFILL
        put(now, NOW, at(clocks, leaves + e))
        code = _happen(p, s, e, draw)
        if code != DONE:
            return code
        put(s.left, e, s.exponentials[e, at(s.used, e)])
        put(s.used, e, at(s.used, e) + 1)
        put(s.rate, e, NEVER_SET)
        put(mark, FIRED, e)
        put(mark, EVENTS, at(mark, EVENTS) + 1)


@kernel(_nrt=False)
def _settle(p, s):
    """Bring places, rates and prices up to date after a change of the state."""
    mark = s.mark
    if at(mark, AXIS) != NONE:
        return BEYOND
    for n in range(at(mark, CHANGED)):
        g = at(s.changed, n)
        if at(p.remembered, g):
            entry = find_entry(p, s, g)
            if entry == NONE:
                put(mark, GROUP, g)
                return MISSING
            put(s.place, g, s.entries[entry, 1])
    if (
        at(p.inside, 0) != NONE
        and at(p.data, at(s.place, at(p.inside, 0)) + at(p.inside, 1)) != 1.0
    ):
        return OUTSIDE
    for n in range(at(mark, CHANGED)):
        g = at(s.changed, n)
        place = at(s.place, g)
        if at(p.suspect, g):
            for c in range(at(p.summed, g)):
                if not abs(at(p.data, place + c)) < np.inf:
                    mark[GROUP], mark[ACTION] = g, c
                    return NOT_FINITE
        for i in range(at(p.first_clock, g), at(p.first_clock, g + 1)):
            e = at(p.group_clock, i)
            if not _set_clock(s, e, at(p.data, place + at(p.clock_column, e))):
                put(mark, CLOCK, e)
                return INVALID
        for i in range(at(p.first_leaf, g), at(p.first_leaf, g + 1)):
            price = at(p.data, place + at(p.leaf_column, i))
            if price != price:
                return NO_PRICE
            t = at(p.leaf_tree, i)
            change_price(s.trees[p.tree_first[t] : p.tree_first[t + 1]], at(p.leaf, i), price)
        put(s.is_changed, g, np.int8(0))
    put(mark, CHANGED, 0)
    e = at(mark, FIRED)
    if e != NONE:
        _set_clock(s, e, at(p.data, at(s.place, at(p.clock_group, e)) + at(p.clock_column, e)))
        put(mark, FIRED, NONE)
    return DONE


@kernel(_nrt=False)
def _set_clock(s, e, rate):
    """Give a clock another rate; whether the rate is one."""
    if not 0.0 <= rate < np.inf:
        return False
    before = at(s.rate, e)
    if rate != before:
        leaf = s.clocks.size // 2 + e
        if before > 0.0:
            put(s.left, e, max(0.0, (at(s.clocks, leaf) - at(s.now, NOW)) * before))
        put(s.rate, e, rate)
        change_price(s.clocks, e, at(s.now, NOW) + at(s.left, e) / rate if rate > 0.0 else np.inf)
    return True


@kernel(_nrt=False)
def _happen(p, s, e, draw):
    """The event of a clock: its action, the action's cost and move."""
    put(s.mark, CLOCK, e)
    number = _action(p, s, e, draw)
    if not 0 <= number < at(p.clock_action, e + 1) - at(p.clock_action, e):
        put(s.mark, ACTION, number)
        return UNDECIDED
    a = at(p.clock_action, e) + number
    put(s.mark, ACTION, number)
    g = p.open_where[a, 0]
    if g != NONE and at(p.data, at(s.place, g) + p.open_where[a, 1]) != 1.0:
        return BARRED
    g = p.cost_where[a, 0]
    if g != NONE:
        cost = at(p.data, at(s.place, g) + p.cost_where[a, 1])
        if not abs(cost) < np.inf:
            return NO_COST
        put(s.total, p.lump, at(s.total, p.lump) + cost)
    if at(p.counted, a) != NONE:
        put(s.total, at(p.counted, a), at(s.total, at(p.counted, a)) + 1.0)
    first, last = at(p.first_move, a), at(p.first_move, a + 1)
    if first == last:
        return DONE
    j = first
    if p.weight_where[first, 0] != NONE:
        j = _draw(p, s, p.weight_where, first, last, draw)
        if j == NONE:
            return NO_LAW
    return _shift(p, s, j)


@kernel(_nrt=False)
def _action(p, s, e, draw):
    """Number of the action of an event; out of range where there is none."""
    answer, first = at(p.clock_answer, e), p.clock_where[e, 0]
    if answer == FIXED:
        return 0
    if answer == COLUMN:
        return np.int64(at(p.data, at(s.place, first) + p.clock_where[e, 1]))
    if answer == CHEAPEST:
        tree = s.trees[p.tree_first[first] : p.tree_first[first + 1]]
        leaf = winner(tree, at(p.tree_margin, first))
        return 0 if leaf == NONE else 1 + at(p.tree_action, at(p.tree_first, first) // 2 + leaf)
    begin = at(p.clock_action, e)
    a = _draw(p, s, p.chance_where, begin, at(p.clock_action, e + 1), draw)
    return NONE if a == NONE else a - begin


@kernel(_nrt=False)
def _draw(p, s, where, first, last, draw):
    """One of several actions or moves by their probabilities; NONE where they are none."""
    chance = s.uniforms[draw, at(s.drawn, draw)]
    put(s.drawn, draw, at(s.drawn, draw) + 1)
    total, found = 0.0, NONE
    for j in range(first, last):
        weight = at(p.data, at(s.place, where[j, 0]) + where[j, 1])
        if not weight >= 0.0:
            return NONE
        if weight > 0.0 and not chance < total:
            found = j
        total += weight
    return found if abs(total - 1.0) <= 1e-9 else NONE


@kernel(_nrt=False)
def _shift(p, s, j):
    """Move the state; the amounts that depend on it are read before it changes."""
    for i in range(at(p.first_shift, j), at(p.first_shift, j + 1)):
        g = p.shift_where[i, 0]
        if g != NONE:
            put(s.amount, i, np.int64(at(p.data, at(s.place, g) + p.shift_where[i, 1])))
    for i in range(at(p.first_shift, j), at(p.first_shift, j + 1)):
        k, amount = at(p.shift_axis, i), at(s.amount, i)
        to = at(s.x, k) + amount
        if not 0 <= to <= at(p.cap, k):
            return OUTSIDE
        if amount != 0:
            _step(p, s, k, amount)
    return DONE


@kernel(_nrt=False)
def _step(p, s, k, amount):
    """Change one coordinate: complete the integrals of what it changes, and mark it."""
    mark, now = s.mark, at(s.now, NOW)
    if at(p.record, k) != NONE:
        _note(s, at(p.record, k), at(s.x, k), at(s.x, k) + amount, now)
    put(s.x, k, at(s.x, k) + amount)
    if at(s.x, k) >= at(p.size, k):
        put(mark, AXIS, k)
    for i in range(at(p.first_group, k), at(p.first_group, k + 1)):
        g = at(p.axis_group, i)
        if at(s.is_changed, g) == 0:
            _integrate(p, s, g, now)
            put(s.is_changed, g, np.int8(1))
            put(s.changed, at(mark, CHANGED), g)
            put(mark, CHANGED, at(mark, CHANGED) + 1)
        if at(p.remembered, g):
            put(s.hash, g, at(s.hash, g) + (at(p.axis_hash, i) * np.uint64(amount)))
        else:
            put(s.place, g, at(s.place, g) + (at(p.axis_step, i) * amount))


@kernel(_nrt=False)
def _integrate(p, s, g, now):
    """Add the time since the last change, times the values, to the integrals of a group."""
    wide = at(p.summed, g)
    if wide > 0:
        stay = now - at(s.since, g)
        place, first = at(s.place, g), at(p.total, g)
        for c in range(wide):
            put(s.total, first + c, at(s.total, first + c) + (stay * at(p.data, place + c)))
        put(s.since, g, now)


@kernel(_nrt=False)
def _note(s, r, before, after, now):
    """Record a change of a variable."""
    s.occupation[r, before] += now - at(s.record_since, r)
    put(s.record_since, r, now)
    n = at(s.record_count, r)
    if n < s.record_times.shape[1]:
        s.record_times[r, n] = at(s.now, BASE) + at(s.now, ORIGIN) + now
        s.record_values[r, n] = after
        put(s.record_count, r, at(s.record_count, r) + 1)


@kernel(_nrt=False)
def _close(p, s, rows, stays, length):
    """End a segment; time starts again at 0, so that it keeps its digits on long paths."""
    n = at(s.mark, SEGMENT)
    end = length - at(s.now, ORIGIN)
    for g in range(p.summed.size):
        _integrate(p, s, g, end)
        put(s.since, g, 0.0)
    for c in range(s.total.size):
        rows[n, c] = at(s.total, c) / length
        put(s.total, c, 0.0)
    for k in range(p.record.size):
        r = at(p.record, k)
        if r != NONE:
            s.occupation[r, at(s.x, k)] += end - at(s.record_since, r)
            put(s.record_since, r, 0.0)
            for w in range(s.occupation.shape[1]):
                stays[n, r, w] = s.occupation[r, w] / length
                s.occupation[r, w] = 0.0
    for i in range(s.clocks.size):
        put(s.clocks, i, at(s.clocks, i) - end)
    put(s.now, NOW, 0.0)
    put(s.now, ORIGIN, 0.0)
    put(s.now, BASE, at(s.now, BASE) + length)
    put(s.mark, SEGMENT, at(s.mark, SEGMENT) + 1)


@kernel(_nrt=False)
def _rebase(p, s):
    """Let time start at 0 now, within the segment, as the next stay is short beside it."""
    now = at(s.now, NOW)
    for g in range(p.summed.size):
        put(s.since, g, at(s.since, g) - now)
    for r in range(s.record_since.size):
        put(s.record_since, r, at(s.record_since, r) - now)
    for i in range(s.clocks.size):
        put(s.clocks, i, at(s.clocks, i) - now)
    put(s.now, ORIGIN, at(s.now, ORIGIN) + now)
    put(s.now, NOW, 0.0)


@kernel(_nrt=False)
def _slot_of(key, slots):
    """First slot of a hash (finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    key ^= key >> np.uint64(30)
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(27)
    key *= np.uint64(0x94D049BB133111EB)
    key ^= key >> np.uint64(31)
    return np.int64(key & np.uint64(slots.size - 1))


@kernel(_nrt=False)
def find_entry(p, s, g):
    """Entry of a remembered group in the present state, or NONE."""
    slots = s.slots
    slot = _slot_of(at(s.hash, g), slots)
    first, last = at(p.first_axis, g), at(p.first_axis, g + 1)
    while at(slots, slot) != NONE:
        entry = at(slots, slot)
        if s.entries[entry, 0] == g:
            key = s.entries[entry, 2]
            same = True
            for i in range(first, last):
                if at(s.keys, key + i - first) != at(s.x, at(p.group_axis, i)):
                    same = False
                    break
            if same:
                return entry
        slot = (slot + 1) & (slots.size - 1)
    return NONE


@kernel(_nrt=False)
def free_slot(s, g, key, state):
    """Where a new entry of a group goes; NONE where the state has one."""
    slots = s.slots
    slot = _slot_of(key, slots)
    while at(slots, slot) != NONE:
        entry = at(slots, slot)
        if s.entries[entry, 0] == g:
            first = s.entries[entry, 2]
            same = True
            for i in range(state.size):
                if at(s.keys, first + i) != state[i]:
                    same = False
                    break
            if same:
                return NONE
        slot = (slot + 1) & (slots.size - 1)
    return slot
