"""Linear systems of chains that end: (D - M) d = r, M the moves and D the total rates.

Small chains by elimination without subtraction, which is exact to some 1e-14 of every entry however
stiff the chain is (O'Cinneide 1996); larger ones by sparse LU, and the largest by BiCGSTAB on
Gauss-Seidel sweeps that begin at the end and follow the moves backwards: of a chain that comes
nearer with every move one sweep is the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import sparse

from mdpcloud.engine.problem import Floats
from mdpcloud.errors import SolveError
from mdpcloud.solve.chains import bicgstab
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.stationary.irreducible import factor
from mdpcloud.solve.total.kernels import eliminate, relax, substitute
from mdpcloud.solve.total.paths import Pair, Paths

__all__ = ["DIRECT", "ChainSolver", "chain_solver", "refined"]

ChainSolver: TypeAlias = Callable[[Floats], Floats]
"""Takes r (n,) and returns d (n,), 0 in states that end."""

DENSE = 150
"""States up to which a chain is eliminated as a dense matrix (a millisecond)."""

DIRECT = 5000
"""States up to which sparse LU comes first."""

DIRECT_AFTER_ALL = 300_000
"""States up to which it is tried where the iteration fails."""

PRODUCTS = 2000
"""Sweeps of an iterative solve."""

GAIN = 1e-4
"""Part of the residual that an iterative solve leaves."""

REFINEMENTS = 12


def chain_solver(fixed: Paths, monitor: Monitor | None = None) -> ChainSolver:
    """Factor a chain that reaches its end from every state.

    Parameters
    ----------
    fixed : Paths
        Without decisions.
    monitor : Monitor, optional
        It counts the sweeps of an iterative solve, and may end it.

    Raises
    ------
    SolveError
        Where floating point cannot tell that it does.
    """
    inner = int(fixed.n - fixed.terminal.sum())
    if inner <= DENSE:
        return _eliminated(fixed)
    return _factored(fixed) if inner <= DIRECT else Swept(fixed, monitor or Monitor())


def _eliminated(fixed: Paths) -> ChainSolver:
    inner = np.flatnonzero(~fixed.terminal)
    moves, _ = fixed.chain()
    part = moves[inner]
    leaving = np.asarray(part[:, np.flatnonzero(fixed.terminal)].sum(axis=1), np.float64).ravel()
    rates = np.ascontiguousarray(part[:, inner].toarray())
    out = np.empty(inner.size)
    if not eliminate(rates, leaving, out):
        raise SolveError("rates underflow while the chain is eliminated; they differ too much")

    def solve(right: Floats) -> Floats:
        positive, negative = np.maximum(right[inner], 0.0), np.maximum(-right[inner], 0.0)
        substitute(rates, out, positive)
        substitute(rates, out, negative)
        found = np.zeros(fixed.n)
        found[inner] = positive - negative
        return found

    return solve


def _factored(fixed: Paths) -> ChainSolver:
    moves, out = fixed.chain()
    system = sparse.csr_array(sparse.diags_array(out + fixed.terminal, format="csr") - moves)
    try:
        return factor(system)
    except RuntimeError as error:
        raise SolveError(f"the chain could not be factored: {error}") from error


class Swept:
    """Solves for a large chain approximately, and directly where that fails.

    Parameters
    ----------
    fixed : Paths
    monitor : Monitor
    """

    def __init__(self, fixed: Paths, monitor: Monitor) -> None:
        self.fixed, self.monitor = fixed, monitor
        moves, self.out = fixed.chain()
        self.moves = moves.indptr.astype(np.int64), moves.indices, moves.data
        self._direct: ChainSolver | None = None

    def sweep(self, right: Floats, values: Floats) -> None:
        """One Gauss-Seidel sweep, in place."""
        relax(self.fixed.order, *self.moves, self.out, right, values)

    def __call__(self, right: Floats) -> Floats:
        """Solve until the residual is a small part of what it was."""
        if self._direct is not None:
            return self._direct(right)
        zero, begin = np.zeros(right.size), np.zeros(right.size)
        self.sweep(right, begin)

        def operator(vector: Floats, out: Floats) -> None:
            self.monitor.count(1)
            out[:] = vector
            self.sweep(zero, out)
            np.subtract(vector, out, out=out)

        size = 2.0 * float(np.abs(begin).max(initial=0.0))
        found, left = bicgstab(operator, begin, begin.copy(), GAIN * size, PRODUCTS, True)
        if left > 0.1 * size and right.size <= DIRECT_AFTER_ALL:
            self._direct = _factored(self.fixed)
            return self._direct(right)
        return found


def refined(fixed: Paths, solve: ChainSolver, u: Pair, shift: Floats) -> Pair:
    """Values of a chain: corrected by the residual until that is below its rounding.

    It ends where neither the residual nor the number of its roundings falls by half any more.
    """
    least = np.full(2, np.inf)
    for _ in range(REFINEMENTS):
        lower, upper = fixed.bounds(u, shift)
        residual, width = 0.5 * (lower + upper), upper - lower
        some = width > 0.0
        size = np.abs(residual[some])
        sizes = np.array([size.max(initial=0.0), (size / width[some]).max(initial=0.0)])
        if sizes[1] < 1.0 or not (sizes < 0.5 * least).any():
            break
        least = np.minimum(least, sizes)
        u = u.plus(solve(residual))
    return u
