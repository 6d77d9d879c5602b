"""Large-scale limit of loss networks: the root on a link, cvxpy, finite networks, certificates."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.loss.erlang import limiting_blocking
from mdpcloud.limits.loss.kelly import KellyLimit, convex_dual, kelly_limit, link_root
from mdpcloud.queues import kaufman_roberts, product_form_law
from tests.models import reference

S2 = reference("allocation")["S2"]
DUAL = S2["kelly_dual"]

loads = st.lists(st.floats(0.05, 3.0), min_size=3, max_size=3)


@pytest.mark.parametrize("case", S2["kelly_fp"], ids=lambda case: f"{case['A']}-{case['rho']}")
def test_published_limits_of_links(case: dict) -> None:  # type: ignore[type-arg]
    limit = kelly_limit(case["rho"], [case["A"]], [case["c"]])
    assert link_root(case["rho"], case["A"], case["c"]) == pytest.approx(case["beta"], rel=1e-14)
    assert limit.blocking == pytest.approx(case["blocking"], abs=1e-14)
    assert limit.jobs == pytest.approx(case["x"], abs=1e-14)
    assert limit.error < 1e-14
    finite = kaufman_roberts(100_000, [1e5 * rho for rho in case["rho"]], case["A"])
    assert finite.blocking == pytest.approx(limit.blocking, abs=3e-4)


def test_the_published_limit_of_two_resources_is_rational() -> None:
    limit = kelly_limit(DUAL["rho"], DUAL["A"], DUAL["c"])
    assert limit.blocking == pytest.approx((0.3, 0.25), abs=limit.error + 1e-16)
    assert limit.jobs == pytest.approx((0.7, 0.6), abs=limit.jobs_error + 1e-16)
    assert limit.prices == pytest.approx(DUAL["y"], abs=1e-12)
    assert limit.saturated == (0, 1)
    assert limit.error < 1e-14
    assert limit.gap < 1e-14


def test_cvxpy_finds_the_prices_to_a_few_digits() -> None:
    assert convex_dual(DUAL["rho"], DUAL["A"], DUAL["c"]) == pytest.approx(DUAL["y"], abs=1e-4)
    (price,) = convex_dual([0.8, 0.4], [[1, 2]], [1.0])
    assert math.exp(-price) == pytest.approx(link_root([0.8, 0.4], [1, 2], 1.0), abs=1e-4)


@given(st.floats(0.01, 9.0), st.floats(0.01, 9.0), st.floats(0.1, 9.0))
def test_two_classes_have_a_root_in_closed_form(one: float, two: float, capacity: float) -> None:
    root = link_root([one, two], [1, 2], capacity)
    if one + 2.0 * two <= capacity:
        assert root == 1.0
    else:  # the positive root of 2 two b^2 + one b = capacity, without cancellation
        exact = 2.0 * capacity / (one + math.sqrt(one**2 + 8.0 * two * capacity))
        assert root == pytest.approx(exact, rel=1e-13)


@given(st.floats(1e-3, 1e6), st.integers(1, 5))
def test_one_class_has_erlangs_limit(load: float, size: int) -> None:
    limit = kelly_limit([load], [[size]], [float(size)])
    assert limit.blocking[0] == pytest.approx(limiting_blocking(load), abs=1e-14)


@settings(max_examples=25)
@given(
    loads,
    st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.floats(0.1, 4.0), min_size=4, max_size=4),
)
def test_the_conditions_of_optimality_hold_within_the_certified_error(
    rho: list[float], rows: list[list[int]], room: list[float]
) -> None:
    limit = kelly_limit(rho, rows, room[: len(rows)])
    jobs, prices, spare = (np.array(part) for part in (limit.jobs, limit.prices, limit.spare))
    slack = 1e-12 + 20.0 * limit.jobs_error
    assert (jobs <= np.array(rho) * (1 + 1e-15)).all()
    assert (prices >= 0.0).all()
    assert (spare >= -slack).all()
    assert np.abs(np.where(prices > 0.0, spare, 0.0)).max() <= slack
    assert -np.log(jobs / rho) == pytest.approx(prices @ np.array(rows), abs=1e-12)
    assert limit.error <= (1e-10 if np.linalg.matrix_rank(rows) == len(rows) else 1e-6)


def exact_price(rho: list[float], sizes: list[int], capacity: float) -> Decimal:
    """The price of one resource by bisection in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        weights = [(Decimal(r), a) for r, a in zip(rho, sizes, strict=True)]

        def excess(y: Decimal) -> Decimal:
            return sum((a * r * (-a * y).exp() for r, a in weights), -Decimal(capacity))

        low, high = Decimal(0), Decimal(60)
        if excess(low) <= 0:
            return low
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return low


