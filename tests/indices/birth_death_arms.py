"""Birth-death arms for tests, and their values in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mdpcloud.indices import Node
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm, birth_death_arm
from tests.indices.exact_index import ExactPath, exact_path

__all__ = [
    "built",
    "exact",
    "refusing",
    "saved",
    "saved_by",
    "small_arm",
    "within",
]


def fractions(array: np.ndarray) -> Any:
    return [fractions(a) if a.ndim else fraction(a) for a in array]


def fraction(number: Any) -> Fraction:
    return number if isinstance(number, Fraction) else Fraction(float(number))


def exact(arm: BirthDeathArm, alpha: Fraction) -> ExactPath:
    """All optimal policies, from the general definition."""
    moves = [
        generator(b, d) for b, d in zip(*map(fractions, (arm.births, arm.deaths)), strict=True)
    ]
    return exact_path(moves, fractions(arm.costs), fractions(arm.work), alpha, discrete=False)


def generator(births: list[Fraction], deaths: list[Fraction]) -> Any:
    """Rows that sum to 0 exactly."""
    rows = [[Fraction(0)] * len(births) for _ in births]
    for i, (up, down) in enumerate(zip(births, deaths, strict=True)):
        rows[i][i] = -up - down
        if up:
            rows[i][i + 1] = up
        if down:
            rows[i][i - 1] = down
    return rows


def built(rates: np.ndarray, costs: np.ndarray, work: np.ndarray) -> BirthDeathArm:
    """The arm of rates (2, 2, n), births and deaths, passive and active."""
    rates[0, :, -1] = rates[1, :, 0] = 0.0
    return birth_death_arm(*rates[0], *rates[1], *costs, work0=work[0], work1=work[1])


def small_arm(seed: int, n: int) -> BirthDeathArm:
    """Small whole numbers, so that ties, zeros and traps are common."""
    rng = np.random.default_rng(seed)
    rates = rng.integers(1, 9, (2, 2, n)) / 2.0 * (rng.random((2, 2, n)) >= rng.choice([0, 0.2]))
    kind = rng.integers(6)
    if kind == 0:  # jobs are refused
        rates[0, 1], rates[1, 1] = 0.0, rates[1, 0]
    elif kind == 1:  # passive arms rest
        rates[:, 0] = 0.0
    elif kind == 2:  # active arms are faster
        rates[:, 1] = 2.0 * rates[:, 0]
    elif kind == 3:  # passive arms get worse
        rates[1, 0] = 0.0
    costs = rng.integers(-4, 5, (2, n)) / 2.0
    if rng.random() < 0.7:
        costs = np.cumsum(np.abs(costs), axis=1)
        costs[1] = costs[0]
    work = np.stack([np.zeros(n), np.ones(n)])
    if rng.random() < 0.4:
        work = rng.integers(-1, 4, (2, n)) * 1.0
    elif rng.random() < 0.3:
        work[0, rng.choice([0, -1])] = rng.choice([-1.0, 1.0])
    return built(rates, costs, work)


def within(value: float, error: float, lower: Any, upper: Any) -> bool:
    """Whether lower - error <= value <= upper + error, exactly."""
    if np.isinf(value):
        return bool(value == (lower if value > 0 else upper))
    return bool(lower - Fraction(error) <= Fraction(value) <= upper + Fraction(error))


def shot_values(
    arm: BirthDeathArm, active: np.ndarray, alpha: Fraction, k: int, of: np.ndarray
) -> tuple[Fraction, Fraction]:
    """eta_{k-1} and eta_k of a policy, whose cost is `of`, by shooting from both ends.

    With G = alpha v (or the gain) unknown at an end, G_i = of_i + b_i eta_i - d_i eta_{i-1} gives
    all others as constant + factor * G; both sides meet in state k.
    """
    births, deaths, paid = (
        [fraction(values[int(a), i]) for i, a in enumerate(active)]
        for values in (arm.births, arm.deaths, of)
    )
    zero, one = (Fraction(0), Fraction(0)), (Fraction(0), Fraction(1))

    def shoot(states: Any, onward: Any, back: Any, sign: int) -> Any:
        g, eta = one, zero
        for i in states:
            own = (paid[i], Fraction(0))
            eta = tuple(
                (g[t] - own[t] + back[i] * sign * eta[t]) / (sign * onward[i]) for t in (0, 1)
            )
            g = tuple(g[t] + sign * alpha * eta[t] for t in (0, 1))
        return g, eta

    low, before = shoot(range(k), births, deaths, 1)
    high, after = shoot(range(arm.n - 1, k, -1), deaths, births, -1)
    # low = high and low = paid + b after - d before, in the factors x and y
    rows = [
        [low[1], -high[1], high[0] - low[0]],
        [
            low[1] + deaths[k] * before[1],
            -births[k] * after[1],
            paid[k] + births[k] * after[0] - low[0] - deaths[k] * before[0],
        ],
    ]
    det = rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    x = (rows[0][2] * rows[1][1] - rows[0][1] * rows[1][2]) / det
    y = (rows[0][0] * rows[1][2] - rows[0][2] * rows[1][0]) / det
    return before[0] + before[1] * x, after[0] + after[1] * y


def saved(arm: BirthDeathArm, alpha: Fraction, k: int, low: bool, of: np.ndarray) -> Fraction:
    """What activity saves in state k if the states below (above) are active."""
    states = np.arange(arm.n)
    return saved_by(arm, states < k if low else states > k, alpha, k, of)


def saved_by(
    arm: BirthDeathArm, active: np.ndarray, alpha: Fraction, k: int, of: np.ndarray
) -> Fraction:
    """What activity saves in state k under a policy."""
    before, after = shot_values(arm, active, alpha, k, of)
    gaps = [fraction(v[0, k]) - fraction(v[1, k]) for v in (of, arm.births, arm.deaths)]
    return gaps[0] + gaps[1] * after - gaps[2] * before


def refusing(node: Node, lam: float, room: int) -> BirthDeathArm:
    """Activity refuses jobs; work is the rate of refused jobs."""
    rates, costs = node.departures, node.costs
    return birth_death_arm(lam, 0.0, rates, rates, costs, costs, work1=lam, room=room)
