from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.policies.index_rule import IndexRule, tie_order
from mdpcloud.simulate.separable import SeparableRule

Array = NDArray[np.float64]
PRICES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4, np.inf]), min_size=3, max_size=3)


def rule_of(columns: list[list[float]], order: list[int], margin: float = 0.0) -> IndexRule:
    tables = tuple(lambda last, c=c: np.array(c)[: last + 1] for c in columns)
    return IndexRule(tables, order, margin)


def chosen(columns: list[list[float]], states: list[int], order: list[int], margin: float) -> int:
    prices = [column[state] for column, state in zip(columns, states, strict=True)]
    if np.isinf(min(prices)):
        return 0
    return 1 + next(k for k in order if prices[k] <= min(prices) + margin)


@given(
    st.lists(PRICES, min_size=1, max_size=4).flatmap(
        lambda columns: st.tuples(st.just(columns), st.permutations(range(len(columns))))
    ),
    st.sampled_from([0.0, 0.15]),
)
def test_the_job_goes_to_the_first_node_near_the_least_price(
    case: tuple[list[list[float]], list[int]], margin: float
) -> None:
    columns, order = case
    box = np.indices((3,) * len(columns))
    actions = rule_of(columns, order, margin)(SimpleNamespace(node=tuple(box)))
    for states in np.ndindex(*(3,) * len(columns)):
        assert actions[states] == chosen(columns, list(states), order, margin)


def test_a_chain_of_near_ties_is_broken_by_the_least_price_alone() -> None:
    rule = rule_of([[0.0], [0.08], [0.16]], [2, 1, 0], 0.1)
    assert rule(SimpleNamespace(node=(0, 0, 0))) == 2


def test_an_open_mesh_is_taken_as_its_box() -> None:
    rule = rule_of([[0.0, 0.2, 0.4], [0.1, 0.3, np.inf]], [0, 1])
    full = rule(SimpleNamespace(node=tuple(np.indices((3, 3)))))
    assert (rule(SimpleNamespace(node=tuple(np.ogrid[:3, :3]))) == full).all()


def test_an_index_rule_is_separable() -> None:
    rule = rule_of([[0.0, 1.0]], [0])
    assert isinstance(rule, SeparableRule)
    assert rule.prices(0, 1).tolist() == [0.0, 1.0]


def test_prices_are_asked_for_once_and_again_only_where_more_are_needed() -> None:
    asked: list[int] = []

    def prices(last: int) -> Array:
        asked.append(last)
        return np.arange(last + 1.0)

    rule = IndexRule((prices,), [0])
    for last in (2, 1, 3):
        assert rule.prices(0, last).tolist() == list(range(last + 1))
    assert asked == [2, 3]


@pytest.mark.parametrize(
    ("ties", "order"),
    [("first", [0, 1, 2]), ("last", [2, 1, 0]), ("fastest", [1, 2, 0]), ("slowest", [0, 1, 2])],
)
def test_ties_are_won_in_a_stated_order(ties: str, order: list[int]) -> None:
    assert tie_order(ties, [1.0, 3.0, 3.0]).tolist() == order


def test_an_unknown_order_of_ties_is_refused() -> None:
    with pytest.raises(InputError, match="ties is 'fast'; it must be one of first, last, fastest"):
        tie_order("fast", [1.0])