wide = st.lists(
    st.one_of(st.just(0.0), st.floats(-15.0, 6.0).map(lambda power: 10.0**power)),
    min_size=3,
    max_size=3,
)


@settings(max_examples=60)
@given(wide, st.lists(st.integers(1, 20), min_size=3, max_size=3), st.sampled_from([1.0, 0.3, 1e3]))
@example([1.0, 20.0, 0.0], [16, 1, 1], 1.0)
@example([1.0, 3000.0, 0.0], [4, 1, 1], 1.0)
@example([1e-6, 100.0, 0.0], [4, 1, 1], 1.0)
@example([0.001, 0.0, 0.0], [4, 1, 1], 0.5)
@example([0.0, 0.0, 0.0], [4, 1, 1], 0.5)
@example([1e-15, 1.0, 0.0], [4, 1, 1], 1.0)
def test_every_link_has_a_limit_within_its_error(
    rho: list[float], sizes: list[int], capacity: float
) -> None:
    limit, price = kelly_limit(rho, [sizes], [capacity]), exact_price(rho, sizes, capacity)
    for load, a, blocking, jobs in zip(rho, sizes, limit.blocking, limit.jobs, strict=True):
        with localcontext() as context:
            context.prec = 50
            passing = (-a * price).exp()
            if load > 0.0:
                assert abs(Decimal(blocking) - (1 - passing)) <= Decimal(limit.error)
            assert abs(Decimal(jobs) - Decimal(load) * passing) <= Decimal(limit.jobs_error)
    assert limit.error <= 1e-12


@settings(max_examples=25)
@given(
    st.lists(st.floats(-9.0, 9.0).map(lambda power: 10.0**power), min_size=3, max_size=3),
    st.lists(st.lists(st.integers(0, 7), min_size=3, max_size=3), min_size=2, max_size=3),
    st.lists(st.floats(-2.0, 3.0).map(lambda power: 10.0**power), min_size=3, max_size=3),
)
@example([1.6e5, 6.9e-9, 1.0], [[7, 1, 0], [1, 2, 0]], [0.1357, 0.02376, 1.0])
def test_networks_of_loads_over_many_decades_meet_the_conditions_of_optimality(
    rho: list[float], rows: list[list[int]], room: list[float]
) -> None:
    try:
        limit = kelly_limit(rho, rows, room[: len(rows)])
    except SolveError:  # saturated rows that are dependent up to rounding
        return
    needs, prices, spare = np.array(rows), np.array(limit.prices), np.array(limit.spare)
    slack = 1e-12 * np.array(room[: len(rows)]) + needs.sum(axis=1) * limit.jobs_error
    assert (spare >= -slack).all()
    assert (np.where(prices > 0.0, spare, 0.0) <= slack).all()
    assert -np.log(np.array(limit.jobs) / rho) == pytest.approx(prices @ needs, rel=1e-12, abs=1e-9)


@given(st.floats(-17.0, -3.0), st.sampled_from([1.0, 1.5, 1.9]))
def test_a_class_of_hardly_any_jobs_leaves_the_others_their_limit(
    power: float, room: float
) -> None:
    alone = kelly_limit([2.0, 0.0], [[1, 1], [1, 0]], [1.0, room])
    assert alone.blocking[0] == pytest.approx(0.5, abs=alone.error)
    limit = kelly_limit([2.0, 10.0**power], [[1, 1], [1, 0]], [1.0, room])
    passing = 1.0 / (2.0 + 10.0**power)  # only the first resource is saturated
    assert limit.blocking == pytest.approx((1 - passing, 1 - passing), abs=limit.error + 1e-16)
    assert limit.error < 1e-13


