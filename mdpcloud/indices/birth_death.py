"""Index of a birth-death arm in O(n) operations, where threshold policies are optimal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdpcloud.indices.birth_death_arm import BirthDeathArm
from mdpcloud.indices.result import ArmIndex, Verdict
from mdpcloud.model.matrices import Floats

__all__ = ["birth_death_index"]


@dataclass(frozen=True, eq=False)
class _Line:
    """An arm seen along its states from those that stay active longest; rates are scaled."""

    alpha: float
    onward: Floats
    back: Floats
    costs: Floats
    work: Floats
    step: int


def birth_death_index(arm: BirthDeathArm, alpha: float) -> ArmIndex | None:
    """Index of a birth-death arm, if policies with a threshold are optimal at every price.

    Parameters
    ----------
    arm : BirthDeathArm
    alpha : float
        Discount rate >= 0 (1/time); 0 for the average cost.

    Returns
    -------
    ArmIndex or None
        With bounds of the rounding errors. None if it cannot be certified that thresholds are
        optimal; this does not say that the arm is not indexable.
    """
    for low in (False, True):
        line = _line(arm, alpha, low)
        if line is None:
            return None
        found = _threshold_index(line)
        if found is not None:
            return found
    return None


SPAN = 2.0**-480


def _line(arm: BirthDeathArm, alpha: float, low: bool) -> _Line | None:
    largest = max(float(arm.births.max()), float(arm.deaths.max()), alpha)
    scale = 2.0 ** -np.frexp(largest)[1] if largest > 0.0 else 1.0
    births, deaths = arm.births * scale, arm.deaths * scale
    for rates in (births, deaths, np.array([alpha * scale])):
        if np.any((rates > 0.0) & (rates < SPAN)):
            return None
    onward, back = (births, deaths) if low else (deaths, births)
    return _Line(alpha * scale, onward, back, arm.costs, arm.work, 1 if low else -1)


def _threshold_index(line: _Line) -> ArmIndex | None:
    from mdpcloud.indices import birth_death_kernels as kernels

    n = line.costs.shape[1]
    if not _has_extreme_margins(line):
        return None
    beyond = np.empty((n, 7))
    kernels.far_blocks(
        line.alpha, line.onward[0], line.back[0], line.costs[0], line.work[0], line.step, beyond
    )
    values, errors, marginal_cost, marginal_work = np.empty((4, n))
    status, _ = kernels.threshold_indices(
        line.alpha,
        line.onward,
        line.back,
        line.costs,
        line.work,
        line.step,
        beyond,
        values,
        errors,
        marginal_cost,
        marginal_work,
    )
    if status != kernels.CERTIFIED or kernels.put_in_order(values, errors, line.step) >= 0:
        return None
    return ArmIndex(
        Verdict.INDEXABLE,
        "policies with a threshold are optimal at every price",
        values,
        errors,
        "bound",
        marginal_cost,
        marginal_work,
    )


def _has_extreme_margins(line: _Line) -> bool:
    from mdpcloud.indices import birth_death_kernels as kernels

    if np.ptp(line.work, axis=1).max() == 0.0:
        return bool(line.work[0, 0] < line.work[1, 0])
    beyond = np.empty((line.costs.shape[1], 7))
    for action in (0, 1):
        kernels.far_blocks(
            line.alpha,
            line.onward[action],
            line.back[action],
            line.costs[action],
            line.work[action],
            line.step,
            beyond,
        )
        wrong = kernels.extreme_margins(
            line.alpha, line.onward, line.back, line.costs, line.work, line.step, action, beyond
        )
        if wrong >= 0:
            return False
    return True
