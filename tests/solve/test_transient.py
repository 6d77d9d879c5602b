"""Laws at given times against closed forms, many digits, exact fractions and public reports."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import mdpcloud as mc
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.model.tabular import tabular
from mdpcloud.solve.stationary.stationary import stationary
from mdpcloud.solve.transient import method as transient_method
from mdpcloud.solve.transient import products as transient_products
from mdpcloud.solve.transient.doubling import sum_by_doubling
from mdpcloud.solve.transient.products import sum_products
from mdpcloud.solve.transient.steps import Steps
from mdpcloud.solve.transient.transient import transient

from .exact_transients import distance, exact_law, exact_power, exact_steps


def triplets(rates):
    x, y = np.nonzero(rates)
    return x, y, rates[x, y]


@st.composite
def random_rates(draw, decades=2.0):
    """Rates of two to six states over some decades; some states may be absorbing."""
    n = draw(st.integers(2, 6))
    rates = np.zeros((n, n))
    for _ in range(draw(st.integers(1, 3 * n))):
        x, y = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        if x != y:
            rates[x, y] = 10.0 ** draw(st.floats(-decades, decades))
    rates[0, n - 1] = 1.0
    return rates


METHODS = (
    lambda *args: sum_products(*args, 1e-10),
    sum_by_doubling,
)


@pytest.mark.parametrize("method", METHODS, ids=["uniformisation", "doubling"])
@given(rates=random_rates(), data=st.data())
@settings(deadline=None, max_examples=25)
def test_the_stated_errors_enclose_law_and_cost(method, rates, data):
    n = len(rates)
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n)))
    cost = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n)))
    moments = st.just(0.0) | st.floats(1e-20, 3)
    times = data.draw(st.lists(moments, min_size=1, max_size=2))
    start = weights / weights.sum()
    steps = Steps.of(markov_chain(rates=triplets(rates)))
    found = method(steps, start, np.array(times), cost[None])
    for k, t in enumerate(times):
        law, spent = exact_law(rates, start, t, cost)
        assert distance(found.values[k], law) <= found.error[k] <= 1e-10
        assert abs(mpmath.mpf(float(found.costs[0, k])) - spent) <= found.cost_error[0, k]
        assert found.cost_error[0, k] <= 2e-10 * np.abs(cost).max() * t + 1e-280


@pytest.mark.parametrize("method", METHODS, ids=["uniformisation", "doubling"])
@given(rates=random_rates(), data=st.data())
@settings(deadline=None, max_examples=25)
def test_expectations_from_every_state_are_the_laws_seen_from_the_other_side(method, rates, data):
    n = len(rates)
    wanted = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n)))
    steps = Steps.of(markov_chain(rates=triplets(rates)))
    none = np.zeros((0, n))
    *args, last = (steps, wanted, np.array([0.7]), none)
    if method is sum_by_doubling:
        found = sum_by_doubling(*args, last, forward=False)
    else:
        found = sum_products(*args, last, 1e-10, forward=False)
    power = exact_power(rates, 0.7)
    for x in range(n):
        expected = sum(power[x, y] for y in np.flatnonzero(wanted).tolist())
        assert abs(mpmath.mpf(float(found.values[0, x])) - expected) <= found.error[0]


@pytest.mark.parametrize("method", METHODS, ids=["uniformisation", "doubling"])
@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_steps_agree_with_exact_fractions(method, data):
    n = data.draw(st.integers(1, 5))
    numbers = st.lists(st.integers(0, 7), min_size=n, max_size=n)
    rows = [data.draw(numbers) for _ in range(n)]
    matrix = [[Fraction(a, 8) for a in row] for row in rows]
    for x, row in enumerate(matrix):
        row[x] = Fraction(0)
        total = sum(row)
        matrix[x] = [a / 64 for a in row]
        matrix[x][x] = 1 - total / 64
    cost = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), float)
    counts = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=2))
    steps = Steps.of(markov_chain(transition_matrix=np.array(matrix, float)))
    start = np.eye(n)[0]
    found = method(steps, start, np.array(counts, float), cost[None])
    for k, count in enumerate(counts):
        law, spent = exact_steps(matrix, start, count, cost)
        away = sum(abs(Fraction(float(a)) - b) for a, b in zip(found.values[k], law, strict=True))
        assert away <= found.error[k] <= 1e-10
        assert abs(Fraction(float(found.costs[0, k])) - spent) <= found.cost_error[0, k]


def infinite_server(n, arrival_rate, service_rate):
    k = np.arange(n)
    up, down = k[:-1], k[1:]
    rate = np.concatenate([np.full(n - 1, arrival_rate), service_rate * down])
    return markov_chain(rates=(np.r_[up, down], np.r_[up + 1, down - 1], rate))


def poisson_law(mean, n):
    k = np.arange(n)
    return np.exp(k * math.log(mean) - mean - gammaln(k + 1)) if mean > 0 else 1.0 * (k == 0)


@pytest.mark.parametrize("t", [0.0, 0.1, 1.0, 5.0, 40.0])
def test_an_infinite_server_queue_that_starts_empty_has_poisson_laws(t):
    found = transient(infinite_server(300, 60.0, 1.0), 0, t, cost_rate=np.arange(300.0))
    law = poisson_law(60.0 * -math.expm1(-t), 300)
    assert np.abs(found.laws[0] - law).sum() <= found.error[0] + 1e-12
    assert found.error[0] <= 1e-10
    spent = 60.0 * (t + math.expm1(-t))
    assert found.cost_bounds[0][0] - 1e-11 <= spent <= found.cost_bounds[1][0] + 1e-11
    assert found.costs[0] == pytest.approx(spent, rel=1e-9)


def two_servers(n, rates):
    """Two independent infinite servers; the state is n times the first number plus the second."""
    place = np.arange(n * n).reshape(n, n)
    parts = []
    for axis, (arrival, service) in enumerate(rates):
        along = np.moveaxis(place, axis, 0)
        number = np.broadcast_to(np.arange(1, n)[:, None], along[1:].shape)
        parts.append((along[:-1].ravel(), along[1:].ravel(), np.full(number.size, arrival)))
        parts.append((along[1:].ravel(), along[:-1].ravel(), service * number.ravel()))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@pytest.mark.parametrize("shuffled", [False, True])
def test_two_independent_servers_have_a_product_law_in_any_order_of_the_states(shuffled):
    n, t = 40, 2.0
    origin, destination, rate = two_servers(n, ((6.0, 1.0), (4.0, 2.0)))
    order = np.random.default_rng(5).permutation(n * n) if shuffled else np.arange(n * n)
    chain = markov_chain(rates=(order[origin], order[destination], rate))
    found = transient(chain, int(order[0]), [t, 0.3 * t])
    for k, time in enumerate([t, 0.3 * t]):
        first = poisson_law(6.0 * -math.expm1(-time), n)
        second = poisson_law(2.0 * -math.expm1(-2.0 * time), n)
        law = found.laws[k][order].reshape(n, n)
        assert np.abs(law - np.outer(first, second)).sum() <= found.error[k] + 2e-13
        assert found.error[k] <= 1e-10


def test_a_start_in_the_middle_of_a_large_lattice_is_the_sum_of_its_parts():
    n = 70
    chain = markov_chain(rates=two_servers(n, ((20.0, 1.0), (10.0, 0.5))))
    law = np.zeros(n * n)
    law[[5 * n + 60, 40 * n + 3]] = 0.25, 0.75
    parts = [transient(chain, x, 1.5).laws[0] for x in (5 * n + 60, 40 * n + 3)]
    found = transient(chain, law, 1.5)
    mixed = 0.25 * parts[0] + 0.75 * parts[1]
    assert np.abs(found.laws[0] - mixed).sum() <= 2 * found.error[0]


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_the_unit_of_time_does_not_matter(scale):
    up, down = np.arange(20), np.arange(1, 21)
    ends = np.r_[up, down], np.r_[down, up]
    rate = np.r_[np.full(20, 2.0), np.full(20, 3.0)]
    times = np.array([0.5, 3.0, 1e3])
    found = transient(markov_chain(rates=(*ends, scale * rate)), 0, times / scale)
    plain = transient(markov_chain(rates=(*ends, rate)), 0, times)
    distances = np.abs(found.laws - plain.laws).sum(axis=1)
    assert (distances <= found.error + plain.error).all()
    assert found.laws[2] == pytest.approx(stationary(markov_chain(rates=(*ends, rate))), abs=1e-10)
    assert found.laws[2, 0] == pytest.approx(0.33340017532527326, abs=1e-10)


def test_products_end_where_what_is_to_come_provably_changes_nothing():
    chain = infinite_server(1500, 30.0, 1.0)
    start = np.zeros(1500)
    start[:3] = 0.5, 0.25, 0.25
    found = transient(chain, start, [20.0, 60.0], tolerance=1e-9)
    assert found.products < 0.7 * Steps.of(chain).needed(60.0)
    law = poisson_law(30.0, 1500)
    assert (np.abs(found.laws - law).sum(axis=1) <= found.error + 1e-7).all()
    assert np.abs(found.laws[1] - law).sum() <= found.error[1] + 1e-12
    assert (found.error <= 1e-9).all()


def test_a_hub_that_all_states_lead_to_is_summed_without_much_rounding():
    n = 20_000
    outer = np.arange(1, n)
    origin = np.r_[outer, np.zeros(n - 1, int)]
    destination = np.r_[np.zeros(n - 1, int), outer]
    rate = np.r_[np.full(n - 1, 3.0), np.full(n - 1, 2.0 / (n - 1))]
    found = transient(markov_chain(rates=(origin, destination, rate)), 0, 0.4)
    hub = 3 / 5 + 2 / 5 * math.exp(-5 * 0.4)
    assert abs(found.laws[0, 0] - hub) <= found.error[0] <= 1e-10


def test_times_may_come_in_any_order_and_twice():
    chain = infinite_server(50, 5.0, 1.0)
    found = transient(chain, 3, [2.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(found.laws[0], found.laws[3])
    np.testing.assert_array_equal(found.laws[1], np.eye(50)[3])
    assert transient(chain, 3, 2.0).laws[0] == pytest.approx(found.laws[0], abs=1e-10)


def test_states_that_cannot_be_reached_have_no_say_in_the_number_of_products():
    rates = np.zeros((5, 5))
    rates[0, 1] = rates[1, 0] = 1.0
    rates[2, 3], rates[3, 2] = 1e9, 1e9
    found = transient(markov_chain(rates=triplets(rates)), 0, 1.0, cost_rate=[1, 0, 5, 5])
    assert found.products < 100
    law = 0.5 * (1 + math.exp(-2.0))
    assert found.laws[0] == pytest.approx([law, 1 - law, 0, 0], abs=found.error[0])


def test_products_made_in_pieces_are_those_made_at_once(monkeypatch):
    chain = markov_chain(rates=two_servers(30, ((5.0, 1.0), (3.0, 0.5))))
    cost = np.arange(900.0)
    whole = transient(chain, 40, [0.0, 0.2, 2.0], cost_rate=cost)
    monkeypatch.setattr(transient_products, "PIECE", 20_000)
    pieces = transient(chain, 40, [0.0, 0.2, 2.0], cost_rate=cost)
    np.testing.assert_array_equal(pieces.laws, whole.laws)
    np.testing.assert_array_equal(pieces.costs, whole.costs)
    np.testing.assert_array_equal(pieces.error, whole.error)


def test_two_absorbing_states_keep_the_law_they_start_with():
    found = transient(np.eye(2), [0.5, 0.5], [0, 1, 10**9])
    assert (np.abs(found.laws - 0.5).sum(axis=1) <= found.error).all()
    assert (found.error <= 1e-10).all()


@pytest.mark.parametrize("rate", [1e-9, 6.0, 1e7])
@pytest.mark.parametrize("t", [1e-9, 0.1, 3.0])
def test_the_cost_until_absorption_by_a_deadline_is_the_closed_form(rate, t):
    found = transient([[-rate, rate], [0, 0]], 0, t, cost_rate=[1, 0])
    exact = -math.expm1(-rate * t) / rate
    lower, upper = found.cost_bounds
    assert lower[0] - 1e-15 * exact <= exact <= upper[0] + 1e-15 * exact
    assert found.costs[0] == pytest.approx(exact, rel=1e-9)


def test_the_reported_cost_until_a_tenth_is_met():
    found = transient([[-6.0, 6.0], [0.0, 0.0]], 0, 0.1, cost_rate=[1.0, 0.0])
    assert found.costs[0] == pytest.approx(0.075198060650995595, abs=1e-11)


def test_a_terminal_state_earns_nothing_by_staying():
    found = transient([[0.0, 1.0], [0.0, 1.0]], 0, [0, 1, 50], cost_rate=[2.0, 0.0])
    assert found.costs == pytest.approx([0.0, 2.0, 2.0], rel=1e-14)


def stages(rates, chance):
    """Stages in a row; the last one succeeds with a chance, and success is the last state."""
    n = len(rates)
    origin = [*range(n), n - 1] if chance < 1 else list(range(n))
    destination = [*range(1, n), n + 1, n] if chance < 1 else [*range(1, n), n + 1]
    rate = [*rates[:-1], chance * rates[-1], (1 - chance) * rates[-1]]
    return markov_chain(rates=(origin, destination, rate[: len(origin)]))


@pytest.mark.parametrize(
    ("rates", "chance", "probability"),
    [
        ((1.0, 7.0, 7.0), 1.0, 0.50066835807513402),
        ((1.0, 1.0), 0.5, 0.13212055882855768),
    ],
)
def test_the_chance_of_success_in_time_lies_within_its_bounds(rates, chance, probability):
    found = transient(stages(rates, chance), 0, 1.0)
    assert abs(found.laws[0, -1] - probability) <= found.error[0] + 1e-16
    assert found.error[0] <= 1e-10


def queue(capacity=8):
    join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=2.5)
    arrival = mc.Event("arrival", 3.0, [join, lost])
    service = mc.Event("service", lambda x: 1.0 * np.minimum(x.jobs, 2), mc.step(jobs=-1))
    return mc.Model(
        mc.Lattice({"jobs": capacity}),
        [arrival, service],
        cost_rate=lambda x: 0.5 * x.jobs,
        measures={"lost": ("arrival", "lost"), "jobs": lambda x: x.jobs},
    )


def test_a_model_under_a_policy_reports_its_costs_lumps_and_measures():
    times = np.array([0.0, 0.5, 4.0])
    model = queue()
    found = transient(model, 1, times, lambda x: np.where(x.jobs < 5, "join", "lost"))
    rates = np.zeros((9, 9))
    for x in range(9):
        if x < 5:
            rates[x, x + 1] = 3.0
        if x > 0:
            rates[x, x - 1] = min(x, 2)
    jobs, losses = np.arange(9.0), 3.0 * (np.arange(9) >= 5)
    for k, t in enumerate(times):
        law, spent = exact_law(rates, np.eye(9)[1], t, 0.5 * jobs + 2.5 * losses)
        assert distance(found.laws[k], law) <= found.error[k]
        lower, upper = found.cost_bounds
        assert lower[k] <= spent <= upper[k]
        for name, rate in (("lost", losses), ("jobs", jobs)):
            _, amount = exact_law(rates, np.eye(9)[1], t, rate)
            assert found.measures[name][0][k] <= amount <= found.measures[name][1][k]
            assert found.measures[name][1][k] - found.measures[name][0][k] <= 1e-8


def test_rewards_of_a_model_in_steps_are_reported_as_rewards():
    matrices = [[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [1.0, 0.0]]]
    model = tabular(matrices, rewards=[[1.0, 3.0], [2.0, 0.0]])
    found = transient(model, 0, [0, 1, 2], [0, 0])
    assert found.costs.tolist() == pytest.approx([0.0, 1.0, 2.5], abs=1e-14)
    assert found.laws[2] == pytest.approx([0.375, 0.625], abs=1e-15)


def test_a_large_stiff_chain_is_refused_with_the_number_of_products():
    chain = infinite_server(1200, 1.0, 1.0)
    with pytest.raises(SolveError, match=r"1\.2e\+09 products") as caught:
        transient(chain, 0, 1e6)
    assert caught.value.partial is None


def test_a_refusal_names_the_tolerance_that_can_be_met():
    chain = infinite_server(1200, 30.0, 0.1)
    with pytest.raises(SolveError, match="a tolerance of ") as caught:
        transient(chain, 0, 100.0, tolerance=1e-13)
    named = float(str(caught.value).split("a tolerance of ")[1].split()[0])
    assert transient(chain, 0, 100.0, tolerance=named).error[0] <= named


@pytest.mark.parametrize(("rate", "time"), [(1e12, 1e12), (1e300, 1e300)])
def test_times_beyond_what_doubling_can_bound_are_refused(rate, time):
    with pytest.raises(SolveError, match="what can be computed with certainty"):
        transient([[-rate, rate], [rate, -rate]], 0, time)


def test_a_chain_of_one_state_stays_there_and_pays():
    found = transient([[0.0]], 0, [0.0, 3.0], cost_rate=2.0)
    assert found.laws == pytest.approx(1.0, abs=1e-15)
    assert (found.laws <= 1.0).all()
    assert found.costs == pytest.approx([0.0, 6.0], rel=1e-10)
    assert found.cost_bounds[0][1] <= 6.0 <= found.cost_bounds[1][1]


def test_a_tolerance_below_the_rounding_is_an_error_that_carries_the_law():
    with pytest.raises(SolveError, match="above the tolerance 1e-18") as caught:
        transient([[-1.0, 1.0], [1.0, -1.0]], 0, 1.0, tolerance=1e-18)
    assert caught.value.partial.laws[0, 0] == pytest.approx(0.5 + 0.5 * math.exp(-2.0))


def test_moves_that_sum_to_a_little_over_one_are_divided_by_their_sum():
    matrix = [[0.0, 0.5 + 4e-10, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    found = transient(matrix, 0, 1)
    total = 1.0 + 4e-10
    assert found.laws[0] == pytest.approx([0.0, (0.5 + 4e-10) / total, 0.5 / total], abs=1e-15)


def test_the_limit_on_work_is_stated(monkeypatch):
    monkeypatch.setattr(transient_method, "MOST_WORK", 1e3)
    with pytest.raises(SolveError, match="above the limit 1000"):
        transient(infinite_server(1200, 1.0, 1.0), 0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial": 2}, "initial must be a state, 0 to 1, or 2 probabilities; it is 2"),
        ({"initial": [0.5, 0.6]}, "sum to 1"),
        ({"initial": [1.5, -0.5]}, "sum to 1"),
        ({"initial": [float("nan"), 1.0]}, "sum to 1"),
        ({"times": -1.0}, r"times\[0\] is -1; times must be finite and >= 0"),
        ({"times": [1.0, float("nan")]}, r"times\[1\] is nan"),
        ({"times": float("inf")}, r"times\[0\] is inf"),
        ({"times": []}, "times has shape"),
        ({"times": "soon"}, "times is not an array of numbers"),
        ({"policy": "join"}, "a chain has no decisions"),
        ({"cost_rate": [1.0]}, "cost_rate must be 2 finite numbers"),
        ({"cost_rate": [1.0, float("inf")]}, "cost_rate must be 2 finite numbers"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    given_ = {"initial": 0, "times": 1.0, "policy": None} | arguments
    with pytest.raises(InputError, match=message):
        transient([[-1.0, 1.0], [1.0, -1.0]], **given_)


def test_parts_of_a_step_are_refused():
    with pytest.raises(InputError, match="whole numbers of steps"):
        transient(np.eye(2), 0, [1.0, 1.5])


def test_a_model_with_decisions_needs_a_policy():
    with pytest.raises(InputError, match="the model has decisions"):
        transient(queue(), 0, 1.0)


@given(random_rates(), st.floats(0.1, 2.0), st.floats(0.1, 2.0))
@settings(deadline=None, max_examples=25)
def test_laws_compose_over_consecutive_intervals(rates, first, second):
    assume(first + second > 0)
    chain = markov_chain(rates=triplets(rates))
    halfway = transient(chain, 0, first)
    start = halfway.laws[0] / halfway.laws[0].sum()
    later, whole = transient(chain, start, second), transient(chain, 0, first + second)
    allowed = 3 * halfway.error[0] + later.error[0] + whole.error[0] + 1e-13
    assert np.abs(later.laws[0] - whole.laws[0]).sum() <= allowed