@settings(max_examples=30)
@given(st.floats(-12.0, -1.0), st.floats(1.0, 4.0))
def test_a_resource_with_hardly_any_room_to_spare_has_no_price(power: float, load: float) -> None:
    rows, room = [[1, 0], [0, 1], [1, 1]], [1.0, 0.5, 1.5 + 10.0**power]
    limit = kelly_limit([load, 1.0], rows, room)
    assert limit.blocking == pytest.approx((1 - 1 / load, 0.5), abs=limit.error + 1e-16)


@settings(max_examples=25)
@given(loads, st.floats(0.1, 100.0))
def test_loads_and_capacities_are_in_any_unit(rho: list[float], unit: float) -> None:
    rows, room = [[1, 2, 0], [0, 1, 3]], [1.0, 1.5]
    one = kelly_limit(rho, rows, room)
    other = kelly_limit([unit * a for a in rho], rows, [unit * c for c in room])
    assert other.blocking == pytest.approx(one.blocking, abs=1e-11)


@settings(max_examples=25)
@given(loads, st.floats(1.0, 2.0))
def test_more_load_of_all_classes_saturates_no_less(rho: list[float], factor: float) -> None:
    rows, room = [[1, 2, 5]], [2.0]
    one, more = kelly_limit(rho, rows, room), kelly_limit([factor * a for a in rho], rows, room)
    assert all(b <= c + 1e-13 for b, c in zip(one.blocking, more.blocking, strict=True))


def test_resources_named_twice_and_empty_ones_have_no_price() -> None:
    plain = kelly_limit([1.0, 0.8], [[2, 1], [1, 3]], [2.0, 2.5])
    more = kelly_limit(
        [1.0, 0.8], [[4, 2], [0, 0], [2, 1], [1, 3], [2, 1]], [4.0, 1.0, 2.1, 2.5, 2.0]
    )
    assert more.blocking == pytest.approx(plain.blocking, abs=1e-13)
    assert more.saturated == (0, 3)
    assert more.error < 1e-13


def test_dependent_saturated_resources_leave_the_error_of_the_gap() -> None:
    limit = kelly_limit([1.0, 1.0], [[1, 0], [0, 1], [1, 1]], [0.5, 0.5, 1.0])
    assert limit.blocking == pytest.approx((0.5, 0.5), abs=limit.error)
    assert 1e-12 < limit.error < 1e-6


def test_on_the_boundary_of_saturation_nothing_is_lost() -> None:
    limit = kelly_limit([0.5, 0.25], [[1, 2]], [1.0])
    assert limit.blocking == (0.0, 0.0)
    assert limit.saturated == ()
    assert limit.error < 1e-14
    near = kelly_limit([0.5, 0.25], [[1, 2]], [1.0 - 1e-9])
    assert near.blocking[1] == pytest.approx(2.0 * 1e-9 / 1.5, rel=1e-5)


def test_classes_without_load_are_lost_by_the_prices_of_the_others() -> None:
    limit = kelly_limit([2.0, 0.0], [[1, 3]], [1.0])
    assert limit.blocking == pytest.approx((0.5, 1.0 - 0.125), abs=1e-14)
    assert limit.jobs[1] == 0.0


def test_finite_networks_approach_the_limit() -> None:
    limit: KellyLimit = kelly_limit(DUAL["rho"], DUAL["A"], DUAL["c"])
    errors = []
    for n in (20, 60, 200):
        law = product_form_law([2 * n, 5 * n // 2], [n * a for a in DUAL["rho"]], DUAL["A"])
        errors.append(max(abs(np.array(law.blocking) - limit.blocking)))
    assert errors[0] > 1.5 * errors[1] > 3.0 * errors[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "one load per class"),
        (([1.0], [[1], [1]], [1.0]), "there are 1 loads, 2 rows"),
        (([1.0], [[1, 1]], [1.0]), r"requirements\[0\] has 2 numbers for 1 classes"),
        (([1.0], [[-1]], [1.0]), r"requirements\[0\]\[0\] must be"),
        (([1.0], [[1]], [0.0]), r"capacities\[0\] must be"),
        (([math.inf], [[1]], [1.0]), r"loads\[0\] must be"),
    ],
)
def test_bad_input_is_refused(arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=message):
        kelly_limit(*arguments)
