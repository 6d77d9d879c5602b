from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdpcloud.errors import InputError
from mdpcloud.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    PhaseType,
    Uniform,
)

ERLANG_3 = PhaseType((1.0, 0.0, 0.0), ((-1.0, 1.0, 0.0), (0.0, -1.0, 1.0), (0.0, 0.0, -1.0)))
MIXTURE = PhaseType((0.25, 0.75), ((-1.0, 0.0), (0.0, -5.0)))
BACK_AND_FORTH = PhaseType((0.5, 0.5), ((-3.0, 2.0), (1.0, -1.5)))
LAWS = [
    Exponential(),
    Deterministic(),
    Erlang(4),
    Hyperexponential(scv=5.0),
    Hyperexponential((0.2, 0.3, 0.5), (1.0, 2.0, 10.0)),
    Lognormal(0.5),
    Uniform(0.8),
    ERLANG_3,
    MIXTURE,
    BACK_AND_FORTH,
]
SAMPLES = 40_000


def mixture(law: Hyperexponential) -> Any:
    """Distribution function of a hyperexponential law of mean 1."""
    weights, rates = np.array(law.weights), np.array(law.rates)
    rates = rates * np.sum(weights / rates)
    return lambda x: 1.0 - np.exp(-np.multiply.outer(x, rates)) @ weights


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_samples_have_mean_one_and_the_variance_that_is_stated(law: Any) -> None:
    found = law.sample(np.random.default_rng(1), SAMPLES)
    assert found.shape == (SAMPLES,)
    assert (found >= 0.0).all()
    squares = (found - 1.0) ** 2
    mean_error, variance_error = np.std([found, squares], axis=1) / SAMPLES**0.5
    assert found.mean() == pytest.approx(1.0, abs=5.0 * mean_error + 1e-12)
    assert squares.mean() == pytest.approx(law.scv, abs=5.0 * variance_error + 1e-12)


@pytest.mark.parametrize(
    ("law", "distribution"),
    [
        (Exponential(), stats.expon().cdf),
        (Erlang(4), stats.gamma(4, scale=0.25).cdf),
        (Hyperexponential(scv=5.0), mixture(Hyperexponential(scv=5.0))),
        (Lognormal(0.5), stats.lognorm(np.log(1.5) ** 0.5, scale=1.5**-0.5).cdf),
        (Uniform(0.8), stats.uniform(0.2, 1.6).cdf),
        (ERLANG_3, stats.gamma(3, scale=1 / 3).cdf),
        (MIXTURE, mixture(Hyperexponential((0.25, 0.75), (1.0, 5.0)))),
    ],
    ids=lambda one: "" if callable(one) else repr(one),
)
def test_samples_follow_the_distribution_function(law: Any, distribution: Any) -> None:
    found = law.sample(np.random.default_rng(2), SAMPLES)
    assert stats.kstest(found, distribution).pvalue > 1e-3


@given(st.integers(1, 12))
def test_a_row_of_phases_is_erlang(phases: int) -> None:
    generator = (np.eye(phases, k=1) - np.eye(phases)).tolist()
    initial = np.eye(phases)[0].tolist()
    assert PhaseType(initial, generator).scv == pytest.approx(Erlang(phases).scv, rel=1e-12)


@given(st.floats(1.0, 1e4))
def test_balanced_means_give_the_variance_that_was_asked_for(scv: float) -> None:
    law = Hyperexponential(scv=scv)
    assert Hyperexponential(law.weights, law.rates).scv == pytest.approx(scv, rel=1e-9)
    shares = np.array(law.weights) / law.rates
    assert shares == pytest.approx([0.5, 0.5], rel=1e-12)


