"""When to stop, and what intervals cover that are stopped by their width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.simulate.diagnostics import doubts
from mdpcloud.simulate.estimates import estimate
from mdpcloud.simulate.result import Estimate
from mdpcloud.simulate.stopping import longer
from mdpcloud.simulate.warm_up import mser
from tests.simulate.queues import queue_lengths

positive = st.floats(1e-300, 1e300)


@given(positive, positive, st.booleans())
def test_a_run_is_prolonged_unless_it_is_narrow_and_not_doubted(
    half: float, target: float, doubtful: bool
) -> None:
    found = Estimate(0.0, -half, half, half / 2, 1.0)
    factor = longer(found, target, doubtful)
    assert factor == 1.0 if half <= target and not doubtful else 1.5 <= factor <= 4.0


def test_one_observation_prolongs_the_run() -> None:
    assert longer(estimate(np.ones((1, 1))), 1.0, doubtful=False) == 4.0


def stopped(path: np.ndarray, target: float) -> Estimate:
    """Looks at a longer and longer part of (R, S) segments until it is met."""
    length = 500
    while True:
        width = -(-length // 1000)
        seen = path[:, : length // width * width]
        seen = seen.reshape(len(path), -1, width).mean(axis=2)
        dropped = mser(seen)
        found = estimate(seen[:, dropped:])
        factor = longer(found, target, bool(doubts(seen, dropped)))
        if factor == 1.0:
            return found
        length = int(np.ceil(factor * length))
        assert length <= path.shape[1]


@pytest.mark.slow
def test_intervals_stopped_by_their_width_cover() -> None:
    runs, covered = 400, 0
    for seed in range(runs):
        path = queue_lengths(0.8, 162_000, 20_250, (8,), seed)
        found = stopped(path, 0.3)
        assert found.half_width <= 0.3
        covered += found.lower <= 4.0 <= found.upper
    assert covered / runs >= 0.91
