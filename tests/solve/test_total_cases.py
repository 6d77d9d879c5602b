"""Total cost: closed forms, published cases, and what is said where there is no answer."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.solve import Status

TOTAL = mc.TotalCost()


def chain(up, down, last=None):
    """Transition matrix on 0 ... n-1: up and down per state, 0 and ``last`` absorbing."""
    n = len(up)
    P = np.zeros((n, n))
    for x in range(n):
        if x in (0, last):
            P[x, x] = 1
            continue
        P[x, min(x + 1, n - 1)] += up[x]
        P[x, x - 1] += down[x]
        P[x, x] += 1 - up[x] - down[x]
    return P


def encloses(result, values):
    """Whether the bounds hold the values and meet at 1e-11 of the largest."""
    lower, upper = result.bounds
    width = 1e-11 * max(1.0, np.abs(values).max())
    rounding = 1e-13 * max(1.0, np.abs(values).max())  # of the closed form
    near = (lower - rounding <= values) & (values <= upper + rounding)
    return bool(near.all() and (upper - lower <= width).all())


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0.3, 0.6])
def test_the_gamblers_ruin_takes_as_long_as_the_closed_form_says(p):
    n, q = 21, 1 - p
    model = mc.tabular([chain([p] * n, [q] * n, n - 1)], costs=[0] + [1] * (n - 2) + [0])
    x, m = np.arange(n), n - 1
    if p == q:
        exact = x * (m - x)
    else:
        r = q / p
        exact = x / (q - p) - m / (q - p) * (1 - r**x) / (1 - r**m)
    found = mc.evaluate(model, {}, TOTAL)
    assert encloses(found, exact)
    assert encloses(mc.solve(model, TOTAL), exact)


@pytest.mark.parametrize("n", [30, 400])
def test_a_random_walk_with_a_wall_takes_the_square_of_the_distance(n):
    model = mc.tabular([chain([0.5] * n, [0.5] * n)], costs=[0] + [1] * (n - 1))
    x = np.arange(n)
    assert encloses(mc.evaluate(model, {}, TOTAL), x * (2 * n - x - 1.0))


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_the_busy_period_of_a_queue_is_that_of_the_infinite_one(load):
    """M/M/1, so many places that none is missed: (x / mu) / (1 - load), in continuous time."""
    cap = 400
    model = mc.Model(
        mc.Lattice({"jobs": cap}),
        [
            mc.Event(
                "arrival",
                2.0 * load,
                [mc.Action("join", mc.step(jobs=1)), mc.Action("lost", cost=0.0)],
            ),
            mc.Event("service", lambda x: 2.0 * (x.jobs > 0), mc.step(jobs=-1)),
        ],
        cost_rate=1.0,
    )
    rules = np.where(np.arange(cap + 1) < cap, 0, 1)
    found = mc.evaluate(model, rules, mc.TotalCost(targets=lambda x: x.jobs == 0))
    lower, upper = found.bounds
    few = np.arange(20)
    exact = few / (2.0 * (1 - load))
    missed = 1e-9 if load == 0.5 else 1e-7  # what the places missing are worth
    assert (lower[few] <= exact + 1e-9).all()
    assert (upper[few] >= exact * (1 - missed) - 1e-9).all()


def test_lump_costs_and_cost_rates_add_up_in_continuous_time():
    """Two phases of rates 3 and 5, holding costs 2 and 7, a fee of 4 at the end of the first."""
    on = mc.step(phase=-1)
    model = mc.Model(
        mc.Lattice({"phase": 2}),
        [
            mc.Event("first", lambda x: 3.0 * (x.phase == 2), mc.Action("go", on, 4)),
            mc.Event("second", lambda x: 5.0 * (x.phase == 1), on),
        ],
        cost_rate=lambda x: 2.0 * (x.phase == 2) + 7.0 * (x.phase == 1),
    )
    assert encloses(mc.solve(model, TOTAL), np.array([0, 7 / 5, 2 / 3 + 4 + 7 / 5]))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.floats(-12, 0), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
def test_nearly_improper_chains_are_as_exact_as_others(exponents, seed):
    """Progress of as little as 1e-12 per step, among moves of probability one half."""
    progress = 10.0 ** np.array(exponents)
    n = progress.size
    P = np.zeros((2 * n + 1, 2 * n + 1))
    for k in range(n):
        here, twin, on = 2 * k, 2 * k + 1, 2 * k + 2
        P[here, twin], P[here, on] = 1 - progress[k], progress[k]
        P[twin, here] = 1.0
    P[-1, -1] = 1.0
    costs = np.append(np.random.default_rng(seed).random(2 * n), 0.0)
    P[np.arange(0, 2 * n, 2), np.arange(0, 2 * n, 2)] = 0.0
    found = mc.evaluate(mc.tabular([P], costs=costs), {}, TOTAL)
    exact, later = np.zeros(2 * n + 1), Fraction(0)
    for k in reversed(range(n)):
        stay, go = Fraction(P[2 * k, 2 * k + 1]), Fraction(P[2 * k, 2 * k + 2])
        leave = Fraction(costs[2 * k]) + stay * Fraction(costs[2 * k + 1])
        later = leave / go + later
        exact[2 * k], exact[2 * k + 1] = float(later), float(later + Fraction(costs[2 * k + 1]))
    assert found.converged
    assert ((found.bounds[0] <= exact) & (exact <= found.bounds[1])).all()
    assert (found.bounds[1] - found.bounds[0] <= 1e-12 * exact.max()).all()


# --- rewards and goals ----------------------------------------------------------------------------


def test_a_negative_reward_per_step_adds_up_to_its_mean():
    P = [[[0, 0.9, 0.1], [0.9, 0, 0.1], [0, 0, 1]]]
    found = mc.solve(mc.tabular(P, rewards=[-10, -10, 0]), TOTAL)
    assert encloses(found, np.array([-100, -100, 0]))
    costs = mc.solve(mc.tabular(P, costs=[10, 10, 0]), TOTAL)
    assert encloses(costs, np.array([100, 100, 0]))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_order_of_the_states_does_not_matter(seed, rewarded):
    """Negative and positive costs of absorbing chains in every order of the states."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    P = rng.random((2, n, n)) * (rng.random((2, n, n)) < 0.7)
    P[:, :, 0] += 0.1
    P[:, 0] = np.eye(n)[0]
    P /= P.sum(axis=2, keepdims=True)
    costs = rng.normal(size=(n, 2))
    costs[0] = 0.0
    order = rng.permutation(n)
    kind = "rewards" if rewarded else "costs"
    plain = mc.solve(mc.tabular(P, **{kind: costs}), TOTAL)
    moved = mc.tabular(P[:, order][:, :, order], **{kind: costs[order]})
    other = mc.solve(moved, TOTAL)
    assert (plain.bounds[0][order] <= other.bounds[1]).all()
    assert (other.bounds[0] <= plain.bounds[1][order]).all()
    negated = mc.solve(mc.tabular(P, **{"costs" if rewarded else "rewards": -costs}), TOTAL)
    np.testing.assert_array_equal(negated.values, -plain.values)


