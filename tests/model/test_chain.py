import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mdpcloud.errors import InputError
from mdpcloud.model.chain import markov_chain

CASES = {
    case["id"]: case["input"]
    for line in (Path(__file__).parents[1] / "reference/cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))
}


def test_triplets_add_up_and_moves_to_the_own_state_do_nothing():
    chain = markov_chain(rates=([0, 0, 0, 2], [1, 1, 0, 0], [1.0, 2.0, 7.0, 5.0]))
    assert chain.n == 3
    assert not chain.discrete
    assert chain.rates.toarray().tolist() == [[0, 3, 0], [0, 0, 0], [5, 0, 0]]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_generators_and_transition_matrices_keep_their_rates_off_the_diagonal(form):
    chain = markov_chain(generator=form([[-2.0, 2.0], [3.0, -3.0]]))
    assert chain.rates.toarray().tolist() == [[0, 2], [3, 0]]
    chain = markov_chain(transition_matrix=form([[0.25, 0.75], [1.0, 0.0]]))
    assert chain.discrete
    assert chain.rates.toarray().tolist() == [[0, 0.75], [1, 0]]
    assert chain.stay.tolist() == [True, False]


def test_a_rate_far_below_the_rounding_of_the_diagonal_survives():
    matrix = np.array([[1.0, 1e-30], [1e-17, 1.0]])
    assert markov_chain(transition_matrix=matrix).rates.toarray().tolist() == [
        [0, 1e-30],
        [1e-17, 0],
    ]


def test_a_generator_row_that_does_not_sum_to_zero_is_refused():
    with pytest.raises(InputError, match="row 0 of generator sums to 1"):
        markov_chain(generator=CASES["q-rows"]["Q"])
    chain = markov_chain(generator=CASES["q-rows"]["Q"], normalise=True)
    assert chain.rates.toarray().tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize("scale", CASES["stat-scale"]["c"])
def test_row_sums_of_generators_are_checked_relative_to_their_rates(scale):
    markov_chain(generator=scale * np.array([[-0.3, 0.1, 0.2], [0.1, -0.1, 0], [0, 0.7, -0.7]]))
    with pytest.raises(InputError, match="row 1"):
        markov_chain(generator=scale * np.array([[-1, 1], [1, -1.0001]]))


def test_rounded_probabilities_are_refused_with_row_and_sum_unless_normalised():
    rounded = CASES["stat-rounded"]["P"]
    with pytest.raises(InputError, match=r"row 0 of transition_matrix sums to 0\.9999"):
        markov_chain(transition_matrix=rounded)
    chain = markov_chain(transition_matrix=rounded, normalise=True)
    np.testing.assert_allclose(chain.rates.toarray()[0], [0, 1 / 3, 1 / 3], rtol=1e-15)


@pytest.mark.parametrize("row", [[1 / 3] * 3 + [0.0] * 7, [0.1] * 10, [1 - 1e-12] + [0.0] * 9])
def test_sums_within_rounding_of_one_are_accepted(row):
    markov_chain(transition_matrix=np.tile(row, (10, 1)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "exactly one"),
        ({"generator": [[0.0]], "transition_matrix": [[1.0]]}, "exactly one"),
        ({"generator": [[-1.0, 1.0]]}, "shape (1, 2)"),
        ({"generator": np.zeros((0, 0))}, "shape (0, 0)"),
        ({"generator": [0.0]}, "1 dimension(s)"),
        ({"generator": [["a"]]}, "not an array of numbers"),
        ({"generator": [[1.0, -1.0], [0, 0]]}, "entry -1 from state 0 to state 1"),
        ({"generator": [[-np.inf, np.inf], [0, 0]]}, "entry -inf from state 0 to state 0"),
        ({"transition_matrix": [[np.nan, 1.0], [0, 1]]}, "entry nan from state 0 to state 0"),
        ({"transition_matrix": [[-0.5, 1.5], [0, 1]]}, "entry -0.5 from state 0 to state 0"),
        ({"transition_matrix": [[0.0]], "normalise": True}, "row 0 of transition_matrix sums to 0"),
        ({"transition_matrix": [[1.0, 0.0], [0.3, 1.7]]}, "row 1 of transition_matrix sums to 2"),
        ({"rates": ([0], [1, 2], [1.0])}, "equal length"),
        ({"rates": ([], [], [])}, "at least 1"),
        ({"rates": ([0.0], [1], [1.0])}, "origins in rates must be integers"),
        ({"rates": ([0], [-1], [1.0])}, "destinations in rates must be integers"),
        ({"rates": ([0], [1], [-1.0])}, "entry -1 from state 0 to state 1"),
    ],
)
def test_wrong_arguments_are_refused_with_what_is_allowed(arguments, said):
    with pytest.raises(InputError, match=re.escape(said)):
        markov_chain(**arguments)
