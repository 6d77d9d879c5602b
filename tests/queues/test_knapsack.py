"""Links shared by jobs of several sizes: the recursion of Kaufman and Roberts."""

import math
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.queues import erlang_b, kaufman_roberts, log_erlang_b
from tests.models import reference

S2 = reference("allocation")["S2"]


def exact_blocking(
    capacity: int, loads: list[Fraction], requirements: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """Blocking and acceptance by convolution of the classes' own weights, in exact arithmetic."""
    weights = [Fraction(1)] + [Fraction(0)] * capacity
    for load, need in zip(loads, requirements, strict=True):
        own = [load**n / math.factorial(n) for n in range(capacity // need + 1)]
        weights = [
            sum((w * weights[m - n * need] for n, w in enumerate(own) if n * need <= m), Fraction())
            for m in range(capacity + 1)
        ]
    blocked = [sum(weights[max(capacity - a + 1, 0) :]) / sum(weights) for a in requirements]
    return blocked, [1 - b for b in blocked]


links = st.integers(1, 4).flatmap(
    lambda classes: st.tuples(
        st.integers(0, 16),
        st.lists(
            st.floats(0.0, 1e3) | st.sampled_from([0.0, 1e-300, 1e-90, 1e90]),
            min_size=classes,
            max_size=classes,
        ),
        st.lists(st.integers(1, 9), min_size=classes, max_size=classes),
    )
)


@settings(max_examples=20)
@given(links)
def test_probabilities_are_those_of_exact_arithmetic_within_the_stated_error(
    link: tuple[int, list[float], list[int]],
) -> None:
    capacity, loads, requirements = link
    law = kaufman_roberts(*link)
    blocked, accepted = exact_blocking(capacity, list(map(Fraction, loads)), requirements)
    for j, load in enumerate(loads):
        for found, exact in (
            (law.blocking[j], blocked[j]),
            (law.acceptance[j], accepted[j]),
            (law.mean_jobs[j], Fraction(load) * accepted[j]),
        ):
            error = abs(Fraction(found) - exact)
            assert error <= Fraction(law.error) * exact + Fraction(1, 10**307)


@given(links)
def test_the_occupancy_is_a_law_whose_mean_is_what_the_jobs_occupy(
    link: tuple[int, list[float], list[int]],
) -> None:
    law = kaufman_roberts(*link)
    assert law.occupancy is not None
    occupied = float(law.occupancy @ np.arange(link[0] + 1.0))
    jobs = sum(a * n for a, n in zip(link[2], law.mean_jobs, strict=True))
    assert law.occupancy.sum() == pytest.approx(1.0, rel=1e-13)
    assert occupied == pytest.approx(jobs, rel=1e-12, abs=1e-300)


@given(st.integers(1, 400), st.floats(1e-3, 1e4), st.integers(1, 7))
def test_one_class_has_the_loss_of_erlang(servers: int, load: float, size: int) -> None:
    law = kaufman_roberts(servers * size + size - 1, [load], [size])
    assert law.log_blocking[0] == pytest.approx(log_erlang_b(servers, load), rel=1e-12, abs=1e-12)


@given(links)
def test_a_class_may_be_split_in_two(link: tuple[int, list[float], list[int]]) -> None:
    capacity, loads, requirements = link
    halves = [loads[0] / 2.0, *loads[1:], loads[0] / 2.0]
    law = kaufman_roberts(*link)
    other = kaufman_roberts(capacity, halves, [*requirements, requirements[0]])
    assert other.blocking[:-1] == pytest.approx(law.blocking, rel=1e-12, abs=1e-307)


@given(links)
def test_wider_jobs_are_lost_more_often(link: tuple[int, list[float], list[int]]) -> None:
    law = kaufman_roberts(*link)
    pairs = sorted(zip(link[2], law.blocking, strict=True))
    assert all(b <= c * (1 + 1e-13) for (_, b), (_, c) in pairwise(pairs))


def test_published_numbers() -> None:
    small = kaufman_roberts(6, [3.0, 1.5], [1, 2])
    assert small.blocking == pytest.approx((117 / 541, 477 / 1082), rel=1e-14)
    known = S2["single_link"]
    law = kaufman_roberts(known["C"], known["rho"], known["A"])
    assert law.blocking == pytest.approx(known["blocking_enum"], rel=1e-14)
    assert law.mean_jobs == pytest.approx(known["mean_n"], rel=1e-14)


@pytest.mark.parametrize("case", S2["kelly_fp"], ids=lambda c: str(c["A"]))
def test_published_numbers_of_large_links(case: dict) -> None:  # type: ignore[type-arg]
    for scale, blocking in case["finiteN"].items():
        n = int(scale)
        law = kaufman_roberts(n, [n * rho for rho in case["rho"]], case["A"])
        assert law.blocking == pytest.approx(blocking, rel=1e-11)


@pytest.mark.slow
def test_a_million_slots_and_ten_classes_take_a_second() -> None:
    sizes = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16]
    loads = [1.05e5 / a for a in sizes]
    kaufman_roberts(10, loads, sizes)
    began = time.process_time()
    law = kaufman_roberts(1_000_000, loads, sizes)
    assert time.process_time() - began < 1.0
    assert law.error < 3e-9
    occupied = sum(a * n for a, n in zip(sizes, law.mean_jobs, strict=True))
    assert law.occupancy is not None
    assert occupied == pytest.approx(float(law.occupancy @ np.arange(1_000_001.0)), rel=1e-11)


def test_loads_beyond_the_exponential_function_do_not_overflow() -> None:
    law = kaufman_roberts(1000, [1e6, 1e5], [1, 3])
    assert law.acceptance[0] == pytest.approx(1e-3, rel=1e-2)
    assert law.acceptance[1] == pytest.approx(1e-9, rel=1e-2)
    assert kaufman_roberts(3, [1e300, 1e-300], [1, 1]).acceptance[0] == pytest.approx(3e-300)


def test_blocking_below_the_range_of_floats_has_a_logarithm() -> None:
    law = kaufman_roberts(1000, [10.0], [1])
    assert law.blocking == (0.0,)
    assert law.log_blocking[0] == pytest.approx(log_erlang_b(1000, 10.0), rel=1e-14)
    assert law.log_blocking[0] / math.log(10) == pytest.approx(-1571.9, abs=0.05)


def test_jobs_that_never_fit_are_always_lost_and_harm_nobody() -> None:
    law = kaufman_roberts(4, [2.0, 7.0], [1, 5])
    assert law.blocking == pytest.approx((erlang_b(4, 2.0), 1.0), rel=1e-15)
    assert law.acceptance[1] == law.mean_jobs[1] == 0.0


def test_without_load_nothing_is_lost_that_fits() -> None:
    law = kaufman_roberts(4, [0.0, 0.0], [4, 5])
    assert law.blocking == (0.0, 1.0)
    assert law.log_blocking == (-math.inf, 0.0)


@settings(max_examples=20)
@given(links, st.integers(2, 5))
def test_only_common_multiples_count(link: tuple[int, list[float], list[int]], part: int) -> None:
    capacity, loads, requirements = link
    wide = kaufman_roberts(part * capacity + part - 1, loads, [part * a for a in requirements])
    assert wide.blocking == kaufman_roberts(*link).blocking


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, [1.0], [1]), "capacity must be"),
        ((3, [], []), "loads is empty"),
        ((3, [-1.0], [1]), r"loads\[0\] must be"),
        ((3, [1.0, math.nan], [1, 1]), r"loads\[1\] must be"),
        ((3, [1.0], [1, 2]), "requirements has 2 numbers for 1 classes"),
        ((3, [1.0], [0]), r"requirements\[0\] is 0"),
        ((3, [1.0], [1.5]), r"requirements\[0\] must be a whole number"),
    ],
)
def test_bad_input_is_refused(arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=message):
        kaufman_roberts(*arguments)