def test_the_loop_that_a_finished_process_makes_earns_nothing():
    P = [[[0, 1], [0, 1]]]
    assert mc.solve(mc.tabular(P, rewards=[2, 0]), TOTAL).values.tolist() == [2, 0]
    earning = mc.tabular(P, rewards=[2, 2])
    assert mc.solve(earning, mc.TotalCost(targets=[1])).values.tolist() == [2, 0]
    assert mc.evaluate(earning, {}, mc.TotalCost(targets=[1])).values.tolist() == [2, 0]
    with pytest.raises(mc.InputError, match="the process never ends"):
        mc.solve(earning, TOTAL)


@pytest.mark.parametrize("solver", ["policy_iteration", "value_iteration", None])
@pytest.mark.parametrize("length", [3, 40])
def test_only_the_goal_pays_and_its_value_reaches_every_state(solver, length):
    """A corridor, discount 0.9, moves succeed with 0.8; the last state is worth 1, once."""
    n, b, p = length, 0.9, 0.8
    P = np.zeros((1, n + 1, n + 1))
    for x in range(n - 1):
        P[0, x, x], P[0, x, x + 1] = 1 - p, p
    P[0, n - 1, n] = P[0, n, n] = 1.0
    rewards = np.zeros(n + 1)
    rewards[n - 1] = 1.0
    found = mc.solve(mc.tabular(P, rewards=rewards), mc.Discounted(factor=b), solver=solver)
    exact = (b * p / (1 - b * (1 - p))) ** np.arange(n - 1, -1.0, -1)
    assert (found.bounds[0][:n] - 1e-14 <= exact).all()
    assert (exact <= found.bounds[1][:n] + 1e-14).all()
    np.testing.assert_allclose(found.values[:n], exact, atol=1e-8)


