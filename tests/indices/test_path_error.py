from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mdpcloud.indices.path.changes import Changes
from mdpcloud.indices.path.equations import equations_of
from mdpcloud.indices.path.error import refreshed
from mdpcloud.indices.path.path import price_path
from mdpcloud.indices.restless.result import PricePath
from tests.indices.arms import TestArm, make_arm
from tests.indices.exact_index import Affine, dot, evaluate


@pytest.mark.parametrize("sparse", [False, True])
def test_refinement_takes_away_a_perturbation(sparse: bool) -> None:
    equations = equations_of(make_arm("dense", 4, 20).built(sparse), 0.0)
    policy = np.ones(20, np.bool_)
    changes = Changes(equations.basis(policy), 21)
    for state in range(5):
        column = changes.column(state, lambda _, s=state: np.array([s]))
        changes.add(state, column, 1.0 + column[state])
        policy[state] = False
    changes.rebase(policy)
    x = equations.basis(policy).solve(equations.chosen(policy))
    exact = equations.differences(equations.images(x), x)
    found = refreshed(equations, changes.basis, policy, exact + 1e-3)
    assert found.moved > 1e-5
    assert found.shaken < 1e-13
    assert (np.abs(found.differences - exact) <= found.errors + 1e-14).all()


@pytest.mark.parametrize("kind", ["dense", "decomposable", "decades", "ladder"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(1, 64)])
def test_errors_cover_the_exact_quotient_at_every_policy(
    kind: str, sparse: bool, alpha: Fraction
) -> None:
    given_arm = make_arm(kind, 3, 8, alpha)
    path = price_path(given_arm.built(sparse), float(alpha))
    for k in range(path.prices.size):
        difference = exact_difference(given_arm, path, k)
        price = float(-difference.constant / difference.slope)
        assert abs(path.prices[k] - price) <= path.errors[k] + 2e-16 * abs(price)


def exact_difference(given_arm: TestArm, path: PricePath, k: int) -> Affine:
    """Passive minus active value of the k-th state to change, just before, in fractions."""
    policy, state = path.policy(k).astype(int), int(path.states[k])
    rates = [[[Fraction(float(x)) for x in row] for row in matrix] for matrix in given_arm.rates]
    paid = [
        [Affine(Fraction(float(c)), Fraction(float(w))) for c, w in zip(*pair, strict=True)]
        for pair in zip(given_arm.costs, given_arm.work, strict=True)
    ]
    rows = [rates[a][i] for i, a in enumerate(policy)]
    values, _ = evaluate(rows, [paid[a][i] for i, a in enumerate(policy)], given_arm.alpha)
    change = [a - b for a, b in zip(rates[0][state], rates[1][state], strict=True)]
    return paid[0][state] - paid[1][state] + dot(change, values)
