"""The fixed point of two cooperating centres, and the conditions of the limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mdpcloud.errors import NoLimitError
from mdpcloud.limits.cooperation.equilibrium import TwoCentres, conditions, equilibrium
from mdpcloud.limits.cooperation.point import balance, fixed_point, kept, mean_kept
from tests.models import reference

SETS = reference("allocation")["S4"]


def centres(name: str) -> TwoCentres:
    """A set of the reference."""
    s = SETS[name]
    cap = s["cap"]
    return TwoCentres(
        tuple(map(tuple, s["lam_jk"])),  # type: ignore[arg-type]
        tuple(s["mu"]),  # type: ignore[arg-type]
        (s["R"], s["C"]),
        (tuple(cap[:2]), tuple(cap[2:])),  # type: ignore[arg-type]
        (s["delta"][0] * cap[0], s["delta"][1] * cap[3]),
    )


SYM = centres("sym")
WIDE = replace(SYM, capacities=((1.0, 2.0), (2.0, 1.0)), levels=(0.8, 0.8))


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_the_fixed_point_is_that_of_the_reference(name: str) -> None:
    found = equilibrium(centres(name))
    assert found.kept == pytest.approx(SETS[name]["gamma"], rel=1e-14)
    (x11, x12), (x21, x22) = found.jobs
    assert (x11, x12, x21, x22) == pytest.approx(SETS[name]["x_star_11_12_21_22"], rel=1e-14)
    assert found.regime == "at_at"
    assert found.offloading == pytest.approx([1.0 - g for g in found.kept])
    assert found.notes == ()


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_the_margins_of_the_conditions_are_those_of_the_reference(name: str) -> None:
    """In the order of total memory and processors, then centre by centre."""
    checks = SETS[name]["checks"]
    order = ("agg_ram", "agg_cpu", "ram_dc1", "cpu_dc1", "ram_dc2", "cpu_dc2")
    margins = [one.margin for one in conditions(centres(name))]
    assert margins == pytest.approx([-checks[key] for key in order], abs=1e-14)


def test_slack_centres_keep_two_fifths() -> None:
    found = equilibrium(WIDE)
    assert found.kept == pytest.approx((0.4, 0.4), rel=1e-14)
    assert found.jobs[0] == pytest.approx((0.2, 0.4), rel=1e-14)
    assert found.jobs[1] == pytest.approx((0.4, 0.2), rel=1e-14)


def test_the_fixed_point_is_exact_in_rationals() -> None:
    """The two equations of section 3.3 for the thresholds, by Cramer's rule in fractions."""
    l00, l01, l10, l11 = (Fraction(k, 100) for k in (50, 15, 12, 47))
    r, c, s0, s1 = 2, 3, Fraction(9, 10), Fraction(85, 100) * Fraction(15, 10)
    b0, b1 = s0 - l10 - l11, s1 - l01 - l00
    exact = (c * b0 + b1) / (r * c - 1) / l00, (b0 + r * b1) / (r * c - 1) / l11
    assert exact == (Fraction(311, 500), Fraction(156, 235))
    assert equilibrium(centres("asym")).kept == pytest.approx([float(g) for g in exact], rel=1e-14)


amounts = st.floats(0.0, 2.0)
pairs = st.tuples(amounts, amounts)
needs = st.tuples(st.sampled_from([1.0, 2.0, 5.0]), st.sampled_from([1.5, 2.0, 3.0]))


@given(needs, st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)), pairs)
def test_kept_meets_its_equations_or_an_end_of_the_box(need: Any, right: Any, most: Any) -> None:
    w = kept(need, right, most)
    for p in (0, 1):
        excess = need[p] * w[p] - w[1 - p] - right[p]
        assert 0.0 <= w[p] <= most[p]
        assert excess <= 1e-12 or w[p] <= 1e-12
        assert excess >= -1e-12 or w[p] >= most[p] - 1e-12


@given(needs, st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)), pairs)
def test_kept_is_the_limit_of_iterating_one_equation_at_a_time(
    need: Any, right: Any, most: Any
) -> None:
    w = np.zeros(2)
    for _ in range(120):
        w[0] = np.clip((right[0] + w[1]) / need[0], 0.0, most[0])
        w[1] = np.clip((right[1] + w[0]) / need[1], 0.0, most[1])
    assert kept(need, right, most) == pytest.approx(w, abs=1e-12)


