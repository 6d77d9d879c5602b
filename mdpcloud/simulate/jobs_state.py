"""The arrays of the job-level simulation that its kernels read and write.

A job is a *slot*. It has one event: its deadline while it waits, then the end of its service or
the deadline that comes before. The events stand in a heap of four branches, ordered by their times
from the beginning of the segment; a job that begins its service moves in the heap, so that nothing
in it is ever out of date. A patient waiting job has no event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.simulate.jobs_codes_kernels import NONE

__all__ = [
    "NEVER_FULL",
    "ArrayOfFloats",
    "ArrayOfInts",
    "Choice",
    "Draws",
    "Jobs",
    "Pools",
    "Trace",
    "more_jobs",
    "no_jobs",
]

NEVER_FULL = 1 << 62

ArrayOfFloats = NDArray[np.float64]
ArrayOfInts = NDArray[np.int64]
Links = NDArray[np.int32]


class Pools(NamedTuple):
    """The nodes, (n,) each but for the first, and what happened there since a segment began."""

    to_end: bool  # whether deadlines end services too
    servers: ArrayOfInts
    room: ArrayOfInts
    impatient: NDArray[np.bool_]
    jobs: ArrayOfInts  # present
    first: Links  # slots of the queue's ends
    last: Links
    since: ArrayOfFloats  # last change
    jobs_time: ArrayOfFloats  # integral of the jobs present
    busy_time: ArrayOfFloats  # integral of the busy servers
    routed: ArrayOfInts
    lost: ArrayOfInts


class Jobs(NamedTuple):
    """Slots and the heap, both of one size; ``after`` also strings the free slots together."""

    node: Links
    before: Links  # in the queue
    after: Links
    stage: NDArray[np.int8]
    place: Links  # in the heap
    time: ArrayOfFloats  # of the heap's events
    slot: Links  # of the heap's events


class Draws(NamedTuple):
    """Random numbers that are not used yet, and how many of each row are."""

    arrivals: ArrayOfFloats  # (B,) times between arrivals
    uniforms: ArrayOfFloats  # (B,)
    services: ArrayOfFloats  # (n, B)
    patience: ArrayOfFloats  # (n, B)
    used_services: ArrayOfInts  # (n,)
    used_patience: ArrayOfInts  # (n,)


class Choice(NamedTuple):
    """Where jobs go. Arrays of other kinds of rules than ``kind`` are empty."""

    kind: int
    margin: float
    tree: ArrayOfFloats  # tournament of prices
    order: ArrayOfInts  # (n,) node of each leaf
    leaf: ArrayOfInts  # (n,) leaf of each node
    prices: ArrayOfFloats  # of all nodes, one after the other
    begin: ArrayOfInts  # (n + 1,) where those of a node begin
    cumulative: ArrayOfFloats  # (rows, n + 1) probabilities of the actions, summed
    states: Links  # (T, n) keys of an open hash table
    answers: Links  # (T,) actions or rows of probabilities; NONE where there is no key
    factors: NDArray[np.uint64]  # (n,) of the hash, a sum of factors times jobs
    hash: NDArray[np.uint64]  # (1,) of the present state
    known: ArrayOfInts  # (1,) states in the table


class Trace(NamedTuple):
    """What is recorded of R nodes."""

    number: Links  # (n,) of a recorded node, else NONE
    occupation: ArrayOfFloats  # (R, W) time at each number of jobs, in this segment
    times: ArrayOfFloats  # (R, M)
    values: ArrayOfInts  # (R, M)
    changes: ArrayOfInts  # (R,)


def no_jobs(size: int) -> Jobs:
    """So many free slots."""
    after = np.arange(1, size + 1, dtype=np.int32)
    after[-1] = NONE
    links = np.full((4, size), NONE, np.int32)
    return Jobs(
        links[0], links[1], after, np.zeros(size, np.int8), links[2], np.zeros(size), links[3]
    )


def more_jobs(jobs: Jobs, free: int) -> tuple[Jobs, int]:
    """Twice as many slots, and the first free one; ``free`` is the first one so far."""
    size = jobs.node.size
    new = no_jobs(size)
    new.after[:-1] += size
    new.after[-1] = free
    return Jobs(*(np.concatenate([jobs[i], part]) for i, part in enumerate(new))), size
