"""The best member of a family: every member is beaten, or known not to be separable."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.policies import elimination, members
from mdpcloud.policies.family import Family, Parameter
from mdpcloud.policies.search import BestMember, best_member, member_bounds
from mdpcloud.policies.thresholds import thresholds
from mdpcloud.solve import Status
from tests.models import downgrading, offloading, reference, two_centres
from tests.policies.links import Link, levels
from tests.solve.exact_gains import exact_gains

LINK = Link()
RECORDS = reference("allocation")

links = st.builds(
    lambda rates, costs, capacity: Link(rates, (1, 2), costs, capacity),
    rates=st.tuples(st.floats(0.1, 8.0), st.floats(0.1, 4.0)),
    costs=st.tuples(st.floats(0.1, 5.0), st.floats(0.1, 5.0)),
    capacity=st.integers(2, 7),
)


@pytest.fixture(params=["direct", "iterative"])
def _evaluation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to evaluate a member, whatever the number of states."""
    monkeypatch.setattr(members, "DIRECT", 10**9 if request.param == "direct" else 0)


def one_by_one(model: Any, family: Family) -> np.ndarray[Any, Any]:
    """Certified bounds of every member by `mdpcloud.evaluate`."""
    found = [mc.evaluate(model, family.member(*vector)).bounds for vector in family.members()]
    return np.array(found)


def check(found: BestMember, known: np.ndarray[Any, Any]) -> None:
    """Every bound holds, and no member beats the best one."""
    assert found.status is Status.CONVERGED
    assert found.exhaustive
    assert found.evaluated == found.family.size
    assert (found.bounds[:, 0] <= known[:, 1]).all()
    assert (known[:, 0] <= found.bounds[:, 1]).all()
    vectors = list(found.family.members())
    near = {*found.equals, *found.same, found.vector}
    for vector, (low, _) in zip(vectors, known, strict=True):
        assert vector in near or low > found.lower
    best = known[vectors.index(found.vector)]
    assert found.lower <= best[1]
    assert best[0] <= found.upper
    assert found.lower <= found.cost <= found.upper


# --- the best of all ------------------------------------------------------------------------------


@pytest.mark.usefixtures("_evaluation")
@settings(max_examples=10)
@given(links)
def test_the_best_member_is_that_of_evaluations_one_by_one(link: Link) -> None:
    model, family = link.model(), link.reservation()
    check(best_member(model, family), one_by_one(model, family))


@pytest.mark.usefixtures("_evaluation")
@settings(max_examples=3)
@given(links)
def test_two_parameters_are_searched_on_the_whole_grid(link: Link) -> None:
    grid = [Parameter(f"level[{j}]", levels(link.capacity)) for j in (0, 1)]
    family = thresholds(link.streams((0, 1)), grid)
    check(best_member(link.model(), family), one_by_one(link.model(), family))


@pytest.mark.usefixtures("_evaluation")
def test_randomised_members_are_searched_too() -> None:
    servers, grid = (2, 3), (0.0, 0.25, 0.75, 1.0)
    model = offloading.offloading(servers, (4.0, 1.0), (1.0, 1.0), (1.0, 2.0))
    family = Family(
        "offloading",
        (Parameter("p0", grid), Parameter("p1", grid)),
        lambda *p: offloading.offload_when_full(servers, p),
    )
    found = best_member(model, family)
    check(found, one_by_one(model, family))
    assert found.policy.randomised or set(found.vector) <= {0.0, 1.0}


@pytest.mark.usefixtures("_evaluation")
def test_exact_costs_lie_within_the_bounds() -> None:
    """Trunk reservation with servers (1, 2): losses of each threshold as rational numbers."""
    losses = [
        (Fraction(394, 1227), Fraction(535, 1227)),
        (Fraction(446, 843), Fraction(215, 843)),
        (Fraction(2, 3), Fraction(1, 5)),
    ]
    for w in (Fraction(1), Fraction(3)):
        model = offloading.trunk_reservation((1, 2), (2.0, 1.0), (1.0, 1.0), (1.0, float(w)))
        family = Family(
            "reserve", (Parameter("a", (0, 1, 2)),), lambda a: offloading.reserve((1, 2), a)
        )
        costs = [2 * first + w * second for first, second in losses]
        found = best_member(model, family)
        assert found.vector == (costs.index(min(costs)),)
        assert found.lower <= min(costs) <= found.upper
        bounds = member_bounds(model, family)
        assert all(low <= cost <= high for cost, (low, high) in zip(costs, bounds, strict=True))


