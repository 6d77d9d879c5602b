import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mdpcloud.errors import InputError
from mdpcloud.model.tabular import tabular

CASES = {
    case["id"]: case["input"]
    for line in (Path(__file__).parents[1] / "reference/cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))
}
P = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]])
COSTS = np.array([[5.0, 10.0], [-1.0, 2.0]])


def same(left, right):
    assert (left.n_states, left.n_actions, left.sense) == (
        right.n_states,
        right.n_actions,
        right.sense,
    )
    assert (left.state == right.state).all()
    assert (left.action == right.action).all()
    np.testing.assert_allclose(left.cost, right.cost, rtol=1e-15)
    assert (left.transitions.toarray() == right.transitions.toarray()).all()


def pairs_of(matrices):
    """Rows of all pairs, in an order that is not sorted."""
    state, action = np.array([(s, a) for a in (1, 0) for s in (1, 0)]).T
    return np.array([matrices[a][s] for s, a in zip(state, action, strict=True)]), state, action


@pytest.mark.parametrize(
    "form",
    [list, lambda p: [sparse.csr_matrix(m) for m in p], lambda p: tuple(map(sparse.coo_array, p))],
)
def test_dense_and_sparse_matrices_give_the_same_model(form):
    same(tabular(form(P), costs=COSTS), tabular(P, costs=COSTS))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_rows_in_any_order_give_the_same_model_as_matrices(form):
    rows, state, action = pairs_of(P)
    model = tabular(form(rows), costs=COSTS[state, action], s_indices=state, a_indices=action)
    same(model, tabular(P, costs=COSTS))


def test_costs_per_transition_are_averaged_over_the_next_state():
    cost = np.arange(8.0).reshape(2, 2, 2)
    mean = (P * cost).sum(axis=2).T
    same(tabular(P, costs=cost), tabular(P, costs=mean))
    same(tabular(P, costs=[sparse.csr_array(c) for c in cost]), tabular(P, costs=mean))


def test_costs_per_state_count_for_every_action():
    same(tabular(P, costs=[1.0, 2.0]), tabular(P, costs=[[1, 1], [2, 2]]))


def test_no_costs_count_as_zero():
    assert (tabular(P).cost == 0).all()


def test_rewards_are_negative_costs_and_leave_a_mark():
    model = tabular(P, rewards=COSTS)
    assert model.sense == -1
    assert (model.cost == -COSTS.ravel()).all()


@pytest.mark.parametrize(("name", "infinity"), [("costs", np.inf), ("rewards", -np.inf)])
def test_a_pair_of_infinite_cost_is_not_allowed_and_its_row_is_not_checked(name, infinity):
    matrices, table = P.copy(), COSTS.copy()
    matrices[1, 0], table[0, 1] = 0.0, infinity
    model = tabular(matrices, **{name: table})
    assert list(zip(model.state, model.action, strict=True)) == [(0, 0), (1, 0), (1, 1)]


def test_an_infinite_cost_of_an_impossible_transition_is_void():
    cost = np.zeros((2, 2, 2))
    cost[1, 0, 0] = np.inf
    assert tabular(P, costs=cost).state.size == 4


def test_a_duplicate_pair_is_refused_by_name():
    case = CASES["ddp-dup"]
    rows = np.full((4, 2), 0.5)
    with pytest.raises(InputError, match=re.escape("pair (1, 0) is given twice")):
        tabular(rows, rewards=case["R"], s_indices=case["s"], a_indices=case["a"])


def test_rounded_probabilities_are_refused_with_row_and_sum_unless_normalised():
    rounded = np.array(CASES["stat-rounded"]["P"])
    with pytest.raises(InputError, match=re.escape("row 0 of P[0] sums to 0.9999")):
        tabular([rounded])
    model = tabular([rounded], normalise=True)
    np.testing.assert_allclose(model.transitions.sum(axis=1), 1, rtol=1e-15)


def test_the_matrix_of_a_wrong_row_is_named():
    case = CASES["wi-invalid"]
    with pytest.raises(InputError, match=re.escape("row 0 of P[0] sums to 0.9")):
        tabular([case["P0"], case["P1"]])


def test_probabilities_that_sum_to_two_are_refused():
    with pytest.raises(InputError, match=re.escape("pair (0, 0) sums to 2")):
        tabular([[0.3, 0.7, 1.0]] * 3, s_indices=[0, 1, 2], a_indices=[0, 0, 0])


