"""The walk of free servers in a box against the matrix solution and exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import SolveError
from mdpcloud.limits.trunk_reservation import walk as boxes
from mdpcloud.limits.trunk_reservation.levels import Rates, walk_law
from mdpcloud.limits.trunk_reservation.walk import walk_in_box, walk_law_in_box
from tests.solve.exact_gains import exact_law


@pytest.mark.parametrize("reserved", [0, 1, 5])
@pytest.mark.parametrize(
    "rates",
    [
        Rates((1.5, 12.0), (1.0, 10.0)),
        Rates((2.0, 9.5), (1.0, 10.0)),
        Rates((2.0, 3.0), (1.0, 2.0)),
        Rates((2.0, 1.5), (1.0, 2.0)),
        Rates((3.0, 8.5), (1.0, 10.0)),
    ],
)
def test_the_box_agrees_with_the_levels(rates: Rates, reserved: int) -> None:
    box, levels = walk_in_box(rates, reserved), walk_law(rates, reserved)
    assert box.blocking == pytest.approx(levels.blocking, abs=box.error)
    assert box.full == pytest.approx(levels.full, abs=box.error)


@settings(max_examples=10)
@given(st.floats(2.0, 10.0), st.floats(0.2, 5.0), st.floats(0.2, 5.0), st.integers(0, 8))
def test_random_boxes_agree_with_the_levels(
    first: float, second: float, capacity: float, reserved: int
) -> None:
    rates = Rates((first + max(capacity - second, 0.0), second), (1.0, capacity))
    box, levels = walk_in_box(rates, reserved, 1e-9), walk_law(rates, reserved)
    assert box.blocking == pytest.approx(levels.blocking, abs=box.error + levels.error)


@pytest.mark.parametrize("reserved", [0, 1, 2])
def test_a_small_box_has_the_exact_law(reserved: int) -> None:
    rates, shape = Rates((2.0, 3.0), (1.0, 2.0)), (3, 4)
    states = [(m, n) for m in range(3) for n in range(4)]
    chain = [[Fraction(0)] * 12 for _ in states]
    for x, (m, n) in enumerate(states):
        for target, rate in (
            ((m + 1, n), 1),
            ((m - 1, n), 2),
            ((m, n + 1), 2),
            ((m, n - 1), 3 + 2 * (m == 0 and n > reserved)),
        ):
            if target in states:
                chain[x][states.index(target)] = Fraction(rate)
    known = np.array([float(p) for p in exact_law(chain)]).reshape(shape)
    assert walk_law_in_box(rates, reserved, shape) == pytest.approx(known, rel=1e-13)


def test_a_heavy_tail_is_refused_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST", 40_000)
    with pytest.raises(SolveError, match="box of more than 40000 states") as caught:
        walk_in_box(Rates((1.2, 9.81), (1.0, 10.0)), 0)
    partial = caught.value.partial
    assert partial.error > 1e-10  # type: ignore[union-attr]