def test_a_goal_is_worth_the_same_as_a_discounted_one_that_dies_out():
    """Discounting by b is ending with probability 1 - b at every step."""
    rng = np.random.default_rng(3)
    n, b = 6, 0.85
    P = rng.dirichlet(np.ones(n), size=(3, n))
    rewards = rng.normal(size=(n, 3))
    ends = np.zeros((3, n + 1, n + 1))
    ends[:, :n, :n], ends[:, :n, n], ends[:, n, n] = b * P, 1 - b, 1
    total = mc.solve(mc.tabular(ends, rewards=np.vstack([rewards, np.zeros(3)])), TOTAL)
    plain = mc.solve(mc.tabular(P, rewards=rewards), mc.Discounted(factor=b), tolerance=1e-12)
    np.testing.assert_allclose(total.values[:n], plain.values, rtol=1e-10)
    np.testing.assert_array_equal(total.policy.table()[:n], plain.policy.table())


# --- where there is no answer ---------------------------------------------------------------------


def stay_or_go(costs):
    """State 0 with the actions stay and go, and the goal."""
    return mc.tabular([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], **costs)


def test_a_policy_that_never_arrives_is_named_and_the_best_one_does():
    model = stay_or_go({"rewards": [[-1, -1], [0, 0]]})
    found = mc.solve(model, TOTAL)
    assert found.values.tolist() == [-1, 0]
    assert found.policy.table().tolist()[0] == 1
    with pytest.raises(mc.InputError, match="from state 0: it may stay for ever in state 0"):
        mc.evaluate(model, [0, 0], TOTAL)


def test_the_way_to_where_a_policy_stays_is_named():
    """0 -> 1 -> {2, 3} for ever; a mixture that leaves now and then is proper."""
    P = np.zeros((2, 5, 5))
    P[:, 0, 1] = P[:, 1, 2] = P[0, 2, 3] = P[:, 3, 2] = P[1, 2, 4] = P[:, 4, 4] = 1
    model = mc.tabular(P, costs=[1, 1, 1, 1, 0])
    with pytest.raises(mc.InputError) as caught:
        mc.evaluate(model, [0] * 5, TOTAL)
    assert "from state 0: it may stay for ever in states 2, 3" in str(caught.value)
    found = mc.evaluate(model, {0: 0.75, 1: 0.25}, TOTAL)
    np.testing.assert_allclose(found.values, [9, 8, 7, 8, 0], rtol=1e-12)


def test_free_loops_are_not_taken_for_arrival():
    found = mc.solve(stay_or_go({"costs": [[0, 3], [0, 0]]}), mc.TotalCost(targets=[1]))
    assert found.values.tolist() == [3, 0]
    assert found.policy.table().tolist()[0] == 1


def test_costs_that_cancel_on_a_loop_do_not_change_the_bounds():
    """Potentials 0, 1, 4 and 9 on a ring, added to a step cost of 2 at the way out."""
    potential = np.array([0.0, 1.0, 4.0, 9.0, 0.0])
    P = np.zeros((3, 5, 5))
    x = np.arange(4)
    P[0, x, (x + 1) % 4] = P[1, x, (x - 1) % 4] = P[2, x, 4] = P[:, 4, 4] = 1
    costs = P @ potential - potential[None, :]
    costs[2, x] += [2.0, 3.0, 1.0, 7.0]
    found = mc.solve(mc.tabular(P, costs=costs.T), TOTAL)
    assert encloses(found, np.where(np.arange(5) < 4, 1.0 - potential, 0.0))


