"""Rates under a policy, move by move, against the explicit rows."""

import numpy as np
import pytest
from hypothesis import given, settings

from mdpcloud.engine import compile_model, indexed
from mdpcloud.engine.generator import rates_under
from tests.admission import admission
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


@settings(max_examples=40)
@given(models())
def test_the_chain_of_a_policy_is_that_of_its_rows(model):
    for form in (None, "indexed"):
        problem = compile_model(model, form=form)
        fixed = problem.under(problem.greedy(problem.pack(np.zeros(problem.n)), 0.0))
        (generator, cost), (expected, expected_cost) = fixed.chain(), fixed.listed().chain()
        assert generator.has_canonical_format
        np.testing.assert_allclose(generator.toarray(), expected.toarray(), rtol=1e-13)
        np.testing.assert_allclose(cost, expected_cost, rtol=1e-13, atol=1e-15)


def test_an_action_that_leaves_the_space_adds_nothing_to_the_rates():
    problem = compile_model(admission(6))
    refusing = problem.under(np.ones((2, problem.n), np.int8)).chain()[0].toarray()
    entering = problem.under(np.zeros((2, problem.n), np.int8)).chain()[0].toarray()
    np.testing.assert_array_equal(entering[-1], refusing[-1])


@given(models())
@settings(max_examples=40)
def test_targets_found_by_a_search_are_those_of_a_table(model):
    tabled = compile_model(model, form="indexed").layout.targets
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexed, "DENSE", 0)
        np.testing.assert_array_equal(compile_model(model, form="indexed").layout.targets, tabled)
