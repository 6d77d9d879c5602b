"""What becomes a number, and what is refused under its name."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mdpcloud.errors import InputError
from mdpcloud.model.matrices import as_floats, as_matrix


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1.0 + 2.0j]), "complex"),
        ([1.0, 1j], "complex"),
        (["1", "2"], "text, such as 1"),
        ("abc", "text, such as abc"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "masked"),
        ([10**400], "not an array of numbers"),
        ([[1.0], [1.0, 2.0]], "not an array of numbers"),
        (object(), "not an array of numbers"),
    ],
)
def test_what_is_no_number_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^prices .*{message}"):
        as_floats(value, "prices")


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        np.array([1, 2], np.float32),
        np.array([1, 2], np.int8),
        np.array([1, 2], np.longdouble),
        np.array([1, 2], object),
        np.ma.array([1.0, 2.0]),
    ],
)
def test_numbers_of_any_type_become_float64(value: Any) -> None:
    found = as_floats(value, "prices")
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]


def test_float64_arrays_are_shared() -> None:
    given = np.ones(3)
    assert as_floats(given, "prices") is given


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
def test_complex_sparse_matrices_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match="P is not an array of numbers: it holds complex"):
        as_matrix(sparse.eye_array(2, dtype=np.complex128).asformat(kind), "P")
