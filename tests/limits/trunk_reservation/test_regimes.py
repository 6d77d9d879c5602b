"""The limit of trunk reservation: references, two orientations of one walk, regimes and bounds."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.limits.offloading.boundary_value import full_centres
from mdpcloud.limits.trunk_reservation import levels as by_levels
from mdpcloud.limits.trunk_reservation.bracket import bracket
from mdpcloud.limits.trunk_reservation.levels import (
    Rates,
    WalkLaw,
    check_balance,
    walk_by_first,
    walk_by_second,
)
from mdpcloud.limits.trunk_reservation.regimes import (
    CARRIED,
    SECOND,
    SHARED,
    UNSATURATED,
    large_reserve,
    trunk_reservation_limit,
)
from tests.models import reference

RECORDS = reference("allocation")["S6"]["limit"]
ASYMPTOTICS = reference("allocation")["extra_S2mdp_S3transient_S6asym"]
PRINTED = {
    (1.5, 12.0, 1.0, 10.0): {
        0: (0.076456894214, 0.198776221557),
        1: (0.130015294803, 0.192081421483),
        2: (0.169997767580, 0.187083612386),
        5: (0.244741393457, 0.177740659151),
        10: (0.299285127280, 0.170922692423),
        20: (0.327956965601, 0.167338712633),
    },
    (2.0, 9.5, 1.0, 10.0): {
        0: (0.028081468708, 0.046719690798),
        2: (0.068093174070, 0.038296173880),
        5: (0.109383207348, 0.029603535295),
        10: (0.153607571598, 0.020293142821),
        20: (0.200029336590, 0.010520139665),
    },
    (2.0, 3.0, 1.0, 2.0): {
        0: (0.272906304179, 0.484729130547),
        1: (0.371151616906, 0.419232255396),
        2: (0.421361650989, 0.385758899341),
        5: (0.479083708478, 0.347277527682),
        10: (0.497342713108, 0.335104857928),
    },
    (2.0, 1.5, 1.0, 2.0): {
        0: (0.115234914893, 0.179686780143),
        1: (0.162672445989, 0.116436738681),
        2: (0.190087073223, 0.079883902369),
        5: (0.227854818788, 0.029526908283),
        10: (0.245078189924, 0.006562413435),
    },
    (3.0, 8.5, 1.0, 10.0): {
        0: (0.035180982166, 0.046406712177),
        2: (0.079247415222, 0.030853853451),
        5: (0.116505983857, 0.017703770403),
    },
}

few = settings(max_examples=15)
rates = st.floats(0.1, 10.0)
levels = st.integers(0, 12)


def saturated() -> st.SearchStrategy[Rates]:
    """Both centres saturated, not too near to the boundaries."""
    loads = st.floats(1.5, 8.0)
    return st.builds(
        lambda first, second, load, share: Rates(
            (first * load, second + share * first * (load - 1.0)), (first, second)
        ),
        rates,
        rates,
        loads,
        st.floats(-0.6, 1.0),
    ).filter(lambda found: found.arrivals[1] > 0.05)


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS)
def test_blocking_is_the_reference(record: Any) -> None:
    found = trunk_reservation_limit(
        (record["l1"], record["l2"]), (record["m1"], record["m2"]), record["a"]
    )
    assert found.regime == SHARED
    assert found.blocking == pytest.approx(record["qbd"], abs=1e-13)
    assert found.blocking == pytest.approx((record["B1"], record["B2"]), abs=1e-11)
    assert abs(found.conservation) <= 1e-15
    assert found.error <= 1e-10


@pytest.mark.parametrize("parameters", PRINTED)
def test_blocking_is_as_printed(parameters: tuple[float, float, float, float]) -> None:
    for reserved, known in PRINTED[parameters].items():
        found = trunk_reservation_limit(parameters[:2], parameters[2:], reserved)
        assert found.blocking == pytest.approx(known, abs=6e-13)


@pytest.mark.parametrize("name", [name for name in ASYMPTOTICS if name.startswith("S6")])
def test_blocking_for_large_thresholds_is_the_reference_and_shrinks_as_stated(name: str) -> None:
    arrivals = tuple(map(float, name.split("_")[-2:]))
    limit = large_reserve(arrivals, (1.0, 2.0))
    errors = []
    for reserved, *known in ASYMPTOTICS[name]:
        found = trunk_reservation_limit(arrivals, (1.0, 2.0), reserved)
        assert found.blocking == pytest.approx(known, rel=1e-11, abs=1e-15)
        errors.append(abs(found.blocking[1] - limit.blocking[1]))
    (first, *_), (last, *_) = ASYMPTOTICS[name][-2], ASYMPTOTICS[name][-1]
    assert errors[-1] / errors[-2] == pytest.approx(limit.ratio ** (last - first), rel=1e-3)


@pytest.mark.parametrize(
    ("arrivals", "blocking"),
    [
        ((4.0, 8.0), 0.07302098158139709),
        ((1.2, 9.9), 0.002437596098539886),
        ((1.2, 11.1), 0.02414422737343662),
        ((1.2, 11.0), 0.02268602394234826),
        ((1.5, 10.0), 0.0200701384740425),
    ],
)
def test_without_reservation_it_is_one_way_offloading(
    arrivals: tuple[float, float], blocking: float
) -> None:
    found = trunk_reservation_limit(arrivals, (1.0, 10.0), 0)
    assert found.blocking[0] == pytest.approx(blocking, abs=1e-13)


# --- two methods ----------------------------------------------------------------------------------


@few
@given(saturated(), levels)
def test_both_orientations_of_the_walk_agree(found: Rates, reserved: int) -> None:
    assume(found.phases(0) < 120 and found.phases(1) < 120)
    by_second = walk_by_second(found, reserved, int(found.phases(0)))
    by_first = walk_by_first(found, reserved, int(max(found.phases(1), reserved + 3)))
    error = by_second.error + by_first.error
    assert by_second.blocking == pytest.approx(by_first.blocking, abs=error)
    assert by_second.full == pytest.approx(by_first.full, abs=error)


@few
@given(saturated())
def test_without_reservation_the_walk_agrees_with_the_boundary_value_integral(
    found: Rates,
) -> None:
    assume(found.phases(0) < 120)
    assume(abs(found.arrivals[1] - found.capacities[1]) > 0.05 * found.capacities[1])
    integral = full_centres(found.arrivals, found.capacities, (1.0, 0.0))
    limit = trunk_reservation_limit(found.arrivals, found.capacities, 0)
    error = integral.error + limit.error
    assert limit.blocking[0] == pytest.approx(integral.both, abs=error)


@few
@given(saturated(), levels)
def test_the_conservation_law_holds_to_rounding(found: Rates, reserved: int) -> None:
    assume(found.phases(0) < 120)
    law = walk_by_second(found, reserved, int(found.phases(0)))
    assert abs(check_balance(found, law)) <= 1e-14 * found.total
    assert law.full == pytest.approx(found.overload / found.arrivals[0], abs=1e-14)


@few
@given(saturated(), levels)
def test_blocking_is_within_its_bracket_and_monotone_in_the_threshold(
    found: Rates, reserved: int
) -> None:
    assume(found.phases(0) < 120)
    limit = trunk_reservation_limit(found.arrivals, found.capacities, reserved)
    more = trunk_reservation_limit(found.arrivals, found.capacities, reserved + 1)
    (low, high) = bracket(found, reserved).second
    slack = limit.error + more.error
    assert low - slack <= limit.blocking[1] <= high + slack
    assert more.blocking[1] <= limit.blocking[1] + slack
    assert more.blocking[0] >= limit.blocking[0] - slack
    assert limit.blocking[0] <= limit.overflow + slack


@few
@given(saturated(), levels, st.integers(-10, 10))
def test_a_change_of_the_unit_of_time_changes_nothing(
    found: Rates, reserved: int, power: int
) -> None:
    assume(found.phases(0) < 120)
    scaled = [[2.0**power * rate for rate in pair] for pair in (found.arrivals, found.capacities)]
    limit = trunk_reservation_limit(found.arrivals, found.capacities, reserved)
    assert trunk_reservation_limit(*scaled, reserved).blocking == limit.blocking


# --- regimes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrivals", "regime", "blocking", "overflow"),
    [
        ((0.5, 1.0), UNSATURATED, (0.0, 0.0), 0.0),
        ((0.0, 0.0), UNSATURATED, (0.0, 0.0), 0.0),
        ((0.5, 4.0), SECOND, (0.0, 0.5), 0.0),
        ((1.5, 1.0), CARRIED, (0.0, 0.0), 1.0 / 3.0),
        ((2.0, 0.0), CARRIED, (0.0, 0.0), 0.5),
    ],
)
def test_regimes_without_a_walk_have_fluid_values(
    arrivals: tuple[float, float],
    regime: str,
    blocking: tuple[float, float],
    overflow: float,
) -> None:
    found = trunk_reservation_limit(arrivals, (1.0, 2.0), 3)
    assert (found.regime, found.blocking, found.overflow) == (regime, blocking, overflow)
    assert found.error == (1e-15 if regime == SECOND else 0.0)
    assert not found.notes


@pytest.mark.parametrize(
    ("arrivals", "direction"),
    [((1.0, 3.0), (1, 0)), ((2.0, 1.0), (0, 1)), ((1.0, 2.0), (1, 0)), ((1.0, 1.0), (1, 0))],
)
def test_blocking_is_continuous_on_the_boundaries_of_regimes(
    arrivals: tuple[float, float], direction: tuple[int, int]
) -> None:
    on = trunk_reservation_limit(arrivals, (1.0, 2.0), 2)
    assert any("boundary" in note for note in on.notes)
    for step in (1e-12, -1e-12, -1e-3):
        near = tuple(x + step * d for x, d in zip(arrivals, direction, strict=True))
        found = trunk_reservation_limit(near, (1.0, 2.0), 2)
        assert found.blocking == pytest.approx(on.blocking, abs=on.error + abs(step))


def test_blocking_approaches_the_boundary_of_no_overflow() -> None:
    distances = [0.08, 0.04, 0.02]
    found = [trunk_reservation_limit((1.0 + d, 3.0), (1.0, 2.0), 2) for d in distances]
    for distance, limit in zip(distances, found, strict=True):
        assert limit.blocking[0] <= distance
        assert abs(limit.blocking[1] - 1.0 / 3.0) <= distance


def test_blocking_approaches_the_boundary_of_enough_capacity_and_its_error_is_never_wider() -> None:
    for excess in (1e-2, 1e-5, 1e-8):
        found = trunk_reservation_limit((2.0, 1.0 + excess), (1.0, 2.0), 2)
        assert 0.0 < found.blocking[0] < excess / 2.0
        assert found.error <= 0.5 * excess * 1.01
        lost = 2.0 * found.blocking[0] + (1.0 + excess) * found.blocking[1]
        assert lost == pytest.approx(excess, abs=1e-14)


def test_without_jobs_of_class_1_the_threshold_moves_the_walk() -> None:
    here, there = (trunk_reservation_limit((2.0, 0.0), (1.0, 0.5), a) for a in (0, 5))
    assert here.blocking[0] == there.blocking[0] == 0.25
    near = trunk_reservation_limit((2.0, 1e-9), (1.0, 0.5), 0)
    assert here.blocking == pytest.approx(near.blocking, abs=1e-8)
    assert there.blocking[1] == 0.0


def test_thresholds_that_leave_nothing_open_need_no_walk() -> None:
    for arrivals in ((2.0, 3.0), (2.0, 1.5)):
        found = trunk_reservation_limit(arrivals, (1.0, 2.0), 1000)
        assert found.phases == 0
        assert found.blocking == pytest.approx(large_reserve(arrivals, (1.0, 2.0)).blocking)
        assert found.error <= 3e-15


def test_equal_load_and_capacity_of_centre_1_is_no_special_case() -> None:
    found = [trunk_reservation_limit((2.0, 2.0), (1.0, 2.0), a).blocking[1] for a in (5, 20, 80)]
    products = [b * a for b, a in zip(found, (5, 20, 80), strict=True)]
    assert products == sorted(products)
    assert products[2] < 1.0
    assert large_reserve((2.0, 2.0), (1.0, 2.0)).ratio == 1.0
    near = trunk_reservation_limit((2.0, 2.0 + 1e-9), (1.0, 2.0), 20)
    assert near.blocking[1] == pytest.approx(found[1], abs=1e-9)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**1021])
def test_extreme_units_of_time_change_nothing(unit: float) -> None:
    known = trunk_reservation_limit((2.0, 3.0), (1.0, 2.0), 2)
    assert trunk_reservation_limit((2 * unit, 3 * unit), (unit, 2 * unit), 2) == known


@pytest.mark.parametrize(
    ("arrivals", "regime", "blocking"),
    [((2e-6, 1e6), CARRIED, (0.0, 0.0)), ((1e6, 1e-6), SHARED, (1.0 - 2e-6, 1.0 - 1e-6))],
)
def test_rates_of_different_sizes_are_told_apart(
    arrivals: tuple[float, float], regime: str, blocking: tuple[float, float]
) -> None:
    capacities = (1e-6, 2e6) if regime == CARRIED else (1.0, 1.0)
    found = trunk_reservation_limit(arrivals, capacities, 0)
    assert found.regime == regime
    assert found.blocking == pytest.approx(blocking, abs=1e-9)


# --- refusals -------------------------------------------------------------------------------------


def test_a_walk_with_too_many_phases_is_refused_with_their_number_and_what_is_known() -> None:
    with pytest.raises(SolveError, match=r"needs 3936 phases .* inf phases .* <= B_1 <=") as caught:
        trunk_reservation_limit((1.01, 9.995), (1.0, 10.0), 3)
    low, high = caught.value.partial.second  # type: ignore[attr-defined]
    assert 0.0 == low < high < 1e-3
    for change in ("raise arrival_rates[0]", "lower reserved", "evaluate the finite system"):
        assert change in str(caught.value)


@pytest.mark.parametrize("reserved", [0, 1, 7])
@pytest.mark.parametrize("excess", [1e-3, 1e-4, 1e-7, 1e-10])
def test_where_the_walk_is_too_large_narrow_bounds_are_the_limit(
    excess: float, reserved: int
) -> None:
    found = trunk_reservation_limit((1.0 + excess, 1.0), (1.0, 1.0), reserved)
    assert found.phases == 0
    assert found.regime == SHARED
    assert "0 <= B_0 <=" in found.notes[0]
    assert 0.49 * excess < found.error < excess
    assert found.blocking == pytest.approx((0.5 * excess,) * 2, rel=1e-2)


def test_phases_that_are_cut_early_cost_accuracy_that_is_counted(monkeypatch: Any) -> None:
    exact = trunk_reservation_limit((1.2, 9.95), (1.0, 10.0), 2)
    monkeypatch.setattr(by_levels, "MOST_PHASES", 140)
    cut = trunk_reservation_limit((1.2, 9.95), (1.0, 10.0), 2)
    assert cut.phases == 140
    assert 1e-9 < cut.error < 1e-5
    assert cut.blocking == pytest.approx(exact.blocking, abs=cut.error)


def test_a_law_that_violates_the_balance_is_an_error() -> None:
    found = Rates((2.0, 3.0), (1.0, 2.0))
    law = walk_by_second(found, 2, int(found.phases(0)))
    first, second = law.blocking
    with pytest.raises(SolveError, match="violates the conservation law"):
        check_balance(found, WalkLaw((first, second + 1e-6), law.full, law.error, law.phases))
    with pytest.raises(SolveError, match="centre 0 is full with the probability"):
        check_balance(found, WalkLaw(law.blocking, law.full + 1e-6, law.error, law.phases))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1.0,), (1.0, 2.0), 1), "arrival_rates has 1 numbers"),
        (((1.0, -2.0), (1.0, 2.0), 1), r"arrival_rates\[1\] must be a finite number >= 0"),
        (((1.0, 2.0), (0.0, 2.0), 1), r"capacities\[0\] must be a finite number > 0"),
        (((1.0, 2.0), (1.0, 2.0), -1), "reserved must be a whole number"),
        (((1.0, 2.0), (1.0, 2.0), 1.5), "reserved must be a whole number"),
    ],
)
def test_bad_numbers_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trunk_reservation_limit(*arguments)


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ((0.5, 3.0), r"arrival_rates\[0\] to capacities\[0\] is 0.5;"),
        ((1.5, 1.0), "the sum of arrival_rates to that of capacities is 0.833333;"),
    ],
)
def test_large_thresholds_matter_only_where_both_centres_are_saturated(
    arrivals: tuple[float, float], message: str
) -> None:
    with pytest.raises(NoLimitError, match=message):
        large_reserve(arrivals, (1.0, 2.0))


# --- bounds without a walk ------------------------------------------------------------------------


STEPS = (-0.9, -0.1, -1e-3, -1e-9, -1e-14, 0.0, 1e-9, 0.1)  # a_1 beyond lambda_1, relative


@st.composite
def unlike_rates(draw: st.DrawFn, steps: Any = STEPS) -> Rates:
    """Saturated centres whose rates differ by up to 18 decades; class 1 alone may be critical."""
    l0, l1 = (draw(st.floats(1, 2)) * 2.0 ** draw(st.integers(-30, 30)) for _ in range(2))
    a0 = l0 * draw(st.floats(0.01, 0.99))
    step = draw(st.sampled_from(steps))
    found = Rates((l0, l1), (a0, l1 * (1.0 + step)))
    assume(found.excess > 1e-9 * found.arrivals[0])
    return found


def exact_bounds(rates: Rates, reserved: int) -> Any:
    """Bounds of B_0 and B_1 in fractions, by the conservation law."""
    l0, l1, a0, a1 = map(Fraction, (*rates.arrivals, *rates.capacities))
    load, excess = a1 / l1, l0 + l1 - a0 - a1
    low = max(1 - load, Fraction(0))
    high = min(1 / sum(load**n for n in range(reserved + 1)), excess / l1)
    return ((excess - l1 * high) / l0, (excess - l1 * low) / l0), (low, high)


@given(unlike_rates(), st.integers(0, 60))
def test_the_bounds_of_blocking_are_exact_for_rates_of_any_size(
    rates: Rates, reserved: int
) -> None:
    found = bracket(rates, reserved)
    for known, bounds in zip(exact_bounds(rates, reserved), found.bounds, strict=True):
        assert bounds == pytest.approx([float(x) for x in known], rel=1e-12, abs=1e-15)
        assert 0.0 <= bounds[0] <= bounds[1] <= 1.0
    width = max(float(high - low) for low, high in exact_bounds(rates, reserved))
    assert found.width == pytest.approx(width, rel=1e-6)


@given(unlike_rates((-0.9, -0.99, -1.0 + 1e-9)), st.integers(40, 60))
def test_blocking_without_a_walk_holds_its_error_for_rates_of_any_size(
    rates: Rates, reserved: int
) -> None:
    found = trunk_reservation_limit(rates.arrivals, rates.capacities, reserved)
    assert found.regime == SHARED
    assert found.phases == 0
    assert found.error <= 2e-15
    for value, (low, high) in zip(found.blocking, exact_bounds(rates, reserved), strict=True):
        assert low - Fraction(found.error) <= Fraction(value) <= high + Fraction(found.error)


@pytest.mark.parametrize(
    ("arrivals", "capacities", "reserved"),
    [
        ((1.5, 30000.0), (1.0, 10000.0), 40),
        ((1.5, 300000000.1), (1.0, 1e8), 40),
        ((1.5e-9, 1.5e9), (1e-9, 1e-3), 2),
        ((1.5, 1.5e9), (1.0, 1e-3), 2),
    ],
)
def test_blocking_of_a_small_class_beside_a_large_one_is_no_difference_of_large_numbers(
    arrivals: tuple[float, float], capacities: tuple[float, float], reserved: int
) -> None:
    found = trunk_reservation_limit(arrivals, capacities, reserved)
    assert found.blocking[0] == pytest.approx(1 / 3, abs=found.error)
    assert found.error < 1e-11


def test_the_middle_of_the_bounds_is_taken_where_the_walk_says_less(monkeypatch: Any) -> None:
    arrivals, capacities = (2.0, 3.0), (1.0, 2.0)
    exact = trunk_reservation_limit(arrivals, capacities, 2)
    vague = by_levels.walk_law(Rates(arrivals, capacities), 2)
    monkeypatch.setattr(
        "mdpcloud.limits.trunk_reservation.regimes.walk_law", lambda *_: replace(vague, error=0.9)
    )
    found = trunk_reservation_limit(arrivals, capacities, 2)
    assert found.error == bracket(Rates(arrivals, capacities), 2).error
    assert found.blocking == pytest.approx(exact.blocking, abs=found.error)
