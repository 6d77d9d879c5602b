from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.indices.path.dense_basis import DenseBasis
from mdpcloud.indices.path.equations import Singular, equations_of
from mdpcloud.indices.path.sparse_basis import SparseBasis
from mdpcloud.indices.restless.arm import arm
from tests.indices.arms import TestArm, arms

GOOD = ("dense", "peaked", "coarse", "periodic", "laborious")


@given(arms(GOOD, largest=8), st.integers(0, 255))
def test_sparse_and_dense_factors_agree(given_arm: TestArm, bits: int) -> None:
    n, alpha = given_arm.n, float(given_arm.alpha)
    policy = (bits >> np.arange(n)) % 2 == 1
    try:
        dense = DenseBasis(equations_of(given_arm.built(), alpha), policy)
    except Singular:
        return
    if np.abs(dense.transposed).max() > 1e4:
        return
    found = SparseBasis(equations_of(given_arm.built(sparse=True), alpha), policy)
    right = np.random.default_rng(bits).random((n, 3))
    np.testing.assert_allclose(found.solve(right), dense.solve(right), atol=1e-6)
    np.testing.assert_allclose(found.product(right), dense.product(right), atol=1e-6)
    np.testing.assert_allclose(found.columns(np.arange(n)), dense.transposed.T, atol=1e-6)


def test_no_matrix_with_all_entries_is_made() -> None:
    n = 3000
    down = sparse.diags_array(
        [np.r_[0.5, np.zeros(n - 1)], np.full(n - 1, 0.5), np.full(n - 1, 0.5)], offsets=[0, 1, -1]
    ).tolil()
    down[n - 1, n - 1] = 0.5
    basis = SparseBasis(equations_of(arm(down.tocsr(), down.tocsr()), 0.5), np.ones(n, np.bool_))
    assert basis.differences.nnz <= n
    assert basis.factors.nnz < 20 * n


def test_an_absorbing_pair_has_no_factors() -> None:
    equations = equations_of(arm(sparse.eye_array(2), sparse.eye_array(2)), 0.0)
    with pytest.raises(Singular):
        SparseBasis(equations, np.ones(2, np.bool_))
