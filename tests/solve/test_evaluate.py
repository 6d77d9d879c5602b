"""Costs and measures of policies against closed forms; policy improvement."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve import Status, fixed
from tests.admission import admission, birth_death_law, threshold_cost, two_queues

QUEUE = two_queues((4, 5))
TABLES = st.integers(0, 2**32 - 1)


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def measured(cap, servers=1, rate=0.5, **settings):
    """The admission queue that counts jobs, losses and time with jobs waiting."""
    measures = {
        "jobs": lambda x: x.jobs,
        "busy": lambda x: np.minimum(x.jobs, servers),
        "jobs as a sum": [
            lambda x: np.minimum(x.jobs, servers),
            lambda x: np.maximum(x.jobs - servers, 0),
        ],
        "losses": ("arrival", "lost"),
        "joins": ("arrival", "join"),
        "departures": ("service", "service"),
        "full": lambda x: 1.0 * (x.jobs == cap),
        "one": 1.0,
    }
    return admission(cap, servers=servers, rate=rate, measures=measures, **settings)


def taking_all(cap):
    return lambda x: np.where(x.jobs < cap, "join", "lost")


AT_RANDOM = {"join": lambda x: 0.5 * (x.jobs < 9), "lost": lambda x: 1.0 - 0.5 * (x.jobs < 9)}


def any_policy(model, seed):
    """A random one among those allowed."""
    problem = compile_model(model)
    rng = np.random.default_rng(seed)
    numbers = {}
    for e, term in enumerate(problem.terms):
        if term.decision:
            allowed, _ = problem.allowed(e)
            numbers[term.name] = np.argmax(allowed * rng.random(allowed.shape), axis=0)
    return mc.policy(model, numbers)


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "cap"), [(1, 1), (1, 7), (3, 3), (3, 10), (5, 6)])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3, 1), Fraction(9, 2)])
def test_measures_of_a_queue_enclose_the_law_of_its_birth_death_chain(servers, cap, rate):
    law = birth_death_law([rate] * cap, [min(k, servers) for k in range(1, cap + 1)])
    exact = {
        "jobs": sum(k * p for k, p in enumerate(law)),
        "busy": sum(min(k, servers) * p for k, p in enumerate(law)),
        "losses": rate * law[-1],
        "joins": rate * (1 - law[-1]),
        "departures": rate * (1 - law[-1]),
        "full": law[-1],
        "one": 1,
    }
    exact["jobs as a sum"] = exact["jobs"]
    found = mc.evaluate(measured(cap, servers, float(rate)), taking_all(cap))
    assert set(found.measures) == set(exact)
    for name, (lower, upper) in found.measures.items():
        assert lower <= exact[name] <= upper, name
        assert upper - lower <= 1e-9
    assert found.bounds[0] <= exact["losses"] <= found.bounds[1]


@pytest.mark.parametrize(("servers", "load"), [(1, 0.3), (10, 8.0), (200, 190.0)])
def test_erlangs_loss_formula_is_measured(servers, load):
    found = mc.evaluate(measured(servers, servers, load), taking_all(servers))
    lost = load * mc.queues.erlang_b(servers, load)
    assert found.measures["losses"] == pytest.approx((lost, lost), rel=1e-9)
    assert found.measures["busy"] == pytest.approx((load - lost, load - lost), rel=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 16))
def test_drawing_actions_is_thinning_arrivals(sixteenths):
    chance = sixteenths / 16
    rule = {
        "join": lambda x: chance * (x.jobs < 6),
        "lost": lambda x: 1 - chance * (x.jobs < 6),
    }
    law = birth_death_law([Fraction(sixteenths, 32)] * 6, [1] * 6) if chance else [1, *[0] * 6]
    joins = Fraction(sixteenths, 32) * (1 - law[-1])
    found = mc.evaluate(measured(6), rule)
    for name, exact in (
        ("jobs", sum(k * p for k, p in enumerate(law))),
        ("joins", joins),
        ("losses", Fraction(1, 2) - joins),
    ):
        lower, upper = found.measures[name]
        assert lower <= exact <= upper


@pytest.mark.parametrize("limit", range(6))
def test_a_threshold_costs_what_its_law_says(limit):
    actions = [mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=7.0)]
    model = admission(5, rate=0.75, actions=actions, cost_rate=lambda x: 0.25 * x.jobs)
    exact = threshold_cost(limit, Fraction(3, 4), Fraction(1, 4), Fraction(7))
    found = mc.evaluate(model, lambda x: np.where(x.jobs < limit, 0, 1))
    assert found.bounds[0] <= exact <= found.bounds[1]
    assert found.gain == pytest.approx(float(exact), rel=1e-10)


def test_a_mode_is_measured_by_the_time_it_is_in_force():
    modes = [mc.Mode("off"), mc.Mode("on", 2.0, mc.Flow(lambda x: 1.0 * (x.a > 0), mc.step(a=-1)))]
    up = mc.Event("up", lambda x: 3.0 * (x.a == 0), mc.step(a=+1))
    model = mc.Model(
        mc.Lattice({"a": 1}), [up, mc.Control("c", modes)], measures={"on": ("c", "on")}
    )
    found = mc.evaluate(model, lambda x: np.where(x.a > 0, "on", "off"))
    assert found.measures["on"] == pytest.approx((0.75, 0.75), rel=1e-10)
    assert found.gain == pytest.approx(1.5, rel=1e-10)


def test_relative_values_of_two_states_differ_by_the_cost_of_the_way_between_them():
    up = mc.Event("up", lambda x: 2.0 * (x.a == 0), mc.step(a=+1))
    down = mc.Event("down", lambda x: 1.0 * (x.a == 1), mc.step(a=-1))
    model = mc.Model(mc.Lattice({"a": 1}), [up, down], cost_rate=lambda x: 3.0 * x.a)
    found = mc.evaluate(model, {})
    assert found.gain == pytest.approx(2.0, rel=1e-12)
    assert found.values[1] - found.values[0] == pytest.approx(1.0, rel=1e-12)


def test_two_blocks_with_a_weak_link_have_their_masses_or_an_error():
    """A solver that does not converge must say so (storm, issue 824)."""
    turn = mc.Event("turn", 1.0, mc.Action("t", lambda x: mc.step(at=np.where(x.at < 9, 1, -9))))
    over = mc.Event("over", lambda x: 1e-10 * (x.at == 0) * (x.block == 0), mc.step(block=+1))
    back = mc.Event("back", lambda x: 2e-10 * (x.at == 0) * (x.block == 1), mc.step(block=-1))
    model = mc.Model(
        mc.Lattice({"block": 1, "at": 9}),
        [turn, over, back],
        measures={"first": lambda x: 1.0 * (x.block == 0)},
    )
    found = mc.evaluate(model, {}, strict=False)
    lower, upper = found.measures["first"]
    assert lower <= 2 / 3 <= upper
    if found.converged:
        assert upper - lower <= 1e-9
    else:
        with pytest.raises(mc.SolveError):
            mc.evaluate(model, {})
    loose = mc.evaluate(model, {}, tolerance=1e-3).measures["first"]
    assert loose == pytest.approx((2 / 3, 2 / 3), rel=1e-3)


# --- rewards, discounting, time -------------------------------------------------------------------


def test_rewards_are_measured_as_rewards():
    matrices, table = [[[0.5, 0.5], [0.1, 0.9]]] * 2, np.array([[1.0, 5.0], [7.0, 3.0]])
    found = mc.evaluate(mc.tabular(matrices, rewards=table), 0)
    assert found.bounds[0] <= 6.0 <= found.bounds[1]
    costs = mc.evaluate(mc.tabular(matrices, costs=-table), 0)
    assert found.values.tolist() == (-costs.values).tolist()


def test_discounted_costs_of_a_policy_are_those_of_its_linear_equations():
    rng = np.random.default_rng(11)
    matrices, costs = rng.dirichlet(np.ones(6), size=(2, 6)), rng.random((6, 2))
    actions = rng.integers(0, 2, 6)
    model = mc.tabular(matrices, costs=costs, normalise=True)
    found = mc.evaluate(model, actions, mc.Discounted(factor=0.95))
    chosen = matrices[actions, np.arange(6)]
    exact = np.linalg.solve(np.eye(6) - 0.95 * chosen, costs[np.arange(6), actions])
    np.testing.assert_allclose(found.values, exact, rtol=1e-10)
    assert (found.bounds[0] <= exact + 1e-12).all()
    assert (exact - 1e-12 <= found.bounds[1]).all()
    assert found.measures == {}
    with refused("Discounted has no gain"):
        _ = found.gain


def test_discounted_costs_of_a_randomised_policy_mix_its_rows():
    matrices, costs = np.array([np.eye(2), np.eye(2)[::-1]]), [[1.0, 0.0], [0.0, 4.0]]
    found = mc.evaluate(
        mc.tabular(matrices, costs=costs), {0: 0.25, 1: 0.75}, mc.Discounted(factor=0.5)
    )
    mixed = 0.25 * matrices[0] + 0.75 * matrices[1]
    exact = np.linalg.solve(np.eye(2) - 0.5 * mixed, [0.25, 3.0])
    np.testing.assert_allclose(found.values, exact, rtol=1e-10)


@settings(max_examples=20)
@given(TABLES, st.integers(-30, 30))
def test_the_unit_of_time_only_scales_costs_and_measures(seed, power):
    scale = 2.0**power
    events = [
        mc.Event(
            e.name,
            (lambda x, r=e.rate: scale * r(x)) if callable(e.rate) else scale * e.rate,
            e.actions,
        )
        for e in QUEUE.events
    ]
    scaled = mc.Model(
        QUEUE.space,
        events,
        cost_rate=[lambda x, c=c: scale * c(x) for c in QUEUE.cost_rate],
        measures=QUEUE.measures,
    )
    policy = any_policy(QUEUE, seed)
    one, other = mc.evaluate(QUEUE, policy), mc.evaluate(scaled, policy)
    assert other.gain == pytest.approx(scale * one.gain, rel=1e-9)
    assert other.measures["refusals"] == pytest.approx(
        tuple(scale * m for m in one.measures["refusals"]), rel=1e-9, abs=1e-10 * scale
    )
    assert other.measures["jobs"] == pytest.approx(one.measures["jobs"], rel=1e-9)


@settings(max_examples=20)
@given(TABLES)
def test_the_gain_is_the_mean_cost_under_the_stationary_law(seed):
    policy = any_policy(QUEUE, seed)
    problem = compile_model(QUEUE)
    _, cost = problem.under(policy.choice(problem)).chain()
    law = mc.stationary(QUEUE, policy)
    found = mc.evaluate(QUEUE, policy)
    assert found.gain == pytest.approx(law @ cost, rel=1e-10)
    jobs = law @ [sum(problem.state(s).node) for s in range(problem.n)]
    assert found.measures["jobs"] == pytest.approx((jobs, jobs), rel=1e-9)


# --- several classes ------------------------------------------------------------------------------


def trapped():
    """State 1 is left for 0 or 2, which absorb at costs 2 and 8; a trap counts itself."""
    leave = mc.Action("leave", [mc.Move(0.25, mc.step(a=-1)), mc.Move(0.75, mc.step(a=+1))])
    event = mc.Event("leave", lambda x: 1.0 * (x.a == 1), [leave, mc.Action("stay", cost=1.0)])
    return mc.Model(
        mc.Lattice({"a": 2}),
        event,
        cost_rate=lambda x: np.choose(x.a, [2.0, 0.0, 8.0]),
        measures={"in 2": lambda x: 1.0 * (x.a == 2), "stays": ("leave", "stay")},
    )


def test_costs_and_measures_of_several_classes_are_given_by_state():
    found = mc.evaluate(trapped(), "leave")
    np.testing.assert_allclose(found.gains, [2.0, 6.5, 8.0], rtol=1e-10)
    np.testing.assert_allclose(found.measures["in 2"], [[0, 0.75, 1]] * 2, rtol=1e-10, atol=1e-12)
    assert found.converged
    with pytest.raises(mc.MultichainError, match="2 from state 0, 8 from state 2"):
        _ = found.gain
    staying = mc.evaluate(trapped(), "stay")
    np.testing.assert_allclose(staying.gains, [2.0, 1.0, 8.0], rtol=1e-10)
    np.testing.assert_allclose(staying.measures["stays"], [[0, 1, 0]] * 2, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_gains_of_a_chain_with_several_classes_are_its_long_run_means(seed):
    rng = np.random.default_rng(seed)
    n, island = 24, rng.integers(0, 4, 24)
    matrix = np.zeros((n, n))
    for s in range(n):
        own = np.flatnonzero(island == island[s]) if island[s] < 3 else np.arange(n)
        targets = rng.choice(own, size=min(own.size, 3), replace=False)
        matrix[s, targets] = rng.dirichlet(np.ones(targets.size))
    costs = rng.random(n)
    found = mc.evaluate(mc.tabular([matrix], costs=costs, normalise=True), {})
    chain = mc.markov_chain(transition_matrix=matrix, normalise=True)
    means = [mc.long_run(chain, np.eye(n)[s]) @ costs for s in range(n)]
    np.testing.assert_allclose(found.gains, means, rtol=1e-9)
    assert (found.bounds[0] <= np.array(means) + 1e-12).all()
    assert (np.array(means) - 1e-12 <= found.bounds[1]).all()


@pytest.mark.slow
def test_a_large_chain_with_several_classes_is_evaluated_too():
    n = 4000
    model = mc.Model(
        mc.Lattice({"lane": 1, "jobs": n // 2 - 1}),
        [
            mc.Event("in", lambda x: 0.5 * (x.jobs < n // 2 - 1), mc.step(jobs=+1)),
            mc.Event("out", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1)),
        ],
        cost_rate=lambda x: (1 + x.lane) * x.jobs,
    )
    found = mc.evaluate(model, {}, tolerance=1e-6)
    np.testing.assert_allclose(found.gains, np.repeat([1.0, 2.0], n // 2), rtol=1e-6)


# --- improvement ----------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(TABLES)
def test_an_improved_policy_is_never_worse(seed):
    before = mc.evaluate(QUEUE, any_policy(QUEUE, seed))
    after = mc.evaluate(QUEUE, mc.improve(QUEUE, before))
    assert after.bounds[0] <= before.bounds[1]


@settings(max_examples=15)
@given(TABLES, st.sampled_from([0.01, 0.4, 3.0]))
def test_an_improved_policy_is_better_from_every_state_under_discounting(seed, rate):
    criterion = mc.Discounted(rate=rate)
    before = mc.evaluate(QUEUE, any_policy(QUEUE, seed), criterion)
    after = mc.evaluate(QUEUE, mc.improve(QUEUE, before), criterion)
    assert (after.bounds[0] <= before.bounds[1]).all()


@settings(max_examples=25)
@given(TABLES, st.floats(0.01, 0.99))
def test_an_improved_policy_is_better_in_steps_and_for_rewards_too(seed, factor):
    rng = np.random.default_rng(seed)
    model = mc.tabular(rng.dirichlet(np.ones(5), size=(3, 5)), rewards=rng.normal(size=(5, 3)))
    criterion = mc.Discounted(factor=factor)
    before = mc.evaluate(model, rng.integers(0, 3, 5), criterion)
    after = mc.evaluate(model, mc.improve(model, before), criterion)
    assert (after.bounds[1] >= before.bounds[0]).all()


@pytest.mark.parametrize("seed", range(5))
def test_improving_again_and_again_ends_at_the_optimum(seed):
    best = mc.solve(QUEUE, tolerance=1e-10)
    policy = any_policy(QUEUE, seed)
    for _ in range(20):
        policy = mc.improve(QUEUE, policy)
    assert mc.evaluate(QUEUE, policy).gain == pytest.approx(best.gain, rel=1e-9)


def test_improving_in_steps_ends_at_the_discounted_optimum():
    """With the factor left out of the comparison the first action would win (it does not)."""
    model = mc.tabular([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], costs=[[1.0, 1.45], [0.0, 0.0]])
    criterion = mc.Discounted(factor=0.4)
    policy = mc.policy(model, 0)
    for _ in range(3):
        policy = mc.improve(model, mc.evaluate(model, policy, criterion))
    assert policy.table().tolist() == mc.solve(model, criterion).policy.table().tolist()
    first = mc.improve(model, mc.evaluate(model, 0, criterion))
    assert first.table().tolist() == [0, 1]


def test_rules_policies_evaluations_and_solutions_can_be_improved():
    rule = {"refuse": 1.0}
    policy = mc.policy(QUEUE, rule)
    tables = [mc.improve(QUEUE, what).table() for what in (rule, policy, mc.evaluate(QUEUE, rule))]
    assert all(np.array_equal(table, tables[0]) for table in tables)
    solution = mc.solve(QUEUE, tolerance=1e-11)
    assert np.array_equal(mc.improve(QUEUE, solution).table(), solution.policy.table())


def test_a_policy_with_several_classes_is_not_improved():
    with pytest.raises(mc.MultichainError, match=r"its gains lie between 2 and 8"):
        mc.improve(trapped(), "leave")


def test_an_evaluation_of_another_model_improves_nothing():
    with refused("the evaluation has 30 states, the model 20"):
        mc.improve(two_queues(), mc.evaluate(QUEUE, "refuse"))


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.0, 1.0, float("nan"), "fine"])
def test_tolerances_out_of_range_are_refused(tolerance):
    with refused("it must be in (0, 1)"):
        mc.evaluate(admission(), "lost", tolerance=tolerance)


def test_a_measure_that_is_no_number_is_refused_by_name_and_state():
    model = admission(measures={"waste": lambda x: 1 / x.jobs})
    with refused("measure 'waste' is inf in state (jobs=0); it must be finite"):
        mc.evaluate(model, "lost")


@pytest.mark.parametrize("policy", [taking_all(9), AT_RANDOM])
def test_measures_found_at_once_are_those_found_one_by_one(monkeypatch, policy):
    model = measured(9, servers=3)
    at_once = mc.evaluate(model, policy)
    monkeypatch.setattr(fixed, "TOGETHER", 0)
    each = mc.evaluate(model, policy)
    assert at_once.iterations == each.iterations
    assert list(at_once.measures) == list(each.measures)
    for name, (lower, upper) in at_once.measures.items():
        assert max(lower, each.measures[name][0]) <= min(upper, each.measures[name][1])
        assert upper - lower <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("direct", [3000, 100_000])
def test_progress_of_a_large_evaluation_encloses_the_gain(monkeypatch, direct):
    monkeypatch.setattr(fixed, "direct_limit", lambda problem: direct)
    model, seen = two_queues((80, 80)), []
    found = mc.evaluate(
        model, lambda x: np.where(x.node[0] < 80, 0, 2), progress=lambda *r: seen.append(r)
    )
    costs = [report for report in seen if report[1] <= found.gain <= report[2]]
    assert costs


def test_a_partial_evaluation_is_carried_or_returned(monkeypatch):
    monkeypatch.setattr(fixed, "direct_limit", lambda problem: 3000)
    model = two_queues((80, 80))
    with pytest.raises(mc.SolveError, match="stopped at the time limit") as caught:
        mc.evaluate(model, "refuse", time_limit=1e-9)
    partial = caught.value.partial
    assert partial.status is Status.TIME
    loose = mc.evaluate(model, "refuse", time_limit=1e-9, strict=False)
    assert loose.bounds == partial.bounds
    assert loose.bounds[0] <= 7.8 <= loose.bounds[1]


def test_a_solution_stands_for_its_policy():
    model = two_queues()
    solution = mc.solve(model)
    assert mc.evaluate(model, solution).bounds == mc.evaluate(model, solution.policy).bounds
    law = mc.transient(model, 0, [1.0], solution).laws
    np.testing.assert_array_equal(law, mc.transient(model, 0, [1.0], solution.policy).laws)