positive = st.floats(0.05, 1.0)


@given(
    st.tuples(*[positive] * 4), st.tuples(positive, positive), needs, st.tuples(amounts, amounts)
)
def test_the_fixed_point_balances_arrivals_and_departures(
    rates: Any, services: Any, need: Any, levels: Any
) -> None:
    two = TwoCentres((rates[:2], rates[2:]), services, need, ((999.0, 999.0),) * 2, levels)
    found = equilibrium(two)
    (x00, x01), (x10, x11) = found.jobs
    g0, g1 = found.kept
    assert services[0] * x00 == pytest.approx(rates[0] * g0)
    assert services[0] * x01 == pytest.approx(rates[1] + rates[0] * (1.0 - g0))
    assert services[1] * x10 == pytest.approx(rates[2] + rates[3] * (1.0 - g1))
    assert services[1] * x11 == pytest.approx(rates[3] * g1)
    if found.regime == "at_at":
        assert (need[0] * x00 + x10, x01 + need[1] * x11) == pytest.approx(levels)
        assert mean_kept(two, found.jobs) == pytest.approx(found.kept, abs=1e-9)


@given(
    st.tuples(*[positive] * 4), st.tuples(positive, positive), needs, st.tuples(amounts, amounts)
)
def test_the_regime_says_on_which_side_of_its_threshold_each_centre_is(
    rates: Any, services: Any, need: Any, levels: Any
) -> None:
    two = TwoCentres((rates[:2], rates[2:]), services, need, ((999.0, 999.0),) * 2, levels)
    found = equilibrium(two)
    (x00, x01), (x10, x11) = found.jobs
    uses = need[0] * x00 + x10, x01 + need[1] * x11
    for p in (0, 1):
        assume(abs(uses[p] - levels[p]) > 1e-9 or 1e-6 < found.kept[p] < 1 - 1e-6)
    words = []
    for g, use, level in zip(found.kept, uses, levels, strict=True):
        if use < level - 1e-9:
            words.append("below")
            assert g == 1.0
        elif use > level + 1e-9:
            words.append("above")
            assert g == 0.0
        else:
            words.append("at")
    assert found.regime == "_".join(words)


@given(st.tuples(*[positive] * 4), st.floats(0.1, 10.0))
def test_faster_arrivals_and_services_change_nothing(rates: Any, speed: float) -> None:
    levels, room = (0.7, 0.9), ((99.0, 99.0),) * 2
    slow = equilibrium(TwoCentres((rates[:2], rates[2:]), (1.0, 0.5), (2.0, 3.0), room, levels))
    fast_rates = tuple(speed * rate for rate in rates)
    fast = equilibrium(
        TwoCentres((fast_rates[:2], fast_rates[2:]), (speed, 0.5 * speed), (2.0, 3.0), room, levels)  # type: ignore[arg-type]
    )
    assert fast.kept == pytest.approx(slow.kept, abs=1e-9)
    assert np.ravel(fast.jobs) == pytest.approx(np.ravel(slow.jobs), abs=1e-9)


@given(st.tuples(*[positive] * 4), st.tuples(amounts, amounts))
def test_renaming_centres_types_and_resources_renames_the_result(rates: Any, levels: Any) -> None:
    room = ((99.0, 98.0), (97.0, 96.0))
    one = equilibrium(TwoCentres((rates[:2], rates[2:]), (1.0, 0.5), (2.0, 3.0), room, levels))
    (l00, l01), (l10, l11) = rates[:2], rates[2:]
    other = equilibrium(
        TwoCentres(
            ((l11, l10), (l01, l00)),
            (0.5, 1.0),
            (3.0, 2.0),
            ((96.0, 97.0), (98.0, 99.0)),
            levels[::-1],
        )
    )
    assert other.kept == pytest.approx(one.kept[::-1], abs=1e-12)
    assert np.ravel(other.jobs) == pytest.approx(np.ravel(one.jobs)[::-1], abs=1e-12)


