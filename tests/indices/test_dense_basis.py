from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.indices.path.dense_basis import DenseBasis
from mdpcloud.indices.path.equations import Equations, Singular, equations_of
from mdpcloud.indices.restless.arm import arm
from tests.indices.arms import TestArm, arms

GOOD = ("dense", "peaked", "coarse", "periodic", "laborious")


def textbook_matrices(given_arm: TestArm, equations: Equations) -> Any:
    """A of passivity and of activity, from the generators as they are."""
    found = []
    for rates in given_arm.rates:
        matrix = float(given_arm.alpha) * np.eye(given_arm.n) - rates
        matrix[:, equations.reference] = equations.gain
        found.append(matrix)
    return found


@given(arms(GOOD, largest=8), st.integers(0, 255))
def test_the_factors_and_products_are_those_of_the_matrices(given_arm: TestArm, bits: int) -> None:
    n = given_arm.n
    equations = equations_of(given_arm.built(), float(given_arm.alpha))
    policy = (bits >> np.arange(n)) % 2 == 1
    passive, active = textbook_matrices(given_arm, equations)
    matrix = np.where(policy[:, None], active, passive)
    if np.linalg.cond(matrix) > 1e6:
        return
    basis = DenseBasis(equations, policy)
    right = np.random.default_rng(bits).random((n, 2))
    np.testing.assert_allclose(matrix @ basis.solve(right), right, atol=1e-8)
    moved = np.vstack([passive - active, equations.weights])
    np.testing.assert_allclose(basis.product(matrix), moved, atol=1e-8)


def test_the_matrix_is_made_in_place_column_by_column() -> None:
    rng = np.random.default_rng(1)
    moves = rng.dirichlet(np.ones(300), (2, 300))
    basis = DenseBasis(equations_of(arm(*moves), 0.0), np.ones(300, np.bool_))
    made = basis.transposed
    assert made.flags.c_contiguous
    basis.rebase(
        np.ones(300, np.bool_), np.array([4]), np.ones((301, 1), order="F"), np.ones((1, 1))
    )
    assert np.shares_memory(made, basis.transposed)


def test_an_absorbing_pair_has_no_factors() -> None:
    equations = equations_of(arm(np.eye(2), np.eye(2)), 0.0)
    with pytest.raises(Singular):
        DenseBasis(equations, np.ones(2, np.bool_))
