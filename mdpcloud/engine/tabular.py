"""Compile tabular models in discrete time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.row_table import Matrix, Rows, pointers
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.rows_kernels import count_stays, drop_stays

if TYPE_CHECKING:
    from mdpcloud.model.tabular import TabularModel

__all__ = ["tabular_problem"]


def tabular_problem(model: TabularModel) -> RowsProblem:
    """Compile a tabular model: one term, rate 1 per step, moves back to the own state left out.

    The off-diagonal probabilities are the model; the diagonal completes each row. Without a
    diagonal the model's matrix is shared.
    """
    length = model.state.size
    state = model.state.astype(np.int32, copy=False)
    rows = Rows(
        n=model.n_states,
        cost_rate=np.zeros(model.n_states),
        state=state,
        term=np.zeros(length, np.int32),
        action=model.action.astype(np.int32, copy=False),
        rate=np.ones(length),
        cost=model.cost,
        transitions=_off_diagonal(model.transitions, state),
    )
    names = tuple(map(str, range(model.n_actions)))
    return RowsProblem(rows, (TermInfo("step", names, length > model.n_states),), discrete=True)


def _off_diagonal(matrix: Matrix, state: NDArray[np.int32]) -> Matrix:
    indptr = pointers(matrix.indptr)
    indices = matrix.indices.astype(np.int32, copy=False).view(np.uint32)
    stays = int(count_stays(indptr, indices, state))
    if stays == 0:
        return matrix
    kept = int(matrix.nnz) - stays
    begins, targets, weights = np.empty_like(indptr), np.empty(kept, np.int32), np.empty(kept)
    drop_stays(indptr, indices, matrix.data, state, begins, targets, weights)
    signed = begins.view(f"i{begins.itemsize}")
    return sparse.csr_array((weights, targets, signed), shape=matrix.shape)
