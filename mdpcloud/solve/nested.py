"""Values to start from, found on a smaller box.

A box is often far larger than the part where the chain lives, and value iteration spends its sweeps
on the slow mixing there. So the model is solved on a box with about a third of the states first,
and the values are continued linearly along each axis; the smaller box is itself started from one
that is smaller still. No result depends on it: the bounds are those of sweeps over the full box.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.solve.limits import Goal, Monitor
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["continued", "smaller_box", "start_values"]

FEWEST = 8000  # states of a box that is started from a smaller one
SHORTEST = 8  # points of an axis that is cut
PART = 0.36  # of the states
SWEEPS = 5000  # over a smaller box


def start_values(
    model: Any, goal: Goal, time_limit: float | None = None, threads: int = 1
) -> Floats | None:
    """Values (n,) of a model on a box, from a smaller box; None where there is none.

    Parameters
    ----------
    model : Model or TabularModel
    goal : Goal
        Of the full box.
    time_limit : float, optional
        Seconds, per smaller box.
    threads : int
    """
    smaller = smaller_box(model)
    if smaller is None:
        return None
    values = start_values(smaller, goal, time_limit, threads)
    try:
        problem: Any = compile_model(smaller, form="lattice", threads=threads)
        start = problem.pack(np.zeros(problem.n) if values is None else values)
        found = ValueIteration(most=SWEEPS).values(
            problem, goal, Monitor(time_limit=time_limit), start
        )
    except Exception:  # an event leaves the smaller box, or a function takes the full one only
        return None
    return continued(problem.unpack(found).reshape(problem.shape), model.space.shape).ravel()


def smaller_box(model: Any) -> Model | None:
    """The model on a box whose long axes are shorter, all by the same factor."""
    if not isinstance(model, Model) or not isinstance(model.space, Lattice):
        return None
    shape = model.space.shape
    if model.space.where is not None or math.prod(shape) < FEWEST:
        return None
    long_axes = sum(n >= SHORTEST for n in shape)
    if long_axes == 0:
        return None
    share = PART ** (1.0 / long_axes)
    lengths = iter(round(share * n) if n >= SHORTEST else n for n in shape)
    caps = {
        name: tuple(next(lengths) - 1 for _ in cap) if isinstance(cap, tuple) else next(lengths) - 1
        for name, cap in model.space.caps.items()
    }
    return Model(Lattice(caps), model.events, cost_rate=model.cost_rate)


def continued(box: Floats, shape: tuple[int, ...]) -> Floats:
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
