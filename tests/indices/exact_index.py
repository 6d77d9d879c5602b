"""Restless arms in exact rational arithmetic, by enumeration; and in floats, by bisection.

`exact_path` evaluates every policy (2^n of them) with values that are affine in the price, and
keeps for each the interval of prices at which it satisfies the optimality equation. Nothing moves
from one policy to the next, so no mistake of a path can hide here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tests.common.exact import solve_exactly

__all__ = [
    "Affine",
    "ExactPath",
    "Piece",
    "bisection_index",
    "closed_classes_of",
    "exact_path",
    "optimal_differences",
]

Matrix = Sequence[Sequence[Fraction]]
Policy = tuple[bool, ...]


@dataclass(frozen=True)
class Affine:
    """The function constant + slope * price."""

    constant: Fraction
    slope: Fraction

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.constant + other.constant, self.slope + other.slope)

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.constant - other.constant, self.slope - other.slope)

    def __mul__(self, factor: Fraction) -> Affine:
        return Affine(self.constant * factor, self.slope * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Fraction) -> Affine:
        return Affine(self.constant / divisor, self.slope / divisor)

    def at(self, price: Any) -> Any:
        return self.constant + self.slope * price

    @property
    def is_zero(self) -> bool:
        return self.constant == 0 == self.slope

    def nonnegative(self) -> tuple[Any, Any]:
        """The interval of prices where it is >= 0; empty ones have their ends the wrong way."""
        if self.slope == 0:
            return (-math.inf, math.inf) if self.constant >= 0 else (math.inf, -math.inf)
        root = -self.constant / self.slope
        return (root, math.inf) if self.slope > 0 else (-math.inf, root)


@dataclass(frozen=True)
class Piece:
    """An interval of prices without a change, and what is optimal inside.

    ``policies`` are those with one closed class (any, if discounted) that satisfy the optimality
    equation throughout; ``differences`` are passive minus active values, per unit of time, None
    where there is no such policy or two of them disagree; ``optimum`` is the average cost, or the
    discounted cost of each state.
    """

    lower: Any
    upper: Any
    policies: list[Policy]
    differences: tuple[Affine, ...] | None
    optimum: tuple[Affine, ...] | None

    @cached_property
    def inside(self) -> Fraction:
        """A price strictly inside."""
        lower, upper = self.lower, self.upper
        if math.isinf(lower):
            return Fraction(0) if math.isinf(upper) else upper - 1
        return lower + 1 if math.isinf(upper) else (lower + upper) / 2

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """1 where activity is better inside, -1 where passivity is, 0 where both are as good."""
        assert self.differences is not None
        values = [each.at(self.inside) for each in self.differences]
        return tuple((v > 0) - (v < 0) for v in values)


@dataclass(frozen=True)
class ExactPath:
    """All pieces, by increasing price."""

    n: int
    pieces: list[Piece]
    unichain: bool
    """Whether every policy has one closed class."""

    @property
    def solved(self) -> bool:
        """Whether the optimality equation has one solution, by a unichain policy, everywhere."""
        return all(piece.differences is not None for piece in self.pieces)

    @property
    def is_degenerate(self) -> bool:
        """Whether a state is indifferent on an interval, or touches indifference and turns back.

        Asked of solved paths only, like all that follows.
        """
        return any(0 in piece.signs for piece in self.pieces) or bool(self.touches)

    @property
    def touches(self) -> list[tuple[Any, int]]:
        """Prices and states where both actions are as good but the same one is better around."""
        return [
            (below.upper, i)
            for below, above in itertools.pairwise(self.pieces)
            for i in range(self.n)
            if below.signs[i] == above.signs[i] != 0 and below.differences[i].at(below.upper) == 0  # type: ignore[index]
        ]

    @property
    def verdict(self) -> str:
        """By strict preferences: degenerate arms may count as indexable here."""
        if not self.solved:
            return "multichain"
        return "not indexable" if any(map(self.turns_back, range(self.n))) else "indexable"

    def turns_back(self, state: int) -> bool:
        """Whether activity is strictly better at a price above one at which passivity is."""
        signs = [piece.signs[state] for piece in self.pieces]
        return -1 in signs and 1 in signs[signs.index(-1) :]

    def index_range(self, state: int) -> tuple[Any, Any]:
        """Last price below which activity is better, and first one above which passivity is."""
        better = [p.upper for p in self.pieces if p.signs[state] > 0]
        worse = [p.lower for p in self.pieces if p.signs[state] < 0]
        return max(better, default=-math.inf), min(worse, default=math.inf)

    def at(self, price: Any) -> Piece:
        """A piece that holds the price."""
        return next(piece for piece in self.pieces if piece.lower <= price <= piece.upper)


def exact_path(
    moves: Sequence[Matrix],
    costs: Sequence[Sequence[Fraction]],
    work: Sequence[Sequence[Fraction]] | None = None,
    alpha: Fraction | int = 0,
    *,
    discrete: bool = True,
) -> ExactPath:
    """The optimal policies of the single-arm problem at every price.

    ``moves`` are probabilities of a step, or generators (``discrete=False``), passive and active;
    alpha v = c_a + p w_a + Q_a v with Q = P - I in discrete time, as everywhere in the library.
    """
    n = len(moves[0])
    if work is None:
        work = [[Fraction(0)] * n, [Fraction(1)] * n]
    rates = [generator(matrix) if discrete else matrix for matrix in moves]
    prices = [list(map(Affine, *rows)) for rows in zip(costs, work, strict=True)]
    found: list[tuple[Policy, Any, tuple[Affine, ...], tuple[Affine, ...]]] = []
    policies = list(itertools.product([True, False], repeat=n))
    for policy in policies:
        rows = [rates[on][i] for i, on in enumerate(policy)]
        if alpha == 0 and len(closed_classes_of(rows)) > 1:
            continue
        paid = [prices[on][i] for i, on in enumerate(policy)]
        values, optimum = evaluate(rows, paid, Fraction(alpha))
        differences = tuple(
            prices[0][i]
            - prices[1][i]
            + dot([a - b for a, b in zip(rates[0][i], rates[1][i], strict=True)], values)
            for i in range(n)
        )
        interval = optimal_interval(policy, differences)
        found.append((policy, interval, differences, optimum))
    return ExactPath(n, pieces_of(found), len(found) == len(policies))


def generator(matrix: Matrix) -> Matrix:
    return [[entry - (i == j) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]


def dot(row: Sequence[Fraction], values: Sequence[Affine]) -> Affine:
    products = (a * v for a, v in zip(row, values, strict=True) if a != 0)
    return sum(products, Affine(Fraction(0), Fraction(0)))


def evaluate(
    rows: Matrix, paid: Sequence[Affine], alpha: Fraction
) -> tuple[list[Affine], tuple[Affine, ...]]:
    """Values of a policy as functions of the price, and the average (discounted: the values)."""
    n = len(rows)
    system = [[alpha * (i == j) - rows[i][j] for j in range(n)] for i in range(n)]
    if alpha != 0:
        values = solve_exactly(system, paid)  # type: ignore[arg-type]
        return values, tuple(values)  # type: ignore[return-value, arg-type]
    for row in system:
        row[-1] = Fraction(1)  # the gain, in place of the last state's value 0
    *values, gain = solve_exactly(system, paid)  # type: ignore[arg-type]
    return [*values, gain - gain], (gain,)  # type: ignore[list-item, return-value]


def optimal_interval(policy: Policy, differences: Sequence[Affine]) -> tuple[Any, Any]:
    """Prices at which no other action is better in any state."""
    ends = [
        (d if on else d * Fraction(-1)).nonnegative()
        for on, d in zip(policy, differences, strict=True)
    ]
    return max(low for low, _ in ends), min(high for _, high in ends)


def pieces_of(found: list[Any]) -> list[Piece]:
    """Cut the prices where the interval of any policy ends."""
    proper = [each for each in found if each[1][0] < each[1][1]]
    ends = sorted({-math.inf, math.inf, *(end for each in proper for end in each[1])})
    pieces = []
    for lower, upper in itertools.pairwise(ends):
        here = [each for each in proper if each[1][0] <= lower and upper <= each[1][1]]
        agreed = bool(here) and all(each[2] == here[0][2] for each in here)
        pieces.append(
            Piece(
                lower,
                upper,
                [each[0] for each in here],
                here[0][2] if agreed else None,
                here[0][3] if agreed else None,
            )
        )
    return pieces


def closed_classes_of(rows: Sequence[Sequence[Any]]) -> list[frozenset[int]]:
    """Sets of states that reach each other and nothing else; the diagonal does not matter."""
    n = len(rows)
    reach = [{i} for i in range(n)]
    for _ in range(n):
        for i in range(n):
            reach[i] |= {k for j in range(n) if rows[i][j] > 0 for k in reach[j]}
    return list({frozenset(r) for i, r in enumerate(reach) if all(i in reach[j] for j in r)})


Differences = Callable[[float], np.ndarray]


def optimal_differences(
    rates: Sequence[np.ndarray], costs: np.ndarray, work: np.ndarray, alpha: float = 0.0
) -> Differences:
    """A function from the price to the passive minus active values, by policy iteration.

    ``rates`` are generators, P - I in discrete time. It begins with the policy found last.
    """
    n = costs.shape[1]
    states = np.arange(n)
    both = np.stack(rates)
    policy = np.ones(n, np.int64)

    def differences(price: float) -> np.ndarray:
        nonlocal policy
        paid = costs + price * work
        for _ in range(1000):
            system = alpha * np.eye(n) - both[policy, states]
            if alpha == 0:
                system[:, -1] = 1.0
            values = np.linalg.solve(system, paid[policy, states])
            if alpha == 0:
                values[-1] = 0.0
            backed = paid + both @ values
            found = backed[0] - backed[1]
            slack = 1e-13 * (np.abs(paid).max() + np.abs(both).max() * np.abs(values).max())
            better = np.where(found > slack, 1, np.where(found < -slack, 0, policy))
            if (better == policy).all():
                return found
            policy = better
        raise AssertionError("policy iteration goes round in circles")

    return differences


def bisection_index(differences: Differences, n: int, width: float = 1e-12) -> np.ndarray:
    """The index of an indexable arm: where each state's difference changes its sign.

    Intervals are halved until they are shorter than ``width`` times their distance from 0 (or 1).
    """
    lower, upper = -1.0, 1.0
    while not (differences(lower) > 0).all():
        lower *= 2.0
        assert lower > -1e12, "some state is passive at every price"
    while not (differences(upper) < 0).all():
        upper *= 2.0
        assert upper < 1e12, "some state is active at every price"
    ends = np.empty((n, 2))
    halve(differences, np.arange(n), lower, upper, width, ends)
    return ends.mean(axis=1)


def halve(
    differences: Differences,
    states: np.ndarray,
    lower: float,
    upper: float,
    width: float,
    ends: np.ndarray,
) -> None:
    """Enclose the index of all these states, which lies between both prices."""
    middle = 0.5 * (lower + upper)
    if upper - lower <= width * max(1.0, abs(middle)) or states.size == 0:
        ends[states] = lower, upper
        return
    active = differences(middle)[states] > 0
    halve(differences, states[~active], lower, middle, width, ends)
    halve(differences, states[active], middle, upper, width, ends)
