"""Solutions of A x = b for an M-matrix A with bounds of the error of every entry.

A = diag(row sums of R + e) - R. Three ways to solve, by cost: elimination without subtraction in
the band of a reverse Cuthill-McKee ordering, sparse LU, GMRES with an incomplete factor. Whatever
the way, the solution is refined with residuals in twice the digits of float64 and kept in twice the
digits, until it is good for its own size in every entry.

The bound: let w > 0 with A w > 0, and r = b - A x. The inverse of A has no negative entry, so that

    |A^-1 b - x| <= max_i ( |r_i| / (A w)_i ) w.

w solves A w = (diagonal of A) x approximately, which makes the bound relative to x, up to the
number of visits to each state on the way; A w and r are computed with proved error bounds.

Where visits are too many for that (above 1e27, say), elimination without subtraction still has a
bound known beforehand. By the matrix-tree theorem each x_i is a quotient of polynomials of degree m
in R, e and b with coefficients >= 0, so that relative changes of these by at most d change x_i by
about 2 m d relatively. Each of the m steps of the elimination is an exact step but for changes of
the reduced system (of k <= m states) by at most (band + 6) u: in sum m^2 (band + 6) u, as for the
stationary law (O'Cinneide, Relative-error bounds for the LU decomposition via the GTH algorithm,
1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import UNIT_ROUNDOFF
from mdpcloud.engine.rows import Matrix
from mdpcloud.errors import SolveError
from mdpcloud.solve.stationary.irreducible import ORDERING, REDUCTION_ENTRIES, REDUCTION_WORK
from mdpcloud.solve.transient.passage_kernels import (
    collect,
    correct,
    eliminate,
    residuals,
    substitute,
)

__all__ = ["Enclosed", "PassageSystem"]

FACTOR_WORK = 1e8
"""Largest states times bandwidth for which a complete sparse factor is made."""

REFINEMENTS = 12
"""Most of them; each gains the digits that the solver has."""

REFINED = 1e-28
"""Residuals relative to (diagonal) x at which refinement ends."""

TINY = 1e-285
"""What is smaller may be lost to underflow; entries of b are far larger."""

Pair = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Values (m,) and bounds (m,) of their errors."""

    values: Floats
    error: Floats


@dataclass(frozen=True, eq=False)
class _Solver:
    """A way to solve, and the relative error of solutions that is known beforehand."""

    solve: Callable[[Floats], Floats]
    relative: float = np.inf


