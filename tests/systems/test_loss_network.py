"""Loss networks: the model, its optimum, complete sharing and reservation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.policies.family import Family
from mdpcloud.queues import kaufman_roberts
from mdpcloud.systems import LossNetwork
from tests.models import reference

S2 = reference("allocation")["S2"]
MDP = reference("allocation")["extra_S2mdp_S3transient_S6asym"]["S2_mdp"]


def link(**changes: Any) -> LossNetwork:
    """A link of six slots for narrow and wide jobs."""
    values: dict[str, Any] = {
        "arrival_rates": (3.0, 1.5),
        "service_rates": (1.0, 1.0),
        "requirements": ((1, 2),),
        "capacities": (6.0,),
    }
    return LossNetwork(**(values | changes))


def of_case(case: dict[str, Any]) -> LossNetwork:
    return LossNetwork(case["lam"], case["mu"], case["A"], case["C"], case["w"])


@st.composite
def networks(draw: st.DrawFn) -> LossNetwork:
    """Small networks of two classes."""
    rows = draw(
        st.sampled_from([((1, 2),), ((1, 0), (0, 1)), ((2, 1), (1, 3)), ((1, 1), (0, 2), (3, 1))])
    )
    pair = st.tuples(st.floats(0.2, 6.0), st.floats(0.2, 6.0))
    capacities = tuple(float(draw(st.integers(3, 6))) for _ in rows)
    return LossNetwork(draw(pair), draw(pair), rows, capacities, draw(st.none() | pair))


# --- the finite system ----------------------------------------------------------------------------


@settings(max_examples=30)
@given(networks())
def test_complete_sharing_has_the_measures_of_the_product_form(system: LossNetwork) -> None:
    found = mc.evaluate(system.model(), system.heuristic("complete_sharing").rule, tolerance=1e-12)
    exact = system.exact()
    assert exact is not None
    assert exact.cost == pytest.approx(found.gain, rel=1e-10)
    for j, (rate, blocked) in enumerate(zip(system.arrival_rates, exact.blocking, strict=True)):
        low, high = found.measures[f"rejection_rate[{j}]"]
        assert low - 1e-10 <= rate * blocked <= high + 1e-10
        low, high = found.measures[f"mean_jobs[{j}]"]
        assert low - 1e-10 <= exact.mean_jobs[j] <= high + 1e-10


@pytest.mark.parametrize("case", MDP, ids=lambda case: f"{case['A']}-{case['w']}")
def test_published_optima_and_costs_of_complete_sharing(case: dict[str, Any]) -> None:
    system = of_case(case)
    solution = mc.solve(system.model())
    exact = system.exact()
    assert solution.bounds[0] <= case["opt"] + 1e-12 <= solution.bounds[1] + 2e-12
    assert solution.gain == pytest.approx(case["opt"], rel=1e-9)
    assert solution.values.size == case["states"]
    assert exact is not None
    assert exact.cost == pytest.approx(case["complete_sharing"], rel=1e-13)


@pytest.mark.parametrize("case", MDP[:4], ids=lambda case: f"{case['A']}-{case['w']}")
def test_the_optimum_turns_jobs_away_where_it_is_published(case: dict[str, Any]) -> None:
    model = of_case(case).model()
    policy = mc.solve(model).policy
    columns = np.array([column.ravel() for column in compile_model(model).columns])
    free = case["C"][0] - np.array(case["A"][0]) @ columns
    for j, states in enumerate(case["voluntary_reject_states"]):
        refused = (policy.table(f"arrival {j}").ravel() == 1) & (free >= case["A"][0][j])
        assert columns[:, refused].T.tolist() == states


def best_of(system: LossNetwork, family: Family) -> tuple[float, tuple[float, ...]]:
    model = system.model()
    return min((mc.evaluate(model, family.member(*m)).gain, m) for m in family.members())


def test_equal_jobs_of_different_value_are_best_served_by_reserving_one_slot() -> None:
    system = of_case(MDP[3])
    cost, levels = best_of(system, system.families()[1])
    assert cost == pytest.approx(MDP[3]["opt"], rel=1e-9)
    assert levels == (1, 0)


@settings(max_examples=20)
@given(networks(), st.floats(0.1, 10.0))
def test_faster_time_scales_the_cost(system: LossNetwork, factor: float) -> None:
    faster = LossNetwork(
        tuple(factor * rate for rate in system.arrival_rates),
        tuple(factor * rate for rate in system.service_rates),
        system.requirements,
        system.capacities,
        system.rejection_costs,
    )
    one, other = system.exact(), faster.exact()
    assert one is not None
    assert other is not None
    assert other.cost == pytest.approx(factor * one.cost, rel=1e-12)
    assert other.mean_jobs == pytest.approx(one.mean_jobs, rel=1e-12)


@settings(max_examples=20)
@given(networks())
def test_the_optimum_is_below_complete_sharing_and_above_nothing(system: LossNetwork) -> None:
    optimum = mc.solve(system.model())
    exact = system.exact()
    assert exact is not None
    assert 0.0 <= optimum.bounds[0] <= exact.cost * (1.0 + 1e-12)


def test_the_scale_multiplies_rates_and_capacities() -> None:
    system = link(arrival_rates=(0.8, 0.4), capacities=(1.0,), scale=1000.0)
    exact = system.exact()
    assert exact is not None
    assert exact.blocking == kaufman_roberts(1000, [800.0, 400.0], [1, 2]).blocking
    assert system.notes == ()
    rounded = link(capacities=(1.26,), scale=10.0)
    assert rounded.notes == exact_notes(rounded)
    assert "rounded to 13" in rounded.notes[0]
    assert rounded.model().space.shape == (14, 7)


def exact_notes(system: LossNetwork) -> tuple[str, ...]:
    exact = system.exact()
    assert exact is not None
    return exact.notes


def test_probabilities_below_the_range_of_floats_are_noted() -> None:
    exact = LossNetwork((10.0,), (1.0,), ((1,),), (1000.0,)).exact()
    assert exact is not None
    assert exact.blocking == (0.0,)
    assert exact.notes == ("log10 of the blocking probability of class 0 is -1571.947589",)


def test_a_network_too_large_for_a_sum_has_no_exact_measures() -> None:
    rows = tuple(tuple(int(i == j or j == 3) for j in range(4)) for i in range(3))
    system = LossNetwork((1.0,) * 4, (1.0,) * 4, rows, (1.0,) * 3, scale=1000.0)
    assert system.exact() is None


def test_reservation_by_common_and_by_own_levels() -> None:
    common, each = link().families()
    assert (common.size, each.size) == (7, 49)
    assert best_of(link(), common)[0] == pytest.approx(MDP[0]["complete_sharing"], rel=1e-9)
    assert best_of(link(), each)[0] == pytest.approx(1.30472961856, rel=1e-9)
    assert len(link(capacities=(4000.0,)).families()) == 2
    wide = link(requirements=((1, 40),), capacities=(60.0,))
    assert [family.name for family in wide.families()] == ["common_reservation"]


def test_reservation_looks_at_the_resources_that_a_job_needs() -> None:
    system = LossNetwork((1.0, 1.0), (1.0, 1.0), ((1, 0), (1, 1)), (3.0, 4.0))
    rules = system.families()[1].member(2, 1)
    space = system.model().space
    state = space.axes.state((1, 2))
    assert str(rules["arrival 0"](state)) == "reject"  # 1 of resource 0 and 0 of resource 1 stay
    assert str(rules["arrival 1"](state)) == "reject"
    state = space.axes.state((0, 2))
    assert str(rules["arrival 0"](state)) == "reject"  # 2 of resource 0, but 1 of resource 1
    assert str(rules["arrival 1"](state)) == "accept"


# --- approximation and limit ----------------------------------------------------------------------


def test_the_fixed_point_is_that_of_the_finite_system_in_the_form_asked_for() -> None:
    case = S2["two_resource"]
    half = tuple(c / 2.0 for c in case["C"])
    rates = tuple(rho / 2.0 for rho in case["rho"])
    system = LossNetwork(rates, (1.0, 1.0), case["A"], half, scale=2.0)
    for form in ("kelly", "knapsack"):
        known = case[f"efpa_{form}"]["L"]
        assert system.fixed_point(form).blocking == pytest.approx(known, rel=1e-9)
    for unknown in ("erlang", ["kelly"], None):
        with pytest.raises(InputError, match="form must be one of 'kelly', 'knapsack'"):
            system.fixed_point(unknown)  # type: ignore[arg-type]


def test_the_limit_notes_what_the_fixed_points_say() -> None:
    case = S2["two_resource"]
    notes = LossNetwork(case["rho"], (1.0, 1.0), case["A"], case["C"]).limit().notes
    assert "kelly form: 0.117466, 0.123025" in notes[-2]
    assert "knapsack form: 0.165652, 0.207645" in notes[-1]
    hard = LossNetwork((1e6, 20.0), (1.0, 1.0), ((1, 2), (3, 0)), (4.0, 5.0))
    assert sum("fixed point" in note for note in hard.limit().notes) == 1
    assert not any("fixed point" in note for note in link().limit().notes)


def test_the_limit_is_approached_by_the_exact_measures() -> None:
    dual = S2["kelly_dual"]
    for scale, blocking in dual["finiteN"].items():
        system = LossNetwork(dual["rho"], (1.0, 1.0), dual["A"], dual["c"], scale=float(scale))
        exact, limit = system.exact(), system.limit()
        assert exact is not None
        assert exact.blocking == pytest.approx(blocking, rel=1e-12)
        assert limit.blocking == pytest.approx((0.3, 0.25), abs=limit.errors["blocking"] + 1e-16)
        assert limit.cost == pytest.approx(0.5, abs=1e-14)
        assert limit.notes[:2] == ("resource 0 is saturated", "resource 1 is saturated")
        assert np.array(exact.mean_jobs) / float(scale) == pytest.approx(limit.mean_jobs, rel=0.15)


@settings(max_examples=20)
@given(networks(), st.sets(st.integers(0, 1), min_size=1), st.sampled_from([1.0, 50.0]))
def test_classes_without_arrivals_lose_nothing_and_leave_the_others_as_they_are(
    system: LossNetwork, idle: set[int], load: float
) -> None:
    rates = tuple(load * rate * (j not in idle) for j, rate in enumerate(system.arrival_rates))
    system = replace(system, arrival_rates=rates)
    exact, limit, costs = system.exact(), system.limit(), system.costs
    assert exact is not None
    for found in (exact, limit):
        assert all(found.blocking[j] == found.mean_jobs[j] == 0.0 for j in idle)
        losses = [r * w * b for r, w, b in zip(rates, costs, found.blocking, strict=True)]
        assert found.cost == pytest.approx(sum(losses))
    if len(idle) == 1:
        (j,) = {0, 1} - idle
        used = [i for i, row in enumerate(system.requirements) if row[j]]
        rows = tuple((system.requirements[i][j],) for i in used)
        room = tuple(system.capacities[i] for i in used)
        alone = LossNetwork((rates[j],), (system.service_rates[j],), rows, room)
        one = alone.exact()
        assert one is not None
        assert exact.blocking[j] == pytest.approx(one.blocking[0], rel=1e-10)
        assert limit.blocking[j] == pytest.approx(
            alone.limit().blocking[0], abs=2.0 * limit.errors["blocking"]
        )


@pytest.mark.parametrize(
    ("capacity", "regime"), [(0.9, "overload"), (1.0, "critical"), (1.1, "underload")]
)
def test_regimes_are_named_and_their_boundary_is_noted(capacity: float, regime: str) -> None:
    system = link(arrival_rates=(0.5, 0.25), capacities=(capacity,), scale=10.0)
    limit = system.limit()
    assert limit.regime == regime
    assert (limit.blocking[0] > 0.0) == (regime == "overload")
    assert ("continuous there" in " ".join(limit.notes)) == (regime == "critical")


def test_the_fluid_path_of_a_link_ends_at_the_limit() -> None:
    system = link(arrival_rates=(0.8, 0.4), capacities=(1.0,), scale=100.0)
    path = system.fluid(40.0, times=[0.0, 40.0])
    assert path.labels == ("mean_jobs[0]", "mean_jobs[1]")
    assert path.states[-1] == pytest.approx(system.limit().mean_jobs, abs=1e-7)
    with pytest.raises(NoLimitError, match="one resource only"):
        LossNetwork((1.0,), (1.0,), ((1,), (1,)), (3.0, 4.0)).fluid(1.0)


@settings(max_examples=20)
@given(networks())
def test_the_fluid_bound_is_below_the_optimum(system: LossNetwork) -> None:
    bound = system.fluid_bound()
    assert 0.0 <= bound <= mc.solve(system.model()).bounds[1] * (1 + 1e-12)


@settings(max_examples=20)
@given(networks(), st.floats(1.0, 4.0))
def test_the_fluid_bound_grows_with_the_load_and_is_below_the_limit(
    system: LossNetwork, factor: float
) -> None:
    more = replace(system, arrival_rates=tuple(factor * rate for rate in system.arrival_rates))
    assert system.fluid_bound() <= more.fluid_bound() * (1 + 1e-12)
    assert system.fluid_bound() <= system.limit().cost * (1 + 1e-12)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrival_rates": ()}, "at least 1"),
        ({"arrival_rates": (3.0, -1.0)}, r"arrival_rates\[1\] must be .* >= 0, not -1"),
        ({"service_rates": (1.0, 0.0)}, r"service_rates\[1\] must be .* > 0"),
        ({"service_rates": (1.0,)}, "service_rates has 1 numbers for the 2 classes"),
        ({"requirements": ((1, 2, 3),)}, r"requirements\[0\] has 3 numbers for the 2 classes"),
        ({"requirements": ((1, 2), (1, 2))}, "requirements has 2 rows for 1 capacities"),
        ({"requirements": ((1, -2),)}, r"requirements\[0\]\[1\] must be an integer >= 0"),
        ({"requirements": ((1, 0),)}, "class 1 needs nothing of any resource"),
        ({"requirements": ((1, 7),)}, r"requirements\[0\]\[1\] is 7, more than the 6 units"),
        ({"capacities": (0.2,)}, "it must be"),
        ({"rejection_costs": (1.0,)}, "rejection_costs has 1 numbers"),
        ({"scale": 0.0}, "scale must be a finite number > 0"),
        (
            {"arrival_rates": (1.0, 1e200), "rejection_costs": (1.0, 1e200)},
            r"arrival_rates\[1\] times scale times rejection_costs\[1\] is inf",
        ),
        (
            {"arrival_rates": (1.0, 1e200), "service_rates": (1.0, 1e-200)},
            "over service_rates.1. inf",
        ),
        (
            {"arrival_rates": (1e-200, 1.0), "service_rates": (1e200, 1.0)},
            "over service_rates.0. 0",
        ),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        link(**changes)


def test_unknown_policies_and_caps_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'complete_sharing'"):
        link().heuristic("complete_sharin")
    with pytest.raises(InputError, match="caps are not for loss_network"):
        link().model(caps=(3, 3))


def test_the_example_is_a_system_of_its_name() -> None:
    from mdpcloud.systems.registry import find_system

    assert find_system("loss_network") is LossNetwork
    exact = LossNetwork.example().exact()
    assert exact is not None
    assert exact.blocking == pytest.approx(S2["single_link"]["blocking_KR"], rel=1e-14)
