"""From the engine's costs to what the user gave: rewards, discounted values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.criteria import Criterion, Discounted
from mdpcloud.engine.problem import Floats
from mdpcloud.solve.limits import Progress

__all__ = ["costs_of", "sense_of", "signed", "signed_progress", "value_bounds"]

ROUNDINGS = 16.0 * 2.0**-53  # of alpha (two), 1/b, and the few operations after the certificate


def value_bounds(
    h: Floats, low: float, high: float, criterion: Criterion, discount: float
) -> tuple[Any, Any]:
    """Bounds of the answer from bounds of the right-hand side: the gain, or the values (n,).

    A relative error e of alpha moves the values by at most e max |V|.
    """
    if not isinstance(criterion, Discounted):
        return low, high
    scale = criterion.scale
    lower, upper = h + low / discount, h + high / discount
    rounding = ROUNDINGS * (np.abs(h).max() + max(abs(low), abs(high)) / discount)
    return scale * (lower - rounding), scale * (upper + rounding)


def signed(
    model: Any, gains: Floats, bounds: tuple[Any, Any], values: Floats
) -> tuple[Floats, tuple[Any, Any], Floats]:
    """Costs as they are; for a model given by rewards all negated, the bounds exchanged."""
    if sense_of(model) == 1:
        return gains, bounds, values
    return -gains, (-bounds[1], -bounds[0]), -values


def signed_progress(model: Any, progress: Progress | None) -> Progress | None:
    """A callback for the engine's costs from one for what the user gave."""
    if progress is None or sense_of(model) == 1:
        return progress
    return lambda iterations, low, high: progress(iterations, -high, -low)


def costs_of(model: Any, values: Floats, criterion: Criterion) -> Floats:
    """The engine's values from those of a result."""
    return sense_of(model) / criterion.scale * values


def sense_of(model: Any) -> int:
    """1 for a model given by costs, -1 for one given by rewards."""
    return int(getattr(model, "sense", 1))
