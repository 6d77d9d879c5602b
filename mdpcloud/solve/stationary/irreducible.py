"""Stationary laws of irreducible chains: pi Q = 0, sum of pi = 1.

Two methods. State reduction without subtraction (Grassmann, Taksar and Heyman 1985), on the band
left by the order given or a reverse Cuthill-McKee ordering, where that is cheap: every entry is
accurate, relative to itself. Else multilevel aggregation (see
`mdpcloud.solve.stationary.multilevel_law`); should that not settle, sparse LU with one likely state
pinned, up to some ten thousand states. All end with the same test of the relative residual
sum_y |inflow(y) - outflow(y)| / sum_y outflow(y).
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
from mdpcloud.solve.stationary.kernels import out_rates, reduce_states, shares_of_rates
from mdpcloud.solve.stationary.multilevel import Rows
from mdpcloud.solve.stationary.multilevel_kernels import (
    imbalance,
    settle_backward,
    settle_forward,
    split_rows,
)
from mdpcloud.solve.stationary.multilevel_law import balanced_flows

__all__ = ["factor", "law_of", "scaled"]

REDUCTION_WORK = 5e8
"""Largest number of multiplications of the state reduction (about half a second)."""

REDUCTION_ENTRIES = 1e7
"""Largest states times bandwidth of the state reduction (160 MB)."""

REORDERED = 50_000
"""Up to so many states are reordered for a small bandwidth; any number, if they have few moves."""

FEW = 3
"""Moves per state."""

FACTORED = 50_000
"""Up to so many states, sparse LU is tried where the multilevel method does not settle."""

POLISH = 5
"""Gauss-Seidel sweeps in each direction after sparse LU; they repair small entries."""

ORDERING: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
"""Diagonal pivots, which are safe for M-matrices, in an order of little fill."""

Solver: TypeAlias = Callable[[Floats], Floats]


def law_of(inflows: Matrix, tolerance: float) -> Floats:
    """Return the stationary law (m,) of an irreducible chain.

    Parameters
    ----------
    inflows : (m, m) CSR array
        Rates off the diagonal, 1/time; rows are targets, columns origins. The arrays are
        overwritten.
    tolerance : float
        Largest relative residual.

    Raises
    ------
    SolveError
        The residual exceeds the tolerance; it carries the law.
    """
    m = inflows.shape[0]
    if m == 1:
        return np.ones(1)
    scale(inflows)
    law = _reduced(inflows)
    if law is None:
        return _by_flows(inflows, tolerance)
    residual = relative_residual(inflows, law)
    return _checked(law, residual, tolerance)


def _checked(law: Floats, residual: float, tolerance: float) -> Floats:
    if not residual <= tolerance:
        raise SolveError(
            f"the stationary law has the relative residual {residual:.3g}, above the tolerance "
            f"{tolerance:.3g}",
            partial=law,
        )
    return law


def scaled(rates: Matrix) -> Matrix:
    """Divide all rates by a power of two near the largest, which rounds nothing."""
    copied = sparse.csr_array((rates.data.copy(), rates.indices, rates.indptr), shape=rates.shape)
    scale(copied)
    return copied


def scale(rates: Matrix) -> None:
    """As `scaled`, in place."""
    _, exponent = np.frexp(rates.data.max(initial=1e-300))
    np.ldexp(rates.data, -int(exponent), out=rates.data)


def relative_residual(inflows: Matrix, law: Floats) -> float:
    """Return sum_y |inflow(y) - outflow(y)| / sum_y outflow(y)."""
    outflow = law * out_rates(inflows.indices, inflows.data, law.size)
    return float(np.abs(inflows @ law - outflow).sum() / outflow.sum())


def _normalised(law: Floats) -> Floats:
    law = law / law.max()
    normalised: Floats = law / law.sum()
    return normalised


# --- state reduction ------------------------------------------------------------------------------


def _reduced(inflows: Matrix) -> Floats | None:
    """The law by state reduction; None where the bandwidth is too large."""
    m = inflows.shape[0]
    target = np.repeat(np.arange(m, dtype=np.int32), np.diff(inflows.indptr))
    place = np.arange(m, dtype=np.int32)
    if not _cheap(m, _width(inflows.indices, target)):
        if m > REORDERED and inflows.nnz > FEW * m:
            return None
        order = csgraph.reverse_cuthill_mckee(inflows)
        place[order] = np.arange(m, dtype=np.int32)
    origin, target = place[inflows.indices], place[target]
    width = _width(origin, target)
    if not _cheap(m, width):
        return None
    band = np.zeros((m, 2 * width + 1))
    np.add.at(band, (origin, target - origin + width), inflows.data)
    law = np.empty(m)
    if not reduce_states(band, law) or not np.isfinite(law).all():
        raise SolveError("rates underflow while the chain is reduced; they differ too much")
    return _normalised(law[place])


def _width(origin: Any, target: Any) -> int:
    return int(np.abs(origin - target).max())


def _cheap(m: int, width: int) -> bool:
    return m * float(width) ** 2 <= REDUCTION_WORK and m * width <= REDUCTION_ENTRIES


# --- balanced flows -------------------------------------------------------------------------------


def _by_flows(inflows: Matrix, tolerance: float) -> Floats:
    """The law from the flows out of the states, whose relative imbalance is its residual."""
    out = out_rates(inflows.indices, inflows.data, inflows.shape[0])
    rows = _rows(inflows, out)
    flows = balanced_flows(rows, tolerance)
    residual = float(imbalance(*rows, flows))
    if not residual <= tolerance and inflows.shape[0] <= FACTORED:
        flows = _pinned(rows)
        residual = float(imbalance(*rows, flows))
    return _checked(_normalised(flows / out), residual, tolerance)


def _rows(inflows: Matrix, out: Floats) -> Rows:
    """Shares of the flows, in the place of the rates."""
    shares_of_rates(inflows.indices, inflows.data, out)
    pointers, origins = inflows.indptr, inflows.indices
    return Rows(pointers, split_rows(pointers, origins, inflows.data), origins, inflows.data)


def _pinned(rows: Rows) -> Floats:
    """Set one state's flow to 1 and solve for the others; again if that state was unlikely."""
    n = rows.middle.size
    shares = sparse.csc_array(
        sparse.csr_array((rows.shares, rows.origins, rows.pointers), shape=(n, n))
    )
    balance = sparse.csr_array(sparse.eye_array(n, format="csr") - shares)
    pin = int(np.argmax(np.diff(rows.pointers)))
    for _ in range(3):
        others = np.flatnonzero(np.arange(n) != pin)
        right = shares[:, [pin]].toarray().ravel()[others]
        flows = np.ones(n)
        try:
            flows[others] = factor(balance[others][:, others])(right)
        except RuntimeError as error:
            raise SolveError(f"the balance equations could not be factored: {error}") from error
        if not np.isfinite(flows).all():
            raise SolveError("the balance equations have no finite solution in floating point")
        pin = int(np.argmax(flows))
        if flows[pin] <= 1e6:
            break
    flows = _normalised(np.maximum(flows, 0.0))
    for _ in range(POLISH):
        settle_forward(*rows, flows)
        settle_backward(*rows, flows)
    return flows


def factor(matrix: Matrix) -> Solver:
    """Return a solver for an M-matrix: sparse LU with diagonal pivots and two refinements."""
    lu = sparse_linalg.splu(matrix.tocsc(), **ORDERING)

    def solve(right: Floats) -> Floats:
        x = lu.solve(right)
        for _ in range(2):
            x = x + lu.solve(right - matrix @ x)
        return np.asarray(x, np.float64)

    return solve
