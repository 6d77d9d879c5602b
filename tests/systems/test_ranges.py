"""Parameters beyond floating point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.systems.ranges import LARGEST, SMALLEST, check_ranges


@dataclass(frozen=True)
class System:
    rows: tuple[tuple[float, ...], ...] = ((1.0, 0.0), (2.0,))
    count: int = 1
    price: float | None = None
    name: str = "1e308"
    taken: bool = True


@given(st.sampled_from([0.0, SMALLEST, 1.0, LARGEST]), st.integers(0, 10**99))
def test_numbers_within_the_range_and_zero_pass(value: float, count: int) -> None:
    check_ranges(System(((value, -value),), count, value))


@given(
    st.floats(0, 0.99 * SMALLEST, exclude_min=True) | st.floats(1.01 * LARGEST, 1e308),
    st.sampled_from([1.0, -1.0]),
)
def test_numbers_beyond_are_refused_with_their_place(size: float, sign: float) -> None:
    with pytest.raises(InputError, match=r"System: rows\[1\]\[0\] must be 0 or in 1e-100"):
        check_ranges(System(((1.0,), (sign * size, 2.0))))
    with pytest.raises(InputError, match="System: price must be 0 or in 1e-100"):
        check_ranges(System(price=sign * size))


def test_integers_too_large_for_a_float_are_refused() -> None:
    given: Any = 10**5000
    with pytest.raises(InputError, match="System: count must be 0 or in"):
        check_ranges(System(count=given))
