"""How often two saturated centres are full, by the integral."""

from __future__ import annotations

import cmath
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mdpcloud.errors import NoLimitError, SolveError
from mdpcloud.limits.offloading import boundary_value
from mdpcloud.limits.offloading.boundary_value import drifts, full_centres
from mdpcloud.limits.qbd.law import Level, quasi_birth_death
from tests.limits.walks import blocking, saturated_pairs
from tests.models import reference

RECORDS = reference("allocation")["extra_phiY_mp_S3LP_S3ode"]["phiY_mp"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["args"]))
def test_the_integral_agrees_with_one_of_forty_digits(record: Any) -> None:
    l1, l2, a1, a2, p1, p2 = map(float, record["args"])
    found = full_centres((l1, l2), (a1, a2), (p1, p2))
    assert found.both == pytest.approx(float(record["pi00"]), rel=5e-15)
    assert found.error < 1e-13


@pytest.mark.parametrize(
    "record", reference("allocation")["S5_finite_mdp_ring"]["raw_vs_relabel"], ids=str
)
def test_the_centres_may_be_exchanged(record: Any) -> None:
    l1, l2, a1, a2, p1, p2 = map(float, record["args"])
    found = full_centres((l1, l2), (a1, a2), (p1, p2))
    mirrored = full_centres((l2, l1), (a2, a1), (p2, p1))
    assert found.both == pytest.approx(record["raw"], abs=1e-13)
    assert found.both == pytest.approx(mirrored.both, abs=1e-14)
    assert found.each == pytest.approx(mirrored.each[::-1], abs=1e-14)


@pytest.mark.parametrize("record", reference("allocation")["S5"]["walk_checks"], ids=str)
def test_the_blocking_of_walks_computed_elsewhere_is_found(record: Any) -> None:
    pair = (
        (record["l1"], record["l2"]),
        (record["m1"], record["m2"]),
        (record["p1"], record["p2"]),
    )
    found = full_centres(*pair)
    assert (*blocking(pair, found), found.both) == pytest.approx(record["formula"][1:], rel=1e-12)
    assert found.both == pytest.approx(record["walk"][2], abs=1e-9)


# --- closed forms ---------------------------------------------------------------------------------


@given(saturated_pairs())
def test_what_is_lost_is_what_cannot_be_served(pair: Any) -> None:
    (l1, l2), (a1, a2), _ = pair
    found = full_centres(*pair)
    lost = blocking(pair, found)
    assert l1 * lost[0] + l2 * lost[1] == pytest.approx(
        l1 + l2 - a1 - a2, abs=4 * (l1 + l2) * found.error
    )


@given(saturated_pairs(both=True))
def test_two_integrals_along_different_circles_agree(pair: Any) -> None:
    arrivals, capacities, probabilities = pair
    one = boundary_value._solved(arrivals, capacities, probabilities)
    other = boundary_value._solved(arrivals[::-1], capacities[::-1], probabilities[::-1])
    error = one.error + other.error
    assert one.both == pytest.approx(other.both, abs=error)
    assert one.each == pytest.approx(other.each[::-1], abs=error)


@given(saturated_pairs(both=True))
def test_centres_that_do_not_help_each_other_are_independent(pair: Any) -> None:
    (l1, l2), (a1, a2), _ = pair
    found = full_centres((l1, l2), (a1, a2), (0.0, 0.0))
    assert found.each == pytest.approx((1 - a1 / l1, 1 - a2 / l2), abs=found.error)
    assert found.both == pytest.approx((1 - a1 / l1) * (1 - a2 / l2), abs=found.error)


@given(saturated_pairs(both=True), st.floats(0, 1))
def test_a_centre_without_help_from_the_other_is_alone(pair: Any, p1: float) -> None:
    (l1, l2), (a1, a2), _ = pair
    found = full_centres((l1, l2), (a1, a2), (p1, 0.0))
    assert found.each[0] == pytest.approx(1 - a1 / l1, abs=found.error)


