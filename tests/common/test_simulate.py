"""Every small model simulated under every policy, against `evaluate`.

Standard errors are estimated themselves, here from `BATCHES` batch means of each replication. The
error over its standard error thus has Student's t-distribution, with one degree of freedom less
than there are batches, and `LIMIT` is as unlikely for it as four is for a normal variable (6e-5).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, stdtrit

import mdpcloud as mc
from tests.models import case, cases
from tests.models.routing import instance, routing

EVENTS = 800_000
REPLICATIONS = 8
SEED = 20_261_130
BATCHES = 8
LIMIT = float(stdtrit(REPLICATIONS * BATCHES - 1, ndtr(4.0)))
OPTIMAL = "optimal"


HORIZONS = {"cycle of period two": {"time": 100_000.0}}  # averages over whole periods are equal

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
        **(horizon or HORIZONS.get(name, {"events": EVENTS})),
    )


def standard_error(kept: Any) -> float:
    """Of the mean of a series (replications, segments), from batch means."""
    used = kept.shape[1] // BATCHES * BATCHES
    batches = kept[:, -used:].reshape(REPLICATIONS * BATCHES, -1).mean(axis=1)
    return float(np.std(batches, ddof=1) / np.sqrt(batches.size))


def errors(result: Any, evaluation: Any) -> dict[str, float]:
    """Distance of each estimate from its exact value, in standard errors.

    What the start state may add to the average cost is taken off: the span of the relative values
    over the time of the estimate.
    """
    exact = {"cost": evaluation.bounds, **evaluation.measures}
    found = {"cost": result.gain, **result.measures}
    assert exact.keys() == found.keys()
    start = float(np.ptp(evaluation.values)) / (result.time - result.warm_up)
    off = {}
    for name, (lower, upper) in exact.items():
        value, allowed = found[name].value, 1e-9 + start * (name == "cost")
        gap = max(lower - value, value - upper, allowed) - allowed
        off[name] = gap / max(standard_error(result.kept(name)), 1e-300)
    return off


@pytest.mark.parametrize(("name", "rule"), RUNS)
def test_simulated_gain_and_measures_are_those_of_evaluate(name, rule):
    result = simulated(name, rule)
    evaluation = mc.evaluate(model_of(name), policy_of(name, rule))
    assert result.status == "done"
    assert result.replications == REPLICATIONS
    assert max(errors(result, evaluation).values()) <= LIMIT


@pytest.mark.parametrize("name", ["A2", "B1", "B6"])
def test_a_model_whose_arrivals_are_two_per_cent_too_many_is_found_out(name):
    nodes, arrivals, outside, caps = instance(name)
    right, wrong = (routing(nodes, rate, outside, caps) for rate in (arrivals, 1.02 * arrivals))
    policy = policy_of(f"routing {name}" + ", wide" * (name == "A2"), "individually optimal")
    evaluation = mc.evaluate(right, policy)
    for model, low, high in ((right, 0.0, LIMIT), (wrong, LIMIT, np.inf)):
        result = mc.simulate(model, policy, rng=SEED, events=2 * EVENTS)
        assert low <= max(errors(result, evaluation).values()) <= high


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
        assert abs(found.value - (exact[0] - exact[1])) <= LIMIT * found.standard_error


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
