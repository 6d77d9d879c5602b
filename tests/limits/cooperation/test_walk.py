"""The walk of the thresholds of cooperating centres: Proposition 3.3 against boxes of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.limits.cooperation.equilibrium import TwoCentres, equilibrium
from mdpcloud.limits.cooperation.point import mean_kept
from mdpcloud.limits.cooperation.walk import WalkLaw, walk_law
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


SLACK = TwoCentres(
    ((0.5, 0.1), (0.1, 0.5)), (1.0, 1.0), (2, 2), ((1.0, 2.0), (2.0, 1.0)), (0.8, 0.8)
)


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_the_walk_at_the_fixed_point_is_below_the_thresholds_as_often_as_jobs_are_kept(
    name: str,
) -> None:
    two = centres(name)
    found = walk_law(two, equilibrium(two).jobs, 1e-6)
    wanted = SETS[name]["gamma"]
    assert found.error <= 1e-6
    assert np.abs(np.subtract(found.kept, wanted)).max() <= found.error


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_elsewhere_the_balances_of_the_means_say_how_often_it_is_below(name: str) -> None:
    off, two = SETS[name]["off"], centres(name)
    x = off["x"]
    jobs = ((x[0], x[1]), (x[2], x[3]))
    assert mean_kept(two, jobs) == pytest.approx(off["formula"], rel=1e-12)
    found = walk_law(two, jobs, 1e-4)
    assert np.abs(np.subtract(found.kept, off["formula"])).max() <= found.error
    # the reference's box is small: its own distance from the formula shows its error
    assert found.kept == pytest.approx(off["walk"][:2], abs=2e-2)


@pytest.mark.parametrize(("name", "error"), [("sym", 2e-5), ("asym", 1e-4), ("asym_mu", 1e-2)])
def test_the_boxes_of_the_reference_come_near(name: str, error: float) -> None:
    walk, two = SETS[name]["walk"], centres(name)
    found = walk_law(two, equilibrium(two).jobs, 1e-5)
    assert found.kept == pytest.approx((walk["g1"], walk["g2"]), abs=error)
    if name != "asym_mu":
        means = [
            float((np.arange(n) + low) @ found.law.sum(axis=1 - axis))
            for axis, (n, low) in enumerate(zip(found.law.shape, found.low, strict=True))
        ]
        assert means == pytest.approx(walk["EU"], abs=2e-2)


def test_slack_centres_keep_two_fifths() -> None:
    found = walk_law(SLACK, equilibrium(SLACK).jobs, 1e-9)
    assert found.kept == pytest.approx((0.4, 0.4), abs=1e-9)
    assert found.law.sum() == pytest.approx(1.0, rel=1e-12)
    assert (found.law >= 0.0).all()


jobs_near = st.tuples(*[st.floats(-0.04, 0.04)] * 4)


@given(jobs_near)
@settings(deadline=None, max_examples=6)
def test_means_and_walk_agree_near_the_fixed_point(shift: Any) -> None:
    (a, b), (c, d) = equilibrium(SLACK).jobs
    jobs = ((a + shift[0], b + shift[1]), (c + shift[2], d + shift[3]))
    wanted = mean_kept(SLACK, jobs)
    if not all(0.15 < g < 0.75 for g in wanted):
        return
    found = walk_law(SLACK, jobs, 1e-5)
    assert np.abs(np.subtract(found.kept, wanted)).max() <= found.error + 1e-12


def test_a_walk_that_runs_away_is_refused() -> None:
    with pytest.raises(NoLimitError, match=r"not ergodic: g_0 = 1\.\d+ must be in \(0, 1\)"):
        walk_law(SLACK, ((0.6, 0.4), (0.4, 0.2)))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
@pytest.mark.parametrize("more", [0.05, 0.1499, 0.2])
def test_the_estimated_error_is_no_smaller_than_the_true_one(more: float, tolerance: float) -> None:
    """Far from the fixed point, near the edge of where the walk is ergodic."""
    (a, b), (c, d) = equilibrium(SLACK).jobs
    jobs = ((a, b), (c, d + more))
    found = walk_law(SLACK, jobs, tolerance)
    assert np.abs(np.subtract(found.kept, mean_kept(SLACK, jobs))).max() <= found.error
    assert found.error <= tolerance


def test_a_box_that_grows_too_large_is_refused() -> None:
    with pytest.raises(SolveError, match="on the largest box allowed, of 5000 states") as caught:
        walk_law(SLACK, equilibrium(SLACK).jobs, 1e-10, most_states=5000)
    partial = caught.value.partial
    assert isinstance(partial, WalkLaw)
    assert np.abs(np.subtract(partial.kept, 0.4)).max() <= partial.error


@pytest.mark.parametrize("tolerance", [0.0, 1.0, float("nan")])
def test_tolerances_out_of_range_are_refused(tolerance: float) -> None:
    with pytest.raises(InputError, match="tolerance must be in"):
        walk_law(SLACK, equilibrium(SLACK).jobs, tolerance)


def test_needs_that_are_not_whole_are_refused() -> None:
    two = TwoCentres(SLACK.arrival_rates, (1.0, 1.0), (2.5, 2.0), SLACK.capacities, SLACK.levels)
    with pytest.raises(InputError, match=r"whole numbers for a walk, not \(2.5, 2.0\)"):
        walk_law(two, equilibrium(SLACK).jobs)