@given(saturated_pairs())
def test_centres_that_always_help_are_full_together_as_one(pair: Any) -> None:
    (l1, l2), (a1, a2), _ = pair
    assume(l1 + l2 > 1.001 * (a1 + a2))
    found = full_centres((l1, l2), (a1, a2), (1.0, 1.0))
    assert found.both == pytest.approx(1 - (a1 + a2) / (l1 + l2), abs=found.error)
    nearly = full_centres((l1, l2), (a1, a2), (1.0, 1.0 - 1e-13))
    assert nearly.each == pytest.approx(found.each, abs=1e-9)


@given(saturated_pairs(), st.integers(-30, 30))
def test_the_unit_of_time_does_not_matter(pair: Any, power: int) -> None:
    arrivals, capacities, probabilities = pair
    factor = 2.0**power
    rates = [tuple(factor * rate for rate in rates) for rates in (arrivals, capacities)]
    assert full_centres(rates[0], rates[1], probabilities) == full_centres(*pair)  # type: ignore[arg-type]


# --- other methods --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_integral_along_the_cut_in_thirty_digits_agrees(seed: int) -> None:
    pair = random_pair(np.random.default_rng(seed))
    found = full_centres(*pair)
    assert found.both == pytest.approx(along_the_cut(*pair), abs=found.error)


def random_pair(random: np.random.Generator) -> Any:
    """Saturated centres of which the first is so without the other, neither near load 1."""
    while True:
        l1, l2, a1, a2 = random.uniform(0.2, 5.0, 4).tolist()
        pair = (l1, l2), (a1, a2), tuple(random.uniform(0.0, 1.0, 2).tolist())
        if l1 > a1 + 0.1 and abs(l2 - a2) > 0.1 and min(drifts(*pair)) > 0.05:
            return pair


def along_the_cut(arrivals: Any, capacities: Any, probabilities: Any) -> float:
    """The printed integral over x in [x1, x2], theta from the boundary values themselves."""
    with mpmath.workdps(30):
        l1, l2, a1, a2, p1, p2 = map(mpmath.mpf, (*arrivals, *capacities, *probabilities))
        total = l1 + l2 + a1 + a2

        def end(sign: int) -> Any:
            b = total + sign * 2 * mpmath.sqrt(a2 * l2)
            return (b - mpmath.sqrt(b * b - 4 * a1 * l1)) / (2 * a1)

        low, high = end(+1), end(-1)

        def integrand(t: Any) -> Any:
            x = (low + high) / 2 - (high - low) / 2 * mpmath.cos(t)
            b = (a1 * x * x - total * x + l1) / x
            y = (-b + 1j * mpmath.sqrt(max(4 * a2 * l2 - b * b, 0))) / (2 * a2)
            u, v = 1 / x - 1, 1 / y - 1
            theta = mpmath.arg((u - p1 * v) * mpmath.conj(p2 * u - v))
            form = (l1 - a1 * x * x) / (x * (x - 1) * (a1 * x - l1))
            return theta * form * (high - low) / 2 * mpmath.sin(t)

        panels = [mpmath.pi / 2**k for k in range(8, -1, -1)]
        phi = mpmath.exp(mpmath.quad(integrand, [0, *panels], maxdegree=4) / -mpmath.pi)
        first, second = l1 - a1 + p2 * (l2 - a2), l2 - a2 + p1 * (l1 - a1)
        scale = (l1 + p2 * l2) * phi
        return float(first / scale if l2 >= a2 else second / (p1 * scale))


@pytest.mark.parametrize(
    "pair",
    [
        ((5.0, 10.0), (1.0, 10.0), (1.0, 0.2)),
        ((5.0, 1.5), (1.0, 2.0), (0.9, 0.3)),
    ],
    ids=str,
)
def test_matrix_analytic_solutions_agree(pair: Any) -> None:
    (l1, l2), (a1, a2), (p1, p2) = pair
    phases = 24
    assert (a1 / l1) ** phases < 1e-15

    def levels(bottom: bool) -> Level:
        down = l2 * np.eye(phases)
        down[0, 0] += p1 * l1
        local = (l1 + p2 * l2 * bottom) * np.eye(phases, k=-1) + a1 * np.eye(phases, k=1)
        return Level(local, a2 * np.eye(phases), None if bottom else down)

    law = quasi_birth_death([levels(bottom=True)], levels(bottom=False))
    found = full_centres(*pair)
    assert found.both == pytest.approx(law.boundary[0][0], abs=1e-12)


