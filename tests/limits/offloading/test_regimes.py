"""The large-scale limit of two centres that offload to each other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.limits.offloading.regimes import margins, pair_limit
from mdpcloud.limits.trunk_reservation.regimes import trunk_reservation_limit
from tests.models import reference

FIGURES = reference("allocation")["S5"]
POINTS = [
    *(((r["lambda1"], 8.0), r) for r in FIGURES["fig_lambda2=8"]),
    *(((r["lambda1"], 12.0), r) for r in FIGURES["fig_lambda2=12"]),
    *(((1.2, r["lambda2"]), r) for r in FIGURES["fig_4_6"]),
]
NAMES = {"boundary(B2/E)": "B2/E"}
RATES = st.floats(0.1, 10)
CHANCES = st.floats(0, 1)
DECADES = st.integers(-30, 30).flatmap(lambda e: st.floats(1, 2).map(lambda x: x * 2.0**e))
NUDGES = st.sampled_from([-1e-9, -1e-15, 0.0, 1e-15, 1e-12, 1e-6])
PAIRS = st.tuples(st.tuples(RATES, RATES), st.tuples(RATES, RATES), st.tuples(CHANCES, CHANCES))


@pytest.mark.parametrize(("arrivals", "record"), POINTS)
def test_blocking_is_that_of_the_figures_of_the_thesis(arrivals: Any, record: Any) -> None:
    found = pair_limit(arrivals, (1.0, 10.0), (record["p1"], 0.0))
    assert found.blocking == pytest.approx((record["beta1"], record["beta2"]), rel=1e-12)
    if record["regime"] not in ("boundary", "p1=0"):
        assert found.regime == NAMES.get(record["regime"], record["regime"])
    if record["pi00"] is not None:
        assert found.full.both == pytest.approx(record["pi00"], rel=1e-12)


@pytest.mark.parametrize(
    ("pair", "regime", "blocking", "forwarded"),
    [
        (((0.5, 8.0), (1.0, 10.0), (1.0, 1.0)), "A", (0, 0), (0, 0)),
        (((0.5, 12.0), (2.0, 10.0), (1.0, 0.25)), "B1", (0, 0.75 / 6), (0, 0.25 / 6)),
        (((2.0, 8.0), (1.0, 10.0), (0.5, 1.0)), "B2", (0.25, 0), (0.25, 0)),
        (((2.0, 3.0), (1.0, 2.0), (0.0, 0.0)), "E", (1 / 2, 1 / 3), (0, 0)),
    ],
)
def test_each_regime_has_its_formula(pair: Any, regime: str, blocking: Any, forwarded: Any) -> None:
    found = pair_limit(*pair)
    assert found.regime == regime
    assert found.blocking == pytest.approx(blocking, abs=1e-15)
    assert found.forwarded == pytest.approx(forwarded, abs=1e-15)
    assert found.notes == ()


@pytest.mark.parametrize(
    ("pair", "regime", "condition"),
    [
        (((1.0, 8.0), (1.0, 10.0), (0.5, 0.0)), "A/B2", "l[0] = a[0]"),
        (((0.5, 10.0), (1.0, 10.0), (0.5, 0.0)), "A/B1", "l[1] = a[1]"),
        (((3.0, 8.0), (1.0, 10.0), (1.0, 0.0)), "B2/E", "l[1] + p[0] l[0] = a[1] + p[0] a[0]"),
        (((1.2, 9.9), (1.0, 10.0), (0.5, 0.0)), "B2/E", "l[1] + p[0] l[0] = a[1] + p[0] a[0]"),
        (((0.5, 12.0), (1.0, 10.0), (1.0, 0.25)), "B1/E", "l[0] + p[1] l[1] = a[0] + p[1] a[1]"),
        (((1.0, 10.0), (1.0, 10.0), (0.5, 0.5)), "A/B1/B2/E", "l[0] = a[0], l[1] = a[1]"),
    ],
)
def test_boundaries_of_regimes_are_noted(pair: Any, regime: str, condition: str) -> None:
    found = pair_limit(*pair)
    assert found.regime == regime
    assert condition in found.notes[0]


@pytest.mark.parametrize(
    "pair",
    [
        ((1.0, 8.0), (1.0, 10.0), (0.5, 0.0)),
        ((0.5, 10.0), (1.0, 10.0), (0.5, 0.3)),
        ((3.0, 8.0), (1.0, 10.0), (1.0, 0.0)),
        ((0.5, 12.0), (1.0, 10.0), (1.0, 0.25)),
        ((1.0, 10.0), (1.0, 10.0), (0.5, 0.5)),
        ((1.0, 12.0), (1.0, 10.0), (0.7, 0.0)),
        ((1.0, 12.0), (1.0, 10.0), (0.7, 0.4)),
        ((2.0, 10.0), (1.0, 10.0), (0.0, 0.4)),
    ],
    ids=str,
)
def test_the_limit_is_continuous_on_boundaries(pair: Any) -> None:
    at = pair_limit(*pair)
    (l1, l2), capacities, probabilities = pair
    for d1 in (-1e-8, 1e-8):
        for d2 in (-1e-8, 1e-8):
            near = pair_limit((l1 + d1, l2 + d2), capacities, probabilities)
            assert near.blocking == pytest.approx(at.blocking, abs=1e-7)
            assert near.full.both == pytest.approx(at.full.both, abs=1e-7)
            assert near.served == pytest.approx(at.served, abs=1e-7)


@given(PAIRS)
def test_what_is_not_lost_is_served(pair: Any) -> None:
    arrivals, capacities, _ = pair
    found = pair_limit(*pair)
    taken = sum(l * (1 - beta) for l, beta in zip(arrivals, found.blocking, strict=True))
    error = 4 * sum(arrivals) * (found.full.error + 1e-15)
    assert taken == pytest.approx(sum(found.served), abs=error)
    for k in (0, 1):
        assert found.served[k] <= capacities[k] * (1 + 1e-15)
        assert 0 <= found.blocking[k] <= 1
        assert 0 <= found.forwarded[k] <= 1


@given(PAIRS)
def test_the_centres_may_be_renamed(pair: Any) -> None:
    found, mirrored = pair_limit(*pair), pair_limit(*(values[::-1] for values in pair))
    error = found.full.error + mirrored.full.error + 1e-15
    assert found.blocking == pytest.approx(mirrored.blocking[::-1], abs=error)
    assert found.forwarded == pytest.approx(mirrored.forwarded[::-1], abs=error)
    swap = str.maketrans("12", "21")
    assert set(found.regime.split("/")) == set(mirrored.regime.translate(swap).split("/"))


@given(PAIRS, st.floats(1, 2))
def test_more_arrivals_block_no_fewer_jobs(pair: Any, factor: float) -> None:
    (l1, l2), capacities, probabilities = pair
    few, many = pair_limit(*pair), pair_limit((factor * l1, l2), capacities, probabilities)
    error = few.full.error + many.full.error + 1e-14
    assert all(b >= a - error for a, b in zip(few.blocking, many.blocking, strict=True))


@given(PAIRS)
def test_exactly_one_regime_holds_off_the_boundaries(pair: Any) -> None:
    known = margins(*pair)
    holding = [name for name, parts in known.items() if all(margin > 1e-9 for _, margin in parts)]
    assert len(holding) <= 1
    if holding:
        assert pair_limit(*pair).regime == holding[0]


@pytest.mark.parametrize("arrivals", [(1.5, 12.0), (2.0, 9.5), (4.0, 8.0), (2.0, 8.0), (0.5, 12.0)])
def test_help_in_one_direction_is_trunk_reservation_of_nothing(arrivals: Any) -> None:
    one, other = (
        pair_limit(arrivals, (1.0, 10.0), (1.0, 0.0)),
        trunk_reservation_limit(arrivals, (1.0, 10.0), 0),
    )
    error = one.full.error + other.error + 1e-14
    assert one.blocking == pytest.approx(other.blocking, abs=error)


# --- rates of different sizes ---------------------------------------------------------------------


@st.composite
def unlike_pairs(draw: st.DrawFn, chances: Any = CHANCES) -> Any:
    """Rates over 18 decades, some of them near the boundary of a regime."""
    arrivals = draw(DECADES), draw(DECADES)
    near = [rate * (1.0 + draw(NUDGES)) for rate in arrivals]
    capacities = tuple(draw(st.sampled_from([rate, draw(DECADES)])) for rate in near)
    return arrivals, capacities, (draw(chances), draw(chances))


@pytest.mark.parametrize(
    ("arrivals", "capacities"), [((2e-6, 0.5e9), (1e-6, 1e9)), ((2.0, 0.5e16), (1.0, 1e16))]
)
def test_a_small_centre_beside_a_large_one_is_not_taken_for_rounding(
    arrivals: Any, capacities: Any
) -> None:
    for probabilities in ((0.0, 0.0), (0.5, 0.0), (0.5, 0.5)):
        found = pair_limit(arrivals, capacities, probabilities)
        assert found.regime == "B2"
        assert found.blocking == ((1.0 - probabilities[0]) * 0.5, 0.0)
        assert found.full.error < 1e-15


@given(unlike_pairs(st.just(0.0)))
def test_without_help_every_centre_is_as_if_alone(pair: Any) -> None:
    arrivals, capacities, _ = pair
    found = pair_limit(*pair)
    for l, a, blocking in zip(arrivals, capacities, found.blocking, strict=True):
        known = max(1 - Fraction(a) / Fraction(l), Fraction(0))
        assert abs(Fraction(blocking) - known) <= found.full.error
    assert found.full.error < 1e-13


@given(unlike_pairs(), st.sampled_from([1e-15, 1e-12, 1e-6]))
def test_the_error_covers_what_rounding_hides_on_a_boundary(pair: Any, step: float) -> None:
    (l1, l2), capacities, probabilities = pair
    found = pair_limit(*pair)
    many = pair_limit((l1 * (1 + step), l2 * (1 + step)), capacities, probabilities)
    error = found.full.error + many.full.error + 1e-15
    assert all(b >= a - error for a, b in zip(found.blocking, many.blocking, strict=True))
    for k, j in ((0, 1), (1, 0)):
        got = pair[0][k] * (1.0 - found.full.each[k]) + pair[0][j] * found.forwarded[j]
        slack = (pair[0][k] + probabilities[j] * pair[0][j]) * (found.full.error + 1e-14)
        assert abs(got - found.served[k]) <= slack


def test_a_boundary_that_hides_a_small_centre_says_so() -> None:
    found = pair_limit((2e-6, 0.5e9), (1e-6, 0.5e9), (0.5, 0.5))
    assert found.regime == "B2/E"
    assert found.full.error > 0.1  # the sides differ by less than the rounding of the large rates
    assert pair_limit((3.0, 8.0), (1.0, 10.0), (1.0, 0.0)).full.error < 1e-12


def test_a_boundary_of_rates_beyond_the_integral_is_of_no_known_accuracy() -> None:
    found = pair_limit((2e-25, 0.5e9), (1e-25, 0.5e9), (0.5, 0.5))
    assert found.full.error == 1.0
