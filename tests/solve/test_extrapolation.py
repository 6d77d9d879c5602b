"""Anderson extrapolation of linear iterations, whose fixed points are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.solve.extrapolation import Extrapolation


def iteration(seed: int, n: int, modes: int):
    """A contraction with a few slow modes, and its fixed point (up to constants)."""
    rng = np.random.default_rng(seed)
    base = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, n - 1))]))[0]
    speeds = np.zeros(n)
    speeds[1 : modes + 1] = np.linspace(0.6, 0.98, modes)
    speeds[0] = 1.0
    fixed = rng.normal(size=n)
    matrix = base * speeds @ base.T
    return lambda h: fixed + matrix @ (h - fixed), fixed


def distance(h, fixed) -> float:
    return float(np.ptp(h - fixed))


@given(st.integers(0, 2**32 - 1), st.integers(12, 30), st.integers(1, 4))
def test_little_more_steps_than_slow_modes_remove_them(seed: int, n: int, modes: int) -> None:
    image, fixed = iteration(seed, n, modes)
    h = np.zeros(n)
    extrapolation = Extrapolation(h, n, depth=5)
    for _ in range(modes + 3):
        h = image(h)
        extrapolation.step(h)
    assert distance(image(h), fixed) < 1e-3 * distance(np.zeros(n), fixed)


def test_a_step_taken_back_leaves_the_image() -> None:
    image, _ = iteration(1, 10, 2)
    h = np.zeros(10)
    extrapolation = Extrapolation(h, 10, depth=3)
    for _ in range(3):
        h = image(h)
        before = h.copy()
        extrapolation.step(h)
    extrapolation.take_back(h)
    np.testing.assert_array_equal(h, before)
    assert extrapolation.steps == 0


@pytest.mark.parametrize("depth", [1, 5])
def test_cells_outside_the_space_stay_as_they_are(depth: int) -> None:
    image, _ = iteration(2, 10, 2)
    h = np.append(np.zeros(10), 1e300)
    extrapolation = Extrapolation(h, 10, depth)
    for _ in range(8):
        h[:10] = image(h[:10])
        extrapolation.step(h)
    assert h[10] == 1e300
    assert np.isfinite(h).all()


def test_a_fixed_point_is_left_alone() -> None:
    h = np.arange(6.0)
    extrapolation = Extrapolation(h, 6, depth=2)
    for _ in range(4):
        extrapolation.step(h)
    np.testing.assert_array_equal(h, np.arange(6.0))