@pytest.mark.usefixtures("_evaluation")
@settings(max_examples=10)
@given(st.lists(st.floats(-4.0, 4.0), min_size=4, max_size=4), st.integers(2, 4))
def test_bounds_hold_for_rates_and_costs_far_apart(powers: list[float], capacity: int) -> None:
    """Against exact rational arithmetic on the numbers of the compiled model."""
    sizes = tuple(10.0**power for power in powers)
    link = Link(sizes[:2], (1, 2), sizes[2:], capacity)
    model, family = link.model(), link.reservation()
    problem: Any = compile_model(model)
    exact = [
        exact_gains(problem, mc.policy(model, family.member(*vector)).choice(problem))[0]
        for vector in family.members()
    ]
    found = best_member(model, family)
    for bounds in (found.bounds, member_bounds(model, family)):
        assert all(low <= cost <= high for cost, (low, high) in zip(exact, bounds, strict=True))
    assert found.lower <= min(exact) * (1 + Fraction(1, 10**9))
    assert min(exact) <= found.upper
    best = (int(np.argmin(exact)),)
    assert best in (found.vector, *found.equals, *found.same)


# --- published best members -----------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS["S3"]["mdp"], ids=lambda r: f"{r['C']}-{r['w_dg']}")
def test_the_best_level_of_downgrading_is_as_published(record: dict[str, Any]) -> None:
    demands, capacity = tuple(record["A"]), record["C"]
    prices = record["w_rej"], record["w_dg"]
    model = downgrading.downgrading(demands, record["lam"], record["mu"], capacity, *prices)
    family = Family(
        "levels",
        (Parameter("level", levels(capacity)),),
        lambda level: downgrading.downgrade_from(level, demands, capacity),
    )
    found = best_member(model, family)
    assert (record["best_C0"],) in (found.vector, *found.equals, *found.same)
    assert found.cost == pytest.approx(record["best_C0_cost"], rel=1e-11)
    bounds = member_bounds(model, family)
    for level, cost in record["all_C0_costs"].items():
        assert bounds[int(level)].mean() == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize(
    "record", RECORDS["S4"]["mdp"], ids=lambda r: f"{r['set']}-{r['N']}-{r['w_fwd'][0]}"
)
def test_the_best_thresholds_of_two_centres_are_as_published(record: dict[str, Any]) -> None:
    given_ = RECORDS["S4"][record["set"]]
    capacity = tuple(round(record["N"] * share) for share in given_["cap"])
    rates = [[record["N"] * rate for rate in row] for row in given_["lam_jk"]]
    needs = given_["R"], given_["C"]
    prices = record["w_rej"][0], record["w_fwd"][0]
    model = two_centres.two_centres(*needs, capacity, rates, given_["mu"], *prices)
    grid = (range(capacity[0] - 4, capacity[0] + 1), range(capacity[3] - 4, capacity[3] + 1))
    family = Family(
        "thresholds",
        tuple(Parameter(f"level[{k}]", tuple(grid[k])) for k in (0, 1)),
        lambda *level: two_centres.keep_below(level, *needs, capacity),
    )
    found = best_member(model, family)
    cost, vector = record["best_threshold"]
    assert tuple(vector) in (found.vector, *found.equals, *found.same)
    assert found.cost == pytest.approx(cost, rel=2e-9)
    assert not (found.bounds[:, 1] < found.lower).any()


@pytest.mark.parametrize(
    "record", RECORDS["S6_finite_mdp"]["mdp"], ids=lambda r: f"{r['C1']}-{r['C2']}-{r['w2']}"
)
def test_the_costs_of_every_reservation_are_as_published(record: dict[str, Any]) -> None:
    arguments = offloading.arguments(record)
    model = offloading.trunk_reservation(*arguments)
    published = record["costs_by_a"]
    family = Family(
        "reserve",
        (Parameter("a", tuple(range(len(published)))),),
        lambda a: offloading.reserve(arguments[0], a),
    )
    bounds = member_bounds(model, family, tolerance=1e-11)
    assert bounds.mean(axis=1) == pytest.approx(published, rel=1e-10)
    found = best_member(model, family)
    assert found.cost == pytest.approx(min(published), rel=1e-10)
    assert found.vector == (int(np.argmin(published)),) or found.equals or found.same


# --- members that are not told apart --------------------------------------------------------------


