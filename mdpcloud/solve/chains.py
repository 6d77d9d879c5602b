"""The Poisson equation of a fixed policy: c + Q h = g 1, or alpha h = c + Q h under discounting.

Small chains by sparse LU, large ones by BiCGSTAB on matrix-free sweeps. The gain is an unknown of the
direct solve, in the place of the value of a pinned state; that state is a likely one, because a rare state
costs digits. For the iterative solve Q - s 1 w' takes the place of Q: it is not singular, and any solution
of (Q - s 1 w') h = -c solves the Poisson equation with g = s w'h, since Q 1 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.limits import Monitor

__all__ = ["DirectChain", "SingularChainError", "bicgstab", "solve_iteratively"]

RARE = 1e-3  # a pinned state this much rarer than the likeliest is exchanged for it
REFINEMENTS = 2


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
    pinned : int
        State whose value makes room for the gain; it is exchanged for a likelier one where it is rare.

    Raises
    ------
    SingularChainError
        When there are several recurrent classes.
    """

    def __init__(self, generator: Any, discount: float = 0.0, pinned: int = 0) -> None:
        self.pinned = pinned
        self.average = discount == 0.0
        if not self.average:
            from scipy import sparse

            self._matrix = sparse.csc_array(generator - discount * sparse.eye_array(generator.shape[0]))
            self._factor = _factor(self._matrix)
            return
        self._pin(generator, pinned)
        law = self._law()
        likely = int(np.argmax(law))
        if not law[pinned] > RARE * law[likely]:
            self._pin(generator, likely)

    def _pin(self, generator: Any, pinned: int) -> None:
        """Put -1, the coefficient of the gain, in the place of the pinned state's column of Q."""
        from scipy import sparse

        self.pinned = pinned
        n = generator.shape[0]
        coo = generator.tocoo()
        keep = coo.col != pinned
        row = np.append(coo.row[keep], np.arange(n))
        column = np.append(coo.col[keep], np.full(n, pinned))
        data = np.append(coo.data[keep], np.full(n, -1.0))
        self._matrix = sparse.csc_array((data, (row, column)), shape=(n, n))
        self._factor = _factor(self._matrix)

    def _law(self) -> Floats:
        """The stationary law: p A = -e' in the pinned column means p Q = 0 elsewhere and p 1 = 1."""
        target = np.zeros(self._matrix.shape[0])
        target[self.pinned] = -1.0
        return np.asarray(self._factor.solve(target, trans="T"))

    def solve(self, cost: Floats) -> Floats:
        """Values (n,), 0 in the pinned state for average cost."""
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


@dataclass(eq=False)
class _Deflated:
    """(Q - s 1 w') or (Q - alpha) on work arrays; cells outside the space stay 0."""

    fixed: Any
    discount: float
    scale: float
    inside: Floats
    weights: Floats
    monitor: Monitor

    def __call__(self, vector: Floats) -> Floats:
        out = np.zeros_like(vector)
        self.fixed.flow(vector, out)
        self.monitor.count(1)
        if self.discount > 0:
            out -= self.discount * vector
        else:
            out -= self.scale * float(self.weights @ vector) * self.inside
        return out


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
    inside = fixed.pack(np.ones(fixed.n))
    weights = fixed.pack(np.full(fixed.n, 1.0 / fixed.n))
    operator = _Deflated(fixed, discount, 0.1 * fixed.rate_bound, inside, weights, monitor)
    start = fixed.pack(h)
    right = -fixed.cost_work()
    best, spread = bicgstab(operator, right, start, goal, limit, discount > 0, inside)
    return fixed.unpack(best), spread


def bicgstab(
    operator: Any, right: Floats, x: Floats, goal: float, limit: int, absolute: bool, inside: Floats
) -> tuple[Floats, float]:
    """BiCGSTAB (van der Vorst 1992), stopped on the spread of the residual; best iterate and spread.

    The spread is max - min over the states (twice the largest size if ``absolute``). It restarts from the
    best iterate where the recurrence breaks down.
    """
    residual = right - operator(x)
    best, least = x.copy(), _spread(residual, absolute, inside)
    used = 1
    while used < limit and least > goal:
        shadow = residual.copy()
        rho = float(shadow @ residual)
        direction = residual.copy()
        while used < limit and least > goal:
            image = operator(direction)
            divisor = float(shadow @ image)
            if abs(divisor) < 1e-30 * max(rho, 1e-300) or rho == 0.0:
                break
            alpha = rho / divisor
            half = residual - alpha * image
            turned = operator(half)
            used += 2
            norm = float(turned @ turned)
            omega = float(turned @ half) / norm if norm > 0 else 0.0
            x = x + alpha * direction + omega * half
            residual = half - omega * turned
            spread = _spread(residual, absolute, inside)
            if spread < least:
                best, least = x, spread
            if omega == 0.0 or not np.isfinite(spread):
                break
            fresh = float(shadow @ residual)
            direction = residual + (fresh / rho) * (alpha / omega) * (direction - omega * image)
            rho = fresh
        x = best
        residual = right - operator(x)
        used += 1
        if rho == 0.0 or _spread(residual, absolute, inside) > 10.0 * least:
            break
    return best, least


def _spread(residual: Floats, absolute: bool, inside: Floats) -> float:
    if absolute:
        return 2.0 * float(np.abs(residual).max())
    here = residual[inside > 0]
    return float(here.max() - here.min())
