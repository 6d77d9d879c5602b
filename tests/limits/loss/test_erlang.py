"""Erlang's loss formula for many servers, beside its exact value."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.limits.loss.erlang import corrected_blocking, limiting_blocking
from mdpcloud.queues import erlang_b
from tests.models import reference

GRID = reference("allocation")["S1"]["erlang_B"]


@pytest.mark.parametrize("case", GRID, ids=lambda case: f"{case['C']}-{case['rho']:g}")
def test_published_limits_and_their_corrections(case: dict[str, float]) -> None:
    servers, load = int(case["C"]), case["rho"] / case["C"]
    found = corrected_blocking(servers, load)
    assert limiting_blocking(load) == pytest.approx(case["limit"], abs=1e-15)
    assert found.lower * (1 - 1e-13) <= case["B"] <= found.upper * (1 + 1e-13)


@settings(max_examples=300)
@given(st.integers(1, 3000), st.floats(0.01, 20.0))
def test_the_bounds_enclose_the_exact_probability(servers: int, load: float) -> None:
    found = corrected_blocking(servers, load)
    exact = erlang_b(servers, servers * load)
    slack = 1e-12 + 1e-15 * servers  # of the exact value itself, whose load is rounded
    assert found.lower * (1 - slack) <= exact <= found.upper * (1 + slack) + 1e-300
    assert abs(found.value - exact) <= found.error + slack * exact


@settings(max_examples=100)
@given(st.integers(1, 40), st.floats(-17.0, 17.0).map(lambda power: 10.0**power))
@example(20, 1e-12)
@example(7, 9.4253e-9)
@example(3, 1e-17)
def test_the_bounds_hold_for_loads_of_any_size(servers: int, load: float) -> None:
    found = corrected_blocking(servers, load)
    offered = servers * Fraction(load)
    weights = [offered**n / math.factorial(n) for n in range(servers + 1)]
    exact = weights[-1] / sum(weights)
    assert found.lower <= exact <= found.upper
    assert abs(Fraction(found.value) - exact) <= Fraction(found.error) * (1 + Fraction(1, 10**14))


@given(st.integers(1, 100_000))
def test_the_critical_case_is_enclosed_up_to_a_few_percent_of_the_next_term(servers: int) -> None:
    found = corrected_blocking(servers, 1.0)
    exact = erlang_b(servers, float(servers))
    assert found.lower * (1 - 1e-13) <= exact <= found.upper * (1 + 1e-13)
    assert found.upper - found.lower <= 0.02 * exact / servers
    assert 1.0 / exact - math.sqrt(math.pi * servers / 2) == pytest.approx(
        2 / 3 + math.sqrt(math.pi / (2 * servers)) / 12, abs=0.05 / servers
    )


@pytest.mark.parametrize(
    ("servers", "excess"), [(100, 0.67682), (10_000, 0.66771), (10**6, 0.66677)]
)
def test_the_published_excess_over_the_square_root(servers: int, excess: float) -> None:
    exact = erlang_b(servers, float(servers))
    assert 1.0 / exact - math.sqrt(math.pi * servers / 2) == pytest.approx(excess, abs=5e-6)


@pytest.mark.parametrize("load", [1.1, 1.4, 3.0])
def test_the_error_of_the_correction_in_overload_falls_with_the_square(load: float) -> None:
    errors = [
        abs(corrected_blocking(n, load).value - erlang_b(n, n * load)) for n in (4000, 8000, 16000)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.1)
    assert corrected_blocking(16000, load).error < 3.0 * errors[2]


def test_the_limit_is_one_for_boundless_load_and_zero_up_to_one() -> None:
    assert limiting_blocking(1e300) == 1.0
    assert limiting_blocking(1.0) == limiting_blocking(0.0) == 0.0
    assert corrected_blocking(5, 1e300).value == 1.0
    tiny = corrected_blocking(100_000, 1e-3)
    assert (tiny.value, tiny.lower) == (0.0, 0.0)
    assert tiny.upper == 1e-300


@pytest.mark.parametrize(("servers", "load"), [(0, 1.0), (3, 0.0), (3, math.inf), (2.5, 1.0)])
def test_bad_input_is_refused(servers: int, load: float) -> None:
    with pytest.raises(InputError, match="must be"):
        corrected_blocking(servers, load)
