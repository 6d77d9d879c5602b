"""The second methods themselves: closed forms, agreement with each other, the published arm."""

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.indices.arms import KINDS, TURNING, arms, make_arm, published
from tests.indices.exact_index import bisection_index, closed_classes_of, exact_path

SIDES = [  # of the published arm: prices around a change, active states before and after
    (-0.48, -0.46, [1, 1, 1, 1], [1, 1, 0, 1]),
    (-0.38, -0.36, [1, 1, 0, 1], [1, 0, 0, 1]),
    (-0.12, -0.1, [1, 0, 0, 1], [0, 0, 0, 1]),
    (0.06, 0.08, [0, 0, 0, 1], [0, 0, 1, 1]),
    (0.16, 0.18, [0, 0, 1, 1], [0, 0, 1, 0]),
    (0.24, 0.26, [0, 0, 1, 0], [0, 0, 0, 0]),
]


def test_without_dynamics_discounted_indices_are_the_differences_of_the_rewards():
    eye = [[F(i == j) for j in range(3)] for i in range(3)]
    costs = [[F(0)] * 3, [F(-1), F(-2), F(-3)]]
    path = exact_path([eye, eye], costs, alpha=F(1))
    assert [path.index_range(i) for i in range(3)] == [(1, 1), (2, 2), (3, 3)]
    assert exact_path([eye, eye], costs).verdict == "multichain"


def test_of_an_independent_chain_indices_are_the_differences_of_the_rewards():
    rows = [[F(1, 3), F(2, 3)], [F(1, 2), F(1, 2)]]
    path = exact_path([rows, rows], [[F(2), F(1)], [F(1, 7), F(3)]])
    assert [path.index_range(i) for i in range(2)] == [(F(13, 7),) * 2, (F(-2),) * 2]


def test_a_two_state_machine_has_the_index_of_its_closed_form():
    """Passive: breaks with probability q, costs d broken; active: is mended in state 1."""
    q, d = F(1, 5), F(3)
    passive, active = [[1 - q, q], [F(0), F(1)]], [[1 - q, q], [F(1), F(0)]]
    path = exact_path([passive, active], [[F(0), d], [F(0), F(0)]])
    # Mend at every failure: gain q p / (1 + q); never: d. Equal at p = d (1 + q) / q.
    assert path.index_range(1) == (d * (1 + q) / q,) * 2
    assert path.index_range(0) == (0, 0)


def test_closed_classes_are_found():
    rows = [[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]]
    assert closed_classes_of(rows) == [{1}]
    rows[1][3] = rows[0][2] = 1
    assert closed_classes_of(rows) == [{0, 1, 2, 3}]
    assert len(closed_classes_of(np.eye(3))) == 3


def test_the_published_arm_is_not_indexable_and_changes_where_it_is_said_to():
    path = published().exact()
    assert path.verdict == "not indexable"
    assert [path.turns_back(i) for i in range(4)] == [False, False, True, False]
    for low, high, before, after in SIDES:
        assert path.at(F(low)).policies == [tuple(map(bool, before))]
        assert path.at(F(high)).policies == [tuple(map(bool, after))]


@pytest.mark.parametrize("seed", TURNING)
def test_some_arms_turn_back(seed):
    path = make_arm("peaked", seed, 3).exact()
    assert path.verdict == "not indexable"
    assert not path.is_degenerate


def test_a_state_in_which_nothing_differs_is_degenerate():
    rows = [[F(1, 2), F(1, 2)], [F(1), F(0)]]
    path = exact_path([rows, rows], [[F(0), F(0)], [F(0), F(-1)]], [[F(0), F(0)], [F(0), F(1)]])
    assert path.is_degenerate
    assert path.index_range(0) == (-math.inf, math.inf)
    assert path.index_range(1) == (1, 1)


@given(arms(largest=4))
@settings(max_examples=60, deadline=None)
def test_the_optimum_is_concave_and_continuous_in_the_price(arm):
    path = arm.exact()
    if not path.solved:
        return
    for below, above in zip(path.pieces, path.pieces[1:], strict=False):
        for left, right in zip(below.optimum, above.optimum, strict=True):
            assert left.at(below.upper) == right.at(below.upper)
            assert left.slope >= right.slope


@given(arms(largest=4))
@settings(max_examples=60, deadline=None)
def test_differences_are_continuous_in_the_price_and_pieces_cover_all_prices(arm):
    path = arm.exact()
    assert path.pieces[0].lower == -math.inf
    assert path.pieces[-1].upper == math.inf
    if not (path.solved and path.unichain):
        return
    for below, above in zip(path.pieces, path.pieces[1:], strict=False):
        for left, right in zip(below.differences, above.differences, strict=True):
            assert left.at(below.upper) == right.at(below.upper)


@given(
    arms(["dense", "peaked", "laborious", "ladder", "restful"], largest=5),
    st.floats(-3.0, 3.0),
)
@settings(max_examples=60, deadline=None)
def test_policy_iteration_in_floats_finds_the_exact_differences(arm, price):
    piece = arm.exact().at(F(price))
    exact = [float(d.at(F(price))) for d in piece.differences]
    np.testing.assert_allclose(arm.differences()(price), exact, rtol=1e-8, atol=1e-9)


@given(arms(["dense", "laborious", "restful"], largest=5))
@settings(max_examples=40, deadline=None)
def test_bisection_finds_the_exact_index(arm):
    path = arm.exact()
    if path.verdict != "indexable" or path.is_degenerate:
        return
    exact = [float(path.index_range(i)[0]) for i in range(arm.n)]
    if not np.isfinite(exact).all():
        return
    np.testing.assert_allclose(
        bisection_index(arm.differences(), arm.n), exact, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_arms_are_the_same_in_floats_and_fractions(kind):
    for seed in range(20):
        arm = make_arm(kind, seed, 1 + seed % 5)
        wanted = 1 if arm.discrete else 0
        for matrix in arm.moves:
            assert (np.where(np.eye(arm.n) > 0, 0.0, matrix) >= 0).all()
            assert all(sum(F(float(x)) for x in row) == wanted for row in matrix)
