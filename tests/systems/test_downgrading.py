"""The link with downgrading: published costs and tables, exact rationals, laws of conservation."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.systems.downgrading import Downgrading
from tests.common.exact import solve_exactly
from tests.models import reference

RECORDS = reference("allocation")["S3"]["mdp"]
SETS = reference("allocation")["S3"]["sets"]
PROGRAMS = reference("allocation")["extra_phiY_mp_S3LP_S3ode"]["S3_LP"]
TRANSIENT = reference("allocation")["extra_S2mdp_S3transient_S6asym"]["S3_transient"]
EXACT = [
    (((1, 2), (1, 1), (1, 1), 3, 2), Fraction(11, 27), Fraction(1, 3)),
    (((1, 2), (1, 2), (1, 2), 4, 2), Fraction(1024, 3863), Fraction(831, 3863)),
    (((1, 3), (1, 1), (1, 1), 5, 2), Fraction(35, 102), Fraction(2, 17)),
]


def system(record, threshold=0, **others):
    return Downgrading(
        record["lam"],
        record["mu"],
        record["A"],
        record["C"],
        threshold,
        record["w_rej"],
        record["w_dg"],
        **others,
    )


def of_set(one, scale):
    return Downgrading(one["lam"], one["mu"], one["A"], one["c"], one["c0"], scale=scale)


def cost(link, rule):
    return mc.evaluate(link.model(), rule, tolerance=1e-13).gain


def measured(link, name="downgrade_threshold"):
    """Middle of the bounds of every measure of a policy; lists per class."""
    found = mc.evaluate(link.model(), link.heuristic(name).rule, tolerance=1e-13)
    bounds = {
        key: (float(np.min(low)), float(np.max(high)))
        for key, (low, high) in found.measures.items()
    }
    bounds |= link.derived(found.bounds, bounds)
    kinds = {key.partition("[")[0] for key in bounds}
    return {
        kind: [0.5 * sum(bounds[f"{kind}[{j}]"]) for j in range(len(link.arrival_rates))]
        for kind in kinds
    }


@pytest.mark.parametrize("record", RECORDS)
class TestReferenceCosts:
    def test_the_optimum(self, record):
        found = mc.solve(system(record).model(), tolerance=1e-12)
        assert found.gain == pytest.approx(record["opt_cost"], rel=1e-11)
        assert found.bounds[0] <= record["opt_cost"] * (1 + 1e-12)
        assert found.bounds[1] >= record["opt_cost"] * (1 - 1e-12)

    def test_every_common_threshold(self, record):
        (family, *_) = system(record).families()
        costs = {p[0]: cost(system(record), family.member(*p)) for p in family.members()}
        assert costs == {
            int(level): pytest.approx(value, rel=1e-12)
            for level, value in record["all_C0_costs"].items()
        }
        assert min(costs, key=costs.get) == record["best_C0"]

    def test_the_policies_by_name(self, record):
        link = system(record, record["best_C0"])
        expected = {
            "downgrade_threshold": record["best_C0_cost"],
            "always_downgrade": record["all_C0_costs"]["0"],
            "pure_loss": record["pure_loss_cost"],
        }
        for name in link.policy_names:
            rule = link.heuristic(name).rule
            assert cost(link, rule) == pytest.approx(expected[name], rel=1e-12)


class TestPublishedTables:
    @pytest.mark.parametrize(
        ("one", "scale"),
        [
            pytest.param(one, int(scale), marks=[pytest.mark.slow] if int(scale) > 160 else [])
            for one in SETS
            for scale in one["finite"]
        ],
    )
    def test_of_finite_links(self, one, scale):
        record = one["finite"][str(scale)]
        link = of_set(one, scale)
        assert (link.units, link.level) == (record["C"], record["C0"])
        found = measured(link)
        _, downgraded, rejected = np.transpose(record["per_class_accept_downgrade_reject"])
        assert found["blocking"] == pytest.approx(rejected, rel=1e-9, abs=1e-12)
        assert found["downgraded"] == pytest.approx(downgraded, abs=1e-11)
        assert found["mean_jobs"] == pytest.approx(record["mean_L"], rel=1e-10)

    @pytest.mark.slow
    @pytest.mark.parametrize("scale", [20, 80])
    def test_of_means_over_time(self, scale):
        link = of_set(SETS[0], scale)
        model = link.model()
        states = [(i, k) for i in range(link.units + 1) for k in range((link.units - i) // 2 + 1)]
        start = np.zeros(len(states))
        start[0] = 1.0
        times = [0.5, 2.0, 8.0]
        laws = mc.transient(model, start, times, link.heuristic("downgrade_threshold").rule)
        means = np.array(laws.laws) @ states / scale
        for time, mean in zip(times, means, strict=True):
            assert mean == pytest.approx(TRANSIENT[str(scale)][str(time)], abs=1e-9)

    @pytest.mark.parametrize("one", PROGRAMS)
    def test_of_optima_and_bounds_by_scale(self, one):
        for scale, record in one["finite"].items():
            link = replace(system({**one}), scale=int(scale))
            found = mc.solve(link.model(), tolerance=1e-9)
            assert found.gain / link.scale == pytest.approx(record["opt_per_N"], rel=1e-9)
            assert link.fluid_bound() / link.scale == pytest.approx(one["LP"], rel=1e-12)
            assert link.fluid_bound() <= found.bounds[1]

    @pytest.mark.parametrize("one", PROGRAMS)
    def test_of_the_limit_cost_of_a_threshold_that_tends_to_the_capacity(self, one):
        link = system(one, 0.9999999 * one["C"], scale=10)
        assert link.limit().cost == pytest.approx(one["D_c0=c_limit_cost"], rel=1e-5)


class TestExactly:
    @pytest.mark.parametrize(("parameters", "below", "full"), EXACT)
    def test_tiny_links_in_rational_arithmetic(self, parameters, below, full):
        units, rates, services, capacity, level = parameters
        law = exact_law(units, rates, services, capacity, level)
        used = {x: sum(a * n for a, n in zip(units, x, strict=True)) for x in law}
        assert sum(p for x, p in law.items() if used[x] < level) == below
        assert sum(p for x, p in law.items() if used[x] == capacity) == full

    @pytest.mark.parametrize(("parameters", "below", "full"), EXACT)
    def test_and_in_the_model(self, parameters, below, full):
        units, rates, services, capacity, level = parameters
        link = Downgrading(rates, services, units, capacity, level)
        found = measured(link)
        assert found["blocking"] == pytest.approx([float(full)] * 2, abs=1e-14)
        law = exact_law(units, rates, services, capacity, level)
        assert found["mean_jobs"] == pytest.approx(
            [float(sum(p * x[j] for x, p in law.items())) for j in range(2)], rel=1e-13
        )


def exact_law(units, rates, services, capacity, level, unfit="downgrade"):
    """Stationary law of D(level), by elimination in fractions."""
    sizes = [range(capacity // a + 1) for a in units]
    states = [
        x
        for x in itertools.product(*sizes)
        if sum(a * n for a, n in zip(units, x, strict=True)) <= capacity
    ]
    flows = {}
    for x in states:
        used = sum(a * n for a, n in zip(units, x, strict=True))
        for j, rate in enumerate(rates):
            target = list(x)
            fits = used + units[j] <= capacity
            if used < level and fits:
                target[j] += 1
            elif used < capacity and (used >= level or unfit == "downgrade"):
                target[0] += 1
            pair = x, tuple(target)
            flows[pair] = flows.get(pair, 0) + Fraction(rate)
            if x[j]:
                target = list(x)
                target[j] -= 1
                pair = x, tuple(target)
                flows[pair] = flows.get(pair, 0) + Fraction(services[j]) * x[j]
    index = {x: i for i, x in enumerate(states)}
    balance = [[Fraction(0)] * len(states) for _ in states]
    for (x, y), rate in flows.items():
        balance[index[y]][index[x]] += rate
        balance[index[x]][index[x]] -= rate
    balance[-1] = [Fraction(1)] * len(states)
    law = solve_exactly(balance, [Fraction(0)] * (len(states) - 1) + [Fraction(1)])
    return dict(zip(states, law, strict=True))


@st.composite
def finite_links(draw):
    units = (1, *draw(st.lists(st.integers(2, 4), min_size=1, max_size=2)))
    rate = st.floats(0.1, 5.0)
    capacity = draw(st.integers(max(units) + 3, 12))
    return Downgrading(
        [draw(rate) for _ in units],
        [draw(rate) for _ in units],
        units,
        capacity,
        draw(st.integers(0, capacity)),
        [draw(rate) for _ in units],
        [0.0, *(draw(rate) for _ in units[1:])],
        unfit=draw(st.sampled_from(["downgrade", "reject"])),
    )


class TestConservation:
    @given(finite_links())
    @settings(max_examples=25, deadline=None)
    def test_flows_of_every_class_balance(self, link):
        found = measured(link)
        rates, services = np.array(link.arrival_rates), np.array(link.service_rates)
        lost, lower = np.array(found["blocking"]), np.array(found["downgraded"])
        in_full = rates * (1 - lost - lower)
        gone = services * found["mean_jobs"]
        assert gone[1:] == pytest.approx(in_full[1:], rel=1e-9)
        assert gone[0] == pytest.approx(in_full[0] + rates @ lower, rel=1e-9)

    @given(finite_links())
    @settings(max_examples=25, deadline=None)
    def test_the_mean_of_the_units_in_use_gives_the_time_below_the_threshold(self, link):
        assume(link.level + max(link.requirements) - 1 <= link.units)  # full rate always fits
        found = measured(link)
        rates, services = np.array(link.arrival_rates), np.array(link.service_rates)
        low, full = rates.sum() / services[0], np.dot(link.requirements, rates / services)
        assume(abs(full - low) > 0.1)
        used = np.dot(link.requirements, found["mean_jobs"])
        below = (used - low * (1 - found["blocking"][0])) / (full - low)
        expected = 1 - found["blocking"][1] - found["downgraded"][1]
        assert below == pytest.approx(expected, abs=1e-9 * (1 + low + full) / abs(full - low))

    @given(finite_links())
    @settings(max_examples=15, deadline=None)
    def test_the_optimum_is_between_the_fluid_bound_and_every_policy(self, link):
        found = mc.solve(link.model(), tolerance=1e-9)
        assert link.fluid_bound() <= found.bounds[1] * (1 + 1e-12)
        for name in link.policy_names:
            assert cost(link, link.heuristic(name).rule) >= found.bounds[0] * (1 - 1e-12)


class TestPolicies:
    def test_thresholds_per_class_are_much_better_than_a_common_one(self):
        link = system(RECORDS[5])
        common, classes = link.families()
        assert [one.name for one in classes.parameters] == ["threshold[1]", "threshold[2]"]
        best = cost(link, classes.member(8, 4))
        assert best == pytest.approx(1.101415183, rel=1e-8)
        assert best < cost(link, common.member(6)) - 0.04
        assert best > RECORDS[5]["opt_cost"]

    def test_equal_thresholds_per_class_are_a_common_one(self):
        for unfit in ("downgrade", "reject"):
            link = system(RECORDS[5], unfit=unfit)
            common, classes = link.families()
            for level in (0, 5, 9):
                one, other = common.member(level), classes.member(level, level)
                assert cost(link, one) == pytest.approx(cost(link, other), rel=1e-12)

    def test_levels_beyond_the_last_of_a_class_change_nothing(self):
        link = system(RECORDS[5])
        _, classes = link.families()
        tops = [one.values[-1] for one in classes.parameters]
        assert tops == [11, 9]
        assert cost(link, classes.member(11, 9)) == pytest.approx(
            cost(link, classes.member(12, 12)), rel=1e-13
        )

    def test_a_large_grid_is_coarse_and_says_so(self):
        link = Downgrading((10.0, 10.0, 10.0), (1.0,) * 3, (1, 2, 4), 100, 60)
        common, classes = link.families()
        assert common.size == 101
        assert classes.size <= 3000
        assert classes.notes == ("the thresholds are multiples of 2, and the largest",)
        assert [one.values[-2:] for one in classes.parameters] == [(98, 99), (96, 97)]

    def test_one_class_has_no_threshold_to_be_searched_for(self):
        link = Downgrading((3.0,), (1.0,), (1,), 5, 2)
        assert link.families() == ()
        assert cost(link, link.heuristic("downgrade_threshold").rule) == pytest.approx(
            3.0 * 81 / 736, rel=1e-13
        )

    def test_an_unknown_policy_is_refused_with_those_there_are(self):
        with pytest.raises(InputError, match=r"there are downgrade_threshold, always_downgrade"):
            system(RECORDS[0]).heuristic("threshold")


class TestJobsThatDoNotFit:
    @pytest.mark.parametrize("unfit", ["downgrade", "reject"])
    @pytest.mark.parametrize("level", [3, 4])
    def test_are_downgraded_or_rejected_as_asked(self, unfit, level):
        parameters = (1, 3), (1, 1), (1, 2), 4, level
        law = exact_law(*parameters, unfit)
        units, rates, services, capacity, _ = parameters
        link = Downgrading(rates, services, units, capacity, level, unfit=unfit)
        found = measured(link)
        used = {x: x[0] + 3 * x[1] for x in law}
        unfitting = sum(p for x, p in law.items() if 1 < used[x] < level and used[x] < 4)
        full = sum(p for x, p in law.items() if used[x] == 4)
        lost = full + (unfitting if unfit == "reject" else 0)
        assert found["blocking"] == pytest.approx([float(full), float(lost)], abs=1e-14)
        (note,) = link.notes
        assert note.endswith("downgraded then" if unfit == "downgrade" else "rejected then")

    def test_are_mentioned_only_where_there_are_any(self):
        assert Downgrading((1.0, 1.0), (1.0, 1.0), (1, 3), 5, 3).notes == ()
        assert len(Downgrading((1.0, 1.0), (1.0, 1.0), (1, 3), 5, 4).notes) == 1


class TestLimit:
    @pytest.mark.parametrize(
        ("threshold", "capacity", "regime"),
        [
            (1.2, 1.5, "no_downgrading"),
            (0.9, 1.0, "partial_downgrading"),
            (0.5, 1.0, "all_downgraded"),
            (0.3, 0.5, "overloaded"),
        ],
    )
    def test_is_approached_by_finite_links_in_every_regime(self, threshold, capacity, regime):
        link = Downgrading((0.3, 0.4), (1.0, 1.0), (1, 2), capacity, threshold, scale=160)
        limit = link.limit()
        assert limit.regime == regime
        gaps = []
        for scale in (20, 160):
            found = measured(replace(link, scale=scale))
            gaps.append(
                [
                    abs(found["blocking"][0] - limit.blocking[0]),
                    abs(found["downgraded"][1] - limit.downgraded[1]),
                    *np.abs(np.divide(found["mean_jobs"], scale) - limit.mean_jobs),
                ]
            )
        assert max(gaps[1]) < 0.1
        assert max(gaps[1]) < max(gaps[0])

    def test_cost_is_that_of_its_probabilities(self):
        link = replace(Downgrading.example(), threshold=7.0)
        limit = link.limit()
        lower = np.dot((0.0, 0.2, 0.4), limit.downgraded) * 2.0
        assert limit.cost == pytest.approx(lower, rel=1e-14)
        lost = replace(link, threshold=3.0, capacity=4.0, rejection_costs=(1.0, 2.0, 3.0)).limit()
        assert lost.cost == pytest.approx(
            2.0 * (6.0 / 3 + 0.6 * 2 / 3), rel=1e-14
        )  # a third is lost, and two thirds of classes 1 and 2 are downgraded

    def test_costs_do_not_depend_on_the_scale(self):
        one = Downgrading.example()
        assert replace(one, scale=7.0).limit() == one.limit()

    def test_there_is_none_where_downgrading_makes_the_load_larger(self):
        link = Downgrading((0.3, 0.4), (1.0, 4.0), (1, 2), 1.0, 0.6, scale=10)
        with pytest.raises(NoLimitError, match=r"the threshold must be more than 0\.1 higher"):
            link.limit()

    @pytest.mark.parametrize("unfit", ["downgrade", "reject"])
    def test_of_a_threshold_at_the_capacity_is_that_of_a_link_that_fills_up(self, unfit):
        link = Downgrading((0.3, 0.4), (1.0, 1.0), (1, 2), 1.0, 1.0, unfit=unfit, scale=20)
        limit = link.limit()
        assert (limit.regime, limit.certified) == ("filled", unfit == "reject")
        gaps = []
        for scale in (20, 160):
            found = measured(replace(link, scale=scale))
            gaps.append(
                np.abs(np.subtract(found["blocking"], limit.blocking))
                + np.abs(np.subtract(found["downgraded"], limit.downgraded))
            )
        assert (gaps[1] < 0.55 * gaps[0]).all()
        assert (gaps[1] < 0.08).all()

    @pytest.mark.parametrize("one", SETS)
    def test_the_walk_spends_the_right_time_below_the_threshold(self, one):
        link = of_set(one, 100)
        law, limit = link.walk(), link.limit()
        assert law.below == pytest.approx(1 - limit.downgraded[1], rel=1e-12)
        assert law.mean == pytest.approx(one["E_m"], abs=1e-8)
        with pytest.raises(NoLimitError, match="the walk drifts to the"):
            replace(link, threshold=0.1).walk()

    def test_the_fluid_limit_comes_to_it(self):
        link = of_set(SETS[0], 10)
        path = link.fluid(40.0, times=[40.0])
        assert path.labels == ("mean_jobs[0]", "mean_jobs[1]")
        assert path.states[0] == pytest.approx(link.limit().mean_jobs, abs=1e-8)


sizes = st.floats(-99.0, 99.0).map(lambda power: 10.0**power)
tens = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)


class TestFarApart:
    @given(
        st.lists(sizes, min_size=6, max_size=6), st.lists(tens, min_size=2, max_size=2), st.data()
    )
    @settings(deadline=None)
    def test_whatever_is_given_is_no_number_or_finite(self, wide, tame, data):
        capacity = data.draw(st.floats(2.0, 100.0))
        link = Downgrading(
            (wide[0], wide[1]),
            (wide[2], wide[3]),
            (1, 2),
            capacity,
            data.draw(st.integers(0, 100)) / 100.0 * capacity,
            (wide[4], wide[5]),
            (0.0, tame[0]),
            scale=1.0,
        )
        assert np.isfinite(link.fluid_bound())
        try:
            found = link.limit()
        except (NoLimitError, SolveError):
            return
        numbers = (*found.blocking, *found.downgraded, *found.mean_jobs, found.cost)
        assert np.isfinite([*numbers, *found.errors.values()]).all()
        assert min(numbers) >= 0.0

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("rejection_costs", (1e308, 1e308)),
            ("downgrading_costs", (0.0, 1e308)),
            ("arrival_rates", (1e308, 1e308)),
            ("service_rates", (1e308, 1e308)),
            ("scale", 1e300),
        ],
    )
    def test_beyond_the_range_of_sums_is_refused(self, name, value):
        link = Downgrading((3.0, 4.0), (1.0, 1.0), (1, 2), 10.0, 8.0)
        with pytest.raises(InputError, match=f"{name}.* must be 0 or in"):
            replace(link, **{name: value})


class TestSimulation:
    def test_estimates_agree_with_the_exact_cost(self):
        link = of_set(SETS[0], 20)
        rule = link.heuristic("downgrade_threshold").rule
        exact = mc.evaluate(link.model(), rule).gain
        found = mc.simulate(link.model(), rule, events=200_000, rng=7)
        assert abs(found.gain.value - exact) <= 4 * found.gain.standard_error


class TestBadParameters:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"service_rates": (1.0,)}, "service_rates has 1 entries and arrival_rates has 2"),
            ({"requirements": (1, 2, 3)}, "requirements has 3 entries"),
            ({"rejection_costs": ()}, "rejection_costs has 0 entries"),
            ({"requirements": (2, 3)}, r"requirements\[0\] is 2; class 0"),
            ({"requirements": (1, 1)}, r"requirements\[1\] is 1; it must be an integer from 2"),
            ({"requirements": (1, 11)}, "to the 10 units of the link"),
            ({"threshold": 10.5}, "threshold is 10.5, beyond the capacity 10"),
            ({"downgrading_costs": (0.1, 0.2)}, r"downgrading_costs\[0\] is 0.1; class 0 is never"),
            ({"arrival_rates": (0.0, 0.0)}, "arrival_rates are all 0"),
            ({"capacity": 0.3}, "it must be >= 1"),
            ({"service_rates": (1.0, 0.0)}, r"service_rates\[1\] must be a finite number > 0"),
            ({"unfit": "drop"}, "unfit must be 'downgrade' or 'reject'"),
        ],
    )
    def test_are_refused_with_their_name(self, changes, words):
        with pytest.raises(InputError, match=words):
            replace(Downgrading((3.0, 4.0), (1.0, 1.0), (1, 2), 10, 0), **changes)

    def test_caps_are_refused(self):
        with pytest.raises(InputError, match="the states of a link are finite"):
            Downgrading.example().model(caps=(3, 3, 3))

    def test_rounding_is_noted(self):
        link = replace(Downgrading.example(), scale=1.25)
        assert (link.units, link.level) == (13, 8)
        assert [note.partition(" = ")[0] for note in link.notes] == ["capacity", "threshold"]
