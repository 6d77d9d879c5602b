"""Complete sharing: a loss network with a law of product form."""

from __future__ import annotations

import math
from fractions import Fraction

import mdpcloud as mc
from mdpcloud.policies.complete_sharing import complete_sharing
from tests.policies.links import Link


def test_complete_sharing_has_the_blocking_of_the_product_form() -> None:
    """P(n) is proportional to prod_j rho_j^n_j / n_j! on the states that fit; exact rationals."""
    link = Link(arrival_rates=(3.0, 1.0), sizes=(1, 2), costs=(1.0, 5.0), capacity=6)
    weights = {
        (i, j): Fraction(3) ** i / math.factorial(i) / math.factorial(j)
        for i in range(7)
        for j in range(4)
        if i + 2 * j <= 6
    }
    total = sum(weights.values())
    blocked = [
        sum(w for (i, j), w in weights.items() if i + 2 * j + size > 6) / total for size in (1, 2)
    ]
    found = mc.evaluate(link.model(), complete_sharing(link.streams()).member())
    cost = 3 * blocked[0] + 5 * blocked[1]
    assert found.bounds[0] <= cost <= found.bounds[1]


def test_complete_sharing_is_one_rule_and_can_have_another_name() -> None:
    assert complete_sharing([]).size == 1
    assert complete_sharing([]).name == "complete_sharing"
    assert complete_sharing([], "pure_loss").name == "pure_loss"
