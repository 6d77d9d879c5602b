"""Where the next job goes: prices, probabilities, or the answers of a rule by state.

Answers stand in a hash table with open addresses. The code of a state is a sum of factors times the
jobs at each node (modulo 2^64), which costs little to keep when one of them changes; states are
compared number by number, so that nothing depends on the codes being different.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from mdpcloud.engine.jit import kernel
from mdpcloud.simulate.jobs_codes_kernels import (
    ANSWER,
    GO,
    INDEX,
    NONE,
    RULE,
    SPLIT,
    UNIFORMS,
    USED_UNIFORMS,
)
from mdpcloud.simulate.tournament_kernels import winner

__all__ = ["_choose", "remember"]


@kernel(_nrt=False)
def _drawn(cumulative, uniform):
    """The first action whose cumulative probability is above a number in [0, 1)."""
    low, high = 0, cumulative.size - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return low


@kernel(_nrt=False)
def _find(choice, state, code):
    """Place of a state in the table, or the free one where it belongs."""
    mask = choice.answers.size - 1
    mixed = code ^ (code >> np.uint64(32))
    i = np.int64(mixed & np.uint64(mask))
    while choice.answers[i] != NONE:
        same = True
        for k in range(state.size):
            if choice.states[i, k] != state[k]:
                same = False
                break
        if same:
            break
        i = (i + 1) & mask
    return i


@kernel(_nrt=False)
def remember(choice, state, answer):
    """Put a new state and its answer into the table, which must have a free place."""
    code = np.uint64(0)
    for k in range(state.size):
        code += np.uint64(state[k]) * choice.factors[k]
    i = _find(choice, state, code)
    for k in range(state.size):
        choice.states[i, k] = state[k]
    choice.answers[i] = answer
    choice.known[0] += 1


@kernel(_nrt=False)
def _choose(pools, draws, choice, counts):
    """What the rule says: GO and the action, 0 for outside, or what is missing."""
    if choice.kind == INDEX:
        leaf = winner(choice.tree, choice.margin)
        return GO, 0 if leaf == NONE else choice.order[leaf] + 1
    row = np.int32(0)
    if choice.kind != SPLIT:
        row = choice.answers[_find(choice, pools.jobs, choice.hash[0])]
        if row == NONE:
            return ANSWER, 0
        if choice.kind == RULE:
            return GO, np.int64(row)
    if counts[USED_UNIFORMS] == draws.uniforms.size:
        return UNIFORMS, 0
    return GO, _drawn(choice.cumulative[row], draws.uniforms[counts[USED_UNIFORMS]])
