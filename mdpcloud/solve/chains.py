"""The Poisson equation of a fixed policy: c + Q h = g 1, or alpha h = c + Q h under discounting.

Small chains by sparse LU, large ones by BiCGSTAB on matrix-free sweeps. The gain is an unknown of
the direct solve, in the place of the value of a pinned state; that state is a likely one, because a
rare state costs digits. The iterative solve works with values and residuals relative to those at a
likely state, where both are 0: that leaves one solution and rids the equation of the gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.solve.chain_kernels import advance, dot, dots, redirect, subtract, walk
from mdpcloud.solve.limits import Monitor

__all__ = ["DirectChain", "SingularChainError", "bicgstab", "likely_state", "solve_iteratively"]

RARE = 1e-3  # a pinned state this much rarer than the likeliest is exchanged for it
REFINEMENTS = 2
JUMPS = 20_000  # of the walk that looks for a likely state, or fewer where there are few states
JUMPS_PER_STATE = 5


class SingularChainError(Exception):
    """The chain has several recurrent classes, so its relative values do not exist."""


class DirectChain:
    """A chain factored once, to be solved for any cost rate.

    Parameters
    ----------
    generator : (n, n) CSR
        1/time.
    discount : float
        1/time; 0 for average cost.
    pinned : int, optional
        State whose value makes room for the gain, by default one that a walk finds to be likely; it
        is exchanged for a likelier one where it is rare.

    Raises
    ------
    SingularChainError
        When there are several recurrent classes.
    """

    def __init__(self, generator: Any, discount: float = 0.0, pinned: int | None = None) -> None:
        self.generator = generator
        self.pinned = pinned
        self.average = discount == 0.0
        if not self.average:
            from scipy import sparse

            self._matrix = sparse.csc_array(
                generator - discount * sparse.eye_array(generator.shape[0])
            )
            self._factor = _factor(self._matrix)
            return
        by_column = generator.tocsc()
        pinned = _often_visited(generator) if pinned is None else pinned
        self._pin(by_column, pinned)
        law = self._law()
        likely = int(np.argmax(law))
        if not law[pinned] > RARE * law[likely]:
            self._pin(by_column, likely)

    def _pin(self, by_column: Any, pinned: int) -> None:
        """Put -1, the coefficient of the gain, in the place of the pinned state's column of Q."""
        from scipy import sparse

        self.pinned = pinned
        n = by_column.shape[0]
        pointer = by_column.indptr.copy()
        first, last = pointer[pinned], pointer[pinned + 1]
        pointer[pinned + 1 :] += n - (last - first)
        rows, rates = by_column.indices, by_column.data
        row = np.concatenate([rows[:first], np.arange(n, dtype=rows.dtype), rows[last:]])
        rate = np.concatenate([rates[:first], np.full(n, -1.0), rates[last:]])
        self._matrix = sparse.csc_array((rate, row, pointer), shape=(n, n))
        self._factor = _factor(self._matrix)

    def _law(self) -> Floats:
        """Stationary law: p A = -e' in the pinned column means p Q = 0 elsewhere and p 1 = 1."""
        target = np.zeros(self._matrix.shape[0])
        target[self.pinned] = -1.0
        return np.asarray(self._factor.solve(target, trans="T"))

    def solve(self, cost: Floats) -> Floats:
        """Values (n,) of a cost rate, 0 in the pinned state for average cost; (n, m) of several."""
        values = _refined(self._factor, self._matrix, -cost)
        if self.average:
            values[self.pinned] = 0.0
        return values


def _factor(matrix: Any) -> Any:
    from scipy.sparse.linalg import splu

    try:
        return splu(matrix)
    except RuntimeError as error:
        raise SingularChainError(str(error)) from error


def _refined(factor: Any, matrix: Any, right: Floats) -> Floats:
    solution = factor.solve(right)
    for _ in range(REFINEMENTS):
        solution = solution + factor.solve(right - matrix @ solution)
    if not np.isfinite(solution).all():
        raise SingularChainError("the factor is singular")
    return np.asarray(solution)


def likely_state(fixed: Any) -> int:
    """A state where an uncontrolled problem is often, found by a seeded walk."""
    if isinstance(fixed, RowsProblem):
        return _often_visited(fixed.chain()[0])
    return int(fixed.likely_state(_jumps(fixed.n)))


def _often_visited(generator: Any) -> int:
    arrays = generator.indptr, generator.indices, generator.data
    return int(walk(*arrays, 0, _jumps(generator.shape[0])))


def _jumps(states: int) -> int:
    return min(JUMPS, 500 + JUMPS_PER_STATE * states)


