"""Which coordinates a function reads, and that hidden ones cannot be used unseen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from mdpcloud.model.space import Axes
from mdpcloud.simulate.tracing import Touched, axes_read, grid_over

AXES = Axes({"node": (5, 5, 5), "phase": 2}, "cap")
LEVELS = np.array([0.0, 1.0, 4.0])

USES: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda x: 3.0, ()),
    (lambda x: x.node[1], (1,)),
    (lambda x: 2.0 * x.node[1] + x.phase, (1, 3)),
    (lambda x: np.minimum(x.node[0], x.node[2]), (0, 2)),
    (lambda x: sum(x.node), (0, 1, 2)),
    (lambda x: sum(x.node[1:]), (1, 2)),
    (lambda x: np.stack(x.node).max(axis=0), (0, 1, 2)),
    (lambda x: np.asarray(x.node)[0], (0, 1, 2)),
    (lambda x: LEVELS[x.phase], (3,)),
    (lambda x: np.where(x.phase == 1, x.node[0], 0), (0, 3)),
    (lambda x: x.phase.astype(float), (3,)),
    (lambda x: x.phase[:1], (3,)),
    (lambda x: -x.phase, (3,)),
    (lambda x: ~(x.phase > 1), (3,)),
    (lambda x: x.phase**2, (3,)),
    (lambda x: 5 - x.phase, (3,)),
    (lambda x: max(len(x.node), 1), ()),
    (lambda x: len(x.phase), (3,)),
    (lambda x: bool(np.any(x.phase)), (3,)),
    (lambda x: [*x.phase], (3,)),
    (lambda x: f"{x.phase}", (3,)),
    (lambda x: x._asdict()["phase"] + 0, (3,)),
    (lambda x: np.array([k.sum() for k in x.node]), (0, 1, 2)),
]


def _caught(x: Any) -> Any:
    try:
        return LEVELS[x.phase]
    except Exception:
        return 0.0


def _by_kind(x: Any) -> Any:
    return x.phase * 1.0 if isinstance(x.phase, np.ndarray) else 0.0


def _swallowed(x: Any) -> Any:
    with suppress(Exception):
        return x.node[1] + 1
    return x.phase


USES += [(_caught, (3,)), (_by_kind, (3,)), (_swallowed, (1,))]


@pytest.mark.parametrize("use", range(len(USES)))
def test_the_coordinates_that_a_function_reads_are_found(use: int) -> None:
    function, expected = USES[use]
    found = axes_read(lambda grid: np.asarray(function(grid.x)), AXES, (0, 0, 0, 0))
    assert found == expected


def test_a_hidden_coordinate_cannot_be_used() -> None:
    grid = grid_over(AXES, [0], np.array([[1], [2]]))
    with pytest.raises(Touched) as touched:
        grid.x.phase + 1
    assert touched.value.axis == 3
    np.testing.assert_array_equal(grid.x.node[0], [1, 2])


def test_a_function_of_many_coordinates_counts_as_one_of_all() -> None:
    axes = Axes({"at": (1,) * 40, "phase": 3}, "cap")
    found = axes_read(lambda grid: np.asarray(sum(grid.x.at)), axes, (0,) * 41)
    assert found == tuple(range(41))


def test_columns_are_copies() -> None:
    states = np.array([[1], [2]])
    grid = grid_over(AXES, [3], states)
    grid.x.phase[:] = 9
    np.testing.assert_array_equal(grid.x.phase, [1, 2])
