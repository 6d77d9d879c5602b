"""Discount factors close to 1: the rate that stands for them must not lose their digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import mdpcloud as mc

FACTORS = [0.5, 0.9, 0.99, 0.999999, 1 - 2.0**-30, 1 - 2.0**-40, 2.0**-20]


def enclosed(bounds: tuple[Any, Any], exact: list[Fraction]) -> bool:
    lower, upper = bounds
    return all(
        Fraction(float(low)) <= value <= Fraction(float(high))
        for low, high, value in zip(lower, upper, exact, strict=True)
    )


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("cost", [1.0, 2.0, 0.1])
def test_the_bounds_of_one_state_hold_its_geometric_sum(factor: float, cost: float) -> None:
    solution = mc.solve(mc.tabular([[[1.0]]], costs=[cost]), mc.Discounted(factor=factor))
    exact = Fraction(cost) / (1 - Fraction(factor))
    assert enclosed(solution.bounds, [exact])


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("solver", [None, "policy_iteration", "value_iteration"])
def test_the_bounds_of_a_cycle_hold_its_exact_values(factor: float, solver: str | None) -> None:
    model = mc.tabular([[[0, 1], [1, 0]]], costs=[1.0, 3.0])
    b = Fraction(factor)
    exact = [(1 + 3 * b) / (1 - b * b), (3 + b) / (1 - b * b)]
    solution = mc.solve(model, mc.Discounted(factor=factor), solver=solver, strict=False)
    assert enclosed(solution.bounds, exact)
    evaluation = mc.evaluate(model, {}, mc.Discounted(factor=factor), strict=False)
    assert enclosed(evaluation.bounds, exact)
