"""The yardstick of simulation: a loop written by hand for three nodes, and nothing else.

Gillespie's direct method: the time to the next event is exponential with the total rate, and the
event is found by going through the rates. One compiled kernel with numpy's generator; it adds up
the cost and no other measure, and shares no code with mdpcloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.plain import tables

__all__ = ["Average", "exponentials", "follow_indices", "follow_table"]

LONGEST = 200  # jobs at a node that the tables hold


@numba.njit(nogil=True, cache=True)
def run(
    rng: Any,
    events: int,
    death: Any,
    loss: Any,
    price: Any,
    table: Any,
    arrival: float,
    outside: float,
) -> Any:
    i, j, k = 0, 0, 0
    now, cost, last = 0.0, 0.0, table.shape[0] - 1
    for _ in range(events):
        d0, d1, d2 = death[0, i], death[1, j], death[2, k]
        total = arrival + d0 + d1 + d2
        hold = rng.standard_exponential() / total
        now += hold
        cost += hold * (loss[0, i] + loss[1, j] + loss[2, k])
        u = total * rng.random() - arrival
        if u < 0.0:
            if last >= 0:
                action = table[min(i, last), min(j, last), min(k, last)]
            else:
                best, action = outside, 0
                if price[2, k] < best:
                    best, action = price[2, k], 3
                if price[1, j] < best:
                    best, action = price[1, j], 2
                if price[0, i] < best:
                    best, action = price[0, i], 1
            if action == 0:
                cost += outside
            elif action == 1:
                i += 1
            elif action == 2:
                j += 1
            else:
                k += 1
        elif u < d0:
            i -= 1
        elif u < d0 + d1:
            j -= 1
        elif k > 0:
            k -= 1
    return now, cost


class Average(NamedTuple):
    """Simulated time and cost per time."""

    time: float
    gain: float


def follow_indices(
    nodes: Sequence[Any],
    arrival: float,
    outside: float,
    price: NDArray[Any],
    events: int,
    seed: int,
) -> Average:
    """Jobs go to the node of lowest price; ``price`` is (3, jobs), infinite where it refuses."""
    longer = np.full((3, LONGEST + 1), np.inf)
    longer[:, : price.shape[1]] = price
    return _follow(nodes, arrival, outside, longer, np.zeros((0, 0, 0), np.int8), events, seed)


def follow_table(
    nodes: Sequence[Any],
    arrival: float,
    outside: float,
    table: NDArray[Any],
    events: int,
    seed: int,
) -> Average:
    """Jobs go where the table of actions says, 0 outside and 1 + k to node k."""
    price = np.full((3, LONGEST + 1), np.inf)
    return _follow(nodes, arrival, outside, price, table.astype(np.int8), events, seed)


def _follow(
    nodes: Sequence[Any],
    arrival: float,
    outside: float,
    price: NDArray[Any],
    table: NDArray[Any],
    events: int,
    seed: int,
) -> Average:
    death, loss = tables(nodes, [LONGEST] * 3)
    rng = np.random.default_rng(seed)
    time, cost = run(rng, events, death, loss, price, table, arrival, outside)
    return Average(time, cost / time)


def exponentials(count: int, seed: int, size: int = 4096) -> float:
    """Sum of numpy's exponentials, drawn into one array again and again."""
    rng, draws, total = np.random.default_rng(seed), np.empty(size), 0.0
    for _ in range(count // size):
        rng.standard_exponential(out=draws)
        total += draws[0]
    return total