def test_members_of_the_same_policy_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[Any] = []
    bounds = members.Chains.bounds
    monkeypatch.setattr(
        members.Chains, "bounds", lambda *given: evaluated.append(given) or bounds(*given)
    )
    inner = LINK.reservation()
    grid = (*inner.parameters, Parameter("unused", (0, 1, 2)))
    found = best_member(LINK.model(), Family("two", grid, lambda level, _: inner.member(level)))
    assert len(evaluated) <= LINK.capacity + 2
    level = found.vector[0]
    assert found.vector == (level, 0)
    assert found.same == ((level, 1), (level, 2))
    assert found.equals == ()
    assert found.evaluated == 3 * (LINK.capacity + 1)


@settings(max_examples=10)
@given(links, st.booleans())
def test_of_equal_policies_the_first_in_the_order_of_the_grid_is_given(
    link: Link, first: bool
) -> None:
    """Whatever the path on which they are visited."""
    inner = link.reservation()
    unused = Parameter("unused", (0, 1, 2))
    grid = (unused, *inner.parameters) if first else (*inner.parameters, unused)
    family = Family("two", grid, lambda *given_: inner.member(given_[1 if first else 0]))
    found = best_member(link.model(), family)
    assert found.vector[0 if first else 1] == 0
    assert all(found.vector < other for other in (*found.same, *found.equals))


@pytest.mark.usefixtures("_evaluation")
def test_the_first_of_members_of_equal_cost_is_given_with_the_others() -> None:
    """Policies that differ in states that they leave for ever cost the same."""
    reserving = LINK.reservation().member

    def member(level: float, unused: float) -> Any:
        rule = reserving(level)["arrival 0"]

        def at_most_two(x: Any) -> Any:
            asked = (x.jobs[0] < 2) | ((x.jobs[0] == 4) & (unused > 0))
            return np.where(asked, rule(x), "reject")

        return {**reserving(level), "arrival 0": at_most_two}

    family = Family("two", (Parameter("a", (0, 1)), Parameter("b", (0, 1))), member)
    found = best_member(LINK.model(), family)
    assert found.vector[1] == 0
    assert found.equals == ((found.vector[0], 1),)
    assert found.same == ()


# --- unimodal families ----------------------------------------------------------------------------


@settings(max_examples=10)
@given(links)
def test_bisection_finds_the_best_member_of_a_unimodal_family(link: Link) -> None:
    model = link.model()
    costs = member_bounds(model, link.reservation(), tolerance=1e-11)
    found = best_member(model, link.reservation(unimodal=True))
    falls = np.sign(np.diff(costs.mean(axis=1)).round(9))
    if (np.diff(falls) >= 0).all():  # it is unimodal
        best = best_member(model, link.reservation())
        assert found.vector in (best.vector, *best.equals, *best.same)
        assert found.lower <= best.upper
        assert best.lower <= found.upper


def test_bisection_evaluates_few_members() -> None:
    link = Link((5.0, 20.0), (1, 1), (1.0, 3.0), 40)
    model = link.model()
    found = best_member(model, link.reservation(unimodal=True))
    assert found.vector == best_member(model, link.reservation()).vector
    assert found.evaluated <= 14
    assert not found.exhaustive
    assert np.isinf(found.bounds).any()


def test_where_neighbours_are_not_told_apart_all_that_are_left_are_evaluated() -> None:
    inner = LINK.reservation()
    family = Family(
        "twice",
        (Parameter("a", tuple(np.repeat(levels(LINK.capacity), 4).tolist())),),
        inner.member,
        unimodal=True,
    )
    found = best_member(LINK.model(), family)
    assert found.vector == best_member(LINK.model(), inner).vector
    assert len(found.same) == 3


# --- what is reported, and how it ends ------------------------------------------------------------


def interrupting(after: int) -> Callable[..., None]:
    """A progress callback that behaves like Ctrl-C after some calls."""
    calls = itertools.count(1)

    def callback(*_: object) -> None:
        if next(calls) >= after:
            raise KeyboardInterrupt

    return callback


@pytest.mark.usefixtures("_evaluation")
@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupt_leaves_the_best_of_the_members_evaluated(after: int) -> None:
    family = LINK.reservation()
    found = best_member(LINK.model(), family, progress=interrupting(after))
    known = one_by_one(LINK.model(), family)
    assert found.status is Status.INTERRUPTED
    assert found.evaluated == after
    assert not found.exhaustive
    assert found.vector == (int(np.argmin(known[:after, 1])),)
    assert found.lower <= known[int(found.vector[0]), 1]
    assert np.isinf(found.bounds[after:]).all()


@pytest.mark.usefixtures("_evaluation")
def test_a_time_limit_leaves_certified_bounds_of_some_member() -> None:
    family = LINK.reservation()
    found = best_member(LINK.model(), family, time_limit=1e-9)
    known = one_by_one(LINK.model(), family)[list(family.members()).index(found.vector)]
    assert found.status is Status.TIME
    assert found.lower <= known[1]
    assert known[0] <= found.upper < np.inf