@pytest.mark.parametrize("sense", ["costs", "rewards"])
def test_loops_that_earn_are_refused_by_name(sense):
    gain = -0.5 if sense == "costs" else 0.5
    model = stay_or_go({sense: [[gain, 3], [0, 0]]})
    with pytest.raises(mc.InputError, match=rf"unbounded: .* stay in state 0 .* at {gain}"):
        mc.solve(model, TOTAL)


def test_states_without_hope_get_infinite_values_and_others_avoid_them():
    """From 0 a cheap way that may fall into 2, where nothing leads out of, and a dear safe one."""
    P = np.zeros((2, 4, 4))
    P[0, 0, 2] = P[0, 0, 3] = 0.5
    P[1, 0, 3] = P[:, 1, 2] = P[:, 2, 1] = P[:, 3, 3] = 1
    model = mc.tabular(P, costs=[[0, 9], [1, 1], [1, 1], [0, 0]])
    found = mc.solve(model, TOTAL)
    assert found.values.tolist() == [9, np.inf, np.inf, 0]
    assert found.bounds[0].tolist()[1:3] == [np.inf, np.inf]
    again = mc.evaluate(model, found.policy, TOTAL)
    assert again.values.tolist() == found.values.tolist()
    with pytest.raises(mc.InputError, match="from state 0: it may stay for ever in states 1, 2"):
        mc.evaluate(model, [0] * 4, TOTAL)
    rewards = mc.solve(mc.tabular(P, rewards=-np.array([[0, 9], [1, 1], [1, 1], [0, 0]])), TOTAL)
    assert rewards.values.tolist() == [-9, -np.inf, -np.inf, 0]


def test_a_model_without_hope_is_refused_with_the_trap():
    P = [[[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]]
    model = mc.tabular(P, costs=[1, 1, 0])
    with pytest.raises(mc.InputError, match=r"from state 0: .* may come to state 1, from where no"):
        mc.solve(model, TOTAL)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([], "targets: no state is selected"),
        ([5], "targets: 5 is not one of the states 0 to 1"),
        ([-1], "targets: -1 is not one of the states"),
        ([True, False, True], "must be state numbers, 2 booleans, or a function"),
        ([0.5], "must be state numbers, 2 booleans, or a function"),
        ("goal", "must be state numbers, 2 booleans, or a function"),
        ([0, 0], "state 0 is named twice; one value for each state must be a boolean"),
        (lambda x: x < 0, "targets: no state is selected"),
        (lambda x: 1 * (x == 1), "the function must return booleans, not int64"),
    ],
)
def test_targets_that_are_none_are_refused(targets, message):
    model = stay_or_go({"costs": [[1, 1], [0, 0]]})
    with pytest.raises(mc.InputError, match=message):
        mc.solve(model, mc.TotalCost(targets=targets))


@pytest.mark.parametrize("targets", [[1], np.array([False, True]), lambda x: x == 1, (1,)])
def test_targets_may_be_numbers_booleans_or_a_function(targets):
    model = stay_or_go({"costs": [[1, 5], [7, 7]]})
    assert mc.solve(model, mc.TotalCost(targets=targets)).values.tolist() == [5, 0]


def test_where_every_state_is_a_target_nothing_is_spent():
    model = stay_or_go({"costs": [[1, 5], [7, 7]]})
    assert mc.solve(model, mc.TotalCost(targets=[0, 1])).values.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("arrivals", "cap"), [(1.2, 300), (1.5, 500), (2.0, 100), (2.0, 300), (2.0, 1500)]
)
@pytest.mark.parametrize(
    "ask",
    [mc.solve, lambda model, *given, **more: mc.evaluate(model, {}, *given, **more)],
)
def test_a_target_that_is_hard_to_reach_leaves_bounds(ask, arrivals, cap):
    """The mean is beyond 1e26: what float64 cannot certify is not a number."""
    up = mc.Event("up", lambda x: arrivals * (x.i < cap), mc.step(i=+1))
    down = mc.Event("down", lambda x: 1.0 * (x.i > 0), mc.step(i=-1))
    model = mc.Model(mc.Lattice({"i": cap}), [up, down], cost_rate=lambda x: 1.0 * x.i)
    found = ask(model, mc.TotalCost([0]), strict=False)
    assert found.status is Status.PRECISION
    assert found.bounds[0][1] <= 1e26
    assert found.bounds[1][1] == np.inf
