"""The large-scale limit of two centres that offload to each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.limits.offloading import margins, pair_limit
from mdpcloud.limits.trunk_reservation import trunk_reservation_limit
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
