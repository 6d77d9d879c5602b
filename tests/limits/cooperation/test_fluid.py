"""The fluid limit of two cooperating centres: reference, small steps, and where it settles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.cooperation.equilibrium import TwoCentres, conditions, equilibrium
from mdpcloud.limits.cooperation.fluid import trajectory
from mdpcloud.limits.cooperation.point import fixed_point
from tests.models import reference

SETS = reference("allocation")["S4"]
WAS_INTEGRATED_TO = 1e-8  # the reference's trajectories


def centres(name: str, **more: Any) -> TwoCentres:
    """A set of the reference."""
    s = SETS[name]
    cap = s["cap"]
    given: dict[str, Any] = {
        "arrival_rates": tuple(map(tuple, s["lam_jk"])),
        "service_rates": tuple(s["mu"]),
        "needs": (float(s["R"]), float(s["C"])),
        "capacities": (tuple(cap[:2]), tuple(cap[2:])),
        "levels": (s["delta"][0] * cap[0], s["delta"][1] * cap[3]),
    }
    return TwoCentres(**{**given, **more})


def in_small_steps(two: TwoCentres, x: Any, horizon: float, step: float) -> Any:
    """Euler's method with the rule of the policy itself, which chatters along thresholds."""
    (l00, l01), (l10, l11) = two.arrival_rates
    (r, c), (m0, m1) = two.needs, two.service_rates
    x00, x01, x10, x11 = x
    for _ in range(round(horizon / step)):
        g0 = r * x00 + x10 < two.levels[0]
        g1 = x01 + c * x11 < two.levels[1]
        x00, x01, x10, x11 = (
            x00 + step * (l00 * g0 - m0 * x00),
            x01 + step * (l01 + l00 * (1 - g0) - m0 * x01),
            x10 + step * (l10 + l11 * (1 - g1) - m1 * x10),
            x11 + step * (l11 * g1 - m1 * x11),
        )
    return np.array([x00, x01, x10, x11])


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_trajectories_are_those_of_the_reference(name: str) -> None:
    wanted = SETS[name]["ode"]
    times = [float(t) for t in wanted]
    found = trajectory(centres(name), times[-1], times=times)
    assert found.states == pytest.approx(np.array(list(wanted.values())), abs=WAS_INTEGRATED_TO)
    assert found.error <= 1e-8
    assert found.labels == ("mean_jobs[0][0]", "mean_jobs[0][1]", "mean_jobs[1][0]",
                            "mean_jobs[1][1]")  # fmt: skip


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_thresholds_are_reached_when_the_reference_says(name: str) -> None:
    two = centres(name)
    found = trajectory(two, 20.0)
    for time, sides, state in SETS[name]["ode_events"]:
        now = [what for at, what in found.changes if abs(at - time) < WAS_INTEGRATED_TO]
        assert len(now) == (2 if name == "sym" else 1)
        assert all("reaches" in what for what in now)
        assert len({what for at, what in found.changes if at <= time + 1e-6}) == sides.count("s")
        x = trajectory(two, time, times=[time]).states[0]
        assert x == pytest.approx(state, abs=1e-7)
    assert len(found.changes) == 2


def test_symmetric_centres_reach_their_thresholds_at_once_at_the_logarithm() -> None:
    found = trajectory(centres("sym"), 3.0)
    assert [at for at, _ in found.changes] == pytest.approx([math.log(1.1 / 0.2)] * 2, abs=1e-11)


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu"])
def test_along_thresholds_their_use_does_not_change(name: str) -> None:
    two = centres(name)
    found = trajectory(two, 10.0)
    after = found.times > found.changes[-1][0]
    x = found.states[after]
    assert two.needs[0] * x[:, 0] + x[:, 2] == pytest.approx(np.full(len(x), two.levels[0]))
    assert two.needs[1] * x[:, 3] + x[:, 1] == pytest.approx(np.full(len(x), two.levels[1]))


