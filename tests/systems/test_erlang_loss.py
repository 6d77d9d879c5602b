"""Erlang's loss system: closed form, model, limit, corrections."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.systems import ErlangLoss
from mdpcloud.systems.registry import find_system
from tests.models import reference

S1 = reference("allocation")["S1"]


@pytest.mark.parametrize("case", S1["erlang_B"], ids=lambda case: f"{case['C']}-{case['rho']:g}")
def test_published_probabilities_up_to_a_million_servers(case: dict[str, Any]) -> None:
    system = ErlangLoss(case["C"], case["rho"], 1.0)
    exact = system.exact()
    allowed = exact.errors["blocking"] + 1e-13 * case["B"]
    assert exact.blocking[0] == pytest.approx(case["B"], abs=allowed)
    assert system.limit().blocking[0] == pytest.approx(case["limit"], abs=1e-15)


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 2000), st.integers(1, 64))
def test_measures_are_exact_within_their_errors(servers: int, arrivals: int, services: int) -> None:
    exact = ErlangLoss(float(servers), arrivals / 8.0, services / 16.0).exact()
    load = Fraction(2 * arrivals, services)
    weights = [load**n / math.factorial(n) for n in range(servers + 1)]
    blocking = weights[-1] / sum(weights)
    for found, truth, name in (
        (exact.blocking[0], blocking, "blocking"),
        (exact.mean_jobs[0], load * (1 - blocking), "mean_jobs"),
        (exact.cost, Fraction(arrivals, 8) * blocking, "cost"),
    ):
        assert abs(Fraction(found) - truth) <= Fraction(exact.errors[name])


@settings(max_examples=20)
@given(st.integers(1, 30), st.floats(0.1, 60.0), st.floats(0.1, 5.0))
def test_the_model_has_the_measures_of_the_closed_form(
    servers: int, arrivals: float, services: float
) -> None:
    system = ErlangLoss(float(servers), arrivals, services)
    found, exact = mc.evaluate(system.model(), {}, tolerance=1e-12), system.exact()
    assert found.gain == pytest.approx(exact.cost, rel=1e-9, abs=1e-12)
    low, high = found.measures["mean_jobs[0]"]
    assert low - 1e-9 <= exact.mean_jobs[0] <= high + 1e-9
    assert mc.solve(system.model()).gain == pytest.approx(exact.cost, rel=1e-7, abs=1e-9)


decades = st.floats(-280.0, 280.0).map(lambda power: 10.0**power)


@settings(max_examples=100)
@given(st.integers(1, 6), decades, st.sampled_from([1e-4, 1.0, 300.0]))
@example(1, 1e16, 1.0)
@example(5, 1e18, 1.0)
@example(5, 3e16, 1.0)
@example(3, 1e-17, 1.0)
def test_loads_of_any_size_have_measures_within_their_errors(
    servers: int, arrivals: float, services: float
) -> None:
    system = ErlangLoss(float(servers), arrivals, services)
    exact, limit = system.exact(), system.limit()
    load = Fraction(arrivals) / Fraction(services)
    weights = [load**n / math.factorial(n) for n in range(servers + 1)]
    blocking = weights[-1] / sum(weights)
    for found, truth, name in (
        (exact.blocking[0], blocking, "blocking"),
        (exact.mean_jobs[0], load * (1 - blocking), "mean_jobs"),
        (exact.cost, Fraction(arrivals) * blocking, "cost"),
    ):
        assert abs(Fraction(found) - truth) <= Fraction(exact.errors[name])
    assert exact.errors["mean_jobs"] <= 1e-13 * min(servers, load)
    assert abs(Fraction(limit.blocking[0]) - max(1 - servers / load, 0)) <= Fraction(
        limit.errors["blocking"]
    )
    found = system.corrected()
    assert found.lower <= blocking <= found.upper


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1e200, 1e-200), "arrival_rate times scale over service_rate"),
        ((1.0, 1e-200, 1e200), "arrival_rate times scale over service_rate"),
        ((1e-200, 1e200, 1.0, 1e201), "arrival_rate times scale is inf"),
    ],
)
def test_loads_beyond_the_range_of_floats_are_refused(
    arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ErlangLoss(*arguments)


def test_the_comparison_knows_the_cost_in_closed_form() -> None:
    found = mc.compare(ErlangLoss(10.0, 10.0, 1.0))
    (row,) = found.rows
    assert row.lower <= 10.0 * 0.21458234310734736 <= row.upper
    low, high = row.measures["blocking[0]"]
    assert low <= 0.21458234310734736 <= high
    assert found.optimum.lower <= row.upper


def test_probabilities_below_the_range_of_floats_are_noted() -> None:
    exact = ErlangLoss(1000.0, 10.0, 1.0).exact()
    assert exact.blocking == (0.0,)
    assert exact.notes == ("log10 of the blocking probability is -1571.947589",)


@given(st.floats(0.01, 5.0), st.floats(1.0, 300.0))
def test_the_limit_and_its_correction_are_of_the_finite_system(load: float, scale: float) -> None:
    system = ErlangLoss(2.0, 2.0 * load, 1.0, scale=scale)
    exact, found = system.exact().blocking[0], system.corrected()
    assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
    limit = system.limit()
    assert limit.blocking[0] == pytest.approx(max(1.0 - 1.0 / load, 0.0), abs=1e-15)
    assert limit.mean_jobs[0] == pytest.approx(min(2.0 * load, 2.0))
    assert limit.cost == pytest.approx(2.0 * load * limit.blocking[0])


def test_regimes_are_named() -> None:
    regimes = {load: ErlangLoss(1.0, load, 1.0).limit().regime for load in (0.5, 1.0, 2.0)}
    assert regimes == {0.5: "underload", 1.0: "critical", 2.0: "overload"}
    thirds = ErlangLoss(0.1, 0.3, 3.0, scale=100).limit()
    assert thirds.regime == "critical"
    assert "square root" in thirds.notes[1]


def test_the_fluid_path_fills_the_servers_and_stays() -> None:
    path = ErlangLoss(1.0, 2.0, 1.0, scale=10.0).fluid(3.0, times=[0.5, 3.0])
    assert path.states.ravel() == pytest.approx([2.0 * (1.0 - math.exp(-0.5)), 1.0], abs=1e-8)
    assert path.changes[0][0] == pytest.approx(math.log(2.0), abs=1e-8)
    empty = ErlangLoss(1.0, 0.5, 2.0).fluid(50.0, start=[1.0], times=[50.0])
    assert empty.states.ravel() == pytest.approx([0.25], abs=1e-8)


@given(st.integers(1, 50), st.floats(0.1, 200.0))
def test_the_fluid_bound_is_below_the_cost(servers: int, arrivals: float) -> None:
    system = ErlangLoss(float(servers), arrivals, 1.0)
    assert system.fluid_bound() <= system.exact().cost
    assert system.fluid_bound() >= (arrivals - servers) * (1 - 1e-12)


def test_rounded_servers_are_noted() -> None:
    system = ErlangLoss(1.25, 1.0, 1.0, scale=10.0)
    assert system.model().space.shape == (14,)
    assert system.notes == system.exact().notes
    assert "rounded to 13" in system.notes[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 1.0), "servers must be a finite number > 0"),
        ((2, 0.0, 1.0), "arrival_rate must be"),
        ((2, 1.0, -1.0), "service_rate must be"),
        ((2, 1.0, np.nan), "service_rate must be"),
        ((0.3, 1.0, 1.0), "it must be"),
    ],
)
def test_bad_parameters_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ErlangLoss(*arguments)


def test_unknown_policies_and_caps_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'complete_sharing'"):
        ErlangLoss.example().heuristic("complete")
    with pytest.raises(InputError, match="caps are not for erlang_loss"):
        ErlangLoss.example().model(caps=(3,))
    assert find_system("erlang_loss") is ErlangLoss
