"""States that stay active at all prices: those in which activity takes no work, and no others."""

from fractions import Fraction as F

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.indices.path.equations import equations_of
from mdpcloud.indices.path.no_work import all_at_no_work
from mdpcloud.indices.restless.arm import arm, rate_arm
from mdpcloud.indices.restless.birth_death_arm import birth_death_arm
from mdpcloud.indices.restless.result import Verdict
from mdpcloud.indices.restless.whittle import whittle
from tests.indices.arms import TestArm, dense, numbers, standard_work, with_diagonal
from tests.indices.exact_index import exact_path


def apart(seed: int, n: int, kind: str) -> TestArm:
    """An arm whose work, or whose rates, are many decades apart."""
    rng = np.random.default_rng([seed, n])
    given_arm = dense(rng, n)
    if kind == "work":
        work = standard_work(n) * 2.0 ** rng.integers(-28, 29, n)
        return TestArm(given_arm.moves, given_arm.costs, work)
    rates = with_diagonal(2.0 ** rng.integers(-25, 26, (2, n, n)))  # sums are exact
    return TestArm(rates, numbers(rng, (2, n)), standard_work(n), discrete=False, alpha=F(1, 8))


@pytest.mark.parametrize("kind", ["work", "rates"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_an_index_is_infinite_only_where_it_is_so_exactly(kind: str, sparse: bool, n: int) -> None:
    for seed in range(30):
        given_arm = apart(seed, n, kind)
        found = whittle_or_none(given_arm, sparse)
        if found is None or not found.is_indexable:
            continue
        exact = given_arm.exact()
        assert exact.verdict == Verdict.INDEXABLE
        for i in np.flatnonzero(np.isinf(found.index)):
            assert found.index[i] in exact.index_range(int(i)), (seed, i)


def whittle_or_none(given_arm: TestArm, sparse: bool):
    from mdpcloud.errors import SolveError

    try:
        return whittle(given_arm.built(sparse), given_arm.criterion)
    except SolveError:
        return None


def test_equal_actions_but_for_cost_have_an_infinite_index() -> None:
    only = rate_arm([[0.0]], [[0.0]], costs0=[0.0], costs1=[-1.0], work0=2.0, work1=2.0)
    assert whittle(only).index[0] == np.inf


def test_a_state_that_leads_apart_takes_no_work() -> None:
    """State 1 is left when active, and a class of its own when passive."""
    stay = np.array([[1.0, 0.0], [0.0, 1.0]])
    leave = np.array([[1.0, 0.0], [0.5, 0.5]])
    equations = equations_of(arm(stay, leave), 0.0)
    leaving, one = np.array([False, True]), np.array([1])
    assert all_at_no_work(equations, leaving, one)
    busy = equations_of(arm(stay, leave, work0=[0.0, 1.0], work1=2.0), 0.0)
    assert not all_at_no_work(busy, leaving, one)


def test_a_state_with_equal_work_but_other_moves_may_take_work() -> None:
    stay = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    move = np.array([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    work = [0.0, 1.0, 3.0]
    first = np.array([0])
    given_arm = arm(stay, move, work0=work, work1=work)
    policy = np.zeros(3, np.bool_)
    assert not all_at_no_work(equations_of(given_arm, 0.0), policy, first)
    assert all_at_no_work(equations_of(given_arm, 0.0), policy, np.array([1, 2]))
    assert all_at_no_work(equations_of(arm(stay, move, work1=0.0), 0.0), policy, first)
    rates = [[[F(float(x)) for x in row] for row in matrix] for matrix in (stay, move)]
    path = exact_path(rates, [[F(0)] * 3] * 2, [[F(w) for w in work]] * 2, F(0), discrete=True)
    assert path.at(F(1)).differences[0].slope != 0


def test_a_state_that_is_passive_below_all_prices_within_rounding_is_not_indexable() -> None:
    """At a large discount rate the marginal work of state 3 is near 0, and below 0."""
    births = [[0.0152, 0.0566, 221.6, 0.0], [1.78e-06, 0.0, 9262.3, 0.0]]
    deaths = [[0.0, 2.32e-06, 0.0, 0.0], [0.0, 1.42e-05, 1.88, 0.0679]]
    costs = [5.1, 14.0, 21.2, 28.6]
    work0, work1 = [0.0, -1.0, 1.0, 2.0], [2.0, 1.0, 2.0, 2.0]
    one = birth_death_arm(*births, *deaths, costs, costs, work0=work0, work1=work1)
    found = whittle(one.general(), mc.Discounted(rate=1e12))
    assert found.verdict is not Verdict.INDEXABLE