@given(
    st.lists(st.floats(0.1, 10.0), min_size=1, max_size=4),
    st.floats(0.01, 100.0),
)
def test_only_the_ratios_of_rates_count(rates: list[float], scale: float) -> None:
    weights = (1.0 / len(rates),) * len(rates)
    law, same = Hyperexponential(weights, rates), PhaseType(weights, (-np.diag(rates)).tolist())
    other = Hyperexponential(weights, tuple(scale * rate for rate in rates))
    assert other.scv == pytest.approx(law.scv, rel=1e-9)
    assert same.scv == pytest.approx(law.scv, rel=1e-9)
    draws = [one.sample(np.random.default_rng(3), 100) for one in (law, other)]
    assert draws[0] == pytest.approx(draws[1], rel=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_equal_seeds_give_equal_samples_and_laws_are_values(law: Any) -> None:
    again = pickle.loads(pickle.dumps(law))
    assert again == law
    assert hash(again) == hash(law)
    draws = [one.sample(np.random.default_rng(4), 50) for one in (law, again)]
    assert (draws[0] == draws[1]).all()


def test_a_phase_of_probability_zero_is_never_drawn() -> None:
    law = PhaseType((0.0, 1.0, 0.0), ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1e9)))
    assert law.sample(np.random.default_rng(5), 1000).min() > 1e-6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Erlang(0), "Erlang: phases must be an integer >= 1, not 0"),
        (lambda: Erlang(2.5), "phases must be an integer"),
        (lambda: Erlang(2, law="erlangg"), "law must be 'erlang', not 'erlangg'"),
        (lambda: Lognormal(0.0), "scv must be a finite number > 0"),
        (lambda: Lognormal(np.inf), "scv must be a finite number > 0"),
        (lambda: Uniform(1.5), "spread must be a finite number > 0 and <= 1"),
        (lambda: Hyperexponential(), "give scv, or weights and rates"),
        (lambda: Hyperexponential(scv=0.5), "scv must be a finite number >= 1"),
        (lambda: Hyperexponential(weights=(1.0,)), "weights and rates must be given together"),
        (lambda: Hyperexponential((0.5, 0.5), (1.0,)), "2 weights and 1 rates"),
        (lambda: Hyperexponential((0.5, 0.4), (1.0, 2.0)), "weights must sum to 1, not 0.9"),
        (lambda: Hyperexponential((0.5, 0.5), (1.0, 2.0), 3.0), "make it 1.22222; leave it out"),
        (lambda: Hyperexponential((0.0, 1.0), (1.0, 2.0)), r"weights\[0\] must be"),
        (lambda: PhaseType((1.0,), ((-1.0, 1.0),)), "generator must be 1 lists of 1 rates"),
        (lambda: PhaseType((0.5,), ((-1.0,),)), "initial must sum to 1, not 0.5"),
        (lambda: PhaseType((1.0,), ((0.0,),)), r"generator\[0\]\[0\] < 0"),
        (lambda: PhaseType((1.0, 0.0), ((-1.0, -1.0), (0.0, -1.0))), r"generator\[0\] is"),
        (lambda: PhaseType((1.0, 0.0), ((-1.0, 2.0), (0.0, -1.0))), "their sum <= 0"),
        (
            lambda: PhaseType((0.5, 0.5), ((-1.0, 0.0), (0.0, -1.0), (0.0, 0.0))),
            "generator must be 2 lists",
        ),
        (
            lambda: PhaseType((1.0, 0.0, 0.0), ((-1.0, 0.5, 0.0), (0, -1, 1.0), (0, 1.0, -1))),
            "from phase 1 absorption is never reached",
        ),
    ],
)
def test_wrong_laws_are_refused_with_the_field_and_what_is_allowed(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hyperexponential(scv=1e7), "scv"),
        (lambda: Hyperexponential((1 - 1e-12, 1e-12), (1.0, 1e-12)), "make an scv of"),
        (lambda: Lognormal(1e9), "scv"),
        (lambda: PhaseType((1.0, 0.0), ((-1.0, 1.0), (0.99999, -1.0))), "phases on average"),
        (lambda: PhaseType((1.0, 0.0), ((-1.0, 1 + 9e-10), (1 - 3e-9, -1.0))), "phases on average"),
    ],
)
def test_laws_that_cannot_be_simulated_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_rates_over_many_decades_do_no_harm() -> None:
    assert Hyperexponential((0.5, 0.5), (1e-320, 2.0)).scv == pytest.approx(3.0)
    law = PhaseType((1.0, 0.0), ((-1e-300, 1e-300), (0.0, -1e300)))
    assert law.scv == pytest.approx(1.0)
