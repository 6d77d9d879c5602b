"""Numbers by which the kernels of the job-level simulation name things.

They stand in a file of kernels, as all that is compiled into kernels must.
"""

from __future__ import annotations

NONE = -1

# What `run` returns: all segments are done, or what it needs (of node ``counts[NODE]``).
DONE, PAUSE, ARRIVALS, UNIFORMS, SERVICES, PATIENCE, PRICES, ANSWER, SLOTS, WIDTH, FULL, GO = range(
    12
)
# Entries of `counts` and of `clock`; times are from the beginning of the segment but for the last.
HEAP, FREE, EVENTS, OUTSIDE, USED_ARRIVALS, USED_UNIFORMS, NODE, SEGMENT, COUNTS = range(9)
ARRIVAL, LENGTH, BEFORE, CLOCKS = range(4)
# Kinds of rules: by prices, by fixed probabilities, by a function, by a function to probabilities.
INDEX, SPLIT, RULE, MIXTURE = range(4)
# Stages of a job.
WAITING, SERVED, LOST = range(3)
BRANCHES = 4