ROOMY = centres("asym", capacities=((9.0, 9.0), (9.0, 9.0)))


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4))
@settings(deadline=None, max_examples=25)
def test_every_trajectory_settles_in_the_fixed_point(start: list[float]) -> None:
    found = trajectory(ROOMY, 30.0, start, times=[30.0])
    jobs = equilibrium(ROOMY).jobs
    assert found.states[0] == pytest.approx(np.ravel(jobs), abs=1e-8)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
    st.tuples(*[st.floats(0.05, 1.0)] * 4),
    st.tuples(st.floats(0.3, 2.0), st.floats(0.3, 2.0)),
    st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([2.0, 4.0])),
    st.tuples(st.floats(0.1, 2.5), st.floats(0.1, 2.5)),
)
@settings(deadline=None, max_examples=15)
def test_small_steps_by_the_policy_itself_come_to_the_same_states(
    start: list[float], rates: Any, services: Any, needs: Any, levels: Any
) -> None:
    two = TwoCentres((rates[:2], rates[2:]), services, needs, ((99.0, 99.0), (99.0, 99.0)), levels)
    step = 1e-3
    found = trajectory(two, 3.0, start, times=[1.0, 3.0])
    for time, state in zip((1.0, 3.0), found.states, strict=True):
        near = in_small_steps(two, start, time, step)
        assert state == pytest.approx(near, abs=40 * step)
    assert found.states.min() >= -found.error


amounts = st.just(0.0) | st.floats(1e-3, 2.0)


@given(st.tuples(*[amounts] * 4), st.tuples(amounts, amounts))
@settings(deadline=None, max_examples=25)
def test_in_every_regime_the_empty_system_settles_in_the_fixed_point(
    rates: Any, levels: Any
) -> None:
    two = TwoCentres(
        (rates[:2], rates[2:]), (1.0, 0.5), (2.0, 3.0), ((99.0, 99.0), (99.0, 99.0)), levels
    )
    found = trajectory(two, 60.0, times=[60.0])
    assert found.states[0] == pytest.approx(np.ravel(fixed_point(two).jobs), abs=1e-6)


def test_a_trajectory_on_the_boundary_of_a_regime_is_found() -> None:
    """The use rises to the threshold exactly, and never reaches it."""
    two = centres("sym", levels=(1.1, 1.1), capacities=((2.0, 2.0), (2.0, 2.0)))
    found = trajectory(two, 60.0)
    assert found.states[-1] == pytest.approx([0.5, 0.1, 0.1, 0.5], abs=1e-9)


def test_a_trajectory_that_uses_up_a_resource_is_refused() -> None:
    two = centres("sym", levels=(1.05, 1.05))
    with pytest.raises(NoLimitError, match=r"uses up resource 0 of centre 0, capacity 1, where"):
        trajectory(two, 10.0)


def test_a_trajectory_to_a_threshold_at_the_capacity_is_refused() -> None:
    with pytest.raises(NoLimitError, match="uses up resource 0 of centre 0"):
        trajectory(centres("sym", levels=(1.0, 1.0)), 10.0)


def test_a_trajectory_from_above_a_threshold_falls_to_it() -> None:
    """Centre 0 is full of jobs of its own type and sends all that come, until 0.9 is in use."""
    found = trajectory(centres("sym"), 0.5, (0.5, 0.0, 0.0, 0.0))
    time, what = found.changes[0]
    assert what == "centre 0 falls to its threshold"
    # 2 * 0.5 exp(-t) + 0.1 (1 - exp(-t)) = 0.9
    assert time == pytest.approx(math.log(0.9 / 0.8), abs=1e-10)


def test_a_start_at_a_capacity_that_is_left_at_once_is_taken() -> None:
    found = trajectory(centres("sym"), 20.0, (0.5, 0.0, 0.0, 0.0), times=[20.0])
    assert found.states[0] == pytest.approx([0.3] * 4, abs=1e-7)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ((0.0, 0.0, 0.0), "start must be four numbers >= 0"),
        ((0.0, 0.0, 0.0, -0.1), "start must be four numbers >= 0"),
        ((0.0, 0.0, 0.0, math.nan), "start must be four numbers >= 0"),
        ((0.6, 0.0, 0.0, 0.0), "uses 0.2 more than the capacity of resource 0 in centre 0, 1"),
    ],
)
def test_bad_starts_are_refused(start: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trajectory(centres("sym"), 1.0, start)


def test_equal_jobs_are_refused() -> None:
    with pytest.raises(NoLimitError, match="R C = 1 x 1 must be > 1"):
        trajectory(centres("sym", needs=(1.0, 1.0)), 1.0)
    with pytest.raises(NoLimitError):
        conditions(centres("sym", needs=(1.0, 1.0)))
