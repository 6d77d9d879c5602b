"""Kernel that runs a loss network under complete sharing.

Every event takes one uniform number and one exponential one, from arrays that the caller fills; the
kernel returns when they are used up, and goes on where it stopped. Jobs are lost by PASTA: what is
summed is the time during which a class does not fit, not the number of its lost jobs.
"""

# mypy: ignore-errors

from __future__ import annotations

from mdpcloud.engine.jit import kernel

__all__ = ["DUE", "EVENTS", "PLACES", "REACHED", "SEGMENT", "TIMES", "USED", "share"]

# Entries of `place`, whole numbers, and of `clock`, times within the segment.
SEGMENT, USED, EVENTS, PLACES = range(4)
REACHED, DUE, TIMES = range(3)


@kernel(_nrt=False)
def share(network, jobs, free, place, clock, uniforms, waits, sums, averages, length):
    """Go on through the segments of `averages` until they are done or the numbers used up.

    Parameters
    ----------
    network : Network
    jobs, free : (J,) and (K,) int64 arrays
        The state: jobs of each class, and free capacity of each resource.
    place, clock : arrays
        See above; the first event is due at ``clock[DUE]``.
    uniforms, waits : (B,) arrays
        In [0, 1), and exponential of mean 1.
    sums : (2, J) array
        Time during which each class is blocked, and its jobs times time, in this segment.
    averages : (S, 2, J) array
    length : float
        Of a segment.
    """
    classes, resources = jobs.size, free.size
    segment, used, events = place[SEGMENT], place[USED], place[EVENTS]
    reached, due = clock[REACHED], clock[DUE]
    while segment < averages.shape[0]:
        now = min(due, length)
        for j in range(classes):
            fits = True
            for i in range(resources):
                fits &= free[i] >= network.needs[i, j]
            if not fits:
                sums[0, j] += now - reached
            sums[1, j] += jobs[j] * (now - reached)
        reached = now
        if due >= length:
            for j in range(classes):
                averages[segment, 0, j], averages[segment, 1, j] = sums[0, j], sums[1, j]
                sums[0, j] = sums[1, j] = 0.0
            segment += 1
            due, reached = due - length, 0.0
            continue
        if used == uniforms.size:
            break
        rate = network.arriving
        for j in range(classes):
            rate += network.services[j] * jobs[j]
        chosen = uniforms[used] * rate
        change, j = 0, -1
        while change == 0 and j + 1 < classes:
            j += 1
            chosen -= network.arrivals[j]
            if chosen < 0.0:
                change = 1
                break
            chosen -= network.services[j] * jobs[j]
            if chosen < 0.0:
                change = -1
        if change == 1:
            for i in range(resources):
                if free[i] < network.needs[i, j]:
                    change = 0
        if change != 0:
            jobs[j] += change
            for i in range(resources):
                free[i] -= change * network.needs[i, j]
        rate = network.arriving
        for j in range(classes):
            rate += network.services[j] * jobs[j]
        due = reached + waits[used] / rate
        used += 1
        events += 1
    place[SEGMENT], place[USED], place[EVENTS] = segment, used, events
    clock[REACHED], clock[DUE] = reached, due