# --- traps ----------------------------------------------------------------------------------------


def test_a_centre_at_load_one_is_no_singularity() -> None:
    at = full_centres((1.5, 10.0), (1.0, 10.0), (1.0, 0.0))
    assert at.both == pytest.approx(0.0200701384740425, abs=2e-15)
    for side in (-1.0, 1.0):
        near = full_centres((1.5, 10.0 + side * 1e-9), (1.0, 10.0), (1.0, 0.0))
        assert near.both == pytest.approx(at.both, abs=1e-9)
        assert near.both != at.both


@pytest.mark.parametrize("excess", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_a_nearly_critical_centre_without_help_is_resolved(excess: float) -> None:
    l2 = 1.0 + excess
    found = full_centres((2.0, l2), (1.0, 1.0), (0.0, 0.0))
    assert found.both == pytest.approx(0.5 * ((l2 - 1.0) / l2), rel=1e-9)


@pytest.mark.parametrize("chance", [1e-3, 1e-9, 1e-30, 1e-90])
def test_help_that_hardly_ever_comes_keeps_a_critical_centre_saturated(chance: float) -> None:
    found = full_centres((2.0, 1.0), (1.0, 1.0), (chance, 0.0))
    assert 0.0 < found.both <= min(found.each)
    assert found.each[0] == pytest.approx(0.5, abs=1e-14)
    # centre 1: l2 beta2 = l1 + l2 - a1 - a2 - l1 beta1 with beta1 = (1 - p1)/2 + p1 p00
    assert found.each[1] == pytest.approx(chance * (1.0 - 2.0 * found.both), rel=1e-9)


EXTREME = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


@given(EXTREME, EXTREME, EXTREME, EXTREME, st.floats(0, 1), st.floats(0, 1))
def test_probabilities_of_extreme_systems_are_ordered_up_to_the_error(
    l1: float, l2: float, a1: float, a2: float, p1: float, p2: float
) -> None:
    pair = (l1, l2), (a1, a2), (p1, p2)
    assume(min(drifts(*pair)) > 1e-12 * (l1 + l2 + a1 + a2))
    found = full_centres(*pair)
    assert found.both >= 0.0
    for each in found.each:
        assert found.both <= each + found.error
        assert each <= 1.0 + found.error


def test_centres_that_are_not_saturated_are_refused_by_the_condition_that_fails() -> None:
    with pytest.raises(
        NoLimitError, match=r"l\[1\] \+ p\[0\] l\[0\] > a\[1\] \+ p\[0\] a\[0\]"
    ) as e:
        full_centres((2.0, 8.0), (1.0, 10.0), (0.5, 0.0))
    assert "9 is 1.5 less than 10.5, so centre 1 is not saturated" in str(e.value)


def test_an_integral_with_too_few_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_value, "NODES", 1)
    with pytest.raises(SolveError, match="estimated error"):
        full_centres((1.2, 9.9), (1.0, 10.0), (1.0, 0.0))


def test_the_boundary_values_have_no_winding() -> None:
    """The angle theta of the printed arctan stays within (0, pi/2)."""
    l1, l2, a1, a2, p1, p2 = 2.0, 1.5, 1.0, 2.0, 0.9, 0.3
    for t in (0.01, 0.5, 1.5, 3.0):
        y = math.sqrt(l2 / a2) * cmath.exp(1j * t)
        b = l1 + l2 + a1 + a2 - 2 * a2 * y.real
        x = (b - math.sqrt(b * b - 4 * a1 * l1)) / (2 * a1)
        w = (1 / x - 1) / (1 / y - 1)
        assert w == pytest.approx((a2 * y - l2) / (l1 - a1 * x))
        assert 0.0 < -cmath.phase((p1 - w) * (1 - p2 * w.conjugate())) < math.pi / 2


def test_rates_too_far_apart_are_refused() -> None:
    with pytest.raises(SolveError, match="differ by a factor"):
        full_centres((2.0, 2e40), (1.0, 1e40), (0.5, 0.5))
