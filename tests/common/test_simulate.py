"""Every small model simulated under every policy, against `evaluate`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import mdpcloud as mc
from tests.common.batches import excess, four_errors
from tests.common.random_models import returning_models
from tests.models import case, cases
from tests.models.routing import instance, routing

EVENTS = 800_000
REPLICATIONS = 8
SEED = 20_261_130
OPTIMAL = "optimal"

RUNS = [
    pytest.param(one.name, rule, id=f"{one.name}-{rule}")
    for one in cases()
    for rule in one.heuristics or (OPTIMAL,)
]


@cache
def model_of(name: str) -> Any:
    return case(name).build()


@cache
def policy_of(name: str, rule: str) -> Any:
    if rule == OPTIMAL:
        return mc.solve(model_of(name)).policy
    return case(name).heuristics[rule].rules


def simulated(name: str, rule: str, rng: Any = SEED, n_jobs: int = 1, **horizon: Any) -> Any:
    return mc.simulate(
        model_of(name),
        policy_of(name, rule),
        rng=rng,
        replications=REPLICATIONS,
        n_jobs=n_jobs,
        **(horizon or {"events": EVENTS}),
    )


def worst(result: Any, evaluation: Any) -> float:
    """The largest error of the gain and the measures, over what is allowed.

    What the start state may add to the average cost is allowed as well: the span of the relative
    values over the time of the estimate.
    """
    assert result.measures.keys() == evaluation.measures.keys()
    start = float(np.ptp(evaluation.values)) / (result.time - result.warm_up)
    found = []
    for name, (lower, upper) in {"cost": evaluation.bounds, **evaluation.measures}.items():
        estimate = result.gain if name == "cost" else result.measures[name]
        assert estimate.value == pytest.approx(result.kept(name).mean(), rel=1e-12, abs=1e-12)
        slack = 1e-9 + start * (name == "cost")
        found.append(excess(result.kept(name), lower - slack, upper + slack))
    return max(found)


@pytest.mark.filterwarnings("ignore:the same all the time")
@pytest.mark.parametrize(("name", "rule"), RUNS)
def test_simulated_gain_and_measures_are_those_of_evaluate(name, rule):
    result = simulated(name, rule)
    evaluation = mc.evaluate(model_of(name), policy_of(name, rule))
    assert result.status == "done"
    assert result.replications == REPLICATIONS
    assert worst(result, evaluation) <= 1.0


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(returning_models(decades=0.5), st.integers(0, 2**32 - 1))
def test_random_models_cost_what_evaluate_says(model, seed):
    policy = mc.solve(model).policy
    try:
        result = mc.simulate(model, policy, rng=seed, events=EVENTS // 4)
    except mc.SimulationWarning:  # standard errors are those of runs that are long enough
        reject()
    assert worst(result, mc.evaluate(model, policy)) <= 1.0


@pytest.mark.parametrize("name", ["A2", "B1", "B6"])
def test_a_model_whose_arrivals_are_two_per_cent_too_many_is_found_out(name):
    nodes, arrivals, outside, caps = instance(name)
    right, wrong = (routing(nodes, rate, outside, caps) for rate in (arrivals, 1.02 * arrivals))
    policy = policy_of(f"routing {name}" + ", wide" * (name == "A2"), "individually optimal")
    evaluation = mc.evaluate(right, policy)
    for model, is_found_out in ((right, False), (wrong, True)):
        result = mc.simulate(model, policy, rng=SEED, events=2 * EVENTS)
        assert (worst(result, evaluation) > 1.0) is is_found_out


PAIRS = [
    ("routing B1", "individually optimal", "first free"),
    ("replacement, dense", "from 1", "from 2"),
    ("trunk reservation", "reserve 0", "reserve 1"),
    ("service-rate control", "steep", "best"),
    ("jsq", "shorter", "at random"),
]


@pytest.mark.parametrize(("name", "first", "second"), PAIRS)
def test_common_random_numbers_make_the_interval_of_a_difference_narrower(name, first, second):
    a = simulated(name, first, events=EVENTS // 2)
    b, independent = (simulated(name, second, rng=seed, time=a.time) for seed in (SEED, SEED + 1))
    paired, apart = a.difference(b), a.difference(independent)
    exact = [mc.evaluate(model_of(name), policy_of(name, r)).gain for r in (first, second)]
    assert paired.half_width < apart.half_width
    for found in (paired, apart):
        assert (
            abs(found.value - (exact[0] - exact[1]))
            <= four_errors(REPLICATIONS) * found.standard_error
        )


@pytest.mark.parametrize(
    ("name", "rule"),
    [("routing C6", "individually optimal"), ("taxicab", "first alternatives")],
)
def test_results_do_not_depend_on_the_number_of_jobs(name, rule):
    one, two = (simulated(name, rule, n_jobs=jobs, events=EVENTS // 4) for jobs in (1, 2))
    np.testing.assert_array_equal(one.series, two.series)
    assert (one.gain, one.measures, one.warm_up) == (two.gain, two.measures, two.warm_up)
    assert (one.events, one.time, one.status) == (two.events, two.time, two.status)


@pytest.mark.parametrize("rng", [7, np.random.SeedSequence(7)])
def test_equal_seeds_give_equal_results_and_others_do_not(rng):
    first, again, other = (
        simulated("routing B1", "first free", r, events=EVENTS // 4) for r in (rng, rng, 8)
    )
    np.testing.assert_array_equal(first.series, again.series)
    assert first.gain.value != other.gain.value
