"""Stationary laws of irreducible chains: pi Q = 0, sum of pi = 1.

Three methods, by cost: state reduction without subtraction (Grassmann, Taksar and Heyman 1985) on
the band left by a reverse Cuthill-McKee ordering; sparse LU with one likely state pinned and
iterative refinement; GMRES with an incomplete factor. All end with the same test of the relative
residual sum_y |inflow(y) - outflow(y)| / sum_y outflow(y).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import Matrix
from mdpcloud.errors import SolveError
from mdpcloud.solve.stationary_kernels import reduce_states, sweep_flows

__all__ = ["factor", "law_of", "relative_residual", "scaled"]

REDUCTION_WORK = 5e8
"""Largest number of multiplications of the state reduction (about half a second)."""

REDUCTION_ENTRIES = 1e7
"""Largest states times bandwidth of the state reduction (160 MB)."""

FACTOR_WORK = 3e7
"""Largest states times bandwidth for which a complete sparse factor is tried."""

POLISH = 10
"""Gauss-Seidel sweeps after a direct or iterative solve; they repair small entries."""

ORDERING: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
"""Diagonal pivots, which are safe for M-matrices, in an order of little fill."""

Solver: TypeAlias = Callable[[Floats], Floats]


def law_of(rates: Matrix, tolerance: float) -> Floats:
    """Return the stationary law (m,) of an irreducible chain with off-diagonal rates (m, m)."""
    m = rates.shape[0]
    if m == 1:
        return np.ones(1)
    rates = scaled(rates)
    order = np.asarray(csgraph.reverse_cuthill_mckee(rates), np.int64)
    ordered = rates[order][:, order].tocoo()
    band = int(np.abs(ordered.row - ordered.col).max())
    law = np.empty(m)
    if m * float(band) ** 2 <= REDUCTION_WORK and m * band <= REDUCTION_ENTRIES:
        law[order] = _reduced(ordered, band)
    elif m * float(band) <= FACTOR_WORK:
        law[:] = _pinned(rates, factor)
    else:
        law[:] = _pinned(rates, lambda matrix: _krylov(matrix, tolerance))
    residual = relative_residual(rates, law)
    if not residual <= tolerance:
        raise SolveError(
            f"the stationary law has the relative residual {residual:.3g}, above the tolerance "
            f"{tolerance:.3g}",
            partial=law,
        )
    return law


def scaled(rates: Matrix) -> Matrix:
    """Divide all rates by a power of two near the largest, which rounds nothing."""
    _, exponent = np.frexp(rates.data.max(initial=1e-300))
    data = np.ldexp(rates.data, -int(exponent))
    return sparse.csr_array((data, rates.indices, rates.indptr), shape=rates.shape)


def relative_residual(rates: Matrix, law: Floats) -> float:
    """Return sum_y |inflow(y) - outflow(y)| / sum_y outflow(y) under off-diagonal rates."""
    outflow = law * _out(rates)
    return float(np.abs(rates.T @ law - outflow).sum() / outflow.sum())


def _out(rates: Matrix) -> Floats:
    return np.asarray(rates.sum(axis=1), np.float64).ravel()


def _normalised(law: Floats) -> Floats:
    law = law / law.max()
    normalised: Floats = law / law.sum()
    return normalised


def _reduced(ordered: Any, width: int) -> Floats:
    """State reduction of rates in coordinate form whose bandwidth is width."""
    m = ordered.shape[0]
    band = np.zeros((m, 2 * width + 1))
    band[ordered.row, ordered.col - ordered.row + width] = ordered.data
    law = np.empty(m)
    if not reduce_states(band, law) or not np.isfinite(law).all():
        raise SolveError("rates underflow while the chain is reduced; they differ too much")
    return _normalised(law)


def _pinned(rates: Matrix, prepare: Callable[[Matrix], Solver]) -> Floats:
    """Set one state's weight to 1 and solve for the others; again if that state was unlikely."""
    m, out = rates.shape[0], _out(rates)
    balance = sparse.csr_array(sparse.diags_array(out, format="csr") - rates.T)
    pin = int(np.argmax(rates.sum(axis=0)))
    for _ in range(3):
        others = np.flatnonzero(np.arange(m) != pin)
        inflow = np.asarray(rates[[pin]].todense(), np.float64).ravel()[others]
        law = np.ones(m)
        try:
            law[others] = prepare(balance[others][:, others])(inflow)
        except RuntimeError as error:
            raise SolveError(f"the balance equations could not be factored: {error}") from error
        if not np.isfinite(law).all():
            raise SolveError("the balance equations have no finite solution in floating point")
        pin = int(np.argmax(law))
        if law[pin] <= 1e6:
            break
    return _polished(rates, out, np.maximum(law, 0.0))


def _polished(rates: Matrix, out: Floats, law: Floats) -> Floats:
    columns = rates.tocsc()
    law = _normalised(law)
    sweep_flows(
        columns.indptr.astype(np.int64),
        columns.indices.astype(np.int32, copy=False),
        columns.data,
        out,
        law,
        POLISH,
    )
    return _normalised(law)


def factor(matrix: Matrix) -> Solver:
    """Return a solver for an M-matrix: sparse LU with diagonal pivots and two refinements."""
    lu = sparse_linalg.splu(matrix.tocsc(), **ORDERING)

    def solve(right: Floats) -> Floats:
        x = lu.solve(right)
        for _ in range(2):
            x = x + lu.solve(right - matrix @ x)
        return np.asarray(x, np.float64)

    return solve


def _krylov(matrix: Matrix, tolerance: float) -> Solver:
    """GMRES with an incomplete LU as preconditioner, restarted from its own residual."""
    incomplete = sparse_linalg.spilu(
        matrix.tocsc(),
        drop_tol=1e-2,
        fill_factor=5,
        **ORDERING,
    )
    precondition = sparse_linalg.LinearOperator(matrix.shape, incomplete.solve, dtype=np.float64)

    def solve(right: Floats) -> Floats:
        x = np.zeros(right.size)
        for _ in range(4):
            residual = right - matrix @ x
            change, _ = sparse_linalg.gmres(
                matrix, residual, rtol=1e-8, atol=0.0, restart=60, maxiter=10, M=precondition
            )
            x = x + change
        return x

    return solve
