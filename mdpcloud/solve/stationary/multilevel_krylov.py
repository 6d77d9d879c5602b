"""Corrections of flows that are nearly right, by a Krylov method over all levels.

The defect r = z - P' z of the flows z is removed by a correction e, (I - P') e = -r, found by
generalised conjugate residuals whose preconditioner is one visit of the levels: a sweep forward,
the correction of the groups, a sweep backward. On the coarser levels two steps of the same method
stand for a solve (the K-cycle of Notay and Vassilevski, Numer. Linear Algebra Appl. 15, 2008).
Residuals are measured by sum_y r(y)^2 / z(y), in which reversible chains are symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.stationary.multilevel import COARSEST, Hierarchy, Level
from mdpcloud.solve.stationary.multilevel_kernels import (
    add_scaled,
    defect,
    defect_of_groups,
    dot_weighted,
    size,
    spread_groups,
    sweep_backward,
    sweep_from_zero,
)

__all__ = ["Correction"]

ENOUGH = 0.25
"""A second step on a coarse level is left out where the first left this part of the residual."""

DIRECTIONS = 4
"""Search directions kept on the finest level, two vectors each in single precision: the search
begins anew from the true residual before that matters."""


class Correction:
    """Corrections of the flows that a hierarchy was last built from.

    Parameters
    ----------
    hierarchy : Hierarchy
        After `Hierarchy.rebuild`.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy, self.levels = hierarchy, hierarchy.levels
        self.inverse = _inverse(self.levels[-1], self._masses())

    def _masses(self) -> Floats:
        """Flows of the finest level, summed over the groups of the coarsest."""
        mass = self.levels[0].flow
        for level in self.levels[:-1]:
            assert level.groups is not None
            mass = np.bincount(level.groups[0], mass).astype(np.float64)
        return mass

    def search(self, steps: int, reduction: float) -> Floats:
        """Correction e after so many steps, or when this part of sum_y |r(y)| is left."""
        top = self.levels[0]
        residual = np.empty(top.n)
        defect(*top.rows, top.flow, residual)
        np.negative(residual, residual)
        correction = np.zeros(top.n)
        kept: list[tuple[Any, Any, float]] = []
        goal = reduction * float(size(residual))
        for _ in range(steps):
            if not self._step(residual, correction, kept):
                break
            if float(size(residual)) <= goal:
                break
        return correction

    def _step(self, residual: Floats, correction: Floats, kept: list[Any]) -> bool:
        top = self.levels[0]
        direction = self._precondition(0, residual)
        add_scaled(direction, -float(direction.sum() / top.flow.sum()), top.flow)
        image = np.empty(top.n)
        defect(*top.rows, direction, image)
        for before, moved, norm in kept:
            share = -float(dot_weighted(image, moved, top.weight)) / norm
            add_scaled(image, share, moved)
            add_scaled(direction, share, before)
        norm = float(dot_weighted(image, image, top.weight))
        if not (np.isfinite(norm) and norm > 0):
            return False
        length = float(dot_weighted(residual, image, top.weight)) / norm
        add_scaled(correction, length, direction)
        add_scaled(residual, -length, image)
        kept.append((direction.astype(np.float32), image.astype(np.float32), norm))
        del kept[:-DIRECTIONS]
        return True

    def _precondition(self, k: int, right: Floats) -> Floats:
        """One visit of level k and the coarser ones."""
        level = self.levels[k]
        if level.groups is None:
            return self._finish(level, right)
        e = np.empty(level.n)
        sweep_from_zero(*level.rows, right, e)
        coarse = self.levels[k + 1]
        defects = np.empty(coarse.n)
        defect_of_groups(*level.rows, e, level.groups[0], defects)
        visit = self._solve if self.hierarchy.visits(k) > 1 else self._precondition
        solved = visit(k + 1, defects)
        spread_groups(e, level.flow, level.groups[0], solved, coarse.flow)
        sweep_backward(*level.rows, right, e)
        return e

    def _solve(self, k: int, right: Floats) -> Floats:
        """At most two steps of generalised conjugate residuals on level k."""
        level = self.levels[k]
        first = self._precondition(k, right)
        if level.groups is None:
            return first
        image = np.empty(level.n)
        defect(*level.rows, first, image)
        norm = float(dot_weighted(image, image, level.weight))
        if not norm > 0:
            return first
        length = float(dot_weighted(right, image, level.weight)) / norm
        residual = right - length * image
        whole = float(dot_weighted(right, right, level.weight))
        if dot_weighted(residual, residual, level.weight) <= ENOUGH**2 * whole:
            return length * first
        second = self._precondition(k, residual)
        moved = np.empty(level.n)
        defect(*level.rows, second, moved)
        share = float(dot_weighted(moved, image, level.weight)) / norm
        moved -= share * image
        second -= share * first
        other = float(dot_weighted(moved, moved, level.weight))
        if not other > 0:
            return length * first
        return length * first + float(dot_weighted(residual, moved, level.weight)) / other * second

    def _finish(self, level: Level, right: Floats) -> Floats:
        if self.inverse is not None:
            return np.asarray(self.inverse @ right)
        e = np.empty(level.n)
        sweep_from_zero(*level.rows, right, e)
        sweep_backward(*level.rows, right, e)
        return e


def _inverse(level: Level, mass: Floats) -> Floats | None:
    """Inverse of I - P' on the coarsest level, up to its null space; None where it is large.

    The state of the largest flow is pinned; the result is made orthogonal to a change of all flows
    by one factor.
    """
    n = level.n
    if n > COARSEST:
        return None
    matrix = np.eye(n)
    targets = np.repeat(np.arange(n), np.diff(level.rows.pointers))
    matrix[targets, level.rows.origins] -= level.rows.shares
    others = np.flatnonzero(np.arange(n) != np.argmax(level.flow))
    inverse = np.zeros((n, n))
    try:
        inverse[np.ix_(others, others)] = np.linalg.inv(matrix[np.ix_(others, others)])
    except np.linalg.LinAlgError:
        return None
    weights = mass / level.flow
    return np.asarray(inverse - np.outer(level.flow, weights @ inverse) / mass.sum())
