"""The events of the jobs in the order of time: a heap of four branches.

A job has one event at most and knows its place, so that an event can be given another time.
"""

# mypy: ignore-errors

from __future__ import annotations

from mdpcloud.engine.jit import kernel
from mdpcloud.simulate.jobs_codes_kernels import BRANCHES, FREE, HEAP, NONE

__all__ = ["remove_first", "schedule"]


@kernel(_nrt=False)
def _put(jobs, i, time, slot):
    jobs.time[i] = time
    jobs.slot[i] = slot
    jobs.place[slot] = i


@kernel(_nrt=False)
def _rise(jobs, i, time, slot):
    """Put an event at place i or above it."""
    while i > 0:
        above = (i - 1) // BRANCHES
        if jobs.time[above] <= time:
            break
        _put(jobs, i, jobs.time[above], jobs.slot[above])
        i = above
    _put(jobs, i, time, slot)


@kernel(_nrt=False)
def _sink(jobs, size, i, time, slot):
    """Put an event at place i or below it."""
    while True:
        child = BRANCHES * i + 1
        if child >= size:
            break
        least, earliest = child, jobs.time[child]
        for other in range(child + 1, min(child + BRANCHES, size)):
            if jobs.time[other] < earliest:
                least, earliest = other, jobs.time[other]
        if time <= earliest:
            break
        _put(jobs, i, earliest, jobs.slot[least])
        i = least
    _put(jobs, i, time, slot)


@kernel(_nrt=False)
def schedule(jobs, counts, slot, time):
    """Give a job its event, or another time to the one that it has."""
    i = jobs.place[slot]
    if i == NONE:
        counts[HEAP] += 1
        _rise(jobs, counts[HEAP] - 1, time, slot)
    elif time < jobs.time[i]:
        _rise(jobs, i, time, slot)
    else:
        _sink(jobs, counts[HEAP], i, time, slot)


@kernel(_nrt=False)
def remove_first(jobs, counts):
    """Take out the earliest event, and free its slot."""
    slot = jobs.slot[0]
    jobs.place[slot] = NONE
    jobs.after[slot] = counts[FREE]
    counts[FREE] = slot
    counts[HEAP] -= 1
    size = counts[HEAP]
    if size > 0:
        _sink(jobs, size, 0, jobs.time[size], jobs.slot[size])
