"""The blocks of states in which products of a vector with a sparse matrix are made.

States come in blocks of SIDE. The entries of a block are kept by their *shift* origin - state where
few shifts occur (lattices): a product is then a handful of dense loops. Other blocks keep rows. A
list says which blocks one product can reach from each block.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel

SIDE = 64
MOST_SHIFTS = 12


@kernel()
def count_shifts(pointer, origin, count):
    """Number of shifts per block, -1 where rows are better; the largest number of terms per sum."""
    n = pointer.size - 1
    shifts = np.empty(MOST_SHIFTS, np.int64)
    longest = 0
    for b in range(count.size):
        found, entries = 0, 0
        for y in range(b * SIDE, min(n, (b + 1) * SIDE)):
            entries += pointer[y + 1] - pointer[y]
            longest = max(longest, pointer[y + 1] - pointer[y])
            for j in range(pointer[y], pointer[y + 1]):
                shift = origin[j] - y
                s = 0
                while s < found and shifts[s] != shift:
                    s += 1
                if s == found:
                    if found == MOST_SHIFTS:
                        found = -1
                        break
                    shifts[found] = shift
                    found += 1
            if found < 0:
                break
        count[b] = found if found * SIDE <= 3 * entries + SIDE else -1
    return longest


@kernel()
def fill_shifts(pointer, origin, rate, first, shifted, shift, value):
    """Write the entries of the blocks that are kept by shift."""
    n = pointer.size - 1
    for b in range(shifted.size):
        if not shifted[b]:
            continue
        found = first[b]
        for y in range(b * SIDE, min(n, (b + 1) * SIDE)):
            for j in range(pointer[y], pointer[y + 1]):
                s = first[b]
                while s < found and shift[s] != origin[j] - y:
                    s += 1
                if s == found:
                    shift[s] = origin[j] - y
                    found += 1
                value[s * SIDE + y - b * SIDE] += rate[j]


@kernel()
def list_followers(pointer, origin, first, follower):
    """Blocks that a product reaches from each block, itself included; only counted if no room."""
    n, blocks = pointer.size - 1, first.size - 1
    seen = np.full(blocks, -1)
    place = first[:-1].copy()
    for b in range(blocks):
        seen[b] = b
        if follower.size:
            follower[place[b]] = b
        place[b] += 1
        for y in range(b * SIDE, min(n, (b + 1) * SIDE)):
            for j in range(pointer[y], pointer[y + 1]):
                a = origin[j] // SIDE
                if seen[a] != b:
                    seen[a] = b
                    if follower.size:
                        follower[place[a]] = b
                    place[a] += 1
    if not follower.size:
        for b in range(blocks):
            first[b + 1] = first[b] + place[b]
