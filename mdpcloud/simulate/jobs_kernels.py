"""Kernels of the job-level simulation: arrivals, deadlines and ends of services, one by one.

Jobs are served first come, first served. All that an event needs (random numbers, prices, the
answer of a rule, room in the arrays) is looked up before it changes anything; what is missing is
told to the caller, who provides it and calls again. The arrays are described in
`mdpcloud.simulate.jobs_state`.

The kernels allocate nothing, so they are compiled without numba's counting of references to arrays
(its option ``_nrt``), which takes nine tenths of the time otherwise.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.simulate.jobs_codes_kernels import (
    ARRIVAL,
    ARRIVALS,
    BEFORE,
    DONE,
    EVENTS,
    FREE,
    FULL,
    GO,
    HEAP,
    INDEX,
    LENGTH,
    LOST,
    MIXTURE,
    NODE,
    NONE,
    OUTSIDE,
    PATIENCE,
    PAUSE,
    PRICES,
    SEGMENT,
    SERVED,
    SERVICES,
    SLOTS,
    SPLIT,
    USED_ARRIVALS,
    USED_UNIFORMS,
    WAITING,
    WIDTH,
)
from mdpcloud.simulate.jobs_heap_kernels import remove_first, schedule
from mdpcloud.simulate.jobs_rules_kernels import _choose
from mdpcloud.simulate.tournament_kernels import change_price

# --- nodes ----------------------------------------------------------------------------------------


@kernel(_nrt=False)
def _account(pools, trace, k, time):
    """Add the time since the last change of node k to its integrals."""
    spent = time - pools.since[k]
    present = pools.jobs[k]
    pools.since[k] = time
    pools.jobs_time[k] += present * spent
    pools.busy_time[k] += min(present, pools.servers[k]) * spent
    if trace.number[k] != NONE:
        trace.occupation[trace.number[k], present] += spent


@kernel(_nrt=False)
def _change(pools, choice, trace, counts, clock, k, amount, time):
    """Change the number of jobs of node k; the integrals are up to date."""
    pools.jobs[k] += amount
    present = pools.jobs[k]
    if choice.kind == INDEX:
        change_price(choice.tree, choice.leaf[k], choice.prices[choice.begin[k] + present])
    elif choice.kind != SPLIT:
        choice.hash[0] += np.uint64(amount) * choice.factors[k]
    r = trace.number[k]
    if r != NONE and trace.changes[r] < trace.times.shape[1]:
        m = trace.changes[r]
        trace.times[r, m] = clock[BEFORE] + counts[SEGMENT] * clock[LENGTH] + time
        trace.values[r, m] = present
        trace.changes[r] = m + 1


@kernel(_nrt=False)
def _serve(pools, jobs, draws, counts, k, slot, deadline, time):
    end = time + draws.services[k, draws.used_services[k]]
    draws.used_services[k] += 1
    jobs.stage[slot] = SERVED
    if pools.to_end and deadline < end:
        end = deadline
        jobs.stage[slot] = LOST
    schedule(jobs, counts, slot, end)


@kernel(_nrt=False)
def _queue(pools, jobs, counts, k, slot, deadline):
    jobs.stage[slot] = WAITING
    jobs.after[slot] = NONE
    jobs.before[slot] = pools.last[k]
    if pools.last[k] == NONE:
        pools.first[k] = slot
    else:
        jobs.after[pools.last[k]] = slot
    pools.last[k] = slot
    if deadline < np.inf:
        schedule(jobs, counts, slot, deadline)


@kernel(_nrt=False)
def _leave_queue(pools, jobs, k, slot):
    before, after = jobs.before[slot], jobs.after[slot]
    if before == NONE:
        pools.first[k] = after
    else:
        jobs.after[before] = after
    if after == NONE:
        pools.last[k] = before
    else:
        jobs.before[after] = before


# --- events ---------------------------------------------------------------------------------------


@kernel(_nrt=False)
def _lacking(pools, draws, choice, trace, counts, k):
    """What is missing before a job can enter node k; GO if nothing is."""
    present = pools.jobs[k]
    if present >= pools.room[k]:
        return FULL
    if counts[FREE] == NONE:
        return SLOTS
    if pools.impatient[k] and draws.used_patience[k] == draws.patience.shape[1]:
        return PATIENCE
    if present < pools.servers[k] and draws.used_services[k] == draws.services.shape[1]:
        return SERVICES
    if choice.kind == INDEX and choice.begin[k] + present + 1 >= choice.begin[k + 1]:
        return PRICES
    if trace.number[k] != NONE and present + 1 >= trace.occupation.shape[1]:
        return WIDTH
    return GO


@kernel(_nrt=False)
def _enter(pools, jobs, draws, choice, trace, counts, clock, k, time):
    _account(pools, trace, k, time)
    slot = counts[FREE]
    counts[FREE] = jobs.after[slot]
    jobs.node[slot] = k
    deadline = np.inf
    if pools.impatient[k]:
        deadline = time + draws.patience[k, draws.used_patience[k]]
        draws.used_patience[k] += 1
    if pools.jobs[k] < pools.servers[k]:
        _serve(pools, jobs, draws, counts, k, slot, deadline, time)
    else:
        _queue(pools, jobs, counts, k, slot, deadline)
    pools.routed[k] += 1
    _change(pools, choice, trace, counts, clock, k, 1, time)


@kernel(_nrt=False)
def _arrive(pools, jobs, draws, choice, trace, counts, clock):
    if counts[USED_ARRIVALS] == draws.arrivals.size:
        return ARRIVALS
    wanted, action = _choose(pools, draws, choice, counts)
    if wanted != GO:
        return wanted
    if choice.kind == SPLIT and action > 0 and pools.jobs[action - 1] >= pools.room[action - 1]:
        action = 0
    time = clock[ARRIVAL]
    if action == 0:
        counts[OUTSIDE] += 1
    else:
        wanted = _lacking(pools, draws, choice, trace, counts, action - 1)
        if wanted != GO:
            counts[NODE] = action - 1
            return wanted
        _enter(pools, jobs, draws, choice, trace, counts, clock, action - 1, time)
    if choice.kind == SPLIT or choice.kind == MIXTURE:
        counts[USED_UNIFORMS] += 1
    clock[ARRIVAL] = time + draws.arrivals[counts[USED_ARRIVALS]]
    counts[USED_ARRIVALS] += 1
    return GO


@kernel(_nrt=False)
def _depart(pools, jobs, draws, choice, trace, counts, clock):
    """The earliest event of a job: it leaves, and the first in the queue takes its server."""
    slot, time = jobs.slot[0], jobs.time[0]
    k = jobs.node[slot]
    head = NONE
    if jobs.stage[slot] != WAITING:
        head = pools.first[k]
        if head != NONE and draws.used_services[k] == draws.services.shape[1]:
            counts[NODE] = k
            return SERVICES
    _account(pools, trace, k, time)
    if jobs.stage[slot] == WAITING:
        _leave_queue(pools, jobs, k, slot)
    if jobs.stage[slot] != SERVED:
        pools.lost[k] += 1
    remove_first(jobs, counts)
    if head != NONE:
        _leave_queue(pools, jobs, k, head)
        deadline = np.inf if jobs.place[head] == NONE else jobs.time[jobs.place[head]]
        _serve(pools, jobs, draws, counts, k, head, deadline, time)
    _change(pools, choice, trace, counts, clock, k, -1, time)
    return GO


@kernel(_nrt=False)
def _close(pools, jobs, trace, counts, clock, totals, occupation):
    """End a segment: write down what happened, and count time from here."""
    length, segment, n = clock[LENGTH], counts[SEGMENT], pools.jobs.size
    for k in range(n):
        _account(pools, trace, k, length)
        pools.since[k] = 0.0
        totals[segment, 0, k] = pools.routed[k]
        totals[segment, 1, k] = pools.lost[k]
        totals[segment, 2, k] = pools.jobs_time[k]
        totals[segment, 3, k] = pools.busy_time[k]
        pools.routed[k] = 0
        pools.lost[k] = 0
        pools.jobs_time[k] = 0.0
        pools.busy_time[k] = 0.0
    totals[segment, 4, 0] = counts[OUTSIDE]
    counts[OUTSIDE] = 0
    for r in range(trace.occupation.shape[0]):
        for i in range(trace.occupation.shape[1]):
            occupation[segment, r, i] = trace.occupation[r, i]
            trace.occupation[r, i] = 0.0
    for i in range(counts[HEAP]):
        jobs.time[i] -= length
    clock[ARRIVAL] -= length
    counts[SEGMENT] += 1


@kernel(_nrt=False)
def run(pools, jobs, draws, choice, trace, counts, clock, totals, occupation, most):
    """Go on through the segments of `totals`; returns DONE, PAUSE or what is missing.

    Parameters
    ----------
    pools, jobs, draws, choice, trace : Pools, Jobs, Draws, Choice, Trace
    counts : (COUNTS,) int64 array
    clock : (CLOCKS,) array
    totals : (S, 5, n) array
        Jobs routed and lost, integrals of jobs and busy servers, in [:, 4, 0] jobs sent outside.
    occupation : (S, R, W) array
        Time at each number of jobs; (0, 0, 0) where nothing is recorded.
    most : int
        Events after which it pauses.
    """
    left = most
    while left > 0:
        earliest = jobs.time[0] if counts[HEAP] > 0 else np.inf
        if min(earliest, clock[ARRIVAL]) >= clock[LENGTH]:
            _close(pools, jobs, trace, counts, clock, totals, occupation)
            if counts[SEGMENT] == totals.shape[0]:
                return DONE
            continue
        if clock[ARRIVAL] <= earliest:
            wanted = _arrive(pools, jobs, draws, choice, trace, counts, clock)
        else:
            wanted = _depart(pools, jobs, draws, choice, trace, counts, clock)
        if wanted != GO:
            return wanted
        counts[EVENTS] += 1
        left -= 1
    return PAUSE
