from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mdpcloud.indices.path.changes import Changes
from mdpcloud.indices.path.equations import equations_of
from tests.indices.arms import make_arm


def inverse_product(equations: Any, policy: np.ndarray) -> np.ndarray:
    """M = D A^-1 of a policy, column by column, from fresh factors."""
    basis = equations.basis(policy)
    return basis.product(np.eye(policy.size))  # type: ignore[no-any-return]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_columns_after_changes_are_those_of_fresh_factors(sparse: bool, alpha: float) -> None:
    equations = equations_of(make_arm("dense", 5, 12).built(sparse), alpha)
    policy = np.ones(12, np.bool_)
    changes = Changes(equations.basis(policy), 13)
    for step, state in enumerate([3, 7, 3, 0, 11, 7]):
        sign = 1.0 if policy[state] else -1.0
        column = changes.column(state, lambda _, s=state: np.array([s, (s + 1) % 12]))
        np.testing.assert_allclose(column, inverse_product(equations, policy)[:, state], atol=1e-12)
        changes.add(state, column, sign * (1.0 + sign * column[state]))
        policy[state] ^= True
        if step == 3:
            changes.rebase(policy)
    changes.rebase(policy)
    np.testing.assert_allclose(
        changes.basis.columns(np.arange(12)), inverse_product(equations, policy), atol=1e-12
    )


def test_columns_fetched_ahead_follow_later_changes() -> None:
    equations = equations_of(make_arm("dense", 6, 9).built(), 0.0)
    policy = np.ones(9, np.bool_)
    changes = Changes(equations.basis(policy), 10)
    for state in range(9):
        column = changes.column(state, lambda count, s=state: np.arange(s, min(9, s + count)))
        np.testing.assert_allclose(column, inverse_product(equations, policy)[:, state], atol=1e-12)
        changes.add(state, column, 1.0 + column[state])
        policy[state] = False
    assert changes.since == 0  # all were fetched at once
