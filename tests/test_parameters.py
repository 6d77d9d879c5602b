"""Quick tests of parameters agree with the whole checks (for tests/test_parameters.py)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Len, Lt, MaxLen, MinLen, Predicate, Unit
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.parameters import _check, _test


@dataclass(frozen=True)
class Part:
    size: int


VALUES = st.recursive(
    st.one_of(
        st.integers(-3, 3),
        st.floats(-3, 3) | st.sampled_from([np.inf, np.nan, np.float64(1.0), np.int64(2)]),
        st.booleans(),
        st.none(),
        st.sampled_from(["a", "b", ""]),
        st.builds(Part, st.integers(0, 2)),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
HINTS: list[Any] = [
    int,
    float,
    str,
    bool,
    Part,
    Any,
    dict,
    Literal["a", "b"],
    Literal[1, True],
    Annotated[int, Ge(0)],
    Annotated[float, Gt(0), Lt(1), Unit("1/time")],
    Annotated[int, Ge(1)] | None,
    Annotated[float, Ge(0), Le(2)] | None,
    float | int,
    int | str,
    Literal["a"] | Annotated[float, Ge(0)],
    Literal["a"] | None,
    Part | None,
    tuple[int, ...],
    tuple[int, float],
    tuple[Part, ...],
    tuple[Annotated[float, Ge(0)], ...],
    Annotated[tuple[Part, ...], MinLen(1)],
    Annotated[tuple[int, ...], MinLen(2)] | None,
    Annotated[tuple[int, ...], MaxLen(1)],
    Annotated[tuple[int, ...], Len(1, 2)],
    Annotated[str, MinLen(1)],
    Annotated[int, Predicate(lambda x: x % 2 == 0)],
    tuple[tuple[float, ...], ...],
    tuple[float | int, ...],
]


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: str(hint).partition(" at 0x")[0])
@given(VALUES)
def test_a_value_that_a_quick_test_passes_is_right_as_it_is(hint: Any, value: Any) -> None:
    mistakes: list[str] = []
    plain = _check(value, hint, "x", mistakes)
    if _test(hint)(value):
        assert plain is value
        assert not mistakes
