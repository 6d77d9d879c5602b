"""Simulation of a model by its events, each with a clock and random numbers of its own.

The clock of event e runs through a Poisson process of rate 1 at the speed r_e(x), so its next event
is at the time t with  left_e = int r_e(x(s)) ds; a change of the rate only rescales what is left
(next reaction method: Gibson and Bruck 2000, J. Phys. Chem. A 104, 1876-1889). As every clock has a
stream of its own, paths of two policies from equal seeds stay together as far as they can (common
reaction paths: Rathinam, Sheppard and Khammash 2010, J. Chem. Phys. 132, 034103).

The kernel draws no random numbers: it uses up buffers and returns when one is empty, when a table
has to grow, and when something is wrong (`mdpcloud.simulate.events_program.Stop`); it goes on where
it was when called again. The kernels allocate nothing, so they are compiled without numba's count
of references (``_nrt``), which would take twenty times as long as all the rest.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.simulate.tournament_kernels import change_price, winner

__all__ = ["find_entry", "free_slot", "run"]

NONE = -1
FIXED, COLUMN, CHEAPEST, RANDOM = range(4)
DONE, PAUSE, REFILL, MISSING, BEYOND, OUTSIDE, BARRED, UNDECIDED, INVALID = range(9)
NO_LAW, NOT_FINITE, NO_PRICE, NO_COST = range(9, 13)
CHANGED, FIRED, SEGMENT, EVENTS, AXIS, CLOCK, ACTION, GROUP = range(8)
NOW, STILL, BASE = range(3)
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
    last = mark[EVENTS] + most
    while True:
        code = _settle(p, s)
        if code != DONE:
            return code
        while mark[SEGMENT] < rows.shape[0] and not clocks[1] < length:
            if clocks[1] == np.inf and now[STILL] == np.inf:
                now[STILL] = now[BASE] + now[NOW]
            _close(p, s, rows, stays, length)
        if mark[SEGMENT] == rows.shape[0]:
            return DONE
        if mark[EVENTS] >= last:
            return PAUSE
        e = winner(clocks, 0.0)
        draw = p.clock_draw[e]
        if s.used[e] == s.exponentials.shape[1]:
            return REFILL
        if draw != NONE and s.drawn[draw] + 2 > s.uniforms.shape[1]:
            return REFILL
        now[NOW] = clocks[leaves + e]
        code = _happen(p, s, e, draw)
        if code != DONE:
            return code
        s.left[e] = s.exponentials[e, s.used[e]]
        s.used[e] += 1
        s.rate[e] = NEVER_SET
        mark[FIRED] = e
        mark[EVENTS] += 1


@kernel(_nrt=False)
def _settle(p, s):
    """Bring places, rates and prices up to date after a change of the state."""
    mark = s.mark
    if mark[AXIS] != NONE:
        return BEYOND
    for n in range(mark[CHANGED]):
        g = s.changed[n]
        if p.remembered[g]:
            entry = find_entry(p, s, g)
            if entry == NONE:
                mark[GROUP] = g
                return MISSING
            s.place[g] = s.entries[entry, 1]
    if p.inside[0] != NONE and p.data[s.place[p.inside[0]] + p.inside[1]] != 1.0:
        return OUTSIDE
    for n in range(mark[CHANGED]):
        g = s.changed[n]
        place = s.place[g]
        if p.suspect[g]:
            for c in range(p.summed[g]):
                if not abs(p.data[place + c]) < np.inf:
                    mark[GROUP], mark[ACTION] = g, c
                    return NOT_FINITE
        for i in range(p.first_clock[g], p.first_clock[g + 1]):
            e = p.group_clock[i]
            if not _set_clock(s, e, p.data[place + p.clock_column[e]]):
                mark[CLOCK] = e
                return INVALID
        for i in range(p.first_leaf[g], p.first_leaf[g + 1]):
            price = p.data[place + p.leaf_column[i]]
            if price != price:
                return NO_PRICE
            t = p.leaf_tree[i]
            change_price(s.trees[p.tree_first[t] : p.tree_first[t + 1]], p.leaf[i], price)
        s.is_changed[g] = 0
    mark[CHANGED] = 0
    e = mark[FIRED]
    if e != NONE:
        _set_clock(s, e, p.data[s.place[p.clock_group[e]] + p.clock_column[e]])
        mark[FIRED] = NONE
    return DONE


@kernel(_nrt=False)
def _set_clock(s, e, rate):
    """Give a clock another rate; whether the rate is one."""
    if not 0.0 <= rate < np.inf:
        return False
    before = s.rate[e]
    if rate != before:
        leaf = s.clocks.size // 2 + e
        if before > 0.0:
            s.left[e] = max(0.0, (s.clocks[leaf] - s.now[NOW]) * before)
        s.rate[e] = rate
        change_price(s.clocks, e, s.now[NOW] + s.left[e] / rate if rate > 0.0 else np.inf)
    return True


@kernel(_nrt=False)
def _happen(p, s, e, draw):
    """The event of a clock: its action, the action's cost and move."""
    s.mark[CLOCK] = e
    number = _action(p, s, e, draw)
    if not 0 <= number < p.clock_action[e + 1] - p.clock_action[e]:
        s.mark[ACTION] = number
        return UNDECIDED
    a = p.clock_action[e] + number
    s.mark[ACTION] = number
    g = p.open_where[a, 0]
    if g != NONE and p.data[s.place[g] + p.open_where[a, 1]] != 1.0:
        return BARRED
    g = p.cost_where[a, 0]
    if g != NONE:
        cost = p.data[s.place[g] + p.cost_where[a, 1]]
        if not abs(cost) < np.inf:
            return NO_COST
        s.total[p.lump] += cost
    if p.counted[a] != NONE:
        s.total[p.counted[a]] += 1.0
    first, last = p.first_move[a], p.first_move[a + 1]
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
    answer, first = p.clock_answer[e], p.clock_where[e, 0]
    if answer == FIXED:
        return 0
    if answer == COLUMN:
        return np.int64(p.data[s.place[first] + p.clock_where[e, 1]])
    if answer == CHEAPEST:
        tree = s.trees[p.tree_first[first] : p.tree_first[first + 1]]
        leaf = winner(tree, p.tree_margin[first])
        return 0 if leaf == NONE else 1 + p.tree_action[p.tree_first[first] // 2 + leaf]
    begin = p.clock_action[e]
    a = _draw(p, s, p.chance_where, begin, p.clock_action[e + 1], draw)
    return NONE if a == NONE else a - begin


@kernel(_nrt=False)
def _draw(p, s, where, first, last, draw):
    """One of several actions or moves by their probabilities; NONE where they are none."""
    chance = s.uniforms[draw, s.drawn[draw]]
    s.drawn[draw] += 1
    total, found = 0.0, NONE
    for j in range(first, last):
        weight = p.data[s.place[where[j, 0]] + where[j, 1]]
        if not weight >= 0.0:
            return NONE
        if weight > 0.0 and not chance < total:
            found = j
        total += weight
    return found if abs(total - 1.0) <= 1e-9 else NONE


@kernel(_nrt=False)
def _shift(p, s, j):
    """Move the state; the amounts that depend on it are read before it changes."""
    for i in range(p.first_shift[j], p.first_shift[j + 1]):
        g = p.shift_where[i, 0]
        if g != NONE:
            s.amount[i] = np.int64(p.data[s.place[g] + p.shift_where[i, 1]])
    for i in range(p.first_shift[j], p.first_shift[j + 1]):
        k, amount = p.shift_axis[i], s.amount[i]
        to = s.x[k] + amount
        if not 0 <= to <= p.cap[k]:
            return OUTSIDE
        if amount != 0:
            _step(p, s, k, amount)
    return DONE


@kernel(_nrt=False)
def _step(p, s, k, amount):
    """Change one coordinate: complete the integrals of what it changes, and mark it."""
    mark, now = s.mark, s.now[NOW]
    if p.record[k] != NONE:
        _note(s, p.record[k], s.x[k], s.x[k] + amount, now)
    s.x[k] += amount
    if s.x[k] >= p.size[k]:
        mark[AXIS] = k
    for i in range(p.first_group[k], p.first_group[k + 1]):
        g = p.axis_group[i]
        if s.is_changed[g] == 0:
            _integrate(p, s, g, now)
            s.is_changed[g] = 1
            s.changed[mark[CHANGED]] = g
            mark[CHANGED] += 1
        if p.remembered[g]:
            s.hash[g] += p.axis_hash[i] * np.uint64(amount)
        else:
            s.place[g] += p.axis_step[i] * amount


@kernel(_nrt=False)
def _integrate(p, s, g, now):
    """Add the time since the last change, times the values, to the integrals of a group."""
    wide = p.summed[g]
    if wide > 0:
        stay = now - s.since[g]
        place, first = s.place[g], p.total[g]
        for c in range(wide):
            s.total[first + c] += stay * p.data[place + c]
        s.since[g] = now


@kernel(_nrt=False)
def _note(s, r, before, after, now):
    """Record a change of a variable."""
    s.occupation[r, before] += now - s.record_since[r]
    s.record_since[r] = now
    n = s.record_count[r]
    if n < s.record_times.shape[1]:
        s.record_times[r, n] = s.now[BASE] + now
        s.record_values[r, n] = after
        s.record_count[r] += 1


@kernel(_nrt=False)
def _close(p, s, rows, stays, length):
    """End a segment; time starts again at 0, so that it keeps its digits on long paths."""
    n = s.mark[SEGMENT]
    for g in range(p.summed.size):
        _integrate(p, s, g, length)
        s.since[g] = 0.0
    for c in range(s.total.size):
        rows[n, c] = s.total[c] / length
        s.total[c] = 0.0
    for k in range(p.record.size):
        r = p.record[k]
        if r != NONE:
            s.occupation[r, s.x[k]] += length - s.record_since[r]
            s.record_since[r] = 0.0
            for w in range(s.occupation.shape[1]):
                stays[n, r, w] = s.occupation[r, w] / length
                s.occupation[r, w] = 0.0
    for i in range(s.clocks.size):
        s.clocks[i] -= length
    s.now[NOW] = 0.0
    s.now[BASE] += length
    s.mark[SEGMENT] += 1


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
    slot = _slot_of(s.hash[g], slots)
    first, last = p.first_axis[g], p.first_axis[g + 1]
    while slots[slot] != NONE:
        entry = slots[slot]
        if s.entries[entry, 0] == g:
            key = s.entries[entry, 2]
            same = True
            for i in range(first, last):
                if s.keys[key + i - first] != s.x[p.group_axis[i]]:
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
    while slots[slot] != NONE:
        entry = slots[slot]
        if s.entries[entry, 0] == g:
            first = s.entries[entry, 2]
            same = True
            for i in range(state.size):
                if s.keys[first + i] != state[i]:
                    same = False
                    break
            if same:
                return NONE
        slot = (slot + 1) & (slots.size - 1)
    return slot
