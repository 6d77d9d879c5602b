"""Compile tabular models in discrete time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mdpcloud.engine.problem import TermInfo
from mdpcloud.engine.rows import Rows, RowsProblem

if TYPE_CHECKING:
    from mdpcloud.model.tabular import TabularModel

__all__ = ["tabular_problem"]


def tabular_problem(model: TabularModel) -> RowsProblem:
    """Compile a tabular model: one term, rate 1 per step, moves back to the own state left out.

    The off-diagonal probabilities are the model; the diagonal completes each row.
    """
    off = model.transitions.tocoo()
    moves = off.row, off.col, off.data
    zeros = np.zeros(model.state.size, np.int32)
    rows = Rows.from_moves(
        np.zeros(model.n_states),
        (model.state, zeros, model.action),
        np.ones(model.state.size),
        model.cost,
        moves,
    )
    names = tuple(map(str, range(model.n_actions)))
    decision = model.state.size > model.n_states
    return RowsProblem(rows, (TermInfo("step", names, decision),), discrete=True)