def test_progress_tells_how_many_members_are_done() -> None:
    seen: list[tuple[int, int, float, float]] = []
    found = best_member(LINK.model(), LINK.reservation(), progress=lambda *now: seen.append(now))
    assert {total for _, total, _, _ in seen} == {found.family.size}
    assert [done for done, *_ in seen][: found.family.size] == [*range(1, found.family.size + 1)]
    assert all(low <= high for *_, low, high in seen)
    uppers = [high for *_, high in seen]
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.usefixtures("_evaluation")
def test_of_rewards_the_largest_is_the_best() -> None:
    """Two states of reward 0 and 1; the second is left with 1/2, the first with 1/4 or 3/4."""
    chains = np.array([[[1 - p, p], [0.5, 0.5]] for p in (0.25, 0.75)])
    model = mc.tabular(chains, rewards=[[0.0, 0.0], [1.0, 1.0]])
    found = best_member(model, Family("all", (Parameter("a", (0, 1)),), lambda a: lambda s: int(a)))
    assert found.vector == (1,)
    assert found.lower <= Fraction(3, 5) <= found.upper
    assert found.bounds[0].mean() == pytest.approx(1 / 3, rel=1e-4)


def test_rules_for_single_states_do_as_well() -> None:
    inner = LINK.reservation()

    def member(level: float) -> Any:
        def single(x: Any) -> str:
            return "accept" if LINK.used(x) + 1 + level <= LINK.capacity else "reject"

        return {**inner.member(level), "arrival 0": single}

    found = best_member(LINK.model(), Family("single", inner.parameters, member))
    assert found.vector == best_member(LINK.model(), inner).vector


def test_a_member_that_is_not_allowed_is_named() -> None:
    def member(level: float) -> Any:
        return {**LINK.reservation().member(level), "arrival 1": lambda x: "accept"}

    family = Family("greedy", (Parameter("level", (2, 1)),), member)
    message = r"member \(level 2\) of family 'greedy': .*takes action 'accept' in state \(jobs="
    with pytest.raises(mc.InputError, match=message):
        best_member(LINK.model(), family)


def test_a_member_whose_cost_depends_on_the_start_is_named() -> None:
    stay, move = mc.Action("stay"), mc.Action("move", mc.step(side=+1))
    back = mc.Event("back", lambda x: 1.0 * (x.side == 1), [stay, mc.Action("b", mc.step(side=-1))])
    model = mc.Model(
        mc.Lattice({"side": 1}),
        [mc.Event("go", 1.0, [stay, move]), back],
        cost_rate=lambda x: x.side,
    )
    family = Family("stay", (Parameter("k", (0,)),), lambda k: {"go": "stay", "back": "stay"})
    with pytest.raises(mc.MultichainError, match=r"member \(k 0\) of family 'stay'"):
        best_member(model, family)


@pytest.mark.parametrize("tolerance", [0.0, 2.0, "fine"])
def test_a_wrong_tolerance_is_refused(tolerance: Any) -> None:
    for search_ in (best_member, member_bounds):
        with pytest.raises(mc.InputError, match="tolerance is"):
            search_(LINK.model(), LINK.reservation(), tolerance=tolerance)


def test_a_family_without_members_is_refused() -> None:
    with pytest.raises(mc.InputError, match="family 'none' has no members"):
        best_member(LINK.model(), Family("none", (Parameter("a", ()),), lambda a: {}))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_the_path_visits_every_member_once_and_goes_to_neighbours(lengths: list[int]) -> None:
    path = list(elimination._snake(lengths))
    assert sorted(path) == list(range(int(np.prod(lengths))))
    places = np.array(np.unravel_index(path, lengths))
    assert (np.abs(np.diff(places)).sum(axis=0) == 1).all()


def test_a_chain_that_no_factor_exists_of_has_bounds_all_the_same() -> None:
    """One recurrent class, but left from every state only at rates a millionth of the others."""
    link = mc.systems.Downgrading((0.0, 1e4), (0.1, 1e3), (1, 6), 11.0, 2, unfit="reject")
    (family,) = [one for one in link.families() if one.name == "common_threshold"]
    bounds = member_bounds(link.model(), family, tolerance=1e-6)
    exact = mc.evaluate(link.model(), family.member(7), strict=False)
    assert bounds[7, 0] <= np.max(exact.bounds[1])
    assert bounds[7, 1] >= np.min(exact.bounds[0])
    assert np.isfinite(bounds).all()
