"""The yardstick of simulation and the instances that are measured."""

import numpy as np
import pytest

import mdpcloud as mc
from benchmarks.many_nodes import many_nodes, with_service
from benchmarks.plain_simulation import exponentials, follow_indices, follow_table
from benchmarks.simulation import ThreeNodes, check

NODES = tuple(mc.systems.Node(*numbers) for numbers in ((3, 1.0, 0.5), (2, 2.0, 0.4), (1, 4.0, 1)))
SYSTEM = mc.systems.CloudRouting(NODES, arrival_rate=11.0, outside_cost=0.6)
SMALL = ThreeNodes(SYSTEM, (16, 14, 12))
GIVEN = NODES, SYSTEM.arrival_rate, SYSTEM.outside_cost


def test_prices_send_jobs_where_the_rule_does():
    rule, prices = SMALL.policies["index rule"], SMALL.prices()
    last = prices.shape[1] - 1
    grid = np.indices((last + 1,) * 3)
    best, action = np.full(grid.shape[1:], SYSTEM.outside_cost), np.zeros(grid.shape[1:], int)
    for k in (2, 1, 0):
        cheaper = prices[k][grid[k]] < best
        best, action = np.where(cheaper, prices[k][grid[k]], best), np.where(cheaper, k + 1, action)
    told = mc.policy(SYSTEM.model((last,) * 3), rule).table()
    inside = (slice(0, last),) * 3  # at its cap a node takes no job
    assert np.array_equal(action[inside], told[inside])


@pytest.mark.parametrize("policy", ["index rule", "optimal table"])
def test_the_yardstick_has_the_certified_gain(policy):
    known = SMALL.certified(policy)
    if policy == "index rule":
        runs = [follow_indices(*GIVEN, SMALL.prices(), 200_000, seed).gain for seed in range(10)]
    else:
        table = SMALL.policies[policy].table()
        runs = [follow_table(*GIVEN, table, 200_000, seed).gain for seed in range(10)]
    error = np.std(runs, ddof=1) / np.sqrt(len(runs))
    assert abs(np.mean(runs) - known) < 4.5 * error
    assert error < 0.01 * known


def test_the_yardstick_takes_the_time_of_its_events():
    found = follow_indices(*GIVEN, SMALL.prices(), 400_000, 3)
    outsourced = mc.evaluate(SMALL.model, SMALL.policies["index rule"]).measures["outsourcing_rate"]
    per_time = 2 * SYSTEM.arrival_rate - float(np.mean(outsourced))
    assert 400_000 / found.time == pytest.approx(per_time, rel=0.01)


def test_exponentials_have_mean_one():
    assert exponentials(4096 * 2000, 5) / 2000 == pytest.approx(1.0, abs=0.1)


def test_a_gain_outside_its_interval_stops_the_measurement():
    check("near", 1.05, 1.0, 0.03)
    check("by hand", 1.02, 1.0, np.nan)
    for wrong in ((1.07, 1.0, 0.03), (1.04, 1.0, np.nan), (np.nan, 1.0, 0.03)):
        with pytest.raises(AssertionError):
            check("far", *wrong)


def test_many_nodes_are_the_same_every_time_and_differ_from_each_other():
    system = many_nodes(50)
    assert system == many_nodes(50)
    assert len(set(system.nodes)) == 50
    capacity = sum(node.servers * node.service_rate for node in system.nodes)
    assert system.arrival_rate == pytest.approx(1.05 * capacity)


def test_services_of_other_laws_have_the_means_of_the_system():
    law = mc.laws.Deterministic()
    changed = with_service(SYSTEM, law)
    assert all(node.service == law for node in changed.nodes)
    assert with_service(changed, None) == SYSTEM
