"""Compile tabular models in discrete time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mdpcloud.engine.moves import off_diagonal
from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.row_table import Rows
from mdpcloud.engine.rows import RowsProblem

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
        transitions=off_diagonal(model.transitions, state),
    )
    names = tuple(map(str, range(model.n_actions)))
    return RowsProblem(rows, (TermInfo("step", names, length > model.n_states),), discrete=True)