@pytest.mark.parametrize("off", [1e-12, -1e-12, 2e-16])
def test_sums_within_rounding_of_one_are_accepted(off):
    tabular([[[1 / 3, 1 / 3, 1 / 3 + off], [0.1, 0.2, 0.7], [0, 0, 1]]])


@pytest.mark.parametrize(("entry", "said"), [(-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")])
def test_negative_and_infinite_probabilities_are_refused_by_place(entry, said):
    matrices = P.copy()
    matrices[1, 0, 1] = entry
    with pytest.raises(InputError, match=re.escape(f"{said} of going to state 1 in row 0 of P[1]")):
        tabular(matrices)


@pytest.mark.parametrize(
    ("entry", "name"), [(np.nan, "costs"), (-np.inf, "costs"), (np.inf, "rewards")]
)
def test_costs_that_are_not_finite_are_refused_by_place(entry, name):
    table = COSTS.copy()
    table[1, 0] = entry
    with pytest.raises(InputError, match=f"{name} of state 1 and action 0 are {entry:g}"):
        tabular(P, **{name: table})


def test_a_state_without_an_action_is_refused_by_number():
    with pytest.raises(InputError, match="state 1 has no allowed action"):
        tabular(np.eye(2)[:1], s_indices=[0], a_indices=[0])
    with pytest.raises(InputError, match="state 0 has no allowed action"):
        tabular(P, costs=[[np.inf, np.inf], [0, 0]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"P": np.eye(2)}, "one per action"),
        ({"P": []}, "one per action"),
        ({"P": [np.eye(2), np.eye(3)]}, "P[1] has shape (3, 3)"),
        ({"P": [[["x"]]]}, "not an array of numbers"),
        ({"P": P, "costs": COSTS, "rewards": COSTS}, "both given"),
        ({"P": P, "s_indices": [0]}, "belong together"),
        ({"P": P, "costs": np.zeros(3)}, "costs has shape (3,)"),
        ({"P": P, "costs": np.zeros((1, 2, 2))}, "2 matrices of shape (2, 2)"),
        ({"P": np.eye(2), "s_indices": [0, 2], "a_indices": [0, 0]}, "s_indices[1] is 2"),
        ({"P": np.eye(2), "s_indices": [0, -1], "a_indices": [0, 0]}, "s_indices[1] is -1"),
        ({"P": np.eye(2), "s_indices": [0.0, 1.0], "a_indices": [0, 0]}, "2 integers"),
        ({"P": np.eye(2), "s_indices": [0], "a_indices": [0]}, "2 integers"),
        (
            {"P": np.zeros((0, 2)), "s_indices": np.zeros(0, int), "a_indices": np.zeros(0, int)},
            "no rows",
        ),
        (
            {"P": np.eye(2), "s_indices": [0, 1], "a_indices": [0, 0], "costs": [1.0]},
            "costs has shape (1,)",
        ),
        ({"P": np.zeros((1, 2, 2)), "normalise": True}, "row 0 of P[0] sums to 0"),
        ({"P": P[0], "s_indices": [0], "a_indices": [0]}, "2 integers"),
        ({"P": P, "s_indices": [0], "a_indices": [0]}, "3 dimension(s)"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(arguments, said):
    with pytest.raises(InputError, match=re.escape(said)):
        tabular(**arguments)


@pytest.mark.slow
def test_a_hundred_thousand_sparse_states_stay_far_below_a_gigabyte():
    n, actions, entries = 100_000, 2, 5
    rng = np.random.default_rng(1)
    matrices = []
    for _ in range(actions):
        columns = rng.integers(n, size=(n, entries)).ravel()
        data = np.full(n * entries, 1 / entries)
        matrices.append(
            sparse.csr_array((data, columns, np.arange(0, n * entries + 1, entries)), (n, n))
        )
    tracemalloc.start()
    model = tabular(matrices, rewards=np.zeros((n, actions)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.state.size == actions * n
    assert peak < 2e8


@pytest.mark.parametrize("shape", [(0, 2, 2), (1, 0, 0)])
def test_a_model_without_actions_or_states_is_refused(shape):
    with pytest.raises(InputError, match="at least one action and one state"):
        tabular(np.zeros(shape))