class _Operator:
    """Q h relative to its value at the origin, or (Q - alpha) h; on work arrays."""

    def __init__(self, fixed: Any, discount: float, origin: int, monitor: Monitor) -> None:
        self.fixed, self.discount, self.monitor = fixed, discount, monitor
        self.place, self.targets, self.rates = fixed.moves_from(origin)

    def __call__(self, vector: Floats, out: Floats) -> None:
        self.monitor.count(1)
        if self.discount > 0:
            self.fixed.flow(vector, out)
            subtract(out, self.discount, vector)
        else:
            moved = vector[self.targets] - vector[self.place]
            self.fixed.flow(vector, out, float(self.rates @ moved))


def solve_iteratively(
    fixed: Any, h: Floats, goal: float, limit: int, discount: float, monitor: Monitor
) -> tuple[Floats, float]:
    """Improve relative values until the spread of c + Q h - alpha h is at most ``goal``.

    Parameters
    ----------
    fixed : Problem
        Uncontrolled.
    h : (n,) array
        Where to start.
    goal : float
        Cost/time.
    limit : int
        Products with Q.

    Returns
    -------
    h : (n,) array
        The best found.
    spread : float
        Its spread max - min of c + Q h - alpha h.
    """
    origin = 0 if discount > 0 else likely_state(fixed)
    start = h.copy() if discount > 0 else h - h[origin]
    cost = fixed.unpack(fixed.cost_work())
    right = fixed.pack(-cost if discount > 0 else cost[origin] - cost)
    operator = _Operator(fixed, discount, origin, monitor)
    best, spread = bicgstab(operator, right, fixed.pack(start), goal, limit, discount > 0)
    return fixed.unpack(best), spread


def bicgstab(
    operator: Any, right: Floats, x: Floats, goal: float, limit: int, absolute: bool
) -> tuple[Floats, float]:
    """BiCGSTAB (van der Vorst 1992), stopped on the spread of the residual; best x and spread.

    The spread is max - min, one entry of the residual being zero (twice the largest size if
    ``absolute``). It begins again from the best iterate where the recurrence breaks down.

    Parameters
    ----------
    operator : function of a vector and where to put the product
    right, x : arrays
        Right-hand side, and where to start (overwritten).
    goal : float
        Spread to reach.
    limit : int
        Products.
    """
    search = _Search(operator, right, x, absolute)
    while search.used < limit and search.least > goal:
        before = search.least
        search.run(goal, limit)
        search.begin(search.best)
        if search.spread > 10.0 * search.least or not search.least < 0.9 * before:
            break
    return search.best, search.least


class _Search:
    """The vectors of BiCGSTAB: x, and the best x so far with its spread."""

    def __init__(self, operator: Any, right: Floats, x: Floats, absolute: bool) -> None:
        self.operator, self.right, self.absolute = operator, right, absolute
        self.used = 0
        self.image, self.turned = np.zeros_like(x), np.zeros_like(x)
        self.begin(x)
        self.best, self.least = x.copy(), self.spread

    def begin(self, x: Floats) -> None:
        """Start the recurrence from x."""
        self.x = x.copy()
        self.operator(x, self.image)
        self.residual = self.right - self.image
        self.used += 1
        self.shadow, self.direction = self.residual.copy(), self.residual.copy()
        self.rho = float(dot(self.shadow, self.residual))
        self.spread = self.size(float(self.residual.min()), float(self.residual.max()))

    def size(self, low: float, high: float) -> float:
        """Spread of a residual with these extremes."""
        low, high = min(low, 0.0), max(high, 0.0)
        return 2.0 * max(-low, high) if self.absolute else high - low

    def run(self, goal: float, limit: int) -> None:
        """Iterate until the goal, the limit or a breakdown."""
        kept = self.least
        while self.used < limit and self.spread > goal and self.step():
            if self.spread < 0.5 * kept or self.spread <= goal:
                kept = self.spread
                self.best, self.least = self.x.copy(), self.spread

    def step(self) -> bool:
        """One iteration, two products; False on a breakdown."""
        image, turned = self.image, self.turned
        self.operator(self.direction, image)
        divisor = float(dot(self.shadow, image))
        self.used += 1
        if self.rho == 0.0 or not abs(divisor) > 1e-30 * abs(self.rho):
            return False
        alpha = self.rho / divisor
        subtract(self.residual, alpha, image)
        self.operator(self.residual, turned)
        self.used += 1
        mixed, norm = dots(turned, self.residual)
        omega = mixed / norm if norm > 0 else 0.0
        vectors = self.x, self.residual, self.direction, turned, self.shadow
        fresh, low, high = advance(*vectors, alpha, omega)
        self.spread = self.size(low, high)
        if omega == 0.0 or not np.isfinite(self.spread):
            return self.spread < self.least
        redirect(self.direction, self.residual, image, (fresh / self.rho) * (alpha / omega), omega)
        self.rho = float(fresh)
        return True
