"""From the engine's costs to what the user gave: rewards, discounted values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.criteria import Criterion, Discounted

__all__ = ["signed", "value_bounds"]

WIDEN = 1.0 + 8.0 * 2.0**-53  # outward rounding of the few operations after the certificate


def value_bounds(
    h: Floats, low: float, high: float, criterion: Criterion, discount: float
) -> tuple[Any, Any]:
    """Bounds of the answer from bounds of the right-hand side: the gain, or the values (n,)."""
    if not isinstance(criterion, Discounted):
        return low, high
    scale = 1.0 if criterion.factor is None else 1.0 / max(criterion.factor, 1e-300)
    lower, upper = h + low / discount, h + high / discount
    rounding = (WIDEN - 1.0) * (np.abs(h) + max(abs(low), abs(high)) / discount)
    return scale * (lower - rounding), scale * (upper + rounding)


def signed(
    model: Any, gains: Floats, bounds: tuple[Any, Any], values: Floats
) -> tuple[Floats, tuple[Any, Any], Floats]:
    """Costs as they are; for a model given by rewards all negated, the bounds exchanged."""
    if getattr(model, "sense", 1) == 1:
        return gains, bounds, values
    return -gains, (-bounds[1], -bounds[0]), -values