@dataclass(frozen=True, eq=False)
class PassageSystem:
    """Equations with one M-matrix.

    Parameters
    ----------
    rates : (m, m) CSR array
        R, every row divided by 2 to the power given by ``exponent``.
    exits : pair of (m,) arrays
        e as high + low, divided in the same way.
    exponent : (m,) integer array
    """

    rates: Matrix
    exits: Pair
    exponent: NDArray[np.intc]

    @classmethod
    def of(cls, rates: Matrix, states: NDArray[Any]) -> PassageSystem:
        """Equations of some states of a chain; e are the rates from them to all others."""
        rows, m = rates[states], states.size
        largest = np.zeros(m)
        owner = np.repeat(np.arange(m), np.diff(rows.indptr))
        np.maximum.at(largest, owner, rows.data)
        exponent = np.frexp(largest)[1]
        outside = np.ones(rates.shape[0], np.bool_)
        outside[states] = False
        system = cls(rows, (np.zeros(m), np.zeros(m)), exponent)
        exits = system.total_to(rows, outside)
        inner = rows[:, states]
        data = np.ldexp(inner.data, -np.repeat(exponent, np.diff(inner.indptr)))
        scaled = sparse.csr_array((data, inner.indices, inner.indptr), shape=inner.shape)
        return cls(scaled, exits, exponent)

    def total_to(self, rows: Matrix, inside: NDArray[np.bool_]) -> Pair:
        """Sums of rates (m, n) to some states, scaled like the equations, as high + low."""
        high, low = np.empty(rows.shape[0]), np.empty(rows.shape[0])
        collect(rows.indptr, rows.indices, rows.data, inside, high, low)
        return np.ldexp(high, -self.exponent), np.ldexp(low, -self.exponent)

    def ones(self) -> Pair:
        """The right side 1 of every equation, scaled."""
        return np.ldexp(np.ones(self.exponent.size), -self.exponent), np.zeros(self.exponent.size)

    def solve(self, right: Pair) -> Enclosed:
        """Solve for a right side >= 0 that is not 0.

        Raises
        ------
        SolveError
            When the solution cannot be enclosed.
        """
        refined = self._verified(right)
        plain = self._solver.solve(right[0])
        beforehand = Enclosed(plain, self._solver.relative * np.maximum(plain, TINY) + TINY)
        if refined is None and not self._solver.relative < 1.0:
            raise SolveError(
                "the solution cannot be enclosed: the chain is too close to one that never leaves "
                "some states"
            )
        if refined is None:
            return beforehand
        better = beforehand.error < refined.error
        return Enclosed(
            np.where(better, plain, refined.values),
            np.where(better, beforehand.error, refined.error),
        )

    def _verified(self, right: Pair) -> Enclosed | None:
        """The refined solution with its bound, None where there is none."""
        x = self._refined(right)
        left, slack = self._residual(right, x)
        weight = self._refined((self._diagonal * np.maximum(x[0], TINY), 0.0 * x[0]))
        zero = np.zeros(x[0].size)
        growth, lost = self._residual((zero, zero), weight)
        least = (-growth - lost) * (1.0 - 4.0 * UNIT_ROUNDOFF)
        if not ((weight[0] > 0.0).all() and (least > 0.0).all() and np.isfinite(left).all()):
            return None
        distance = float(((np.abs(left) + slack) / least).max()) * (1.0 + 1e-14)
        values = np.maximum(x[0], 0.0)
        rounding = 4.0 * UNIT_ROUNDOFF * np.abs(x[0])
        return Enclosed(values, 1.001 * distance * weight[0] + np.abs(x[1]) + rounding + TINY)

    def _refined(self, right: Pair) -> Pair:
        """The solution as high + low."""
        x = self._solver.solve(right[0])
        low = np.zeros_like(x)
        best, kept = np.inf, (x, low)
        for _ in range(REFINEMENTS):
            left, _ = self._residual(right, (x, low))
            scale = self._diagonal * np.abs(x) + TINY
            worst = float((np.abs(left) / scale).max())
            if worst < best:
                kept = x.copy(), low.copy()
            if not REFINED < worst < 0.5 * best:
                break
            best = worst
            correct(x, low, self._solver.solve(left))
        return kept

    def _residual(self, right: Pair, x: Pair) -> Pair:
        """right - A x and a bound of its error."""
        left, size = np.empty(x[0].size), np.empty(x[0].size)
        matrix = self.rates.indptr, self.rates.indices, self.rates.data
        residuals(*matrix, *self.exits, *right, *x, left, size)
        terms = np.diff(self.rates.indptr) + 10.0
        return left, terms * 16.0 * UNIT_ROUNDOFF**2 * size + 4 * UNIT_ROUNDOFF * np.abs(
            left
        ) + TINY

    @cached_property
    def _diagonal(self) -> Floats:
        return np.asarray(self.rates.sum(axis=1), np.float64).ravel() + self.exits[0]

    @cached_property
    def _solver(self) -> _Solver:
        order = np.asarray(csgraph.reverse_cuthill_mckee(self.rates), np.int64)
        ordered = self.rates[order][:, order].tocoo()
        m, band = order.size, int(np.abs(ordered.row - ordered.col).max(initial=0))
        if m * float(band) ** 2 <= REDUCTION_WORK and m * band <= REDUCTION_ENTRIES:
            return _eliminated(ordered, band, self.exits[0][order], order)
        matrix = sparse.csc_array(sparse.diags_array(self._diagonal, format="csc") - self.rates)
        if m * float(band) <= FACTOR_WORK:
            return _factored(matrix)
        return _iterated(matrix)


def _eliminated(ordered: Any, width: int, exits: Floats, order: NDArray[Any]) -> _Solver:
    """Elimination without subtraction of rates in coordinate form."""
    m = order.size
    band, pivots = np.zeros((m, 2 * width + 1)), np.empty(m)
    band[ordered.row, ordered.col - ordered.row + width] = ordered.data
    if not eliminate(band, exits.copy(), pivots):
        raise SolveError("rates underflow while states are eliminated; they differ too much")

    def solve(right: Floats) -> Floats:
        x = right[order]
        substitute(band, pivots, x)
        solution = np.empty(m)
        solution[order] = x
        return solution

    relative = 1.1 * UNIT_ROUNDOFF * m * (m + 2.0) * (width + 6.0)
    return _Solver(solve, relative)


def _factored(matrix: Any) -> _Solver:
    """Sparse LU with diagonal pivots, which are safe for M-matrices."""
    try:
        factors = sparse_linalg.splu(matrix, **ORDERING)
    except RuntimeError as error:
        raise SolveError(f"the equations could not be factored: {error}") from error
    return _Solver(lambda right: np.asarray(factors.solve(right), np.float64))


def _iterated(matrix: Any) -> _Solver:
    """GMRES with an incomplete factor, to eight digits; refinement does the rest."""
    incomplete = sparse_linalg.spilu(matrix, drop_tol=1e-3, fill_factor=10, **ORDERING)
    shape = matrix.shape
    precondition = sparse_linalg.LinearOperator(shape, incomplete.solve, dtype=np.float64)

    def solve(right: Floats) -> Floats:
        x, _ = sparse_linalg.gmres(matrix, right, rtol=1e-8, restart=60, maxiter=5, M=precondition)
        return np.asarray(x, np.float64)

    return _Solver(solve)
