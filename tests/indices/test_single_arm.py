"""The single-arm problem at one price."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.indices.restless.single_arm import solve_single_arm

seeds = st.integers(0, 2**32 - 1)


def random_arm(seed, n, *, sparsely=False, continuous=False):
    random = np.random.default_rng(seed)
    P = random.dirichlet(np.ones(n), (2, n))
    costs = random.normal(size=(2, n))
    moves = tuple(sparse.csr_array(p) if sparsely else p for p in P)
    if not continuous:
        return mc.indices.arm(*moves, *costs), P, costs
    speed = random.exponential(1.0, (2, n, 1))
    Q = speed * (P - np.eye(n))
    return mc.indices.rate_arm(*Q, *costs), Q, costs


def priced(P, costs, price):
    return mc.tabular(P, costs=np.stack([costs[0], costs[1] + price], axis=1))


@given(seeds, st.integers(2, 8), st.floats(-2.0, 2.0), st.booleans())
def test_its_policy_is_optimal_on_the_average(seed, n, price, sparsely):
    arm, P, costs = random_arm(seed, n, sparsely=sparsely)
    found = solve_single_arm(arm, price, 0.0)
    model = priced(P, costs, price)
    optimum = mc.solve(model, tolerance=1e-10)
    cost = mc.evaluate(model, found.active.astype(int))
    assert cost.bounds[0] <= optimum.bounds[1] + 1e-12


@given(seeds, st.integers(2, 8), st.floats(-2.0, 2.0), st.floats(0.3, 0.999))
def test_its_policy_is_optimal_discounted(seed, n, price, factor):
    arm, P, costs = random_arm(seed, n)
    found = solve_single_arm(arm, price, (1.0 - factor) / factor)
    model, criterion = priced(P, costs, price), mc.Discounted(factor=factor)
    optimum = mc.solve(model, criterion, tolerance=1e-10)
    cost = mc.evaluate(model, found.active.astype(int), criterion)
    assert (cost.bounds[0] <= optimum.bounds[1] + 1e-12).all()


@given(seeds, st.floats(-2.0, 2.0), st.booleans())
def test_its_advantages_are_those_of_exact_values(seed, price, discounted):
    arm, Q, costs = random_arm(seed, 5, continuous=True)
    alpha = 0.3 if discounted else 0.0
    found = solve_single_arm(arm, price, alpha)
    on = found.active
    chain = np.where(on[:, None], Q[1], Q[0])
    cost = np.where(on, costs[1] + price, costs[0])
    system = alpha * np.eye(5) - chain
    if not discounted:  # the gain instead of the value of state 2
        system[:, 2] = 1.0
    values = np.linalg.solve(system, cost)
    if not discounted:
        values[2] = 0.0
    passive_minus_active = costs[0] - costs[1] - price + (Q[0] - Q[1]) @ values
    np.testing.assert_allclose(found.advantage, passive_minus_active, rtol=0, atol=1e-9)
    assert ((found.advantage >= -found.error) == on).all()


def test_states_that_are_not_free_keep_their_action():
    model = mc.tabular(
        [[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 0]]], costs=[[0.0, np.inf], [2.0, 1.0]]
    )
    arm = mc.indices.model_arm(model)
    cheap = solve_single_arm(arm, -100.0, 0.0)
    assert cheap.active.tolist() == [False, True]
    assert cheap.advantage[0] == 0.0


@pytest.mark.parametrize("sparsely", [False, True])
def test_several_recurrent_classes_are_refused(sparsely):
    identity = sparse.eye_array(3, format="csr") if sparsely else np.eye(3)
    arm = mc.indices.arm(identity, identity, rewards1=[1.0, 2.0, 3.0])
    with pytest.raises(mc.SolveError, match="several recurrent classes"):
        solve_single_arm(arm, 0.0, 0.0)
