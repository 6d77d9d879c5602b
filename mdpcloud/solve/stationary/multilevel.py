"""Multilevel aggregation: the hierarchy of ever fewer groups of states, and its positive cycle.

The unknown is the flow z(y) out of state y, z(y) = sum_o z(o) s(o, y). With the present flows as
weights, groups of states form a chain of their own; if its flows are Z against Z0 before, every
flow is scaled by Z / Z0 of its group (Horton and Leutenegger, "A multi-level solution algorithm for
steady-state Markov chains", SIGMETRICS 1994). The exact flows are a fixed point, and all arithmetic
is positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.stationary.kernels import reduce_states
from mdpcloud.solve.stationary.multilevel_grouping_kernels import match_groups
from mdpcloud.solve.stationary.multilevel_kernels import (
    FLOOR,
    grouped,
    scale_groups,
    settle_backward,
    settle_forward,
)

__all__ = ["COARSEST", "Hierarchy", "Level", "Rows"]

COARSEST = 100
"""Up to so many states are solved by state reduction."""

PASSES = 3
"""Passes of matching: groups have up to 2 ** PASSES states."""

WEAKEST = 0.25
"""A match is at least so strong, relative to the strongest tie of the group."""

LOOSEST = 0.3
"""A group grows by exchanges at least so strong, relative to the one that formed it."""

STALE = 0.8
"""Levels end where the number of groups is not below this part of the number of states."""

TWICE = 0.5
"""A level is visited twice per visit of the finer one if all its visits together then pass at most
this part of the finest level's entries."""

LEAST = 1e-30
"""Smaller flows, relative to the largest, weight residuals like this one."""

SETTLINGS = 20
"""Sweeps in each direction on the coarsest level where it is too large to be reduced."""


class Rows(NamedTuple):
    """The balance of flows, a row of origins and shares per state.

    Within a row, `middle` is where the origins above the state begin.
    """

    pointers: NDArray[Any]
    middle: NDArray[Any]
    origins: NDArray[np.int32]
    shares: Floats


@dataclass(eq=False)
class Level:
    """The states of a level, and how they are grouped to make the next.

    Attributes
    ----------
    rows : Rows
        Shares of the flows.
    flow : (n,) array
        Flows of the states before the correction that this level computes.
    groups : (group, first, following), or None on the coarsest level
        See `match_groups`.
    """

    rows: Rows
    flow: Floats
    groups: tuple[Any, ...] | None = None

    @cached_property
    def weight(self) -> Floats:
        """Weights 1 / flow of squared residuals, bounded."""
        return np.asarray(1.0 / np.maximum(self.flow, LEAST * self.flow.max()))

    @property
    def n(self) -> int:
        """Number of states."""
        return int(self.flow.size)

    @property
    def entries(self) -> int:
        """Number of shares."""
        return int(self.rows.origins.size)

    def group(self, flow: Floats) -> None:
        """Group the states by these flows, unless that makes no smaller level."""
        self.groups = None
        if self.n > COARSEST:
            groups = match_groups(*self.rows, flow, PASSES, WEAKEST, LOOSEST)
            if groups[1].size < STALE * self.n:
                self.groups = groups

    def coarser(self, flow: Floats) -> Level:
        """The level of the groups, the states having these flows."""
        assert self.groups is not None
        *rows, out = grouped(*self.rows, flow, *self.groups)
        return Level(Rows(*rows), out)

    def finish(self, z: Floats) -> None:
        """Compute the flows z of a level that has no coarser one."""
        if self.n <= COARSEST and self._reduce(z):
            return
        for _ in range(SETTLINGS):
            settle_forward(*self.rows, z)
            settle_backward(*self.rows, z)

    def _reduce(self, z: Floats) -> bool:
        """State reduction; whether all flows are positive."""
        n = self.n
        targets = np.repeat(np.arange(n), np.diff(self.rows.pointers))
        band = np.zeros((n, 2 * n - 1))
        band[self.rows.origins, targets - self.rows.origins + n - 1] = self.rows.shares
        solved = np.empty(n)
        if not reduce_states(band, solved) or not np.isfinite(solved).all():
            return False
        z[:] = np.maximum(solved / solved.max(), FLOOR)
        return True


class Hierarchy:
    """Levels of a chain given by the shares of its flows.

    Parameters
    ----------
    rows : Rows
    flow : (n,) array
        Positive flows to begin with.
    """

    def __init__(self, rows: Rows, flow: Floats) -> None:
        self.levels = [Level(rows, flow)]

    def cycle(self, z: Floats, *, regroup: bool) -> float:
        """Improve the flows z in place; the part of all flow that is moved between groups.

        Every level is built anew, its groups if asked for.
        """
        return self._improve(0, z, regroup)

    def visits(self, k: int) -> int:
        """Visits of level k + 1 per visit of level k: two, unless that is much work."""
        work, twice = 1, False
        for level in self.levels[1 : k + 2]:
            twice = 2 * work * level.entries <= TWICE * self.levels[0].entries
            work *= 2 if twice else 1
        return 2 if twice else 1

    def rebuild(self, flow: Floats) -> None:
        """Build all levels from the flows of the finest, which become those of its correction."""
        rows, groups = self.levels[0].rows, [level.groups for level in self.levels]
        self.levels[:] = [Level(rows, flow, groups[0])]
        for k, kept in enumerate(groups[1:]):
            self.levels.append(self.levels[k].coarser(self.levels[k].flow))
            self.levels[k + 1].groups = kept

    def _improve(self, k: int, z: Floats, regroup: bool) -> float:
        level = self.levels[k]
        settle_forward(*level.rows, z)
        if regroup:
            del self.levels[k + 1 :]
            level.group(z)
        if level.groups is None:
            level.finish(z)
            return 0.0
        moved = self._correct(k, z, regroup)
        if k > 0 and self.visits(k) > 1:
            self._correct(k, z, False)
        return moved

    def _correct(self, k: int, z: Floats, regroup: bool) -> float:
        """Scale the groups of level k by the flows of level k + 1; the part of the flow moved."""
        level, coarse = self.levels[k], self._next(k, z)
        solved = coarse.flow.copy()
        self._improve(k + 1, solved, regroup)
        assert level.groups is not None
        scale_groups(z, level.groups[0], solved, coarse.flow)
        settle_backward(*level.rows, z)
        before = coarse.flow / coarse.flow.sum()
        return 0.5 * float(np.abs(solved / solved.sum() - before).sum())

    def _next(self, k: int, z: Floats) -> Level:
        """Build level k + 1 from flows of level k, keeping how it is grouped itself."""
        coarse = self.levels[k].coarser(z)
        if k + 1 < len(self.levels):
            coarse.groups = self.levels[k + 1].groups
            self.levels[k + 1] = coarse
        else:
            self.levels.append(coarse)
        return coarse
