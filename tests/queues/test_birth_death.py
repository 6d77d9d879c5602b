"""Stationary laws of birth-death chains."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.queues import birth_death

REFERENCE = Path(__file__).parents[1] / "reference"
rates = st.floats(1e-12, 1e12)


@given(st.lists(st.tuples(rates, rates), max_size=30))
def test_the_law_equals_exact_rational_arithmetic(pairs: list[tuple[float, float]]) -> None:
    weights = [Fraction(1)]
    for up, down in pairs:
        weights.append(weights[-1] * Fraction(up) / Fraction(down))
    exact = [float(w / sum(weights)) for w in weights]
    law = birth_death([up for up, _ in pairs], [down for _, down in pairs])
    assert law == pytest.approx(exact, rel=1e-13, abs=1e-308)


def test_jobs_that_balk_follow_the_public_case() -> None:
    lines = (REFERENCE / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(case for case in map(json.loads, lines) if case["id"] == "baulk")
    answer = [float(p) for p in case["right_answer"]["P(n)"]]
    assert birth_death([5, 5, 2.5, 2.5, 2.5, 2.5], [10] * 6) == pytest.approx(answer, abs=1e-12)


def test_a_long_chain_neither_overflows_nor_underflows_on_the_way() -> None:
    n = 20_000
    law = birth_death([1000.0] * n, np.arange(1.0, n + 1))  # Poisson with mean 1000
    assert law.sum() == pytest.approx(1, abs=1e-14)
    assert law @ np.arange(n + 1) == pytest.approx(1000, rel=1e-11)


@pytest.mark.parametrize("extreme", [5e-324, 1e-300, 1e300])
def test_rates_may_be_as_small_or_large_as_floats_are(extreme: float) -> None:
    assert birth_death([extreme, 2 * extreme], [extreme, extreme]) == pytest.approx(
        [0.25, 0.25, 0.5]
    )


def test_transient_states_have_no_mass() -> None:
    assert birth_death([1, 0], [1, 1]).tolist() == [0.5, 0.5, 0]
    assert birth_death([1, 1], [0, 1]).tolist() == [0, 0.5, 0.5]
    assert birth_death([1, 1, 0], [0, 1, 1]).tolist() == [0, 0.5, 0.5, 0]
    assert birth_death([], []).tolist() == [1]


def test_several_closed_classes_are_refused_by_place() -> None:
    with pytest.raises(InputError, match="no birth from state 0 and no death from state 2"):
        birth_death([0, 1], [1, 0])


@pytest.mark.parametrize(
    ("birth", "death", "message"),
    [
        ([1, -2], [1, 1], r"birth\[1\] is -2"),
        ([1, 1], [1, np.nan], r"death\[1\] is nan"),
        ([np.inf], [1], r"birth\[0\] is inf"),
        ([1], [1, 1], "same length, got 1 and 2"),
        ([[1]], [[1]], "one-dimensional"),
        ([True], [1], "one-dimensional array of real numbers"),
        (["x"], [1], "array of numbers"),
    ],
)
def test_wrong_rates_are_refused_by_place(birth: Any, death: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        birth_death(birth, death)