def test_balances_at_the_fixed_point_are_those_of_proposition_3_3() -> None:
    two = centres("asym_mu")
    found = equilibrium(two)
    w = 0.5 * found.kept[0], 1.2 * found.kept[1]
    b = balance(two, found.jobs)
    assert (3 * w[0] - w[1], 2 * w[1] - w[0]) == pytest.approx(b, rel=1e-12)


# --- conditions -----------------------------------------------------------------------------------


def test_too_large_a_load_is_refused_by_name_and_amount() -> None:
    with pytest.raises(NoLimitError) as caught:
        equilibrium(replace(SYM, arrival_rates=((0.6, 0.1), (0.1, 0.6))))
    message = str(caught.value)
    assert "the load of memory in both centres = 2.1 must be < capacities[0][0] + " in message
    assert "capacities[1][0] = 2; it is 0.1 too much" in message
    assert "the load of processors in both centres = 2.1" in message
    assert "the use" not in message


def test_too_little_room_for_the_jobs_that_are_sent_is_refused() -> None:
    """All conditions of the source hold."""
    with pytest.raises(NoLimitError, match=(
        r"the use of processors in centre 0 = 0\.9 must be < capacities\[0\]\[1\] = 0\.8; "
        r"it is 0\.1 too much"
    )):  # fmt: skip
        equilibrium(replace(SYM, capacities=((1.0, 0.8), (1.0, 1.3))))


def test_a_threshold_at_the_capacity_is_refused() -> None:
    with pytest.raises(NoLimitError, match=(
        r"thresholds\[0\] = 1 must be < capacities\[0\]\[0\] = 1; it is equal"
    )):  # fmt: skip
        equilibrium(replace(SYM, levels=(1.0, 0.9)))


def test_on_the_boundary_of_a_capacity_the_value_is_continuous_and_noted() -> None:
    at = replace(WIDE, capacities=((1.0, 1.0), (2.0, 1.0)))  # 0.2 + 2 * 0.4 processors
    found = equilibrium(at)
    assert found.kept == pytest.approx(equilibrium(WIDE).kept)
    assert found.notes[0].startswith("on the boundary of the limit: the use of processors in")
    with pytest.raises(NoLimitError):
        equilibrium(replace(WIDE, capacities=((1.0, 1.0 - 1e-9), (2.0, 1.0))))


@pytest.mark.parametrize("shift", [-1e-9, 0.0, 1e-9])
def test_on_the_boundary_of_a_regime_the_value_is_continuous_and_noted(shift: float) -> None:
    """Own jobs use 1.1 units of the guarded resources where none is sent."""
    wide = replace(SYM, capacities=((2.0, 2.0), (2.0, 2.0)), levels=(1.1 + shift, 1.1 + shift))
    found = equilibrium(wide)
    assert found.kept == pytest.approx((1.0, 1.0), abs=1e-8)
    assert any("on the boundary between two regimes" in note for note in found.notes) == (
        shift == 0.0
    )
    assert found.regime == ("at_at" if shift < 0 else "below_below")


def test_below_the_source_s_saturation_the_fixed_point_holds_with_a_note() -> None:
    found = equilibrium(replace(SYM, capacities=((1.2, 1.2), (1.2, 1.2))))
    assert found.kept == pytest.approx((0.6, 0.6))
    assert len(found.notes) == 2
    assert "the source takes the load of memory by the own jobs of centre 0" in found.notes[0]


def test_without_jobs_of_the_guarded_type_nothing_is_sent() -> None:
    found = equilibrium(replace(SYM, arrival_rates=((0.0, 0.1), (0.1, 0.0))))
    assert found.kept == (1.0, 1.0)
    assert found.jobs == ((0.0, 0.1), (0.1, 0.0))


def test_the_limit_fits_large_finite_systems() -> None:
    """Finite values of the reference come nearer as the scale grows."""
    for name in ("sym", "asym"):
        two, finite = centres(name), SETS[name]["finite"]
        x = np.ravel(fixed_point(two).jobs)
        distances = [np.abs(np.array(f["x_mean"]) - x).max() for f in finite]
        assert distances == sorted(distances, reverse=True)
