"""Offloading: the finite system, its optimum and policies, and its limit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.systems.offloading import Offloading
from tests.common.exact import solve_exactly
from tests.models import reference

FINITE = reference("allocation")["S5_finite_mdp_ring"]
RINGS = [record for record in FINITE["ring"] if "N" in record]
EXACT = [
    ((1, 1), (1, 2), (1, 1), ("1/2", "1/4"), ("80/163", "203/326")),
    (
        (2, 3),
        (3, 2),
        (1, 1),
        ("1/2", "1/4"),
        ("5095543138/13796409685", "3969210406/13796409685"),
    ),
    ((1, 2), (2, 1), (1, 2), ("1", "0"), ("110/601", "141/601")),
]


def evaluated(system: Offloading, name: str = "bernoulli_offloading") -> Any:
    """Cost and bounds of all measures of a policy."""
    model = system.model()
    found = mc.evaluate(model, mc.policy(model, system.heuristic(name).rule))
    measures = {key: tuple(map(float, pair)) for key, pair in found.measures.items()}
    cost = float(np.min(found.bounds[0])), float(np.max(found.bounds[1]))
    return found.gain, {**measures, **system.derived(cost, measures)}


def per_class(measures: Any, kind: str) -> list[float]:
    size = sum(name.startswith(f"{kind}[") for name in measures)
    return [sum(measures[f"{kind}[{k}]"]) / 2 for k in range(size)]


def of_record(record: Any, probabilities: tuple[float, float]) -> Offloading:
    return Offloading(
        arrival_rates=(record["lambda1"], record["lambda2"]),
        service_rates=(record["mu1"], record["mu2"]),
        servers=(record["C1"], record["C2"]),
        offload_probabilities=probabilities,
        rejection_costs=(record["w1"], record["w2"]),
    )


# --- finite systems -------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "arrivals", "rates", "chances", "blocking"), EXACT)
def test_blocking_is_a_known_rational(
    servers: Any, arrivals: Any, rates: Any, chances: Any, blocking: Any
) -> None:
    exact = [Fraction(b) for b in blocking]
    assert exact_blocking(servers, arrivals, rates, [Fraction(p) for p in chances]) == exact
    system = Offloading(arrivals, rates, servers, tuple(float(Fraction(p)) for p in chances))
    cost, measures = evaluated(system)
    assert per_class(measures, "blocking") == pytest.approx([float(b) for b in exact], rel=1e-14)
    assert cost == pytest.approx(float(sum(map(Fraction.__mul__, exact, map(Fraction, arrivals)))))


def exact_blocking(servers: Any, arrivals: Any, rates: Any, chances: Any) -> list[Fraction]:
    """Blocking from the balance equations of the two centres in rational arithmetic."""
    states = list(itertools.product(*(range(c + 1) for c in servers)))
    place = {x: i for i, x in enumerate(states)}
    balance = [[Fraction(0)] * len(states) for _ in states]
    for x in states:
        for k in (0, 1):
            other_full = x[1 - k] == servers[1 - k]
            sent = chances[1 - k] * arrivals[1 - k] if other_full else 0
            for change, rate in ((+1, arrivals[k] + sent), (-1, Fraction(rates[k]) * x[k])):
                y = tuple(n + change * (i == k) for i, n in enumerate(x))
                if y in place:
                    balance[place[y]][place[x]] += rate
                    balance[place[x]][place[x]] -= rate
    balance[-1] = [Fraction(1)] * len(states)
    law = solve_exactly(balance, [Fraction(0)] * (len(states) - 1) + [Fraction(1)])
    full = [sum(law[place[x]] for x in states if x[k] == servers[k]) for k in (0, 1)]
    both = law[place[tuple(servers)]]
    return [(1 - p) * each + p * both for p, each in zip(chances, full, strict=True)]


@pytest.mark.parametrize(
    "record", FINITE["finite"], ids=lambda r: f"l={r['l1']},{r['l2']} p={r['p1']} N={r['N']}"
)
def test_finite_systems_have_the_reference_blocking(record: Any) -> None:
    system = Offloading(
        arrival_rates=(record["l1"], record["l2"]),
        service_rates=(record["mu"], record["mu"]),
        servers=(record["c1"], record["c2"]),
        offload_probabilities=(record["p1"], record["p2"]),
        scale=record["N"],
    )
    model = system.model()
    own = mc.policy(model, system.heuristic("bernoulli_offloading").rule)
    law = mc.stationary(model, own).reshape([count + 1 for count in system.counts])
    for k, full in enumerate((law[-1].sum(), law[:, -1].sum())):
        p = system.offload_probabilities[k]
        expected = record[f"beta{k + 1}"]
        assert (1 - p) * full + p * law[-1, -1] == pytest.approx(expected, rel=1e-9)
    limit = system.limit()
    assert [limit.regime, *limit.blocking] == [
        record["limit"][0],
        *(pytest.approx(beta, rel=1e-12) for beta in record["limit"][1:3]),
    ]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(r, marks=[pytest.mark.slow] if r["N"] > 8 else [], id=f"{r['lam']} N={r['N']}")
        for r in RINGS
    ],
)
def test_finite_rings_have_the_reference_blocking(record: Any) -> None:
    system = Offloading(record["lam"], (1.0,) * 3, record["c"], record["p"], scale=record["N"])
    _, measures = evaluated(system)
    assert per_class(measures, "blocking") == pytest.approx(record["beta"], rel=1e-7)


@pytest.mark.parametrize("limit", [r for r in FINITE["ring"] if "limit" in r], ids=str)
def test_rings_have_the_reference_limit(limit: Any) -> None:
    found = Offloading(limit["lam"], (1.0,) * 3, limit["c"], limit["p"]).limit()
    assert found.blocking == pytest.approx(limit["limit"], abs=1e-13)
    assert found.regime == ("full: 0, 1" if limit["load_node3"] else "full: 0")


# --- the control problem --------------------------------------------------------------------------


@pytest.mark.parametrize("record", FINITE["mdp"])
def test_the_optimum_and_the_policies_have_the_reference_costs(record: Any) -> None:
    system = of_record(record, (1.0, 0.0))
    optimum = mc.solve(system.model(), tolerance=1e-10)
    assert optimum.gain == pytest.approx(record["opt"]["both"], rel=1e-10)
    assert system.fluid_bound() == pytest.approx(record["fluid_lower_bound"], rel=1e-13)
    assert system.fluid_bound() <= optimum.gain
    for name, chances in {
        "bernoulli_offloading": "1.0,0",
        "complete_sharing": "1.0,1.0",
        "no_cooperation": "0,0",
    }.items():
        cost, _ = evaluated(system, name)
        assert cost == pytest.approx(record["p_policies"][chances], rel=1e-12)


@pytest.mark.parametrize("record", FINITE["mdp"])
def test_members_of_the_family_have_the_reference_costs(record: Any) -> None:
    system = of_record(record, (0.0, 0.0))
    family, sharing, alone = system.families()
    assert [one.name for one in (family, sharing, alone)] == list(system.policy_names)
    assert family.size == 441
    assert set(itertools.product((0.0, 0.5, 1.0), repeat=2)) <= set(family.members())
    model = system.model()
    for chances, cost in record["p_policies"].items():
        rules = family.member(*map(float, chances.split(",")))
        assert mc.evaluate(model, mc.policy(model, rules)).gain == pytest.approx(cost, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("record", FINITE["mdp"])
def test_the_comparison_finds_the_best_probabilities(record: Any) -> None:
    found = mc.compare(of_record(record, (1.0, 1.0)))
    assert found.optimum is not None
    costs = {row.name: row.cost for row in found.rows}
    best = costs["best bernoulli_offloading"]
    assert best <= min(record["p_policies"].values()) * (1 + 1e-12)
    assert best >= found.optimum.lower


@pytest.mark.parametrize(
    ("centres", "size", "step"), [(3, 343, "0.0833333"), (5, 243, "0.25"), (8, 256, "0.5")]
)
def test_grids_of_rings_are_coarser(centres: int, size: int, step: str) -> None:
    family = Offloading(*[(1.0,) * centres] * 3, (0.1,) * centres).families()[0]
    assert family.size == size
    assert f"step of {step}" in family.notes[0]
    assert family.parameters[0].values[-1] == 0.5


def test_large_rings_are_searched_with_one_probability() -> None:
    system = Offloading(*[(1.0,) * 9] * 3, (0.1,) * 9)
    family = system.families()[0]
    assert (family.size, len(family.parameters)) == (21, 1)
    assert "same probability" in family.notes[1]
    rules = family.member(0.5)
    assert len(rules) == 9


def test_a_ring_may_offload_to_either_side_only() -> None:
    system = Offloading((2.0, 0.5, 0.5), (1.0,) * 3, (1.0,) * 3, (0.3, 0.1, 0.5))
    names = [action.name for action in system.model().events[0].actions]  # type: ignore[union-attr]
    assert names == ["local", "offload left", "offload right", "reject"]
    cost, measures = evaluated(system)
    for k in range(3):
        left, right = (measures[f"forwarding_{side}_rate[{k}]"] for side in ("left", "right"))
        assert measures[f"forwarding_rate[{k}]"] == (left[0] + right[0], left[1] + right[1])
    assert cost == pytest.approx(sum(sum(measures[f"rejection_rate[{k}]"]) / 2 for k in range(3)))


CHANCES = st.integers(0, 20).map(lambda i: i / 40)
RATES = st.floats(0.2, 5)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.data())
def test_jobs_are_lost_forwarded_or_served_where_they_come(size: int, data: Any) -> None:
    draw = [data.draw(st.tuples(*[what] * size)) for what in (RATES, RATES, CHANCES)]
    servers = data.draw(st.tuples(*[st.integers(1, 3)] * size))
    arrivals, rates, chances = draw
    system = Offloading(arrivals, rates, servers, chances)
    cost, measures = evaluated(system)
    lost = np.array(per_class(measures, "blocking"))
    away = np.array(per_class(measures, "forwarded"))
    jobs = np.array(per_class(measures, "mean_jobs"))
    assert (1 - lost) @ arrivals == pytest.approx(jobs @ rates, rel=1e-9)
    assert lost @ arrivals == pytest.approx(cost, rel=1e-9)
    assert (lost + away <= 1 + 1e-12).all()
    assert system.fluid_bound() <= mc.solve(system.model(), tolerance=1e-9).gain * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.tuples(RATES, RATES), st.tuples(RATES, RATES), st.tuples(CHANCES, CHANCES))
def test_two_centres_may_be_renamed(arrivals: Any, rates: Any, chances: Any) -> None:
    one = Offloading(arrivals, rates, (2, 3), chances, (1.0, 2.0))
    other = Offloading(arrivals[::-1], rates[::-1], (3, 2), chances[::-1], (2.0, 1.0))
    (cost, found), (same, mirrored) = evaluated(one), evaluated(other)
    assert same == pytest.approx(cost, rel=1e-11)
    for kind in ("blocking", "forwarded", "mean_jobs"):
        expected = per_class(found, kind)[::-1]
        assert per_class(mirrored, kind) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_policy_that_is_not_randomised_is_complete_sharing() -> None:
    system = Offloading((6.0, 7.0), (1.0, 1.0), (4.0, 8.0), (1.0, 1.0))
    own, sharing = evaluated(system), evaluated(system, "complete_sharing")
    assert own[0] == pytest.approx(sharing[0], rel=1e-13)


# --- large scale ----------------------------------------------------------------------------------


def test_the_limit_has_every_measure_in_regime_e() -> None:
    system = Offloading((4.0, 9.0), (1.0, 2.0), (1.0, 5.0), (0.5, 0.25), (1.0, 3.0))
    limit = system.limit()
    pair = mc.systems.Offloading((4.0, 9.0), (1.0, 1.0), (1.0, 10.0), (0.5, 0.25)).limit()
    assert limit.regime == "E"
    assert limit.blocking == pair.blocking
    assert limit.mean_jobs == (1.0, 5.0)
    assert limit.forwarded is not None
    assert limit.cost == pytest.approx(4 * limit.blocking[0] + 27 * limit.blocking[1])
    assert set(limit.errors) == {"blocking", "mean_jobs", "cost", "forwarded"}
    assert max(limit.errors.values()) < 1e-11


@pytest.mark.parametrize(
    ("arrivals", "chances", "regime"),
    [
        ((1.5, 12.0), (1.0, 0.3), "E"),
        ((2.0, 8.0), (0.7, 0.0), "B2"),
        ((0.5, 12.0), (0.2, 0.1), "B1"),
    ],
)
def test_all_measures_of_finite_systems_approach_the_limit(
    arrivals: Any, chances: Any, regime: str
) -> None:
    system = Offloading(arrivals, (1.0, 1.0), (1.0, 10.0), chances)
    limit = system.limit()
    assert limit.regime == regime
    gaps = []
    for scale in (2, 8):
        cost, measures = evaluated(
            Offloading(arrivals, (1.0, 1.0), (1.0, 10.0), chances, None, scale)
        )
        found = [
            cost / scale,
            *per_class(measures, "blocking"),
            *per_class(measures, "forwarded"),
            *(jobs / scale for jobs in per_class(measures, "mean_jobs")),
        ]
        expected = limit.cost, *limit.blocking, *(limit.forwarded or ()), *limit.mean_jobs
        gaps.append(np.abs(np.subtract(found, expected)))
    assert (gaps[1] <= 0.6 * gaps[0] + 1e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize("chances", [(1.0, 0.3), (0.3, 0.4, 0.2)])
def test_simulated_large_systems_are_near_the_limit(chances: Any) -> None:
    size = len(chances)
    arrivals, servers = (1.5, 1.4, 0.5)[:size], (1.0, 1.0, 2.0)[:size]
    system = Offloading(arrivals, (1.0,) * size, servers, chances, scale=150)
    rules = system.heuristic("bernoulli_offloading").rule
    found = mc.simulate(system.model(), rules, rng=1, events=800_000)
    limit = system.limit()
    for k in range(size):
        lost = found.measures[f"rejection_rate[{k}]"].value / (150 * arrivals[k])
        assert lost == pytest.approx(limit.blocking[k], abs=0.02)


@pytest.mark.parametrize("chances", [(0.5, 0.2), (0.2, 0.1, 0.3)])
def test_the_fluid_path_is_that_of_large_systems(chances: Any) -> None:
    size, scale = len(chances), 60 if len(chances) == 2 else 12
    arrivals, servers = (2.0, 0.6, 0.4)[:size], (1.0, 1.5, 1.0)[:size]
    system = Offloading(arrivals, (1.0,) * size, servers, chances, scale=scale)
    times = [0.5, 1.5]
    path = system.fluid(2.0, times=times)
    model = system.model()
    found = mc.transient(model, 0, times, system.heuristic("bernoulli_offloading").rule)
    laws = found.laws.reshape(2, *[count + 1 for count in system.counts])
    for k in range(size):
        others = tuple(axis + 1 for axis in range(size) if axis != k)
        means = laws.sum(axis=others) @ np.arange(system.counts[k] + 1.0) / scale
        assert path.states[:, k] == pytest.approx(means, abs=0.5 / np.sqrt(scale))


def test_two_centres_and_a_ring_have_the_same_fluid_path() -> None:
    two = Offloading((2.0, 0.6), (1.0, 1.0), (1.0, 3.0), (0.4, 0.2)).fluid(5.0)
    ring = Offloading((2.0, 0.6, 0.6), (1.0,) * 3, (1.0, 3.0, 3.0), (0.2, 0.1, 0.1)).fluid(5.0)
    same = Offloading((2.0, 0.6), (1.0, 1.0), (1.0, 3.0), (0.2, 0.1)).fluid(5.0)
    assert two.states[-1, 1] > ring.states[-1, 1]
    assert same.states == pytest.approx(ring.states[:, :2], abs=1e-9)


def test_rings_with_three_full_neighbours_have_no_limit() -> None:
    with pytest.raises(NoLimitError, match="centres 0, 1, 2 are full together"):
        Offloading((2.0,) * 3, (1.0,) * 3, (1.0,) * 3, (0.1,) * 3).limit()


def test_a_ring_that_is_not_saturated_says_so() -> None:
    limit = Offloading((0.5,) * 4, (1.0,) * 4, (1.0,) * 4, (0.1,) * 4).limit()
    assert (limit.regime, limit.cost, limit.mean_jobs) == ("none full", 0.0, (0.5,) * 4)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers": (1.0,)}, "servers must be a list of at least 2"),
        ({"servers": (1.0, 2.0, 3.0)}, "servers has 3 numbers, arrival_rates 2"),
        ({"rejection_costs": (1.0, 2.0, 3.0)}, "rejection_costs has 3 numbers"),
        ({"arrival_rates": (0.0, 1.0)}, r"arrival_rates\[0\] must be a finite number > 0"),
        ({"offload_probabilities": (0.5, 1.5)}, r"offload_probabilities\[1\] must be .* <= 1"),
        ({"servers": (0.4, 2.0)}, r"servers\[0\] = 0.4 .* must be >= 1"),
        ({"scale": 0.0}, "scale must be"),
    ],
)
def test_bad_parameters_are_refused_by_name(change: Any, message: str) -> None:
    good = {
        "arrival_rates": (1.0, 1.0),
        "service_rates": (1.0, 1.0),
        "servers": (1.0, 2.0),
        "offload_probabilities": (0.5, 0.5),
    }
    with pytest.raises(InputError, match=message):
        Offloading(**{**good, **change})


def test_probabilities_beyond_a_half_are_refused_on_a_ring() -> None:
    with pytest.raises(
        InputError, match=r"offload_probabilities\[1\] must be at most 0.5, not 0.6"
    ):
        Offloading((1.0,) * 3, (1.0,) * 3, (1.0,) * 3, (0.5, 0.6, 0.1))


def test_caps_and_unknown_policies_are_refused() -> None:
    with pytest.raises(InputError, match="caps"):
        Offloading.example().model((1, 1))
    with pytest.raises(InputError, match="is unknown; there are bernoulli_offloading"):
        Offloading.example().heuristic("trunk_reservation")


def test_the_scale_multiplies_arrivals_and_servers_and_rounding_is_noted() -> None:
    small = Offloading((1.0, 2.0), (1.0, 0.5), (1.25, 4.0), (0.5, 0.5), scale=10)
    plain = Offloading((10.0, 20.0), (1.0, 0.5), (13, 40), (0.5, 0.5))
    assert small.counts == (13, 40)
    assert small.notes == ("servers[0] = 1.25 times the scale 10 is 12.5, rounded to 13",)
    assert plain.notes == ()
    assert evaluated(small)[0] == pytest.approx(evaluated(plain)[0], rel=1e-12)
    assert small.fluid_bound() == plain.fluid_bound()


def test_a_policy_that_is_misspelt_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'complete_sharing'"):
        Offloading.example().heuristic("complete_sharin")


@pytest.mark.parametrize("value", [1e308, 1e101, 1e-101, 5e-324])
@pytest.mark.parametrize(
    "field",
    ["arrival_rates", "service_rates", "servers", "rejection_costs", "scale"],
)
def test_numbers_whose_products_are_not_finite_are_refused_by_name(
    field: str, value: float
) -> None:
    given = value if field == "scale" else (1.0, value)
    place = field if field == "scale" else rf"{field}\[1\]"
    with pytest.raises(InputError, match=rf"{place} must be 0 or in 1e-100\.\.1e\+100"):
        replace(Offloading.example(), **{field: given})


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("price", [1e-90, 1e90])
def test_measures_and_bounds_of_the_largest_and_smallest_numbers_are_finite(
    unit: float, price: float
) -> None:
    system = Offloading((6 * unit, 7 * unit), (unit, unit), (4, 8), (1, 0.5), (price, price))
    known = Offloading((6, 7), (1, 1), (4, 8), (1, 0.5))
    found, usual = system.limit(), known.limit()
    assert found.blocking == pytest.approx(usual.blocking)
    assert found.cost == pytest.approx(usual.cost * unit * price)
    assert all(np.isfinite(error) for error in found.errors.values())
    assert system.fluid_bound() == pytest.approx(known.fluid_bound() * unit * price, rel=1e-9)


@pytest.mark.parametrize(
    "start",
    ["ab", 5, (None, 1.0), ("a", 1.0), (True, 1.0), (1.0,), (float("nan"), 1.0), (10**400, 1)],
)
def test_a_start_that_is_no_list_of_numbers_is_refused(start: Any) -> None:
    with pytest.raises(InputError, match="start"):
        Offloading.example().fluid(1.0, start)
