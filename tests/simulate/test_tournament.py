from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.simulate.tournament_kernels import change_price, tournament, winner

PRICE = st.one_of(st.sampled_from([0.0, 0.5, 1.0, np.inf]), st.floats(0.0, 2.0))
MARGIN = st.sampled_from([0.0, 1e-13, 0.3])


def first_near_least(prices: np.ndarray, margin: float) -> int:
    near = np.flatnonzero(prices <= prices.min() + margin)
    return -1 if np.isinf(prices.min()) else int(near[0])


@given(st.lists(PRICE, min_size=1, max_size=20), MARGIN)
def test_the_winner_is_the_first_within_the_margin_of_the_least(
    prices: list[float], margin: float
) -> None:
    field = np.array(prices)
    assert winner(tournament(field), margin) == first_near_least(field, margin)


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), PRICE), max_size=30), MARGIN)
def test_changes_of_single_prices_keep_the_tree(
    n: int, changes: list[tuple[int, float]], margin: float
) -> None:
    prices = np.ones(n)
    tree = tournament(prices)
    for leaf, price in changes:
        prices[leaf % n] = price
        change_price(tree, leaf % n, price)
        assert winner(tree, margin) == first_near_least(prices, margin)
    assert (tree[1:] == tournament(prices)[1:]).all()


def test_the_tree_of_many_leaves_holds_the_least_at_its_root() -> None:
    prices = np.random.default_rng(1).random(1000)
    tree = tournament(prices)
    assert tree.size == 2048
    assert tree[1] == prices.min()
