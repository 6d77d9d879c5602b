"""Paths that are made of pieces have the law of paths in one piece."""

import numpy as np
import pytest

from mdpcloud.asymptotics import paths
from mdpcloud.asymptotics.paths import path_of, variables_of
from mdpcloud.queues import erlang_b
from tests.asymptotics.shop import Shop


def test_a_short_path_is_told_change_by_change() -> None:
    ((times, values),) = path_of(Shop((1.0,), 1.0, scale=5.0), [3], 4.0, seed=1)
    assert (times[0], values[0], times[-1]) == (0.0, 3.0, 4.0)
    assert (np.diff(times) > 0.0).all()
    assert set(np.abs(np.diff(values[:-1]))) == {1.0}
    assert values[-1] == values[-2]
    assert 0.0 <= values.min() <= values.max() <= 5.0


def test_equal_seeds_give_equal_paths() -> None:
    first, again, other = (path_of(Shop(scale=9.0), [0], 2.0, seed)[0][0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:5], other[:5])


def test_variables_are_named_like_the_coordinates() -> None:
    assert variables_of(Shop()) == ["jobs"]


@pytest.mark.parametrize("changes", [60, 150, 4096])
def test_pieces_continue_each_other(monkeypatch: pytest.MonkeyPatch, changes: int) -> None:
    """A record is full at any number of changes: what follows is drawn anew from there."""
    full = paths.Record.__init__

    def short(self: object, times: np.ndarray, values: np.ndarray, occupation: object) -> None:
        full(self, times[:changes], values[:changes], occupation)

    monkeypatch.setattr(paths, "CHANGES", changes)
    monkeypatch.setattr(paths.Record, "__init__", short)
    monkeypatch.setattr(paths, "POINTS", 100_000)
    ((times, values),) = path_of(Shop((3.0,), 1.0, scale=10.0), [10], 40.0, seed=4)
    moves = np.diff(values[:-1])
    assert set(np.abs(moves[moves != 0.0])) == {1.0}
    assert (np.diff(times) >= 0.0).all()
    assert np.diff(times).max() < 1.0  # about 20 changes per unit of time, up to the horizon
    busy = np.dot(np.diff(times), values[:-1]) / 40.0
    assert busy == pytest.approx(30.0 * (1.0 - erlang_b(10, 30.0)), abs=0.5)
