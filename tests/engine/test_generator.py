"""Rates under a policy, move by move, against the explicit rows."""

import numpy as np
from hypothesis import given, settings

from mdpcloud.engine import compile_model
from mdpcloud.engine.generator import rates_under
from tests.common.random_models import models


def by_rows(problem, choice):
    generator, _ = problem.listed().generator(choice)
    dense = generator.toarray()
    np.fill_diagonal(dense, 0.0)
    return dense


@settings(max_examples=40)
@given(models())
def test_rates_of_a_choice_are_those_of_its_rows(model):
    for form in (None, "indexed"):
        problem = compile_model(model, form=form)
        choice = problem.greedy(problem.pack(np.zeros(problem.n)), 0.0)
        rates = rates_under(problem, choice)
        assert (rates.data > 0.0).all()
        assert rates.has_canonical_format
        np.testing.assert_allclose(rates.toarray(), by_rows(problem, choice), rtol=1e-14)
        fixed = rates_under(problem.under(choice), None)
        np.testing.assert_array_equal(fixed.toarray(), rates.toarray())


@settings(max_examples=40)
@given(models())
def test_rates_of_a_randomised_choice_are_those_of_its_rows(model):
    problem = compile_model(model)
    rng = np.random.default_rng(problem.n)
    mixture = []
    for e in range(len(problem.terms)):
        allowed, _ = problem.allowed(e)
        weights = allowed * rng.uniform(0.1, 1.0, allowed.shape)
        mixture.append(weights / np.maximum(weights.sum(axis=0), 1e-300))
    np.testing.assert_allclose(
        rates_under(problem, mixture).toarray(), by_rows(problem, mixture), rtol=1e-12
    )
