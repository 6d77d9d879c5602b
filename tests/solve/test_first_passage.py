"""First passage against exact fractions, closed forms, many digits and public reports."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.model.tabular import tabular
from mdpcloud.solve.transient import passage_systems
from mdpcloud.solve.transient.first_passage import first_passage
from tests.common.exact import solve_exactly

from .exact_transients import exact_power


def triplets(rates):
    x, y = np.nonzero(rates)
    return x, y, rates[x, y]


def reaching(rates, targets):
    """States with a path into the targets, by repetition."""
    found = set(targets)
    while True:
        more = {x for x in range(len(rates)) if any(rates[x][y] > 0 for y in found)} | found
        if more == found:
            return found
        found = more


def exact_passage(rates, targets):
    """Probabilities and mean times as fractions, None for infinity."""
    n = len(rates)
    rates = [[Fraction(float(r)) if x not in targets else Fraction(0) for r in row]
             for x, row in enumerate(rates)]  # fmt: skip
    able = reaching(rates, targets)
    never = set(range(n)) - able
    surely = set(range(n)) - (reaching(rates, never) if never else set())
    inner = sorted(able - targets)
    matrix = [[(sum(rates[x]) if x == y else 0) - rates[x][y] for y in inner] for x in inner]
    entering = [sum(rates[x][y] for y in targets) for x in inner]
    chance = dict(zip(inner, solve_exactly(matrix, entering), strict=True)) if inner else {}
    inner = sorted(surely - targets)
    matrix = [[(sum(rates[x]) if x == y else 0) - rates[x][y] for y in inner] for x in inner]
    times = solve_exactly(matrix, [Fraction(1)] * len(inner)) if inner else []
    mean = dict(zip(inner, times, strict=True))
    return (
        [Fraction(1) if x in targets else chance.get(x, Fraction(0)) for x in range(n)],
        [Fraction(0) if x in targets else mean.get(x) for x in range(n)],
    )


@st.composite
def chains(draw):
    """Rates over twelve decades between two to seven states, of any structure, and targets."""
    n = draw(st.integers(2, 7))
    rates = np.zeros((n, n))
    for _ in range(draw(st.integers(n, 4 * n))):
        x, y = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        if x != y:
            rates[x, y] = 10.0 ** draw(st.floats(-6, 6))
    rates[0, n - 1] = 1.0
    targets = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=2))
    return rates, targets


@given(chains())
@settings(deadline=None)
def test_bounds_enclose_the_exact_answer_and_are_narrow_relatively(given_):
    rates, targets = given_
    found = first_passage(markov_chain(rates=triplets(rates)), sorted(targets))
    chance, mean = exact_passage(rates, targets)
    for x, (h, m) in enumerate(zip(chance, mean, strict=True)):
        lower, upper = (Fraction(float(bound[x])) for bound in found.probability_bounds)
        assert lower <= h <= upper
        assert found.probability[x] == pytest.approx(float(h), rel=1e-14)
        assert upper - lower <= 1e-12 * h
        if h in (0, 1) and (m is not None or h == 0):
            assert lower == upper == h
        if m is None:
            assert found.mean[x] == found.mean_bounds[0][x] == math.inf
        else:
            lower, upper = (Fraction(float(bound[x])) for bound in found.mean_bounds)
            assert lower <= m <= upper
            assert upper - lower <= 1e-12 * m


@pytest.mark.parametrize(("start", "target", "chance"), [(0, 5, "9/208"), (0, 3, "199/208")])
def test_the_reported_chain_with_six_states_is_absorbed_with_the_exact_chances(
    start, target, chance
):
    matrix = np.zeros((6, 6))
    a, p, t, w, l, k = range(6)
    matrix[a, [p, t]] = 0.5
    matrix[p, [t, k]] = 0.99, 0.01
    matrix[t, [p, w]] = 0.8, 0.2
    matrix[w, l] = matrix[l, w] = matrix[k, k] = 1.0
    found = first_passage(matrix, [target])
    assert found.probability[start] == pytest.approx(float(Fraction(chance)), rel=1e-14)
    assert found.mean[start] == math.inf
    assert found.mean[4] == (1.0 if target == 3 else math.inf)


def birth_death(up, down):
    k = np.arange(len(up))
    return markov_chain(rates=(np.r_[k, k + 1], np.r_[k + 1, k], np.r_[up, down]))


@given(st.lists(st.tuples(st.floats(-6, 6), st.floats(-6, 6)), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_mean_times_of_birth_death_chains_are_the_sums_of_products(exponents):
    up, down = (10.0 ** np.array(side) for side in zip(*exponents, strict=True))
    n = len(up)
    found = first_passage(birth_death(up, down), [n])
    step, total, means = Fraction(0), Fraction(0), [Fraction(0)]
    for k in range(n):
        back = Fraction(float(down[k - 1])) if k else Fraction(0)
        step = (1 + back * step) / Fraction(float(up[k]))
        total += step
        means.append(total)
    exact = [total - part for part in means]
    for x in range(n):
        lower, upper = (Fraction(float(bound[x])) for bound in found.mean_bounds)
        assert lower <= exact[x] <= upper
        assert upper - lower <= 1e-11 * exact[x]


@pytest.mark.parametrize("coins", [10, 100, 400])
def test_a_rare_success_of_a_gambler_has_relative_accuracy(coins):
    up = np.r_[0.0, np.full(coins - 1, 3.0)]
    chain = birth_death(up, np.r_[np.full(coins - 1, 7.0), 1.0])
    found = first_passage(chain, [coins])
    with mpmath.workdps(200):
        ratio = mpmath.mpf(7) / 3
        for x in (1, coins // 2, coins - 1):
            exact = (ratio**x - 1) / (ratio**coins - 1)
            assert found.probability_bounds[0][x] <= exact <= found.probability_bounds[1][x]
            assert abs(found.probability[x] - exact) <= 1e-14 * exact
            assert found.probability_bounds[1][x] - found.probability_bounds[0][x] <= 1e-12 * exact


def test_a_long_birth_death_chain_is_eliminated_in_its_band():
    n = 100_000
    found = first_passage(birth_death(np.full(n, 2.0), np.full(n, 3.0)), [0])
    assert found.mean[1000] == pytest.approx(1000.0, rel=1e-12)
    assert found.mean_bounds[1][1000] - found.mean_bounds[0][1000] <= 1e-9
    assert (found.probability == 1.0).all()


@pytest.mark.parametrize("coupling", [1e-6, 1e-12, 1e-15])
def test_nearly_separate_blocks_keep_all_digits(coupling):
    rng = np.random.default_rng(3)
    rates = np.zeros((9, 9))
    for block in (slice(0, 4), slice(4, 8)):
        rates[block, block] = rng.uniform(0.5, 2.0, (4, 4))
    np.fill_diagonal(rates, 0.0)
    rates[3, 4] = rates[4, 3] = coupling
    rates[7, 8] = coupling**2
    found = first_passage(markov_chain(rates=triplets(rates)), [8])
    _, mean = exact_passage(rates, {8})
    for x in range(8):
        assert found.mean_bounds[0][x] <= mean[x] <= found.mean_bounds[1][x]
        assert found.mean_bounds[1][x] - found.mean_bounds[0][x] <= 1e-12 * mean[x]


def lattice(n, seed=0):
    """A random walk on a square with a drift to one corner."""
    rng = np.random.default_rng(seed)
    place = np.arange(n * n).reshape(n, n)
    pairs = [(place[1:], place[:-1], 3.0), (place[:-1], place[1:], 1.0),
             (place[:, 1:], place[:, :-1], 2.0), (place[:, :-1], place[:, 1:], 1.5)]  # fmt: skip
    origin, destination, rate = (
        np.concatenate([part[i].ravel() if i < 2 else np.full(part[0].size, part[2])
                        for part in pairs]) for i in range(3)
    )  # fmt: skip
    return markov_chain(rates=(origin, destination, rate * rng.uniform(0.5, 1.5, rate.size)))


@pytest.mark.parametrize("limits", [("REDUCTION_WORK",), ("REDUCTION_WORK", "FACTOR_WORK")])
def test_large_chains_are_enclosed_by_factors_and_by_iterations_as_by_elimination(
    limits, monkeypatch
):
    chain, n = lattice(30), 30
    exact = first_passage(chain, [0, n * n - 1])
    for limit in limits:
        monkeypatch.setattr(passage_systems, limit, 0)
    found = first_passage(chain, [0, n * n - 1])
    assert (found.mean_bounds[0] <= exact.mean_bounds[1]).all()
    assert (exact.mean_bounds[0] <= found.mean_bounds[1]).all()
    assert (found.mean_bounds[1] - found.mean_bounds[0] <= 1e-12 * found.mean).all()


def test_a_large_chain_that_hardly_ever_arrives_is_refused_rather_than_wrong(monkeypatch):
    chain = lattice(30)
    exact = first_passage(chain, [899])
    assert exact.mean[0] > 1e16
    assert (exact.mean_bounds[1] - exact.mean_bounds[0] <= 1e-6 * exact.mean).all()
    monkeypatch.setattr(passage_systems, "REDUCTION_WORK", 0)
    with pytest.raises(SolveError, match="cannot be enclosed"):
        first_passage(chain, [899])


@pytest.mark.parametrize("limits", [("REDUCTION_WORK",), ("REDUCTION_WORK", "FACTOR_WORK")])
def test_rare_events_keep_their_digits_without_elimination(limits, monkeypatch):
    n = 30
    chain = lattice(n)
    data = chain.rates.copy()
    data.data[data.indptr[0] : data.indptr[1]] = 0.0
    stopped = markov_chain(rates=triplets(np.asarray(data.todense())))
    exact = first_passage(stopped, [n * n - 1])
    for limit in limits:
        monkeypatch.setattr(passage_systems, limit, 0)
    found = first_passage(stopped, [n * n - 1])
    assert exact.probability[1] < 1e-12
    np.testing.assert_allclose(found.probability, exact.probability, rtol=1e-12)
    width = found.probability_bounds[1] - found.probability_bounds[0]
    assert (width <= 1e-10 * found.probability).all()


@pytest.mark.parametrize("initial", [None, 0])
def test_a_tolerance_below_the_rounding_is_an_error_that_carries_the_law(initial):
    with pytest.raises(SolveError, match="above the tolerance") as caught:
        first_passage([[-1.0, 1.0], [0.0, 0.0]], [1], times=1.0, initial=initial, tolerance=1e-18)
    assert caught.value.partial is not None


def test_where_all_states_are_targets_nothing_is_left_to_solve():
    found = first_passage(np.eye(2), [0, 1], times=[0])
    assert found.probability.tolist() == found.law.probability[0].tolist() == [1.0, 1.0]
    assert found.mean.tolist() == [0.0, 0.0]


def test_what_cannot_be_enclosed_is_an_error(monkeypatch):
    nothing = passage_systems._Solver(lambda right: 0.0 * right)
    monkeypatch.setattr(passage_systems, "_eliminated", lambda *_: nothing)
    with pytest.raises(SolveError, match="cannot be enclosed"):
        first_passage([[-1.0, 1.0], [0.0, 0.0]], [1])


@pytest.mark.parametrize("initial", [None, 0, [1.0, 0.0]])
@pytest.mark.parametrize("rate", [1e-12, 0.3, 1e12])
def test_one_exponential_step_arrives_by_the_closed_form(rate, initial):
    times = np.array([0.0, 1e-3, 1.0, 30.0]) / rate
    found = first_passage([[-rate, rate], [0.0, 0.0]], [1], times=times, initial=initial)
    exact = -np.expm1(-rate * times)
    arrived = found.law.probability if initial is not None else found.law.probability[:, 0]
    assert (np.abs(arrived - exact) <= found.law.error + 1e-16).all()
    assert (found.law.error <= 1e-10).all()
    assert found.mean[0] == pytest.approx(1 / rate, rel=1e-15)


def test_a_busy_period_of_one_server_has_the_law_with_bessel_functions():
    arrival, service, n = 0.6, 1.0, 400
    chain = birth_death(np.full(n, arrival), np.full(n, service))
    times = [0.5, 3.0, 20.0]
    found = first_passage(chain, [0], times=times)
    mixed = first_passage(chain, [0], times=times, initial=1)

    def density(s):
        root = mpmath.sqrt(arrival * service)
        waves = mpmath.besseli(1, 2 * s * root) * mpmath.exp(-(arrival + service) * s)
        return mpmath.sqrt(service / mpmath.mpf(arrival)) * waves / s

    for k, t in enumerate(times):
        exact = float(mpmath.quad(density, np.linspace(0, t, 12).tolist()))
        assert found.law.probability[k, 1] == pytest.approx(exact, abs=1e-10)
        assert mixed.law.probability[k] == pytest.approx(exact, abs=1e-10)
    assert found.mean[1] == pytest.approx(1 / (service - arrival), rel=1e-12)


@given(chains(), st.floats(-3, 3))
@settings(max_examples=25, deadline=None)
def test_the_law_of_the_time_is_enclosed_from_every_state(given_, time):
    rates, targets = given_
    t = 10.0**time
    found = first_passage(markov_chain(rates=triplets(rates)), sorted(targets), times=t)
    staying = rates.copy()
    staying[sorted(targets)] = 0.0
    power = exact_power(staying, t)
    for x in range(len(rates)):
        exact = sum(power[x, y] for y in targets)
        assert abs(mpmath.mpf(float(found.law.probability[0, x])) - exact) <= found.law.error[0]
    assert found.law.error[0] <= 1e-10


def test_steps_until_a_run_of_three_heads_are_fourteen_on_average():
    toss = [[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1]]
    found = first_passage(toss, [3], times=[2, 3, 4, 5])
    assert found.mean == pytest.approx([14.0, 12.0, 8.0, 0.0], rel=1e-15)
    assert found.law.probability[:, 0] == pytest.approx([0, 1 / 8, 3 / 16, 1 / 4], abs=1e-15)


def test_a_target_that_is_left_again_counts_when_it_is_first_met():
    found = first_passage([[0.0, 1.0], [1.0, 0.0]], [1], times=[0, 1, 2])
    np.testing.assert_allclose(found.law.probability, [[0, 1], [1, 1], [1, 1]], atol=1e-15)
    assert found.mean.tolist() == [1.0, 0.0]


def queue():
    join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost")
    arrival = mc.Event("arrival", 0.5, [join, lost])
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    return mc.Model(mc.Lattice({"jobs": 20}), [arrival, service])


def test_targets_of_a_model_may_be_a_function_of_the_state():
    model = queue()
    found = first_passage(model, lambda x: x.jobs == 0, lambda x: np.where(x.jobs < 20, 0, 1))
    chain = birth_death(np.full(20, 0.5), np.full(20, 1.0))
    np.testing.assert_array_equal(found.mean, first_passage(chain, [0]).mean)
    mask = np.arange(21) == 0
    np.testing.assert_array_equal(found.mean, first_passage(chain, mask).mean)


def test_a_tabular_model_under_a_policy_is_a_chain_in_steps():
    model = tabular([[[0.5, 0.5], [0, 1]], [[0.9, 0.1], [1, 0]]], costs=[[1, 2], [3, 0]])
    assert first_passage(model, [1], [0, 0]).mean[0] == pytest.approx(2.0)
    assert first_passage(model, [1], [1, 0]).mean[0] == pytest.approx(10.0)


@given(chains(), st.floats(-3, 3))
@settings(max_examples=25, deadline=None)
def test_scaling_time_scales_the_means_and_leaves_the_chances(given_, scale):
    rates, targets = given_
    factor = 2.0 ** round(scale)
    one = first_passage(markov_chain(rates=triplets(rates)), sorted(targets))
    two = first_passage(markov_chain(rates=triplets(factor * rates)), sorted(targets))
    np.testing.assert_array_equal(one.probability, two.probability)
    np.testing.assert_array_equal(one.mean, factor * two.mean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": []}, "targets"),
        ({"targets": [False, False]}, "no state is selected"),
        ({"targets": [2]}, "2 is not one of the states 0 to 1"),
        ({"targets": [0.5]}, "targets must be state numbers"),
        ({"targets": lambda x: x}, "without a model"),
        ({"times": [-1.0]}, "finite and >= 0"),
        ({"times": [1.0], "initial": [0.2, 0.2]}, "sum to 1"),
        ({"policy": "join"}, "a chain has no decisions"),
        ({"tolerance": 2.0}, "tolerance is 2.0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    call = {"targets": [1]} | arguments
    with pytest.raises(InputError, match=message):
        first_passage([[-1.0, 1.0], [1.0, -1.0]], **call)


def test_a_model_with_decisions_needs_a_policy():
    with pytest.raises(InputError, match="the model has decisions"):
        first_passage(queue(), [0])
