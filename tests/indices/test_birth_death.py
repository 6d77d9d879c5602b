"""Birth-death arms: exact rationals, the routing model's index, and the general definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.indices import Node, restless_bandit
from mdpcloud.indices.birth_death import birth_death_index
from mdpcloud.indices.birth_death_arm import BirthDeathArm, birth_death_arm
from tests.indices.exact_index import ExactPath, exact_path


def exact(arm: BirthDeathArm, alpha: Fraction) -> ExactPath:
    def fractions(array: np.ndarray) -> Any:
        return [fractions(a) if a.ndim else Fraction(float(a)) for a in array]

    moves = [q.toarray() for q in arm.general().moves]
    return exact_path(
        [fractions(q) for q in moves],
        fractions(arm.costs),
        fractions(arm.work),
        alpha,
        discrete=False,
    )


def random_arm(seed: int, n: int) -> BirthDeathArm:
    """Small whole numbers, so that ties, zeros and traps are common."""
    rng = np.random.default_rng(seed)
    rates = rng.integers(1, 9, (2, 2, n)) / 2.0 * (rng.random((2, 2, n)) >= rng.choice([0, 0.2]))
    kind = rng.integers(6)
    if kind == 0:
        rates[0, 1] = 0.0
        rates[1, 1] = rates[1, 0]
    elif kind == 1:
        rates[:, 0] = 0.0
    elif kind == 2:
        rates[:, 1] = 2.0 * rates[:, 0]
    elif kind == 3:
        rates[1, 0] = 0.0
    (rates[0, :, -1], rates[1, :, 0]) = 0.0, 0.0
    costs = rng.integers(-4, 5, (2, n)) / 2.0
    if rng.random() < 0.7:
        costs = np.cumsum(np.abs(costs), axis=1)
        costs[1] = costs[0]
    work = np.stack([np.zeros(n), np.ones(n)])
    if rng.random() < 0.4:
        work = rng.integers(-1, 4, (2, n)) * 1.0
    return birth_death_arm(*rates[0], *rates[1], *costs, work0=work[0], work1=work[1])


def contains(arm: BirthDeathArm, alpha: Fraction) -> bool:
    """Whether there is an index by thresholds; if so, check it."""
    found = birth_death_index(arm, float(alpha))
    if found is None:
        return False
    truth = exact(arm, alpha)
    assert truth.solved
    assert truth.verdict == "indexable"
    for i in range(arm.n):
        lower, upper = truth.index_range(i)
        assert within(found.index[i], found.error[i], lower, upper)
    return True


def within(value: float, error: float, lower: Any, upper: Any) -> bool:
    """Whether lower - error <= value <= upper + error, exactly."""
    if np.isinf(value):
        return bool(value == (lower if value > 0 else upper))
    return bool(lower - Fraction(error) <= Fraction(value) <= upper + Fraction(error))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 4),
    alpha=st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(2)]),
)
def test_every_verdict_holds_in_exact_arithmetic(seed: int, n: int, alpha: Fraction) -> None:
    contains(random_arm(seed, n), alpha)


@pytest.mark.parametrize("deadline", ["begin_service", "end_service"])
@pytest.mark.parametrize("lam", [1.0, 20.0, 100.0])
def test_a_node_that_refuses_jobs_at_a_price_has_the_routing_index(
    deadline: str, lam: float
) -> None:
    node = Node(5, 4.0, 0.3125, deadline, fee=2.0, holding_cost=0.5)
    room = 200
    arm = birth_death_arm(
        lam,
        0.0,
        node.departures,
        node.departures,
        node.costs,
        node.costs,
        work1=lam,
        room=room,
    )
    found = birth_death_index(arm, 0.0)
    assert found is not None
    wanted = restless_bandit(node, lam, room - 1)
    assert np.abs(found.index[:room] - wanted).max() <= 1e-13 * wanted.max()
