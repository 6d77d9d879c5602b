"""Loss networks: sums over occupancies, over jobs, and over the states in exact arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.queues import erlang_b, kaufman_roberts, product_form_law
from mdpcloud.queues.occupancy import LossLaw, occupancy_law
from mdpcloud.queues.product_form import points, sum_over_jobs
from tests.models import reference

S2 = reference("allocation")["S2"]
Network = tuple[list[int], list[float], list[list[int]]]


def exact_law(network: Network) -> tuple[list[Fraction], list[Fraction]]:
    """Blocking probabilities and mean jobs by the sum over all states, in exact arithmetic."""
    capacities, loads, rows = network

    def fits(jobs: tuple[int, ...]) -> bool:
        return all(
            sum(a * n for a, n in zip(row, jobs, strict=True)) <= c
            for row, c in zip(rows, capacities, strict=True)
        )

    box = [range(max(capacities) + 1)] * len(loads)
    weights = {
        jobs: math.prod(
            (Fraction(a) ** n / math.factorial(n) for a, n in zip(loads, jobs, strict=True)),
            start=Fraction(1),
        )
        for jobs in itertools.product(*box)
        if fits(jobs)
    }
    whole = sum(weights.values())
    blocking, means = [], []
    for j in range(len(loads)):
        lost = (
            w for jobs, w in weights.items() if not fits((*jobs[:j], jobs[j] + 1, *jobs[j + 1 :]))
        )
        blocking.append(sum(lost, Fraction()) / whole)
        means.append(sum((w * jobs[j] for jobs, w in weights.items()), Fraction()) / whole)
    return blocking, means


@st.composite
def networks(draw: st.DrawFn, most: int = 5) -> Network:
    classes, resources = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    units = st.integers(0, 3)
    rows = [[draw(units) for _ in range(classes)] for _ in range(resources)]
    for j in range(classes):
        if not any(row[j] for row in rows):
            rows[0][j] = 1
    loads = [draw(st.integers(0, 40)) / 8.0 for _ in range(classes)]
    return [draw(st.integers(0, most)) for _ in range(resources)], loads, rows


def both(network: Network) -> tuple[LossLaw, LossLaw]:
    """The law by the sum over occupancies and by that over jobs."""
    capacities, loads, rows = (np.array(part) for part in network)
    return occupancy_law(capacities, loads, rows), sum_over_jobs(capacities, loads, rows)


@settings(max_examples=40)
@given(networks())
def test_both_sums_are_exact_within_the_stated_error(network: Network) -> None:
    blocking, means = exact_law(network)
    for law in both(network):
        for found, exact in zip((*law.blocking, *law.mean_jobs), (*blocking, *means), strict=True):
            assert abs(Fraction(found) - exact) <= Fraction(law.error) * exact


@settings(max_examples=40)
@given(networks(most=30))
def test_both_sums_agree_on_larger_networks(network: Network) -> None:
    one, other = both(network)
    assert one.blocking == pytest.approx(other.blocking, rel=one.error + other.error)
    assert one.mean_jobs == pytest.approx(other.mean_jobs, rel=one.error + other.error)


@given(networks(most=20))
def test_the_order_of_resources_and_a_resource_named_twice_do_not_matter(network: Network) -> None:
    capacities, loads, rows = network
    law = product_form_law(*network)
    turned = product_form_law(capacities[::-1], loads, rows[::-1])
    assert turned.blocking == pytest.approx(law.blocking, rel=1e-12)
    twice = product_form_law([*capacities, capacities[0] + 1], loads, [*rows, rows[0]])
    assert twice.blocking == pytest.approx(law.blocking, rel=1e-12)


@given(st.integers(0, 30), st.lists(st.floats(0.0, 20.0), min_size=2, max_size=2))
def test_one_resource_is_the_recursion_of_kaufman_and_roberts(c: int, loads: list[float]) -> None:
    law = product_form_law([c], loads, [[1, 3]])
    assert law.blocking == kaufman_roberts(c, loads, [1, 3]).blocking


def test_separate_resources_are_separate_links() -> None:
    law = product_form_law([4, 9], [3.0, 5.0], [[1, 0], [0, 2]])
    assert law.blocking == pytest.approx((erlang_b(4, 3.0), erlang_b(4, 5.0)), rel=1e-14)


def test_published_numbers() -> None:
    for name in ("two_resource", "triangle"):
        case = S2[name]
        law = product_form_law(case["C"], case["rho"], case["A"])
        assert law.blocking == pytest.approx(case["blocking"], rel=1e-14)
    series = S2["series2"]
    law = product_form_law(series["C"], [series["rho"]], [[1], [1]])
    assert law.blocking == pytest.approx((series["exact"],), rel=1e-14)


def test_published_numbers_at_scales_of_the_limit() -> None:
    dual = S2["kelly_dual"]
    for scale, blocking in dual["finiteN"].items():
        n = int(scale)
        law = product_form_law(
            [round(n * c) for c in dual["c"]], [n * rho for rho in dual["rho"]], dual["A"]
        )
        assert law.blocking == pytest.approx(blocking, rel=1e-12)


def test_many_classes_need_no_more_than_the_occupancies() -> None:
    needs = [[1 + j % 2 for j in range(30)], [j % 3 for j in range(30)]]
    assert points(np.array([20, 20]), np.array(needs))[1] > 10**20
    law = product_form_law([20, 20], [0.3] * 30, needs)
    assert law.blocking[0] < law.blocking[1] < law.blocking[5]


def test_many_resources_need_no_more_than_the_jobs() -> None:
    chain = [[1, 0], [0, 1]] + [[1, 1]] * 10
    assert points(np.array([5] * 12), np.array(chain))[0] > 10**9
    law = product_form_law([5] * 12, [2.0, 1.0], chain)
    assert law.blocking == pytest.approx(kaufman_roberts(5, [2.0, 1.0], [1, 1]).blocking, rel=1e-12)


def test_probabilities_below_the_range_of_floats_have_logarithms() -> None:
    one, other = both(([400, 900], [0.01, 0.001], [[1, 0], [2, 2]]))
    assert one.blocking == (0.0, 0.0)
    assert one.log_blocking == pytest.approx(other.log_blocking, rel=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 3], [1.0], [[1]]), "requirements has 1 rows for 2 capacities"),
        (([3], [1.0, 2.0], [[1, 0]]), "class 1 needs nothing"),
        (([3], [1.0], [[1, 1]]), r"requirements\[0\] has 2 numbers for 1 classes"),
        (([-3], [1.0], [[1]]), r"capacities\[0\] must be"),
        (([10**6] * 3, [1.0] * 3, [[1] * 3] * 3), "summed over at most 2e"),
        (([], [1.0], []), "class 0 needs nothing"),
    ],
)
def test_bad_input_is_refused(arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=message):
        product_form_law(*arguments)
