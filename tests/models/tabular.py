"""Decision problems given as arrays, in discrete time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

import mdpcloud as mc
from tests.models import Case, Heuristic

# Howard (1960), the taxicab: town, alternative, chances of the next town, fares to it.
TAXICAB = (
    (0, 0, (8, 4, 4), (10, 4, 8)),
    (0, 1, (1, 12, 3), (8, 2, 4)),
    (0, 2, (4, 2, 10), (4, 6, 4)),
    (1, 0, (8, 0, 8), (14, 0, 18)),
    (1, 1, (1, 14, 1), (8, 16, 8)),
    (2, 0, (4, 4, 8), (10, 2, 8)),
    (2, 1, (2, 12, 2), (6, 4, 2)),
    (2, 2, (12, 1, 3), (4, 0, 4)),
)
TOWNS = np.array([row[0] for row in TAXICAB])
ALTERNATIVES = np.array([row[1] for row in TAXICAB])
TRIPS = np.array([row[2] for row in TAXICAB]) / 16
FARES = (TRIPS * np.array([row[3] for row in TAXICAB])).sum(axis=1)

# A machine of condition 0, ..., 4 gets worse by itself, or is replaced at a price of 5.
WORSE = 0.7 * np.eye(5) + 0.3 * np.diag(np.ones(4), 1)
WORSE[4, 4] = 1.0
RENEWED = np.tile(np.array([1.0, 0, 0, 0, 0]), (5, 1))
UPKEEP = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
PRICES = np.stack([UPKEEP, 5.0 + 0 * UPKEEP], axis=1)

# A chain of period two.
CYCLE = np.array([[0.0, 1.0], [1.0, 0.0]])


def pairs(transitions: Any, costs: Any) -> dict[str, Any]:
    """Arrays of the state-action-pair form from ``(A, S, S)`` and ``(S, A)``."""
    count, size = len(transitions), len(transitions[0])
    dense = [np.asarray(t) for t in transitions]
    return {
        "states": np.repeat(np.arange(size), count),
        "actions": np.tile(np.arange(count), size),
        "P": np.array([dense[a][s] for s in range(size) for a in range(count)]),
        "costs": np.asarray(costs).reshape(-1),
    }


def replace_from(condition: int) -> dict[str, Any]:
    """Replace at that condition and beyond; one number per state."""
    return {"step": (np.arange(5) >= condition).astype(int)}


def renewal_cost(condition: int) -> Fraction:
    """Cost of a cycle over its length: 10/3 steps per condition, one for the replacement."""
    stay = Fraction(1) / Fraction(WORSE[0, 1])
    upkeep = sum((Fraction(u) for u in UPKEEP[:condition]), Fraction(0))
    return (stay * upkeep + 5) / (stay * condition + 1)


CASES = (
    Case(
        "taxicab",
        lambda: mc.tabular(TRIPS, rewards=FARES, s_indices=TOWNS, a_indices=ALTERNATIVES),
        "Howard (1960), Dynamic Programming and Markov Processes: gain 13.34, exactly 1588/119",
        Fraction(1588, 119),
        {"first alternatives": Heuristic({"step": np.array([0, 0, 0])}, Fraction(46, 5))},
        tolerance=1e-13,
        rewards=True,
        arrays={"P": TRIPS, "costs": -FARES, "states": TOWNS, "actions": ALTERNATIVES},
    ),
    Case(
        "replacement, dense",
        lambda: mc.tabular(np.stack([WORSE, RENEWED]), costs=PRICES),
        "renewal argument",
        min(renewal_cost(k) for k in (1, 2, 3, 4)),
        {f"from {k}": Heuristic(replace_from(k), renewal_cost(k)) for k in (1, 2, 3, 4)},
        tolerance=1e-13,
        arrays=pairs([WORSE, RENEWED], PRICES),
    ),
    Case(
        "replacement, sparse",
        lambda: mc.tabular([sparse.csr_array(WORSE), sparse.csr_array(RENEWED)], costs=PRICES),
        "renewal argument",
        min(renewal_cost(k) for k in (1, 2, 3, 4)),
        {f"from {k}": Heuristic(replace_from(k), renewal_cost(k)) for k in (2, 3)},
        tolerance=1e-13,
        arrays=pairs([WORSE, RENEWED], PRICES),
    ),
    Case(
        "cycle of period two",
        lambda: mc.tabular(CYCLE[None], costs=np.array([[1.0], [0.0]])),
        "by hand",
        Fraction(1, 2),
        {"uncontrolled": Heuristic({}, Fraction(1, 2))},
        tolerance=1e-14,
        arrays=pairs([CYCLE], [[1.0], [0.0]]),
    ),
)
