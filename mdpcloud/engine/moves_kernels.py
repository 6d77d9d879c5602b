"""Compiled copies of the moves of rows: without some, with others, or only some rows.

Counters and targets are unsigned, see `mdpcloud.engine.rows_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Pointers = NDArray[np.unsignedinteger[Any]]
Targets = NDArray[np.uint32]
ONE = np.uint64(1)


@kernel()
def count_stays(indptr: Pointers, indices: Targets, state: Ints) -> int:
    """How many moves lead back to the state of their row."""
    stays = 0
    for row in range(state.size):
        here = state[row]
        for j in range(indptr[row], indptr[row + 1]):
            stays += indices[j] == here
    return stays


@kernel()
def drop_stays(
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    state: Ints,
    begins: Pointers,
    targets: Ints,
    kept: Floats,
) -> None:
    """Copy the matrix into the last three arrays without the moves that `count_stays` counts."""
    k = 0
    for row in range(state.size):
        here = state[row]
        begins[row] = k
        for j in range(indptr[row], indptr[row + 1]):
            if indices[j] != here:
                targets[k] = indices[j]
                kept[k] = weights[j]
                k += 1
    begins[state.size] = k


@kernel()
def pick(
    rows: Longs,
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    begins: Pointers,
    targets: Ints,
    rates: Floats,
) -> None:
    """Copy these rows of a matrix, whose new pointers are given, into the last two arrays."""
    k = np.uint64(0)
    for new in range(rows.size):
        old = np.uint64(rows[new])
        j, end = np.uint64(indptr[old]), np.uint64(begins[new + 1])
        while k < end:
            targets[k] = indices[j]
            rates[k] = weights[j]
            k += ONE
            j += ONE


@kernel()
def balance(
    indptr: Pointers,
    indices: Targets,
    weights: Floats,
    begins: Pointers,
    targets: Ints,
    rates: Floats,
) -> None:
    """Copy a square matrix and put minus the row sum on the diagonal of rows that are not empty."""
    k = 0
    for row in range(indptr.size - 1):
        begins[row] = k
        out, place = 0.0, k
        for j in range(indptr[row], indptr[row + 1]):
            place += indices[j] < row
            out += weights[j]
        for j in range(indptr[row], indptr[row + 1]):
            k += k == place
            targets[k] = indices[j]
            rates[k] = weights[j]
            k += 1
        if indptr[row] < indptr[row + 1]:
            k += k == place
            targets[place] = row
            rates[place] = -out
    begins[indptr.size - 1] = k
