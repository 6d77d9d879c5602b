"""The free capacity of a full link: published numbers, a truncated chain, and the edge."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.limits.loss.free_capacity import FreeCapacity, free_capacity
from tests.models import reference

FLUID = reference("allocation")["S2_fluid"]
SETS = {  # arrival rates, service rates, sizes
    "lam=(0.8, 0.4),mu=(1.0, 1.0),A=(1, 2)": ((0.8, 0.4), (1.0, 1.0), (1, 2)),
    "lam=(0.8, 0.3),mu=(1.0, 0.5),A=(1, 2)": ((0.8, 0.3), (1.0, 0.5), (1, 2)),
    "lam=(0.6, 0.3),mu=(1.0, 1.0),A=(1, 3)": ((0.6, 0.3), (1.0, 1.0), (1, 3)),
}


def truncated(up: list[float], down: list[float], sizes: list[float], states: int) -> np.ndarray:
    """The law of the walk cut at `states`, without subtraction (Grassmann, Taksar and Heyman)."""
    rates = np.zeros((states, states))
    for u, d, size in zip(up, down, sizes, strict=True):
        a = int(size)
        n = np.arange(states - a)
        rates[n, n + a] += u
        rates[n + a, n] += d
    for n in range(states - 1, 0, -1):
        rates[:n, n] /= rates[n, :n].sum()
        rates[:n, :n] += np.outer(rates[:n, n], rates[n, :n])
    law = np.zeros(states)
    law[0] = 1.0
    for n in range(1, states):
        law[n] = law[:n] @ rates[:n, n]
    return law / law.sum()


@pytest.mark.parametrize("name", SETS)
def test_published_probabilities_that_jobs_fit(name: str) -> None:
    arrivals, services, sizes = SETS[name]
    known = FLUID[name]["pi_x"]
    up = [mu * x for mu, x in zip(services, known["x"], strict=True)]
    assert free_capacity(up, arrivals, sizes).acceptance == pytest.approx(
        known["accept"], abs=1e-13
    )


@pytest.mark.parametrize("name", SETS)
def test_the_law_is_geometric_at_the_fixed_point(name: str) -> None:
    arrivals, services, sizes = SETS[name]
    up = [mu * x for mu, x in zip(services, FLUID[name]["x_star"], strict=True)]
    walk = free_capacity(up, arrivals, sizes)
    b = FLUID[name]["beta"]
    assert walk.law == pytest.approx((1 - b) * b ** np.arange(walk.law.size), abs=1e-13)
    assert walk.acceptance == pytest.approx([b**a for a in sizes], abs=1e-13)
    assert walk.decay == pytest.approx(b, abs=1e-13)


rates = st.lists(st.sampled_from([0.0, 0.1, 0.37, 1.0, 2.5]), min_size=3, max_size=3)


@settings(max_examples=60)
@given(rates, rates, st.lists(st.integers(1, 7), min_size=3, max_size=3, unique=True))
def test_the_law_is_that_of_a_truncated_chain(
    up: list[float], down: list[float], sizes: list[int]
) -> None:
    assume(sum(up) > 0.0)
    walk = free_capacity(up, down, sizes)
    assume(walk.ergodic and walk.decay < 0.85)
    part = np.gcd.reduce([a for a, u, d in zip(sizes, up, down, strict=True) if u + d > 0.0])
    assume(part == 1)
    law = truncated(up, down, sizes, 240)
    shown = min(walk.law.size, 150)
    assert walk.law[:shown] == pytest.approx(law[:shown], abs=1e-11)
    assert walk.acceptance == pytest.approx([law[a:].sum() for a in sizes], abs=1e-11)
    assert walk.residual < 1e-12


@settings(max_examples=60)
@given(rates, rates, st.lists(st.integers(1, 30), min_size=3, max_size=3))
def test_as_much_capacity_is_taken_as_comes_free(
    up: list[float], down: list[float], sizes: list[int]
) -> None:
    assume(sum(up) > 0.0)
    walk = free_capacity(up, down, sizes)
    assume(walk.ergodic)
    taken = sum(a * d * p for a, d, p in zip(sizes, down, walk.acceptance, strict=True))
    assert taken == pytest.approx(sum(a * u for a, u in zip(sizes, up, strict=True)), abs=1e-9)
    ordered = [p for _, p in sorted(zip(sizes, walk.acceptance, strict=True), reverse=True)]
    assert all(p <= q + 1e-12 for p, q in pairwise(ordered))


@given(rates, rates, st.integers(2, 4))
def test_only_common_multiples_of_sizes_count(
    up: list[float], down: list[float], part: int
) -> None:
    assume(sum(up) > 0.0)
    one = free_capacity(up, down, [1, 2, 5])
    other = free_capacity(up, down, [part, 2 * part, 5 * part])
    assert one.acceptance == pytest.approx(other.acceptance, abs=1e-13)
    assert other.decay**part == pytest.approx(one.decay, abs=1e-12)


@pytest.mark.parametrize("slack", [1e-2, 1e-5, 1e-8, 1e-11])
def test_near_the_edge_almost_everything_fits(slack: float) -> None:
    walk = free_capacity([0.8 - slack, 0.4], [0.8, 0.4], [1, 2])
    variance = 0.8 + 0.8 + 4 * (0.4 + 0.4)
    refused = [0.8 * (1 - walk.acceptance[0]) + 2 * 0.4 * (1 - walk.acceptance[1])]
    assert refused[0] == pytest.approx(slack, rel=1e-4)  # what is refused is the drift
    assert 1.0 - walk.decay == pytest.approx(2 * slack / variance, rel=2 * slack + 1e-4)


def test_beyond_the_edge_everything_fits() -> None:
    for up in ([0.8, 0.4], [0.9, 0.4]):
        walk = free_capacity(up, [0.8, 0.4], [1, 2])
        assert walk.acceptance == (1.0, 1.0)
        assert (walk.ergodic, walk.decay) == (False, 1.0)
    assert walk.drift == pytest.approx(-0.1)


def test_a_class_without_jobs_leaves_the_roots_at_zero() -> None:
    gone = free_capacity([0.55, 0.0], [0.6, 0.3], [1, 3])
    few = free_capacity([0.55, 1e-12], [0.6, 0.3], [1, 3])
    assert gone.acceptance == pytest.approx(few.acceptance, abs=1e-11)
    assert gone.acceptance == pytest.approx(
        [truncated([0.55, 0.0], [0.6, 0.3], [1, 3], 200)[a:].sum() for a in (1, 3)], abs=1e-13
    )


def test_a_class_that_nobody_offers_has_its_probability_all_the_same() -> None:
    walk = free_capacity([0.3, 0.0], [0.6, 0.0], [1, 10])
    assert walk.acceptance == pytest.approx([0.5, 0.5**10], abs=1e-15)


spread = st.lists(
    st.one_of(st.just(0.0), st.floats(-6.0, 1.7).map(lambda power: 10.0**power)),
    min_size=3,
    max_size=3,
)


@settings(max_examples=60)
@given(spread, spread, st.lists(st.integers(1, 8), min_size=3, max_size=3))
@example([0.001, 0.0, 0.0], [1.6165267265403165, 50.0, 0.0], [3, 8, 1])
@example([0.0, 1e-6, 0.0], [1.0, 1e-6, 50.0], [5, 2, 5])
def test_rates_over_many_decades_leave_the_error_at_rounding(
    up: list[float], down: list[float], sizes: list[int]
) -> None:
    assume(sum(up) > 0.0)
    walk = free_capacity(up, down, sizes)
    assume(walk.ergodic and walk.decay < 0.85)
    part = np.gcd.reduce([a for a, u, d in zip(sizes, up, down, strict=True) if u + d > 0.0])
    law = truncated(up, down, [a / part for a in sizes], 240)
    fits = [law[-(-a // part) :].sum() for a in sizes]
    assert walk.acceptance == pytest.approx(fits, abs=walk.error)


def test_groups_of_states_that_hardly_meet_have_the_right_weights() -> None:
    # an exact solution of the truncated chain in 60 digits
    walk = free_capacity([0.001, 0.0, 0.0], [1.6165267265403165, 50.0, 0.0], [3, 8, 1])
    assert walk.acceptance[2] == pytest.approx(0.50046381371, abs=1e-11)


@pytest.mark.slow
def test_wide_jobs_keep_the_residual_at_rounding() -> None:
    found: list[FreeCapacity] = [
        free_capacity([0.3, 0.2, 0.09], [0.3, 0.2, 0.1], [1, 7, width]) for width in (50, 77, 100)
    ]
    assert max(walk.residual for walk in found) < 1e-13
    assert all(a.acceptance[0] < b.acceptance[0] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0], [1, 2]), "one number for each class"),
        (([-1.0], [1.0], [1]), r"up\[0\] must be"),
        (([1.0], [float("inf")], [1]), r"down\[0\] must be"),
        (([0.0, 0.0], [1.0, 1.0], [2, 3]), "a link without jobs is not full"),
        (([1.0], [1.0], [0]), r"sizes\[0\] must be"),
        (([1.0, 1.0], [2.0, 2.0], [1, 101]), "at most 100 are supported"),
    ],
)
def test_bad_input_is_refused(arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=message):
        free_capacity(*arguments)
