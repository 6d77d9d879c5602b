"""Values to start from, found on smaller boxes.

A box is often far larger than the part where the chain lives, and sweeps over all of it would wait
for the slow mixing there. So the model is first solved roughly on a small box, whose axes grow
where a walk under its best policy comes near their ends. The box that holds the walk is solved to
the tolerance, and then grows to the whole one in steps of about the same factor, its values being
continued linearly along each axis: there the sweeps need only pass the news inwards. No result
depends on it: the bounds are those of sweeps over the full box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.solve.limits import Goal, Monitor
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["boxed", "continued", "first_box", "next_box", "start_values"]

Shape: TypeAlias = tuple[int, ...]

FEWEST = 20_000  # states of a box that is started from a smaller one
FIRST = 4000  # states of the first box
SHORTEST = 8  # points of an axis that is cut
LEAST = 4  # points that are left of it
FACTOR = 2.8  # times the states, from one box to the next
WIDER = 1.3  # times the points of an axis that is too short for the walk
MARGIN = 1.5  # times the distance from its mean that the walk reaches, for the box to hold it
ROUGH = 1e-3  # tolerance on a box that may not hold the walk
SWEEPS = 5000  # over a smaller box
JUMPS = 20_000


def start_values(
    model: Any, goal: Goal, time_limit: float | None = None, threads: int = 1
) -> Floats | None:
    """Values (n,) of a model on a box, from smaller boxes; None where there are none.

    Parameters
    ----------
    model : Model or TabularModel
    goal : Goal
        Of the full box.
    time_limit : float, optional
        Seconds, for all smaller boxes.
    threads : int
    """
    shape = first_box(model)
    if shape is None:
        return None
    try:
        monitor = Monitor(time_limit=time_limit)
        box = _Box(model, model.space.shape, shape, goal, monitor, threads)
        while box.shape != box.whole:
            box.grow()
    except Exception:  # an event leaves the smaller box, or a function takes the full one only
        return None
    return box.start().ravel()


@dataclass
class _Box:
    """A smaller box, with the values of the one before."""

    model: Model
    whole: Shape
    shape: Shape
    goal: Goal
    monitor: Monitor
    threads: int
    values: Floats | None = None
    holds: bool = False

    def start(self) -> Floats:
        """The values known, in the box's shape."""
        return np.zeros(self.shape) if self.values is None else continued(self.values, self.shape)

    def grow(self) -> None:
        """Solve the model on this box, and go on to the next."""
        problem: Any = compile_model(
            boxed(self.model, self.shape), form="lattice", threads=self.threads
        )
        tolerance = self.goal.tolerance if self.holds else max(self.goal.tolerance, ROUGH)
        h = ValueIteration(most=SWEEPS).values(
            problem,
            replace(self.goal, tolerance=tolerance),
            self.monitor,
            problem.pack(self.start().ravel()),
        )
        self.values = problem.unpack(h).reshape(self.shape)
        if self.holds:
            self.shape = next_box(self.shape, self.whole)
            return
        wider = _wider(self.shape, self.whole, _reached(problem, h))
        self.holds = wider == self.shape
        self.shape = wider


def first_box(model: Any) -> Shape | None:
    """Shape of the smallest box: long axes shortened by the same factor; None if it is the box."""
    if not isinstance(model, Model) or not isinstance(model.space, Lattice):
        return None
    shape = model.space.shape
    states, long_axes = math.prod(shape), sum(n >= SHORTEST for n in shape)
    if model.space.where is not None or states < FEWEST or not long_axes:
        return None
    share = (FIRST / states) ** (1.0 / long_axes)
    return tuple(max(LEAST, round(share * n)) if n >= SHORTEST else n for n in shape)


def next_box(shape: Shape, whole: Shape) -> Shape:
    """All axes grow in proportion to what they lack, the states by about the same factor."""
    steps = math.ceil(math.log(math.prod(whole) / math.prod(shape)) / math.log(FACTOR))
    return tuple(round(k * (n / k) ** (1.0 / steps)) for k, n in zip(shape, whole, strict=True))


def _wider(shape: Shape, whole: Shape, reached: Sequence[int]) -> Shape:
    """Axes too short for the walk grow; all of them do if the whole box is near."""
    wider = tuple(
        k if reach <= k else min(n, math.ceil(WIDER * k))
        for k, n, reach in zip(shape, whole, reached, strict=True)
    )
    return whole if math.prod(whole) <= FACTOR * math.prod(wider) else wider


def _reached(problem: Any, h: Floats) -> list[int]:
    """Points of each axis that hold the walk under the greedy policy, with a margin."""
    states, times = problem.under(problem.greedy(h, 0.0)).walk(JUMPS)
    reached = []
    for places in np.unravel_index(states, problem.shape):
        mean = float(np.average(places, weights=times))
        reached.append(math.ceil(mean + MARGIN * (float(places.max()) - mean)) + 1)
    return reached


def boxed(model: Model, shape: Shape) -> Model:
    """The model on a smaller box."""
    assert isinstance(model.space, Lattice)
    lengths = iter(shape)
    caps = {
        name: tuple(next(lengths) - 1 for _ in cap) if isinstance(cap, tuple) else next(lengths) - 1
        for name, cap in model.space.caps.items()
    }
    return Model(Lattice(caps), model.events, cost_rate=model.cost_rate)


def continued(box: Floats, shape: Shape) -> Floats:
    """Values on a larger box: the last difference along each axis goes on, one axis at a time."""
    for axis, length in enumerate(shape):
        more = length - box.shape[axis]
        if more > 0:
            last = np.take(box, [-1], axis)
            slope = last - np.take(box, [-2], axis)
            steps = np.arange(1.0, more + 1.0).reshape(
                [-1 if k == axis else 1 for k in range(box.ndim)]
            )
            box = np.concatenate([box, last + slope * steps], axis)
    return box
