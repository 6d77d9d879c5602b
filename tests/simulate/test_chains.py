"""Chains given by arrays: against exact stationary laws, and step by step against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from scipy import sparse

import mdpcloud as mc
from mdpcloud.simulate.chains import BUFFER, MOST_CHANGES, MOST_STATES, chain_simulation

STEPS = 400_000
ERRORS = 4.0  # standard errors, known exactly


def random_rows(rng: np.random.Generator, rows: int, n: int) -> Any:
    """Probabilities, half of them 0; state 0 is always possible, so there is one class."""
    weights = rng.exponential(size=(rows, n)) * (rng.random((rows, n)) < 0.5)
    weights[:, 0] += 0.1
    return weights / weights.sum(axis=1, keepdims=True)


def random_tabular(seed: int, n: int = 8, actions: int = 3, rewards: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    steps = np.stack([random_rows(rng, n, n) for _ in range(actions)])
    worth = rng.normal(size=(n, actions))
    return mc.tabular(steps, rewards=worth) if rewards else mc.tabular(steps, costs=worth)


def random_rule(seed: int, n: int = 8, actions: int = 3) -> Any:
    return np.random.default_rng(seed + 1000).integers(actions, size=n)


def under(model: Any, actions: Any) -> tuple[Any, Any]:
    """Transition matrix and cost of a deterministic policy."""
    rows = np.flatnonzero(model.action == np.asarray(actions)[model.state])
    return model.transitions[rows].toarray(), model.cost[rows]


def steps_error(matrix: Any, cost: Any, steps: float) -> tuple[float, float]:
    """Mean cost of a chain in discrete time, and the standard error of its average over steps.

    Variance per step pi (2 f h - f^2) with f = c - g and h = f + P h (Meyn and Tweedie 2009, 17.4).
    """
    n = len(cost)
    law = np.linalg.solve((np.eye(n) - matrix + 1.0).T, np.ones(n))
    gain = float(law @ cost)
    excess = cost - gain
    h = np.linalg.solve(np.eye(n) - matrix + law, excess)
    return gain, float(np.sqrt(law @ (2.0 * excess * h - excess**2) / steps))


def mean_cost(simulation: Any, seed: int = 1, time: float = STEPS) -> float:
    return float(simulation.path(SeedSequence(seed)).advance(1, time)[0, 0])


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_of_a_policy_is_that_of_evaluate(seed):
    model, rule = random_tabular(seed), random_rule(seed)
    gain, error = steps_error(*under(model, rule), STEPS)
    assert gain == pytest.approx(mc.evaluate(model, rule).gain, abs=1e-9)
    assert abs(mean_cost(chain_simulation(model, rule)) - gain) <= ERRORS * error


@pytest.mark.parametrize("seed", range(3))
def test_the_cost_of_a_randomised_policy_is_that_of_evaluate(seed):
    model = random_tabular(seed)
    share = np.random.default_rng(seed).dirichlet(np.ones(3), size=8).T
    matrix = sum(share[a][:, None] * under(model, np.full(8, a))[0] for a in range(3))
    cost = sum(share[a] * under(model, np.full(8, a))[1] for a in range(3))
    gain, error = steps_error(matrix, cost, STEPS)
    policy = mc.policy(model, dict(enumerate(share)))
    assert gain == pytest.approx(mc.evaluate(model, policy).gain, abs=1e-9)
    assert abs(mean_cost(chain_simulation(model, policy)) - gain) <= ERRORS * error


def test_a_solution_stands_for_its_policy_and_rewards_are_delivered_as_costs():
    model = random_tabular(3, rewards=True)
    solution = mc.solve(model)
    simulation = chain_simulation(model, solution)
    gain, error = steps_error(*under(model, solution.policy.table()), STEPS)
    assert simulation.sense == -1
    assert -gain == pytest.approx(solution.gain, abs=1e-7)
    assert abs(mean_cost(simulation) - gain) <= ERRORS * error
    path = chain_simulation(model, solution.policy).path(SeedSequence(1))
    assert path.advance(1, STEPS)[0, 0] == mean_cost(simulation)


@pytest.mark.parametrize("discrete", [True, False])
def test_shares_of_time_are_the_stationary_law(discrete):
    rng = np.random.default_rng(7)
    matrix = random_rows(rng, 6, 6)
    speed = np.ones(6) if discrete else 10.0 ** rng.uniform(-1, 1, 6)
    generator = speed[:, None] * (matrix - np.eye(6))
    chain = (
        mc.markov_chain(transition_matrix=matrix)
        if discrete
        else mc.markov_chain(generator=generator)
    )
    time = 200_000.0
    path = chain_simulation(chain).path(SeedSequence(5), ["state"])
    path.advance(3, time / 3)
    shares = path.record("state").occupation.mean(axis=0)
    law = mc.stationary(chain)
    for x in range(6):
        excess = (np.arange(6) == x) - law[x]
        h = np.linalg.solve(law - generator, excess)
        variance = law @ (2.0 * excess * h - discrete * excess**2)
        assert abs(shares[x] - law[x]) <= ERRORS * np.sqrt(variance / time)


def replayed(matrix: Any, cost: Any, seed: int, steps: int, start: int = 0) -> tuple[Any, Any]:
    """States of a chain in discrete time, by searches in sums; and the integral of the cost."""
    uniforms = np.random.Generator(np.random.SFC64(SeedSequence(seed))).random(steps)
    sums = np.cumsum(matrix, axis=1)
    sums[:, -1] = 1.0
    states = [start]
    for uniform in uniforms:
        states.append(int(np.searchsorted(sums[states[-1]], uniform, side="right")))
    return np.array(states), np.append(0.0, np.cumsum(cost[states]))


lengths = st.one_of(st.integers(1, 7).map(float), st.floats(0.05, 7.0))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), lengths, st.integers(1, 40))
def test_a_path_in_steps_is_that_of_plain_python_also_over_parts_of_a_step(seed, length, segments):
    model, rule = random_tabular(seed), random_rule(seed)
    matrix, cost = under(model, rule)
    last = int(np.ceil(segments * length)) + 1
    states, integral = replayed(matrix, cost, seed, last)
    path = chain_simulation(model, rule).path(SeedSequence(seed), ["state"])
    averages = path.advance(segments, length)[:, 0]
    ends = length * np.arange(segments + 1)
    exact = np.diff(np.interp(ends, np.arange(last + 2), integral)) / length
    np.testing.assert_allclose(averages, exact, atol=1e-9 / length)
    record = path.record("state")
    np.testing.assert_allclose(record.occupation.sum(axis=1), 1.0, atol=1e-9 / length)
    changes = np.flatnonzero(np.diff(states, prepend=-1))
    kept = record.times.size
    np.testing.assert_allclose(record.times, changes[:kept], atol=1e-9)
    np.testing.assert_array_equal(record.values, states[changes[:kept]])
    assert kept >= np.count_nonzero(changes < segments * length - 1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 30.0), st.integers(1, 9), st.booleans())
def test_cutting_a_run_into_pieces_changes_nothing(seed, length, first, discrete):
    matrix = random_rows(np.random.default_rng(seed), 5, 5)
    chain = (
        mc.markov_chain(transition_matrix=matrix)
        if discrete
        else mc.markov_chain(generator=3.0 * (matrix - np.eye(5)))
    )
    simulation = chain_simulation(chain, start=4)
    whole, cut = (simulation.path(SeedSequence(seed), ["state"]) for _ in range(2))
    together = whole.advance(10, length)
    apart = np.concatenate([cut.advance(first, length), cut.advance(10 - first, length)])
    np.testing.assert_array_equal(together, apart)
    assert whole.events == cut.events
    for one, other in zip(_arrays(whole), _arrays(cut), strict=True):
        np.testing.assert_array_equal(one, other)


def _arrays(path: Any) -> tuple[Any, ...]:
    record = path.record("state")
    return record.times, record.values, record.occupation


def test_a_run_longer_than_the_buffers_is_that_of_plain_python():
    model, rule = random_tabular(2), random_rule(2)
    steps = 2 * BUFFER + 17
    _, integral = replayed(*under(model, rule), 4, steps)
    path = chain_simulation(model, rule).path(SeedSequence(4), ["state"])
    averages = path.advance(steps, 1.0)[:, 0]
    np.testing.assert_allclose(averages, np.diff(integral)[:steps], atol=1e-12)
    assert path.events == steps - 1  # the last step has not ended
    assert path.record("state").times.size == MOST_CHANGES


def test_other_lengths_of_segments_go_on_where_the_path_was():
    model, rule = random_tabular(5), random_rule(5)
    simulation = chain_simulation(model, rule)
    mixed, plain = (simulation.path(SeedSequence(2), ["state"]) for _ in range(2))
    parts = [*mixed.advance(4, 2.5)[:, 0] * 2.5, *mixed.advance(5, 2.0)[:, 0] * 2.0]
    assert sum(parts) == pytest.approx(plain.advance(1, 20.0)[0, 0] * 20.0)
    np.testing.assert_array_equal(mixed.record("state").times, plain.record("state").times)


def test_equal_seeds_give_equal_paths_and_others_do_not():
    simulation = chain_simulation(random_tabular(1), random_rule(1))
    assert mean_cost(simulation, 3) == mean_cost(simulation, 3)
    assert mean_cost(simulation, 3) != mean_cost(simulation, 4)


def test_paths_of_neighbouring_policies_stay_together():
    model, rule = random_tabular(6), random_rule(6)
    other = rule.copy()
    other[7] = (other[7] + 1) % 3
    paths = [chain_simulation(model, r).path(SeedSequence(8)) for r in (rule, other)]
    costs = np.array([path.advance(400, 100.0)[:, 0] for path in paths])
    apart = costs[0].var() + costs[1].var()
    assert np.var(costs[0] - costs[1]) < 0.6 * apart


def test_steps_that_stay_are_counted_and_a_rare_move_is_not_lost():
    chance = 1e-5
    chain = mc.markov_chain(transition_matrix=[[1 - chance, chance], [chance, 1 - chance]])
    path = chain_simulation(chain).path(SeedSequence(1), ["state"])
    path.advance(1, 2e6)
    changes = path.record("state").times.size - 1
    assert path.events == 2_000_000 - 1
    assert abs(changes - 20) <= ERRORS * np.sqrt(20)


def test_a_probability_below_the_rounding_of_one_does_not_make_a_state_a_trap():
    chain = mc.markov_chain(transition_matrix=[[1.0, 1e-17], [1.0, 0.0]], normalise=True)
    path = chain_simulation(chain, start=1).path(SeedSequence(0))
    path.advance(1, 100.0)
    assert path.absorbed is None


def test_rows_that_sum_to_almost_one_go_nowhere_else():
    third = 0.3333333333
    chain = mc.markov_chain(transition_matrix=[[0, third, third, third]] * 3 + [[1, 0, 0, 0]])
    path = chain_simulation(chain).path(SeedSequence(3), ["state"])
    path.advance(1, 100_000)
    record = path.record("state")
    assert record.times[1] == 1.0  # state 0 cannot stay
    assert record.occupation.shape == (1, 4)


def test_a_path_in_steps_ends_in_a_state_that_nothing_leaves_and_pays_there():
    chain = mc.tabular([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]], costs=[1.0, 2.0, 5.0])
    path = chain_simulation(chain).path(SeedSequence(0))
    assert path.absorbed is None
    np.testing.assert_array_equal(path.advance(4, 1.0)[:, 0], [1.0, 2.0, 5.0, 5.0])
    assert (path.absorbed.time, path.absorbed.state) == (2.0, "2")
    assert path.events == 2
    assert path.advance(2, 1e6)[1, 0] == 5.0
    assert path.events == 2


def test_the_time_to_absorption_is_exponential_in_continuous_time():
    simulation = chain_simulation(mc.markov_chain(rates=([0], [1], [4.0])))
    times = []
    for seed in range(400):
        path = simulation.path(SeedSequence(seed))
        path.advance(1, 100.0)
        times.append(path.absorbed.time)
        assert (path.absorbed.state, path.events) == ("1", 1)
    assert abs(np.mean(times) - 0.25) <= ERRORS * 0.25 / np.sqrt(400)
    assert abs(np.median(times) - np.log(2) / 4) <= ERRORS * 0.25 / np.sqrt(400)


@pytest.mark.parametrize(
    "chain",
    [
        mc.markov_chain(rates=([0], [0], [1.0])),
        mc.markov_chain(transition_matrix=[[1.0]]),
    ],
)
def test_a_chain_that_cannot_move_is_absorbed_at_once(chain):
    simulation = chain_simulation(chain)
    path = simulation.path(SeedSequence(0), ["state"])
    assert simulation.time_scale == 1.0
    assert path.absorbed.time == 0.0
    assert path.advance(3, 2.0).tolist() == [[0.0]] * 3
    assert (path.events, path.record("state").occupation.tolist()) == (0, [[1.0]] * 3)


def test_the_time_scale_is_of_the_order_of_the_time_between_jumps():
    queue = mc.markov_chain(rates=([0, 1, 1, 2], [1, 0, 2, 1], [4.0, 5.0, 4.0, 5.0]))
    simulation = chain_simulation(queue)
    path = simulation.path(SeedSequence(2))
    path.advance(1, 1000.0)
    assert 0.3 <= simulation.time_scale * path.events / 1000.0 <= 3.0
    assert chain_simulation(random_tabular(0), random_rule(0)).time_scale == 1.0


def test_a_large_sparse_chain_needs_no_dense_rows():
    n = 200_000
    up = sparse.csr_array((np.full(n, 0.4), (np.arange(n), (np.arange(n) + 1) % n)), (n, n))
    down = sparse.csr_array((np.full(n, 0.6), (np.arange(n), np.arange(n) // 2)), (n, n))
    path = chain_simulation(mc.markov_chain(transition_matrix=up + down)).path(SeedSequence(0))
    path.advance(1, 10_000.0)
    assert path.events == 10_000 - 1


def test_mistakes_are_named():
    model, chain = random_tabular(0), mc.markov_chain(rates=([0, 1], [1, 0], [1.0, 2.0]))
    with pytest.raises(mc.InputError, match="start is 8; it must be the number of a state, 0 to 7"):
        chain_simulation(model, random_rule(0), start=8)
    for start in (-1, 0.5, True):
        with pytest.raises(mc.InputError, match="start is"):
            chain_simulation(chain, start=start)
    with pytest.raises(mc.InputError, match="has no decisions"):
        chain_simulation(chain, random_rule(0))
    with pytest.raises(mc.InputError, match="give the policy"):
        chain_simulation(model)
    with pytest.raises(mc.InputError, match="action number 3"):
        chain_simulation(model, np.full(8, 3))
    with pytest.raises(mc.InputError, match="neither a tabular model nor a Markov chain"):
        chain_simulation("queue")
    with pytest.raises(mc.InputError, match="sum to inf; scale time"):
        chain_simulation(mc.markov_chain(rates=([0, 0], [1, 2], [1e308, 1e308])))
    with pytest.raises(mc.InputError, match="no state variable 'jobs'"):
        chain_simulation(chain).path(SeedSequence(0), ["jobs"])
    with pytest.raises(mc.InputError, match="was not recorded"):
        chain_simulation(chain).path(SeedSequence(0)).record("state")


def test_a_policy_that_changes_with_time_is_refused():
    model = random_tabular(0)
    timed = mc.solve(model, mc.FiniteHorizon(5)).policy
    with pytest.raises(mc.InputError, match="changes with time"):
        chain_simulation(model, timed)


def test_a_state_of_too_many_values_cannot_be_recorded():
    n = MOST_STATES + 1
    ring = mc.markov_chain(rates=(np.arange(n), (np.arange(n) + 1) % n, np.ones(n)))
    simulation = chain_simulation(ring)
    with pytest.raises(mc.InputError, match="can be recorded up to"):
        simulation.path(SeedSequence(0), ["state"])
    assert simulation.path(SeedSequence(0)).advance(1, 1.0).shape == (1, 1)
