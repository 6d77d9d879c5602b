"""Proved bounds under several cost rates of one chain, in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.engine.enclosure import enclose_rates
from tests.common import interpreter
from tests.common.random_models import returning_models

SEEDS = st.integers(0, 2**32 - 1)
DISCOUNTS = st.sampled_from([0.0, 0.3])


def drawn(n: int, seed: int) -> tuple[Any, Any]:
    """Three cost rates and three vectors of values, from tiny to huge."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-6, 6, (2, 3, 1))
    return tuple(scales * rng.standard_normal((2, 3, n)))


def exactly(plain: Any, choice: Any, cost: Any, values: Any, discount: float) -> list[Fraction]:
    """c + Q h - discount h in every state, each float being the rational that it is."""
    h = [Fraction(value) for value in values]
    result = []
    for i, alive in enumerate(plain.terms):
        v = Fraction(cost[i]) - Fraction(discount) * h[i]
        for term in alive:
            option = next(o for o in term.options if o.action == choice[term.term, i])
            v += sum(Fraction(term.rate) * Fraction(w) * (h[y] - h[i]) for w, y in option.moves)
        result.append(v)
    return result


@settings(max_examples=25)
@given(returning_models(3.0), SEEDS, DISCOUNTS)
def test_the_bounds_enclose_the_exact_right_hand_sides(
    model: mc.Model, seed: int, discount: float
) -> None:
    plain, compiled = interpreter.interpret(model), compile_model(model)
    costs, values = drawn(compiled.n, seed)
    for problem in (compiled, compile_model(model, "indexed"), compiled.listed()):
        choice = problem.greedy(problem.pack(values[0]), 0.0)
        fixed = problem.under(choice)
        generator, _ = fixed.chain()
        found = enclose_rates(generator, fixed.chain_roundings, costs, values, discount=discount)
        for cost, h, (low, high) in zip(costs, values, found, strict=True):
            v = exactly(plain, choice, cost, h, discount)
            assert Fraction(low) <= min(v)
            assert max(v) <= Fraction(high)
            size = np.abs(cost).max() + (problem.rate_bound + discount) * np.abs(h).max()
            assert Fraction(high) - Fraction(low) <= max(v) - min(v) + Fraction(1e-12 * size)


def test_values_that_are_not_finite_are_refused() -> None:
    problem = compile_model(mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0]))
    generator, cost = problem.chain()
    with pytest.raises(mc.SolveError, match="not finite"):
        enclose_rates(generator, 0, cost[None], np.array([[np.inf, 0.0]]))
